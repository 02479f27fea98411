package store

import (
	"context"
	"strings"

	"github.com/uptrace/bun"
)

// BatchRow is a batch in a list, with who submitted it; "" when nobody did by
// name. Its options and headers are left out.
type BatchRow struct {
	Batch
	By string
}

// PageBatches lists batches, newest first. A name narrows it to batches that
// have it in theirs, without regard to case, among the next 10,000.
func (q Queries) PageBatches(ctx context.Context, name string, from Key, limit int64) ([]BatchRow, error) {
	if name == "" {
		return q.batchRows(ctx, limit, func(s *bun.SelectQuery) *bun.SelectQuery { return after(s, "created_at", from) })
	}
	near := after(q.db.NewSelect().Model((*Batch)(nil)).ExcludeColumn("options", "headers_sealed"), "created_at", from).
		Order("created_at DESC", "id DESC").Limit(searchDepth)
	return q.batchRows(ctx, limit, func(s *bun.SelectQuery) *bun.SelectQuery {
		return s.ModelTableExpr("(?) AS b", near).Where("name ILIKE ?", "%"+likeLiteral(name)+"%")
	})
}

// PageRunningBatches lists the newest batches that have not ended.
func (q Queries) PageRunningBatches(ctx context.Context, limit int64) ([]BatchRow, error) {
	return q.batchRows(ctx, limit, func(s *bun.SelectQuery) *bun.SelectQuery { return s.Where("ended_at IS NULL") })
}

// PageBatch is one batch with all it has; ErrNotFound when there is none.
func (q Queries) PageBatch(ctx context.Context, id int64) (*BatchRow, error) {
	row := new(BatchRow)
	if err := q.db.NewSelect().Model(&row.Batch).Where("b.id = ?", id).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	if row.CreatedBy == nil {
		return row, nil
	}
	names, err := q.names(ctx, []int64{*row.CreatedBy})
	row.By = names[*row.CreatedBy]
	return row, err
}

func (q Queries) batchRows(ctx context.Context, limit int64, narrow func(*bun.SelectQuery) *bun.SelectQuery) ([]BatchRow, error) {
	var batches []Batch
	query := q.db.NewSelect().Model(&batches).ExcludeColumn("options", "headers_sealed")
	err := narrow(query).Order("created_at DESC", "id DESC").Limit(limit).Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	var ids []int64
	for i := range batches {
		if by := batches[i].CreatedBy; by != nil {
			ids = append(ids, *by)
		}
	}
	names, err := q.names(ctx, ids)
	if err != nil {
		return nil, err
	}
	rows := make([]BatchRow, len(batches))
	for i := range batches {
		rows[i].Batch = batches[i]
		if by := batches[i].CreatedBy; by != nil {
			rows[i].By = names[*by]
		}
	}
	return rows, nil
}

// likeLiteral takes LIKE's special meaning from what a person typed.
func likeLiteral(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}
