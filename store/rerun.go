package store

import (
	"context"
	"time"
)

// RerunItems lists what a batch that runs another one again is made of, in the
// order of their positions after the one given: its URLs with their lines and the
// columns beside them, all of them or only those that failed and that nobody
// resolved.
func (q Queries) RerunItems(ctx context.Context, batchID int64, failures bool, after, limit int) ([]Item, error) {
	var items []Item
	query := q.db.NewSelect().Model(&items).Column("position", "url", "line", "original", "extra").Where("batch_id = ? AND position > ?", batchID, after)
	if failures {
		query.Where("state = ?", ItemFailed).Where("resolved_at IS NULL")
	}
	err := query.Order("position").Limit(int64(limit)).Scan(ctx)
	return items, translate(err)
}

// CountStanding counts the failures of a batch: those that wait for a person,
// and those that one resolved. Both are of one moment.
func (q Queries) CountStanding(ctx context.Context, batchID int64) (int64, int64, error) {
	var waiting, resolved int64
	err := q.db.NewRaw(`SELECT b.failed - r.n, r.n FROM batches b, LATERAL (SELECT count(*) AS n FROM items
		WHERE batch_id = b.id AND state = 'failed' AND resolved_at IS NOT NULL) r WHERE b.id = ?`, batchID).Scan(ctx, &waiting, &resolved)
	return waiting, resolved, translate(err)
}

// Kin is a batch that another is tied to.
type Kin struct {
	ID        int64
	Name      string
	Rerun     *Rerun
	CreatedAt time.Time
}

// PageReruns lists the batches that run one again, newest first.
func (q Queries) PageReruns(ctx context.Context, batchID int64, limit int) ([]Kin, error) {
	var rows []Kin
	err := q.db.NewRaw(`SELECT id, name, rerun, created_at FROM batches WHERE parent_batch_id = ?
		ORDER BY id DESC LIMIT ?`, batchID, limit).Scan(ctx, &rows)
	return rows, translate(err)
}
