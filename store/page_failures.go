package store

import (
	"context"

	"github.com/uptrace/bun"
)

// FailureRow is a failed item in the list of failures.
type FailureRow struct {
	ItemRow
	BatchName string
}

// PageFailures lists the failed items that match, the latest first.
func (q Queries) PageFailures(ctx context.Context, f Failed, from Key, limit int64) ([]FailureRow, error) {
	var items []Item
	query := after(q.db.NewSelect().Model(&items), "ended_at", from)
	if err := f.where(query).Order("i.ended_at DESC", "i.id DESC").Limit(limit).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	rows, err := q.itemRows(ctx, items)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].BatchID
	}
	var batches []struct {
		ID   int64
		Name string
	}
	err = q.db.NewRaw("SELECT id, name FROM batches WHERE id IN (?)", bun.List(ids)).Scan(ctx, &batches)
	if err != nil {
		return nil, translate(err)
	}
	names := make(map[int64]string, len(batches))
	for _, batch := range batches {
		names[batch.ID] = batch.Name
	}
	failures := make([]FailureRow, len(rows))
	for i := range rows {
		failures[i] = FailureRow{ItemRow: rows[i], BatchName: names[rows[i].BatchID]}
	}
	return failures, nil
}

// CountFailures counts the failures that match and wait for a person, up to one
// more than CountLimit.
func (q Queries) CountFailures(ctx context.Context, f Failed) (int64, error) {
	f.Standing = FailureWaiting
	return q.CountFailed(ctx, f, CountLimit)
}

// CountFailed counts the failed items that match up to one more than most.
func (q Queries) CountFailed(ctx context.Context, f Failed, most int) (int64, error) {
	return q.countAtMost(ctx, f.where(q.db.NewSelect().Model((*Item)(nil))), most+1)
}

func failed(q *bun.SelectQuery, code string) *bun.SelectQuery {
	q = q.Where("i.state = 'failed'")
	if code != "" {
		q = q.Where("i.error_code = ?", code)
	}
	return q
}

// maxFailureCodes bounds the choice of codes.
const maxFailureCodes = 100

// PageFailureCodes lists the codes of the failures that stand so, by name; an empty standing is of all.
// It jumps along the index from one code to the next, however many rows each has.
func (q Queries) PageFailureCodes(ctx context.Context, standing FailureStanding) ([]string, error) {
	failed := `i.state = 'failed'`
	switch standing {
	case FailureWaiting:
		failed += ` AND i.resolved_at IS NULL`
	case FailureResolved:
		failed += ` AND i.resolved_at IS NOT NULL`
	}
	var codes []string
	err := q.db.NewRaw(`WITH RECURSIVE codes AS (
			(SELECT i.error_code FROM items i WHERE `+failed+` ORDER BY i.error_code LIMIT 1)
			UNION ALL
			SELECT (SELECT i.error_code FROM items i WHERE `+failed+` AND i.error_code > c.error_code
				ORDER BY i.error_code LIMIT 1) FROM codes c WHERE c.error_code IS NOT NULL)
		SELECT error_code FROM codes WHERE error_code IS NOT NULL LIMIT ?`, maxFailureCodes).Scan(ctx, &codes)
	return codes, translate(err)
}
