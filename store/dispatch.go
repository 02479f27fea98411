package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Job returns one job.
func (q Queries) Job(ctx context.Context, id int64) (*Job, error) {
	j := &Job{}
	return j, q.hot.row(ctx, j, q.hot.job, id)
}

// LockJob returns one job and keeps it from being moved until the transaction
// ends.
func (t Tx) LockJob(ctx context.Context, id int64) (*Job, error) {
	j := &Job{}
	err := t.db.NewSelect().Model(j).Where("id = ?", id).For("NO KEY UPDATE").Scan(ctx)
	return j, translate(err)
}

// ClaimJob moves a job from intended to calling with a new call number and a
// lease that outlives the call. It reports false when the job was not there
// to claim, or is to be cancelled. vendorNow is now by the vendor's clock.
func (q Queries) ClaimJob(ctx context.Context, id int64, now, vendorNow, lease time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE jobs SET state = 'calling', call_no = call_no + 1,
		called_at = ?, called_vendor_at = ?, lease_until = ?, adopt_passes = 0, adopt_pass_at = NULL
		WHERE id = ? AND state = 'intended' AND cancel_requested_at IS NULL`, now, vendorNow, lease, id).Exec(ctx))
	return n == 1, err
}

// ExpireClaim moves a job whose claim outlived its lease to uncertain: nobody
// knows whether the vendor took the call.
func (q Queries) ExpireClaim(ctx context.Context, id int64, now time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE jobs SET state = 'uncertain'
		WHERE id = ? AND state = 'calling' AND lease_until <= ?`, id, now).Exec(ctx))
	return n == 1, err
}

// ExpiredClaims lists jobs whose claim outlived its lease, or that are
// uncertain since before then: somebody must look at them.
func (q Queries) ExpiredClaims(ctx context.Context, now time.Time, limit int) ([]int64, error) {
	var ids []int64
	err := q.db.NewRaw(`SELECT id FROM jobs WHERE state IN ('calling', 'uncertain') AND lease_until <= ?
		ORDER BY lease_until LIMIT ?`, now, limit).Scan(ctx, &ids)
	return ids, translate(err)
}

// SendItem is one URL a job sends, under the index the vendor will report.
type SendItem struct {
	InputIndex int
	ItemID     int64
	URL        string `bun:"url"`
	Open       bool   // It is outstanding, and this job its current one.
}

// SendList is what a job sends, in input order.
func (q Queries) SendList(ctx context.Context, jobID int64) ([]SendItem, error) {
	var out []SendItem
	err := q.db.NewRaw(`SELECT ji.input_index, ji.item_id, i.url,
			coalesce(i.state = 'outstanding' AND i.current_job_id = ji.job_id, false) AS open
		FROM job_items ji JOIN items i ON i.id = ji.item_id WHERE ji.job_id = ? ORDER BY ji.input_index`, jobID).Scan(ctx, &out)
	return out, translate(err)
}

// ReleaseJob moves a job back to intended after a call that the vendor
// certainly did not take, or, when wasUncertain, after looking in vain for it.
func (q Queries) ReleaseJob(ctx context.Context, id int64, callNo int) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE jobs SET state = 'intended', lease_until = NULL
		WHERE id = ? AND call_no = ? AND state IN ('calling', 'uncertain')`, id, callNo).Exec(ctx))
	return n == 1, err
}

// MarkUncertain moves a job whose call may or may not have been taken.
func (q Queries) MarkUncertain(ctx context.Context, id int64, callNo int, now time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE jobs SET state = 'uncertain', lease_until = ?
		WHERE id = ? AND call_no = ? AND state = 'calling'`, now, id, callNo).Exec(ctx))
	return n == 1, err
}

// AdoptPass counts one look through the vendor's lists that found nothing.
// The new count is returned; zero when the job is no longer uncertain.
func (q Queries) AdoptPass(ctx context.Context, id int64, callNo int, now, next time.Time) (int, error) {
	var passes []int
	err := q.db.NewRaw(`UPDATE jobs SET adopt_passes = adopt_passes + 1, adopt_pass_at = ?, lease_until = ?
		WHERE id = ? AND call_no = ? AND state = 'uncertain' RETURNING adopt_passes`,
		now, next, id, callNo).Scan(ctx, &passes)
	if err != nil || len(passes) == 0 {
		return 0, translate(err)
	}
	return passes[0], nil
}

// hashLock is the class of the advisory locks that put the adoptions of equal
// requests in a row.
const hashLock = 0x68617368

// LockHash keeps other adoptions for the same request waiting until this
// transaction ends.
func (t Tx) LockHash(ctx context.Context, hash []byte) error {
	_, err := t.db.NewRaw(`SELECT pg_advisory_xact_lock(?, hashtext(encode(?::bytea, 'hex')))`, hashLock, hash).Exec(ctx)
	return translate(err)
}

// CallingWithHash counts the jobs with one request hash that are calling.
func (q Queries) CallingWithHash(ctx context.Context, hash []byte) (int, error) {
	return q.count(ctx, `SELECT count(*) FROM jobs WHERE request_hash = ? AND state = 'calling'`, hash)
}

// AnyUncertain reports whether some job's call is still in doubt.
func (q Queries) AnyUncertain(ctx context.Context) (bool, error) {
	n, err := q.count(ctx, `SELECT count(*) FROM (SELECT 1 FROM jobs
		WHERE state IN ('calling', 'uncertain') LIMIT 1) t`)
	return n > 0, err
}

// KnownVendorIDs returns which of the vendor's ids are recorded here, with
// the job of each. One that was ours and was pruned is known as settled, without
// an ID.
func (q Queries) KnownVendorIDs(ctx context.Context, ids []string) (map[string]KnownJob, error) {
	out := map[string]KnownJob{}
	if len(ids) == 0 {
		return out, nil
	}
	var rows []KnownJob
	err := q.db.NewRaw(`SELECT 0 AS id, vendor_job_id, '' AS kind, 'settled' AS state, NULL AS accepted_at, false AS adopted
			FROM processed_events WHERE vendor_job_id IN (?ids) AND state = 'pruned'
		UNION ALL SELECT id, vendor_job_id, kind, state, accepted_at, adopted FROM jobs WHERE vendor_job_id IN (?ids)`,
		named{"ids": bun.List(ids)}).Scan(ctx, &rows)
	for _, r := range rows {
		out[r.VendorJobID] = r
	}
	return out, translate(err)
}

// KnownJob is a job of ours as found by its vendor id.
type KnownJob struct {
	ID          int64
	VendorJobID string
	Kind        Kind
	State       JobState
	AcceptedAt  *time.Time
	Adopted     bool // Only KnownVendorIDs tells it.
}

// EndJob moves a job that will never be accepted to refused, withdrawn or
// split, with the reason.
func (t Tx) EndJob(ctx context.Context, id int64, callNo int, to JobState, code, message string, now time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE jobs SET state = ?, error_code = ?, error_message = ?, ended_at = ?,
		lease_until = NULL, next_poll_at = NULL
		WHERE id = ? AND call_no = ? AND state IN ('intended', 'calling', 'uncertain')`,
		to, code, message, now, id, callNo).Exec(ctx))
	return n == 1, err
}

func (q Queries) count(ctx context.Context, query string, args ...any) (int, error) {
	var n int
	err := q.db.NewRaw(query, args...).Scan(ctx, &n)
	return n, translate(err)
}
