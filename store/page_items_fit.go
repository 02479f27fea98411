package store

import (
	"context"

	"github.com/uptrace/bun"
)

// How many of a batch's items one page of a filtered list looks at: a filter
// that asks something of results looks at those, too, and so goes less far.
const (
	itemsLook   = 25_000
	resultsLook = 5_000
)

// FitItems is one page of the items that fit a filter.
type FitItems struct {
	Rows []ItemRow
	// Looked is how many items were looked at when the page is not full though
	// there may be more to look at: after the position LookedTo.
	Looked   int64
	LookedTo int
}

// Look is how many of a batch's items, or of those in its state, one look goes
// through.
func (f ItemFilter) Look() int64 {
	if f.ofResult() {
		return resultsLook
	}
	return itemsLook
}

// Plain reports a filter of a batch's items by nothing but their state.
func (f ItemFilter) Plain() bool { return f == ItemFilter{Batch: f.Batch, State: f.State} }

// PageFitItems lists those items of the filter's batch that fit, by position,
// after the given one. It looks at a bounded number of them.
func (q Queries) PageFitItems(ctx context.Context, f ItemFilter, after int, limit int64) (FitItems, error) {
	var out FitItems
	if f.Plain() {
		rows, err := q.PageItems(ctx, f.Batch, f.State, after, limit)
		return FitItems{Rows: rows}, err
	}
	var items []Item
	err := f.narrow(q.db.NewSelect().Model(&items).ModelTableExpr("(?) AS i", f.near(q.db, after, "*"))).
		Order("i.position").Limit(limit).Scan(ctx)
	if err != nil {
		return out, translate(err)
	}
	if int64(len(items)) < limit {
		err = q.db.NewRaw("SELECT count(*), coalesce(max(position), 0) FROM (?) AS near", f.near(q.db, after, "position")).
			Scan(ctx, &out.Looked, &out.LookedTo)
		if out.Looked < f.Look() {
			out.Looked, out.LookedTo = 0, 0 // It was the end.
		}
	}
	if err != nil {
		return out, translate(err)
	}
	out.Rows, err = q.itemRows(ctx, items)
	return out, err
}

// CountFitItems counts what fits among the first items of the batch that one
// look goes through, up to one more than CountLimit.
func (q Queries) CountFitItems(ctx context.Context, f ItemFilter) (int64, error) {
	return q.countUpTo(ctx, f.narrow(q.db.NewSelect().TableExpr("(?) AS i", f.near(q.db, -1, "*"))))
}

// near are the items of the batch, in the filter's state, that one look goes
// through.
func (f ItemFilter) near(db bun.IDB, after int, columns string) *bun.SelectQuery {
	q := db.NewSelect().TableExpr("items AS i").ColumnExpr("i.?", bun.Safe(columns)).
		Where("i.batch_id = ?", f.Batch).Where("i.position > ?", after)
	if f.State != "" {
		q = q.Where("i.state = ?", f.State)
	}
	return q.Order("i.position").Limit(f.Look())
}

// PageItemsByID lists some items of a batch, by position.
func (q Queries) PageItemsByID(ctx context.Context, batchID int64, ids []int64) ([]ItemRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var items []Item
	err := q.db.NewSelect().Model(&items).Where("i.id IN (?)", bun.List(ids)).Where("i.batch_id = ?", batchID).Order("i.position").Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	return q.itemRows(ctx, items)
}
