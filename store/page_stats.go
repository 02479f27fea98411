package store

import (
	"context"
	"time"
)

// PageHours lists what is counted of the hours from a time on, oldest first.
// Hours that were never counted are left out.
func (q Queries) PageHours(ctx context.Context, from time.Time) ([]HourStats, error) {
	var hours []HourStats
	err := q.db.NewSelect().Model(&hours).Where("hs.hour >= ?", from).Order("hs.hour").Scan(ctx)
	return hours, translate(err)
}

// PageCalls lists how many calls were made from an hour on, oldest hour first.
func (q Queries) PageCalls(ctx context.Context, from time.Time) ([]CallCount, error) {
	var counts []CallCount
	err := q.db.NewSelect().Model(&counts).Where("cc.hour >= ?", from).Order("cc.hour", "cc.kind").Scan(ctx)
	return counts, translate(err)
}

// LastRollUp is when the newest hour was last counted; zero before the first.
func (q Queries) LastRollUp(ctx context.Context) (time.Time, error) {
	var at []time.Time
	err := q.db.NewRaw(`SELECT rolled_at FROM hourly_stats ORDER BY hour DESC LIMIT 1`).Scan(ctx, &at)
	if err != nil || len(at) == 0 {
		return time.Time{}, translate(err)
	}
	return at[0], nil
}

// FirstBatch is when the first batch was submitted; zero before that.
func (q Queries) FirstBatch(ctx context.Context) (time.Time, error) {
	var at []time.Time
	err := q.db.NewRaw(`SELECT created_at FROM batches ORDER BY created_at, id LIMIT 1`).Scan(ctx, &at)
	if err != nil || len(at) == 0 {
		return time.Time{}, translate(err)
	}
	return at[0], nil
}

// What a Happening is about.
const (
	HappenedBatch     = "batch"     // ID ended; N of M are stored, Text is its name.
	HappenedRotation  = "rotation"  // The secret of the webhook for event Text; State is the rotation's.
	HappenedReplay    = "replay"    // ID; it settled N of M jobs that had not settled before, State is the replay's; see OnlyRefused.
	HappenedReconcile = "reconcile" // A run woke N jobs, M of which had no webhook.
	HappenedMode      = "mode"      // Auto mode came to mean State, because of Text.
	HappenedResumed   = "resumed"   // Gate State was paused for N seconds, and is open again.
	HappenedRefused   = "refused"   // A delivery was refused, because of Text.
	HappenedErrors    = "errors"    // N reconcile runs in a row met errors, until At.
)

// Happening is one thing that happened, and when.
type Happening struct {
	At    time.Time
	What  string
	ID    int64
	State string
	Text  string
	N, M  int64
}

// OnlyRefused reports a replay of refused deliveries alone, of no job: it took
// up N of M.
func (h *Happening) OnlyRefused() bool { return h.What == HappenedReplay && h.Text == "refused" }

// happeningsRuns bounds how many runs are looked through for one worth a word.
const happeningsRuns = 200

// PageHappenings lists what happened last, newest first: of each kind the last
// few, found by index.
func (q Queries) PageHappenings(ctx context.Context, limit int) ([]Happening, error) {
	var list []Happening
	err := q.db.NewRaw(`SELECT at, what, id, state, text, n, m FROM (
			(SELECT ended_at AS at, 'batch' AS what, id, '' AS state, name AS text,
				(stored_webhook + stored_poll + stored_reconcile + stored_replay + stored_sync)::bigint AS n, accepted::bigint AS m
				FROM batches WHERE ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT ?limit)
			UNION ALL (SELECT coalesce(r.ended_at, r.started_at), 'rotation', r.id, r.state, w.event_type, 0, 0
				FROM rotations r JOIN webhooks w ON w.id = r.webhook_id ORDER BY r.id DESC LIMIT ?limit)
			UNION ALL (SELECT coalesce(ended_at, started_at), 'replay', id, state, CASE WHEN jobs = 0 AND deliveries > 0 THEN 'refused' ELSE '' END,
					CASE WHEN jobs = 0 THEN recovered ELSE settled_now END,
					CASE WHEN jobs = 0 THEN deliveries ELSE jobs - greatest(settled_before, already_settled) END
				FROM (SELECT ended_at, started_at, id, state, settled_now, jobs, settled_before, already_settled, deliveries, recovered FROM replays ORDER BY id DESC LIMIT ?look) r
				WHERE started_at IS NOT NULL LIMIT ?limit)
			UNION ALL (SELECT finished_at, 'reconcile', id, '', '', woken, missing
				FROM (SELECT finished_at, id, woken, missing FROM reconcile_runs ORDER BY started_at DESC, id DESC LIMIT ?look) r
				WHERE woken > 0 AND finished_at IS NOT NULL LIMIT ?limit)
			UNION ALL (SELECT at, 'mode', id, mode, reason, 0, 0 FROM mode_changes ORDER BY id DESC LIMIT ?limit)
			UNION ALL (SELECT resumed_at, 'resumed', id, name, '', extract(epoch FROM resumed_at - paused_at)::bigint, 0
				FROM gate_pauses ORDER BY id DESC LIMIT ?limit)) happened
		ORDER BY at DESC, what, id DESC LIMIT ?limit`, named{"limit": limit, "look": happeningsRuns}).Scan(ctx, &list)
	return list, translate(err)
}

// PageLastTroubles lists the last trouble of each kind that is over, newest
// first: a pause, a time in which auto mode polled though it had relied on
// webhooks before, and a refused delivery that was signed.
func (q Queries) PageLastTroubles(ctx context.Context) ([]Happening, error) {
	var list []Happening
	err := q.db.NewRaw(`SELECT at, what, id, state, text, n, 0 AS m FROM (
			(SELECT resumed_at AS at, 'resumed' AS what, id, name AS state, '' AS text,
				extract(epoch FROM resumed_at - paused_at)::bigint AS n FROM gate_pauses ORDER BY id DESC LIMIT 1)
			UNION ALL (SELECT at, 'mode', id, mode, reason, 0
				FROM (SELECT at, id, mode, reason FROM mode_changes ORDER BY id DESC LIMIT 1) last
				WHERE mode = 'webhook' AND EXISTS (SELECT FROM mode_changes m WHERE m.id < last.id AND m.mode = 'webhook'))
			UNION ALL (SELECT received_at, 'refused', id, '', reason, 0 FROM deliveries
				WHERE verdict = 'refused' AND NOT unsigned ORDER BY received_at DESC, id DESC LIMIT 1)) troubles
		ORDER BY at DESC, what`).Scan(ctx, &list)
	return list, translate(err)
}
