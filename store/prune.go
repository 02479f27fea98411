package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// pruneTurn is the advisory lock between who marks batches as going, alone, and
// those who begin with what needs batches whole, together.
const pruneTurn = 0x7072

// HoldBatches keeps every batch from beginning to go until the transaction ends.
// A run of retention that meets it marks nothing, and leaves that to the next.
func (t Tx) HoldBatches(ctx context.Context) error {
	_, err := t.db.NewRaw(`SELECT pg_advisory_xact_lock_shared(?)`, pruneTurn).Exec(ctx)
	return translate(err)
}

// HoldBatch is HoldBatches, and reports whether a batch had begun to go.
func (t Tx) HoldBatch(ctx context.Context, id int64) (bool, error) {
	if err := t.HoldBatches(ctx); err != nil {
		return false, err
	}
	// A statement of its own, which sees what was marked before the lock was ours.
	var pruned bool
	err := t.db.NewRaw(`SELECT pruned_at IS NOT NULL FROM batches WHERE id = ?`, id).Scan(ctx, &pruned)
	return pruned, translate(err)
}

// comparedWithin is how long a comparison that nobody works out keeps its
// batches.
const comparedWithin = 24 * time.Hour

// ripe are batches that ended before the time and that nothing needs any more.
const ripe = `SELECT b.id FROM batches b WHERE b.pruned_at IS NULL AND b.ended_at < ?before AND b.outstanding = 0
	AND NOT EXISTS (SELECT FROM exports e WHERE e.state IN ('waiting', 'running')
		AND coalesce((e.filter->'filter'->>'batch')::bigint, b.id) = b.id)
	AND NOT EXISTS (SELECT FROM comparisons c WHERE c.state = 'waiting' AND c.asked_at > ?asked AND b.id IN (c.a_batch_id, c.b_batch_id))
	AND NOT EXISTS (SELECT FROM schedules s WHERE s.template_batch_id = b.id AND s.removed_at IS NULL)
	AND NOT EXISTS (SELECT FROM jobs j WHERE j.batch_id = b.id AND j.state = 'accepted')
	AND NOT EXISTS (SELECT FROM jobs j WHERE j.batch_id = b.id AND j.state IN ('intended', 'calling', 'uncertain'))
	AND NOT EXISTS (SELECT FROM jobs j JOIN replay_jobs rj ON rj.job_id = j.id JOIN replays r ON r.id = rj.replay_id
		WHERE j.batch_id = b.id AND rj.state <> 'ended' AND (rj.state <> 'waiting' OR r.state NOT IN ('done', 'cancelled')))`

// RipeBatches counts the batches that BeginPruning would mark if nobody held
// them, up to limit.
func (q Queries) RipeBatches(ctx context.Context, before, now time.Time, limit int) (int64, error) {
	var n int64
	err := q.db.NewRaw(`SELECT count(*) FROM (`+ripe+` ORDER BY b.ended_at, b.id LIMIT ?limit) AS first`,
		named{"before": before, "limit": limit, "asked": now.Add(-comparedWithin)}).Scan(ctx, &n)
	return n, translate(err)
}

// BeginPruning marks batches that ended before the time as going, at most limit
// of them, the oldest first, and returns how many it marked: those of which
// nothing is outstanding and no job may still be at the vendor, which no
// schedule runs again, no replay is about to look at, no comparison waits for
// and no file is being made of. From then on nothing of them becomes outstanding
// again, which the table itself sees to. It marks none while somebody holds
// batches, and passes over one whose row is locked.
func (t Tx) BeginPruning(ctx context.Context, before, now time.Time, limit int) (int64, error) {
	var alone bool
	if err := t.db.NewRaw(`SELECT pg_try_advisory_xact_lock(?)`, pruneTurn).Scan(ctx, &alone); err != nil || !alone {
		return 0, translate(err)
	}
	// A statement of its own: it sees what those who held batches have begun.
	return affected(t.db.NewRaw(`WITH over AS MATERIALIZED (`+ripe+`
			ORDER BY b.ended_at, b.id LIMIT ?limit FOR NO KEY UPDATE SKIP LOCKED)
		UPDATE batches SET pruned_at = ?now, headers_sealed = NULL FROM over WHERE batches.id = over.id`,
		named{"now": now, "before": before, "limit": limit, "asked": now.Add(-comparedWithin)}).Exec(ctx))
}

// PruningBatches lists batches of which not everything has gone yet, those that
// began to go first before the others.
func (q Queries) PruningBatches(ctx context.Context, limit int) ([]int64, error) {
	var ids []int64
	err := q.db.NewRaw(`SELECT id FROM batches WHERE pruned_at IS NOT NULL AND prune_ended_at IS NULL
		ORDER BY pruned_at, id LIMIT ?`, limit).Scan(ctx, &ids)
	return ids, translate(err)
}

// going says of a batch in a further condition that it is being pruned.
const going = ` AND EXISTS (SELECT FROM batches g WHERE g.id = ?id AND g.pruned_at IS NOT NULL)`

// PruneItems deletes items of a batch that is going, at most limit of them, the
// first first, with their results, lineage and whatever else is theirs. It
// returns how many went.
func (t Tx) PruneItems(ctx context.Context, batchID int64, limit int) (int64, error) {
	return affected(t.db.NewRaw(`DELETE FROM items WHERE state <> 'outstanding' AND id IN (
			SELECT id FROM items WHERE batch_id = ?id ORDER BY position LIMIT ?limit)`+going,
		named{"id": batchID, "limit": limit}).Exec(ctx))
}

// over says of jobs that nothing becomes of them any more, whoever looks.
const over = `state NOT IN ('intended', 'calling', 'uncertain', 'accepted')`

// PruneJobs deletes jobs of a batch that is going and has no items left, at most
// limit of them, the latest first, with their timelines. The vendor's ids of
// them stay known as pruned. Events come before jobs, as in Arrive: a delivery
// of such a job that arrives meanwhile waits for this at the event.
func (t Tx) PruneJobs(ctx context.Context, batchID int64, limit int, now time.Time) (int64, error) {
	var ids []int64
	err := t.db.NewRaw(`SELECT id FROM jobs WHERE batch_id = ?id AND `+over+`
		AND NOT EXISTS (SELECT FROM items WHERE batch_id = ?id)`+going+` ORDER BY id DESC LIMIT ?limit`,
		named{"id": batchID, "limit": limit}).Scan(ctx, &ids)
	if err != nil || len(ids) == 0 {
		return 0, translate(err)
	}
	_, err = t.db.NewRaw(`INSERT INTO processed_events (vendor_job_id, event_type, received_at, state)
		SELECT vendor_job_id, '', ?, 'pruned' FROM jobs WHERE id IN (?) AND vendor_job_id IS NOT NULL ORDER BY vendor_job_id
		ON CONFLICT (vendor_job_id) DO UPDATE SET state = 'pruned', received_at = EXCLUDED.received_at, job_id = NULL`,
		now, bun.List(ids)).Exec(ctx)
	if err != nil {
		return 0, translate(err)
	}
	return affected(t.db.NewRaw(`DELETE FROM jobs WHERE id IN (?) AND `+over, bun.List(ids)).Exec(ctx))
}

// PruneLines deletes rejected lines of a batch that is going, at most limit of
// them.
func (q Queries) PruneLines(ctx context.Context, batchID int64, limit int) (int64, error) {
	return affected(q.db.NewRaw(`DELETE FROM rejected_lines WHERE batch_id = ?id AND line IN (
		SELECT line FROM rejected_lines WHERE batch_id = ?id ORDER BY line LIMIT ?limit)`+going,
		named{"id": batchID, "limit": limit}).Exec(ctx))
}

// EndPruning notes that everything of the batch has gone but its row. It
// reports false when something is left.
func (t Tx) EndPruning(ctx context.Context, batchID int64, now time.Time) (bool, error) {
	args := named{"id": batchID, "now": now}
	for _, of := range []string{
		`DELETE FROM batch_pace WHERE batch_id = ?id` + going,
		`DELETE FROM comparisons WHERE (a_batch_id = ?id OR b_batch_id = ?id)` + going,
	} {
		if _, err := t.db.NewRaw(of, args).Exec(ctx); err != nil {
			return false, translate(err)
		}
	}
	n, err := affected(t.db.NewRaw(`UPDATE batches SET prune_ended_at = ?now
		WHERE id = ?id AND pruned_at IS NOT NULL AND prune_ended_at IS NULL
			AND NOT EXISTS (SELECT FROM items WHERE batch_id = ?id) AND NOT EXISTS (SELECT FROM jobs WHERE batch_id = ?id)
			AND NOT EXISTS (SELECT FROM rejected_lines WHERE batch_id = ?id)`, args).Exec(ctx))
	return n == 1, err
}
