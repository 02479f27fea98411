package store

import (
	"context"
	"time"
)

// forgetting deletes from one table what is older than a time, at most so many
// rows a call.
type forgetting string

// forget runs the deletions one after another, each once, and returns how many
// rows went.
func (q Queries) forget(ctx context.Context, before time.Time, limit int, from ...forgetting) (int64, error) {
	gone := int64(0)
	for _, each := range from {
		n, err := affected(q.db.NewRaw(string(each), named{"before": before, "limit": limit}).Exec(ctx))
		if err != nil {
			return gone, err
		}
		gone += n
	}
	return gone, nil
}

// ForgetEvents deletes processed events that nobody's job waits for, received
// before the time: of foreign jobs, and of jobs that were pruned, whose time
// counts from then. Those of jobs that are still here go with the job. At most
// limit go of each; it returns how many did.
func (q Queries) ForgetEvents(ctx context.Context, before time.Time, limit int) (int64, error) {
	return q.forget(ctx, before, limit,
		`DELETE FROM processed_events WHERE state = 'foreign' AND vendor_job_id IN (SELECT vendor_job_id FROM processed_events
			WHERE state = 'foreign' AND received_at < ?before ORDER BY received_at LIMIT ?limit)`,
		`DELETE FROM processed_events WHERE state = 'pruned' AND vendor_job_id IN (SELECT vendor_job_id FROM processed_events
			WHERE state = 'pruned' AND received_at < ?before ORDER BY received_at, vendor_job_id LIMIT ?limit)`)
}

// ForgetRuns deletes what was noted of our own work before the time: runs of
// the reconciler, changes of the mode but for the last, counts of what was
// refused unread, runs of schedules whose batch is pruned or
// was never made, and samples of the disk. At most limit rows go of each.
func (q Queries) ForgetRuns(ctx context.Context, before time.Time, limit int) (int64, error) {
	return q.forget(ctx, before, limit,
		`DELETE FROM reconcile_runs WHERE id IN (SELECT id FROM reconcile_runs WHERE started_at < ?before ORDER BY started_at, id LIMIT ?limit)`,
		`DELETE FROM mode_changes WHERE id IN (SELECT id FROM mode_changes WHERE at < ?before
			AND id < (SELECT max(id) FROM mode_changes) ORDER BY id LIMIT ?limit)`,
		`DELETE FROM refused_counts WHERE (webhook_id, day, cause) IN (SELECT webhook_id, day, cause FROM refused_counts
			WHERE last_at < ?before AND day < (?before)::timestamptz::date LIMIT ?limit)`,
		`DELETE FROM schedule_runs WHERE id IN (SELECT r.id FROM schedule_runs r LEFT JOIN batches b ON b.id = r.batch_id
			WHERE r.at < ?before AND (r.batch_id IS NULL OR b.pruned_at IS NOT NULL)
				AND r.id < (SELECT max(last.id) FROM schedule_runs last WHERE last.schedule_id = r.schedule_id)
			ORDER BY r.id LIMIT ?limit)`,
		`DELETE FROM disk_samples WHERE (at, part) IN (SELECT at, part FROM disk_samples WHERE at < ?before ORDER BY at, part LIMIT ?limit)`)
}

// overBefore finds replays that ended before the time.
const overBefore = `SELECT id FROM replays WHERE state IN ('done', 'cancelled') AND ended_at < ?before`

// ForgetReplays deletes replays that ended before the time, their parts first
// and at most limit of each, and cancels plans from before then that nobody
// ran. It returns how many rows it touched.
func (q Queries) ForgetReplays(ctx context.Context, before, now time.Time, limit int) (int64, error) {
	cancelled, err := affected(q.db.NewRaw(`UPDATE replays SET state = 'cancelled', ended_at = ?
		WHERE state = 'planned' AND planned_at < ?`, now, before).Exec(ctx))
	if err != nil {
		return 0, err
	}
	gone, err := q.forget(ctx, before, limit,
		`DELETE FROM replay_differences WHERE (replay_id, item_id) IN (SELECT d.replay_id, d.item_id FROM (`+overBefore+`) old
			JOIN replay_differences d ON d.replay_id = old.id LIMIT ?limit)`,
		`DELETE FROM replay_deliveries WHERE (replay_id, delivery_id) IN (SELECT d.replay_id, d.delivery_id FROM (`+overBefore+`) old
			JOIN replay_deliveries d ON d.replay_id = old.id LIMIT ?limit)`,
		`DELETE FROM replay_jobs WHERE (replay_id, job_id) IN (SELECT j.replay_id, j.job_id FROM (`+overBefore+`) old
			JOIN replay_jobs j ON j.replay_id = old.id LIMIT ?limit)`,
		`DELETE FROM replays WHERE id IN (`+overBefore+` AND NOT EXISTS (SELECT FROM replay_jobs j WHERE j.replay_id = replays.id)
			AND NOT EXISTS (SELECT FROM replay_deliveries d WHERE d.replay_id = replays.id)
			AND NOT EXISTS (SELECT FROM replay_differences d WHERE d.replay_id = replays.id) LIMIT ?limit)`)
	return cancelled + gone, err
}

// ForgetStats deletes hours of the statistics and counts of calls from before
// the time, at most limit rows of each.
func (q Queries) ForgetStats(ctx context.Context, before time.Time, limit int) (int64, error) {
	return q.forget(ctx, before, limit,
		`DELETE FROM hourly_stats WHERE hour IN (SELECT hour FROM hourly_stats WHERE hour < ?before ORDER BY hour LIMIT ?limit)`,
		`DELETE FROM call_counts WHERE (hour, kind) IN (SELECT hour, kind FROM call_counts WHERE hour < ?before ORDER BY hour, kind LIMIT ?limit)`)
}

// ForgetAudit deletes rows of the audit log from before the time, at most limit
// of them, the oldest first. Nothing else may take a row of it away.
func (t Tx) ForgetAudit(ctx context.Context, before time.Time, limit int) (int64, error) {
	if _, err := t.db.NewRaw(`SELECT set_config('rollcall.audit_time_is_over', 'yes', true)`).Exec(ctx); err != nil {
		return 0, translate(err)
	}
	n, err := t.forget(ctx, before, limit,
		`DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE at < ?before ORDER BY at, id LIMIT ?limit)`)
	if err != nil {
		return 0, err
	}
	_, err = t.db.NewRaw(`SELECT set_config('rollcall.audit_time_is_over', '', true)`).Exec(ctx)
	return n, translate(err)
}
