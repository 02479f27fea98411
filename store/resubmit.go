package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Failed selects failed items; a zero member selects all.
type Failed struct {
	BatchID int64
	Code    string
	Host    string    // As in the URL, in lower case, without a port.
	Before  time.Time // Those that failed before then.
	Group   string    // The key of a FailureGroup.
	// Standing narrows to those that wait for a person, or that one resolved.
	Standing FailureStanding
}

// FailedItems lists failed items, the latest first, at most limit of them.
func (q Queries) FailedItems(ctx context.Context, f Failed, limit int) ([]int64, error) {
	var ids []int64
	err := f.where(q.db.NewSelect().Model((*Item)(nil)).Column("id")).
		Order("i.ended_at DESC", "i.id DESC").Limit(int64(limit)).Scan(ctx, &ids)
	return ids, translate(err)
}

func (f Failed) where(q *bun.SelectQuery) *bun.SelectQuery {
	q = failed(q, f.Code)
	if f.BatchID != 0 {
		q = q.Where("i.batch_id = ?", f.BatchID)
	}
	if f.Host != "" {
		q = q.Where("i.host = ?", f.Host)
	}
	if f.Group != "" {
		q = q.Where("i.failure_group = ?::uuid", f.Group)
	}
	if !f.Before.IsZero() {
		q = q.Where("i.ended_at <= ?", f.Before)
	}
	switch f.Standing {
	case FailureWaiting:
		q = q.Where("i.resolved_at IS NULL")
	case FailureResolved:
		q = q.Where("i.resolved_at IS NOT NULL")
	}
	return q
}

// ReopenedItem is an item that a person may send again, with the last job of
// its lineage.
type ReopenedItem struct {
	ID, BatchID int64
	URL         string `bun:"url"`
	State       ItemState
	JobID       *int64
	JobKind     *Kind
	InputIndex  *int // In that job.
}

// AsPlanned is how items stood in a plan that a person saw before the press:
// what ended or was resolved since is left alone. Its zero value takes all that
// ended.
type AsPlanned struct {
	Before   time.Time       // When the plan was made.
	Standing FailureStanding // Of the failures in it; "" for a plan of any.
}

func (a AsPlanned) narrow(q *bun.SelectQuery) *bun.SelectQuery {
	q = a.Standing.narrow(q.Where("i.state IN ('failed', 'cancelled')"))
	if a.Before.IsZero() {
		return q
	}
	return q.Where("i.ended_at <= ?", a.Before).Where("(i.resolved_at IS NULL OR i.resolved_at <= ?)", a.Before)
}

// LockEnded locks those of the items that failed or were cancelled, and still
// stand as planned, and returns them, by batch. Items of a batch that is being
// pruned are none of them.
func (t Tx) LockEnded(ctx context.Context, ids []int64, as AsPlanned) ([]ReopenedItem, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var out []ReopenedItem
	rows := as.narrow(t.db.NewSelect().Model((*Item)(nil)).Column("id", "batch_id", "url", "state", "current_job_id").
		Where("i.id IN (?)", bun.List(ids)).
		Where("NOT EXISTS (SELECT FROM batches b WHERE b.id = i.batch_id AND b.pruned_at IS NOT NULL)")).Order("i.id").For("NO KEY UPDATE")
	err := t.db.NewRaw(`WITH locked AS (?)
		SELECT l.id, l.batch_id, l.url, l.state, j.id AS job_id, j.kind AS job_kind, ji.input_index
		FROM locked l LEFT JOIN jobs j ON j.id = l.current_job_id
		LEFT JOIN job_items ji ON ji.job_id = j.id AND ji.item_id = l.id
		ORDER BY l.batch_id, j.id, ji.input_index`, rows).Scan(ctx, &out)
	return out, translate(err)
}

// Reopen makes items outstanding again with a new current job; the caller
// holds them by LockEnded.
func (t Tx) Reopen(ctx context.Context, items, jobs []int64) error {
	_, err := t.tx.Tx.ExecContext(ctx, `UPDATE items i SET state = 'outstanding', ended_at = NULL, error_code = '',
			error_message = '', error_retryable = false, retries = 0, current_job_id = n.job,
			resolved_at = NULL, resolved_by = NULL, resolved_note = ''
		FROM unnest($1::bigint[], $2::bigint[]) AS n (item, job)
		WHERE i.id = n.item AND i.state IN ('failed', 'cancelled')`, items, jobs)
	return translate(err)
}

// UnflagBatch takes back that the batch is to be cancelled: a person wants
// something of it again.
func (t Tx) UnflagBatch(ctx context.Context, id int64) error {
	_, err := t.db.NewRaw(`UPDATE batches SET cancel_requested_at = NULL WHERE id = ? AND cancel_requested_at IS NOT NULL`, id).Exec(ctx)
	return translate(err)
}
