package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// ModeChange says what auto mode meant from a moment on, and why.
type ModeChange struct {
	bun.BaseModel `bun:"table:mode_changes"`
	ID            int64 `bun:",pk"`
	At            time.Time
	Mode          string
	Reason        string
}

// Record says of how many jobs the webhook came in time.
type Record struct {
	Jobs   int
	InTime int
}

// recordReach is how many settled jobs are looked through for each that is to
// count in a WebhookRecord.
const recordReach = 20

// WebhookRecord counts the last settled jobs that completed at the vendor, and
// how many of them had their webhook within the given time of being settled.
// The others say nothing of webhooks: the vendor has no event for them; nor do
// those whose webhook still has time to come.
func (q Queries) WebhookRecord(ctx context.Context, last int, within time.Duration, now time.Time) (Record, error) {
	var rec Record
	err := q.db.NewRaw(`SELECT count(*) AS jobs,
			count(*) FILTER (WHERE webhook_at <= ended_at + make_interval(secs => ?)) AS in_time
		FROM (SELECT webhook_at, ended_at FROM (SELECT webhook_at, ended_at, vendor_status, id FROM jobs
				WHERE state = 'settled' ORDER BY ended_at DESC, id DESC LIMIT ?) recent
			WHERE vendor_status = 'completed' AND (webhook_at IS NOT NULL OR ended_at <= ?)
			ORDER BY ended_at DESC, id DESC LIMIT ?) t`,
		within.Seconds(), recordReach*last, now.Add(-within), last).Scan(ctx, &rec)
	return rec, translate(err)
}

// LastModeChange returns what auto mode means at present; nil when nobody has
// judged it yet.
func (q Queries) LastModeChange(ctx context.Context) (*ModeChange, error) {
	var rows []*ModeChange
	err := q.db.NewSelect().Model(&rows).Order("id DESC").Limit(1).Scan(ctx)
	if err != nil || len(rows) == 0 {
		return nil, translate(err)
	}
	return rows[0], nil
}

// ChangeMode writes what auto mode means from now on, unless it is what it
// meant before. Of callers that do so at the same time one writes, and only it
// is told true.
func (t Tx) ChangeMode(ctx context.Context, c ModeChange) (bool, error) {
	n, err := affected(t.db.NewRaw(`INSERT INTO mode_changes (id, at, mode, reason)
		SELECT coalesce(last.id, 0) + 1, ?at, ?mode, ?reason
		FROM (SELECT 1) one LEFT JOIN (SELECT id, mode FROM mode_changes ORDER BY id DESC LIMIT 1) last ON true
		WHERE last.mode IS DISTINCT FROM ?mode
		ON CONFLICT (id) DO NOTHING`, named{"at": c.At, "mode": c.Mode, "reason": CleanText(c.Reason)}).Exec(ctx))
	return n == 1, err
}

// PollSoon brings forward the polls of open jobs that are further off than a
// time, at most limit of them, spread from now over the given seconds.
func (t Tx) PollSoon(ctx context.Context, now, furtherThan time.Time, over time.Duration, limit int) (int64, error) {
	return affected(t.db.NewRaw(`UPDATE jobs SET next_poll_at = ?::timestamptz + make_interval(secs => id % 100 * ? / 100.0)
		WHERE id IN (SELECT id FROM jobs WHERE state = 'accepted' AND next_poll_at > ?
			ORDER BY id LIMIT ? FOR NO KEY UPDATE SKIP LOCKED)`,
		now, over.Seconds(), furtherThan, limit).Exec(ctx))
}
