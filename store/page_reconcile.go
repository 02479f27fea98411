package store

import (
	"context"
)

// PageRuns lists reconcile runs, newest first.
func (q Queries) PageRuns(ctx context.Context, from Key, limit int64) ([]ReconcileRun, error) {
	var runs []ReconcileRun
	err := after(q.db.NewSelect().Model(&runs), "started_at", from).Order("started_at DESC", "id DESC").
		Limit(limit).Scan(ctx)
	return runs, translate(err)
}
