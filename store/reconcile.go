package store

import (
	"context"
	"time"
)

// StartRun writes a reconcile run and fills in its ID.
func (q Queries) StartRun(ctx context.Context, r *ReconcileRun) error {
	_, err := q.db.NewInsert().Model(r).
		Column("trigger", "started_at", "window_start", "window_end").Returning("id").Exec(ctx)
	return translate(err)
}

// FinishRun writes what a run found.
func (q Queries) FinishRun(ctx context.Context, r *ReconcileRun) error {
	_, err := q.db.NewUpdate().Model(r).
		Column("finished_at", "pages", "listed", "missing", "woken", "singly", "foreign_jobs",
			"refused", "held", "errors", "note").
		WherePK().Exec(ctx)
	return translate(err)
}

// OpenJobs lists jobs accepted before the time and not settled, oldest first,
// from after the key on; the zero Key is the beginning.
func (q Queries) OpenJobs(ctx context.Context, before time.Time, from Key, limit int) ([]KnownJob, error) {
	var out []KnownJob
	err := q.db.NewRaw(`SELECT id, vendor_job_id, kind, state, accepted_at FROM jobs
		WHERE state = 'accepted' AND accepted_at <= ? AND (accepted_at, id) > (?, ?)
		ORDER BY accepted_at, id LIMIT ?`, before, from.At, from.ID, limit).Scan(ctx, &out)
	return out, translate(err)
}

// OldestClaim is when the oldest call was made that is under way or in doubt;
// nil when there is none.
func (q Queries) OldestClaim(ctx context.Context) (*time.Time, error) {
	var at *time.Time
	err := q.db.NewRaw(`SELECT min(called_at) FROM jobs WHERE state IN ('calling', 'uncertain')`).Scan(ctx, &at)
	return at, translate(err)
}

// CountOpen counts the jobs that are accepted and not settled, up to limit.
func (q Queries) CountOpen(ctx context.Context, limit int) (int, error) {
	return q.count(ctx, `SELECT count(*) FROM (SELECT 1 FROM jobs WHERE state = 'accepted' LIMIT ?) t`, limit)
}

// AnyOpen reports whether some job is accepted and not settled.
func (q Queries) AnyOpen(ctx context.Context) (bool, error) {
	n, err := q.count(ctx, `SELECT count(*) FROM (SELECT 1 FROM jobs WHERE state = 'accepted' LIMIT 1) t`)
	return n > 0, err
}

// Recount is one batch whose counters differ from its rows.
type Recount struct {
	BatchID int64
	Column  string
	Counter int64
	Rows    int64
}

// RecountBatches compares counters with rows for batches with ids above after,
// at most limit of them. It returns the differences and the last id looked at,
// zero when there are no more. A batch whose rows are going, or gone, has only
// its counters. It scans and is meant for `rollcall doctor`.
func (q Queries) RecountBatches(ctx context.Context, after int64, limit int) ([]Recount, int64, error) {
	var rows []struct {
		ID                                                                   int64
		Accepted, Stored, Failed, Cancelled                                  int64
		RowsAccepted, RowsStored, RowsFailed, RowsCancelled                  int64
		StoredWebhook, StoredPoll, StoredReconcile, StoredReplay, StoredSync int64
		RowsWebhook, RowsPoll, RowsReconcile, RowsReplay, RowsSync, Results  int64
	}
	err := q.db.NewRaw(`SELECT b.id, b.accepted, b.failed, b.cancelled,
			b.stored_webhook + b.stored_poll + b.stored_reconcile + b.stored_replay + b.stored_sync AS stored,
			b.stored_webhook, b.stored_poll, b.stored_reconcile, b.stored_replay, b.stored_sync,
			count(i.id) AS rows_accepted,
			count(*) FILTER (WHERE i.state = 'stored') AS rows_stored,
			count(*) FILTER (WHERE i.state = 'failed') AS rows_failed,
			count(*) FILTER (WHERE i.state = 'cancelled') AS rows_cancelled,
			count(*) FILTER (WHERE i.net = 'webhook') AS rows_webhook,
			count(*) FILTER (WHERE i.net = 'poll') AS rows_poll,
			count(*) FILTER (WHERE i.net = 'reconcile') AS rows_reconcile,
			count(*) FILTER (WHERE i.net = 'replay') AS rows_replay,
			count(*) FILTER (WHERE i.net = 'sync') AS rows_sync,
			count(r.item_id) AS results
		FROM (SELECT * FROM batches WHERE id > ? AND pruned_at IS NULL ORDER BY id LIMIT ?) b
		LEFT JOIN items i ON i.batch_id = b.id LEFT JOIN results r ON r.item_id = i.id
		GROUP BY b.id, b.accepted, b.failed, b.cancelled, b.stored_webhook, b.stored_poll, b.stored_reconcile,
			b.stored_replay, b.stored_sync
		ORDER BY b.id`, after, limit).Scan(ctx, &rows)
	if err != nil {
		return nil, 0, translate(err)
	}
	var out []Recount
	last := int64(0)
	for i := range rows {
		r := &rows[i]
		last = r.ID
		for _, c := range []Recount{
			{r.ID, "accepted", r.Accepted, r.RowsAccepted},
			{r.ID, "stored", r.Stored, r.RowsStored},
			{r.ID, "results", r.Stored, r.Results},
			{r.ID, "failed", r.Failed, r.RowsFailed},
			{r.ID, "cancelled", r.Cancelled, r.RowsCancelled},
			{r.ID, "stored_webhook", r.StoredWebhook, r.RowsWebhook},
			{r.ID, "stored_poll", r.StoredPoll, r.RowsPoll},
			{r.ID, "stored_reconcile", r.StoredReconcile, r.RowsReconcile},
			{r.ID, "stored_replay", r.StoredReplay, r.RowsReplay},
			{r.ID, "stored_sync", r.StoredSync, r.RowsSync},
		} {
			if c.Counter != c.Rows {
				out = append(out, c)
			}
		}
	}
	return out, last, nil
}
