package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/uptrace/bun"
)

// idsAtOnce is how many ids one statement names, of a list whose length nobody
// bounds.
const idsAtOnce = 1_000

// Scope is what a person wants cancelled: a batch's jobs, or the jobs named.
type Scope struct {
	BatchID int64
	JobIDs  []int64
}

// jobs selects the scope's jobs; at most one of the two members is set.
func (s Scope) jobs() (string, named) {
	if s.BatchID != 0 {
		return `j.batch_id = ?scope`, named{"scope": s.BatchID}
	}
	return `j.id IN (?scope)`, named{"scope": bun.List(s.JobIDs)}
}

func (s Scope) empty() bool { return s.BatchID == 0 && len(s.JobIDs) == 0 }

// OpenCount is how many jobs of one kind and state a scope has, and how many
// URLs are outstanding with them.
type OpenCount struct {
	Kind  Kind
	State JobState
	Jobs  int
	URLs  int `bun:"urls"`
}

// CountScope counts the scope's jobs by kind and state, with the items that
// would end with them.
func (q Queries) CountScope(ctx context.Context, s Scope) ([]OpenCount, error) {
	if s.empty() {
		return nil, nil
	}
	where, args := s.jobs()
	var out []OpenCount
	items := `i.current_job_id = j.id AND i.state = 'outstanding'`
	if s.BatchID != 0 {
		items += ` AND i.batch_id = ?scope` // For its index: a big batch has many jobs.
	}
	err := q.db.NewRaw(`SELECT j.kind, j.state, count(DISTINCT j.id) AS jobs, count(i.id) AS urls
		FROM jobs j LEFT JOIN items i ON `+items+` WHERE `+where+` GROUP BY j.kind, j.state`, args).Scan(ctx, &out)
	return out, translate(err)
}

// FlagBatch notes that a person wants the batch cancelled: what is dispatched
// from its commit on is withdrawn instead.
func (q Queries) FlagBatch(ctx context.Context, id int64, now time.Time) error {
	_, err := q.db.NewRaw(`UPDATE batches SET cancel_requested_at = coalesce(cancel_requested_at, ?) WHERE id = ?`,
		now, id).Exec(ctx)
	return translate(err)
}

// CancelledBy is who asked at that time that the batch be cancelled, as the
// audit log has it; empty when it has nothing of it any more.
func (q Queries) CancelledBy(ctx context.Context, id int64, at time.Time) (string, error) {
	var who []string
	err := q.db.NewRaw(`SELECT who FROM audit_log WHERE kind = 'batch' AND on_id = ? AND at = ? AND what = 'batch.cancel' ORDER BY id LIMIT 1`,
		strconv.FormatInt(id, 10), at).Scan(ctx, &who)
	if err != nil || len(who) == 0 {
		return "", translate(err)
	}
	return who[0], nil
}

// Withdrawn is a job that ended before any call was made for it.
type Withdrawn struct{ ID, BatchID int64 }

// WithdrawJobs moves intended jobs of the scope to withdrawn, at most limit of
// them, and returns them; their items are the caller's to end.
func (t Tx) WithdrawJobs(ctx context.Context, s Scope, message string, limit int, now time.Time) ([]Withdrawn, error) {
	if s.empty() {
		return nil, nil
	}
	where, args := s.jobs()
	args["limit"] = limit
	ids, err := t.lock(ctx, `SELECT j.id FROM jobs j WHERE `+where+` AND j.state = 'intended' ORDER BY j.id LIMIT ?limit FOR NO KEY UPDATE`, args)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	var out []Withdrawn
	err = t.db.NewRaw(`UPDATE jobs SET state = 'withdrawn', ended_at = ?, lease_until = NULL, next_poll_at = NULL,
			error_message = ? WHERE id IN (?) RETURNING id, batch_id`, now, message, bun.List(ids)).Scan(ctx, &out)
	return out, translate(err)
}

// lock selects the ids of rows and locks these. It is a statement of its own:
// one that also updates them comes upon the versions that it saw when it began,
// and may wait there for somebody who waits for the locks it has.
func (t Tx) lock(ctx context.Context, query string, args named) ([]int64, error) {
	var ids []int64
	err := t.db.NewRaw(query, args).Scan(ctx, &ids)
	return ids, translate(err)
}

// CancelItemsOf ends as cancelled the outstanding items whose current job is
// one of these, and notes it in their lineage. It returns how many it ended by
// batch.
func (t Tx) CancelItemsOf(ctx context.Context, jobIDs []int64, code, message string, now time.Time) (map[int64]int64, error) {
	if len(jobIDs) == 0 {
		return nil, nil
	}
	open, err := t.lock(ctx, `SELECT id FROM items WHERE current_job_id IN (?jobs) AND state = 'outstanding' ORDER BY id FOR NO KEY UPDATE`,
		named{"jobs": bun.List(jobIDs)})
	if err != nil || len(open) == 0 {
		return nil, err
	}
	ended := map[int64]int64{}
	for part := range slices.Chunk(open, idsAtOnce) {
		if err := t.cancelItems(ctx, part, code, message, now, ended); err != nil {
			return nil, err
		}
	}
	return ended, nil
}

// cancelItems ends locked items as cancelled and counts them by batch.
func (t Tx) cancelItems(ctx context.Context, ids []int64, code, message string, now time.Time, ended map[int64]int64) error {
	var rows []struct {
		ID, BatchID, JobID int64
	}
	err := t.db.NewRaw(`UPDATE items SET state = 'cancelled', ended_at = ?, error_code = ?, error_message = ?,
			error_retryable = true WHERE id IN (?) RETURNING id, batch_id, current_job_id AS job_id`,
		now, code, message, bun.List(ids)).Scan(ctx, &rows)
	if err != nil {
		return translate(err)
	}
	jobs, items := make([]int64, len(rows)), make([]int64, len(rows))
	for i, r := range rows {
		ended[r.BatchID]++
		jobs[i], items[i] = r.JobID, r.ID
	}
	_, err = t.tx.Tx.ExecContext(ctx, `UPDATE job_items ji SET outcome = 'cancelled', error_code = $3, reported_at = $4
		FROM unnest($1::bigint[], $2::bigint[]) AS e (job_id, item_id)
		WHERE ji.job_id = e.job_id AND ji.item_id = e.item_id`, jobs, items, code, now)
	return translate(err)
}

// FlaggedJob is an open job that a person wants cancelled.
type FlaggedJob struct {
	ID, BatchID int64
	Kind        Kind
	State       JobState
}

// FlagJobs notes on the scope's open jobs behind an id, at most limit of them,
// that a person wants them cancelled, and returns them by id.
func (t Tx) FlagJobs(ctx context.Context, s Scope, after int64, limit int, now time.Time) ([]FlaggedJob, error) {
	if s.empty() {
		return nil, nil
	}
	where, args := s.jobs()
	args["after"], args["limit"] = after, limit
	ids, err := t.lock(ctx, `SELECT j.id FROM jobs j WHERE `+where+` AND j.id > ?after AND j.state IN ('calling', 'uncertain', 'accepted')
		ORDER BY j.id LIMIT ?limit FOR NO KEY UPDATE`, args)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	var flagged []FlaggedJob
	err = t.db.NewRaw(`WITH f AS (UPDATE jobs SET cancel_requested_at = coalesce(cancel_requested_at, ?)
		WHERE id IN (?) RETURNING id, batch_id, kind, state) SELECT * FROM f ORDER BY id`, now, bun.List(ids)).Scan(ctx, &flagged)
	return flagged, translate(err)
}
