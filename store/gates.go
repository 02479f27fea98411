package store

import (
	"context"
	"time"
)

// The two gates towards the vendor.
const (
	GateSubmit = "submit"
	GateRead   = "read"
)

// Gate returns a gate as it is now.
func (q Queries) Gate(ctx context.Context, name string) (*Gate, error) {
	g := &Gate{}
	err := q.db.NewSelect().Model(g).Where("name = ?", name).Scan(ctx)
	return g, translate(err)
}

// Gates returns both gates, by name.
func (q Queries) Gates(ctx context.Context) ([]*Gate, error) {
	var out []*Gate
	err := q.db.NewSelect().Model(&out).Order("name").Scan(ctx)
	return out, translate(err)
}

// CloseGate keeps a gate shut until the time; a later end that is already set
// stands. It counts how many times in a row the gate was closed: what was under
// way when it closed and is refused as well is the same time.
func (q Queries) CloseGate(ctx context.Context, name string, now, until time.Time) error {
	_, err := q.db.NewRaw(`UPDATE gates SET closed_until = greatest(coalesce(closed_until, ?until), ?until),
		closings = closings + CASE WHEN closed_until > ?now THEN 0 ELSE 1 END
		WHERE name = ?name`, named{"until": until, "now": now, "name": name}).Exec(ctx)
	return translate(err)
}

// OpenGate forgets a gate's closings after a call went through. One that is
// still closed stays so, since the call was under way when it closed; but what
// was learned counts: the vendor takes some calls, and the guess how long to
// wait does not go on growing.
func (q Queries) OpenGate(ctx context.Context, name string, now time.Time) error {
	_, err := q.db.NewRaw(`UPDATE gates SET closings = CASE WHEN closed_until > ?now THEN 1 ELSE 0 END,
			closed_until = CASE WHEN closed_until > ?now THEN closed_until END
		WHERE name = ?name AND (closings > 1 OR (closings = 1 AND closed_until <= ?now))`,
		named{"name": name, "now": now}).Exec(ctx)
	return translate(err)
}

// PauseGate shuts a gate until a probe or a person opens it. It reports false
// when it was paused already.
func (q Queries) PauseGate(ctx context.Context, name string, status int, reason string, now, probe time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE gates SET paused_at = ?, paused_status = ?, paused_reason = ?, probe_at = ?
		WHERE name = ? AND paused_at IS NULL`, now, status, CleanText(reason), probe, name).Exec(ctx))
	return n == 1, err
}

// TakeProbe lets exactly one caller try a paused gate when its probe is due.
func (q Queries) TakeProbe(ctx context.Context, name string, now, next time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE gates SET probe_at = ?
		WHERE name = ? AND paused_at IS NOT NULL AND probe_at <= ?`, next, name, now).Exec(ctx))
	return n == 1, err
}

// pausesKept is how long it is known when a gate was paused: longer than any
// deadline that a pause puts off.
const pausesKept = 90 * 24 * time.Hour

// ResumeGate opens a paused gate and notes how long it was paused.
func (q Queries) ResumeGate(ctx context.Context, name string, now time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`WITH was AS (SELECT name, paused_at FROM gates WHERE name = ?name AND paused_at IS NOT NULL FOR UPDATE),
		opened AS (
			UPDATE gates g SET paused_at = NULL, paused_status = NULL, paused_reason = '', probe_at = NULL,
				closed_until = NULL, closings = 0 FROM was WHERE g.name = was.name RETURNING g.name, was.paused_at),
		forgotten AS (DELETE FROM gate_pauses WHERE name = ?name AND resumed_at < ?old)
		INSERT INTO gate_pauses (name, paused_at, resumed_at) SELECT name, paused_at, greatest(?now, paused_at) FROM opened`,
		named{"name": name, "now": now, "old": now.Add(-pausesKept)}).Exec(ctx))
	return n == 1, err
}

// GatePaused is for how long the gate was paused between two times. A pause
// that goes on counts as well: one probe has gone through already, it may be,
// and its opening is not written down yet.
func (q Queries) GatePaused(ctx context.Context, name string, from, to time.Time) (time.Duration, error) {
	var seconds float64
	err := q.db.NewRaw(`SELECT coalesce(extract(epoch FROM sum(least(resumed_at, ?to) - greatest(paused_at, ?from))), 0)::float8
		FROM (SELECT paused_at, resumed_at FROM gate_pauses WHERE name = ?name AND resumed_at > ?from AND paused_at < ?to
			UNION ALL SELECT paused_at, ?to::timestamptz FROM gates WHERE name = ?name AND paused_at < ?to) AS pauses`,
		named{"name": name, "from": from, "to": to}).Scan(ctx, &seconds)
	return time.Duration(seconds * float64(time.Second)), translate(err)
}

// Setting returns a small fact the installation shares, "" when it is not set.
func (q Queries) Setting(ctx context.Context, key string) (string, error) {
	var out []string
	err := q.db.NewRaw(`SELECT value FROM settings WHERE key = ?`, key).Scan(ctx, &out)
	if err != nil || len(out) == 0 {
		return "", translate(err)
	}
	return out[0], nil
}

// InitSetting writes such a fact unless it is there, and returns the one that is.
func (q Queries) InitSetting(ctx context.Context, key, value string, now time.Time) (string, error) {
	_, err := q.db.NewRaw(`INSERT INTO settings (key, value, updated_at) VALUES (?, ?, ?)
		ON CONFLICT (key) DO NOTHING`, key, value, now).Exec(ctx)
	if err != nil {
		return "", translate(err)
	}
	return q.Setting(ctx, key)
}

// SetSetting writes such a fact.
func (q Queries) SetSetting(ctx context.Context, key, value string, now time.Time) error {
	_, err := q.db.NewRaw(`INSERT INTO settings (key, value, updated_at) VALUES (?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value, updated_at = EXCLUDED.updated_at`,
		key, value, now).Exec(ctx)
	return translate(err)
}

const alarmKey = "alarm"

// RaiseAlarm notes that something is wrong for all jobs at once.
func (q Queries) RaiseAlarm(ctx context.Context, reason string, now time.Time) error {
	return q.SetSetting(ctx, alarmKey, reason, now)
}

// Alarm is the last one raised, and when; "" when there was none since.
func (q Queries) Alarm(ctx context.Context, since time.Time) (string, time.Time, error) {
	var rows []struct {
		Value     string
		UpdatedAt time.Time
	}
	err := q.db.NewRaw(`SELECT value, updated_at FROM settings WHERE key = ? AND updated_at >= ?`, alarmKey, since).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return "", time.Time{}, translate(err)
	}
	return rows[0].Value, rows[0].UpdatedAt, nil
}
