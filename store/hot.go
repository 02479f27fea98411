package store

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/uptrace/bun"
)

// hot reads what is read for every job. Its statements carry parameters, where
// bun's carry their values in the text: Postgres reads and plans each once a
// connection, which takes longer than to run it.
type hot struct {
	bun        *bun.DB
	on         querier
	job, batch string // The statements that read one by its id.
}

// querier is a database or a transaction of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func newHot(db *bun.DB) hot {
	return hot{
		bun: db, on: db.DB,
		job:   db.NewSelect().Model((*Job)(nil)).Where("id = $1").String(),
		batch: db.NewSelect().Model((*Batch)(nil)).Where("id = $1").String(),
	}
}

// within is the same inside a transaction.
func (h hot) within(tx bun.Tx) hot {
	h.on = tx.Tx
	return h
}

// row reads one row into a model; there being none is ErrNotFound.
func (h hot) row(ctx context.Context, model any, query string, args ...any) error {
	rows, err := h.on.QueryContext(ctx, query, args...)
	if err != nil {
		return translate(err)
	}
	defer rows.Close()
	if !rows.Next() {
		return translate(cmp.Or(rows.Err(), sql.ErrNoRows))
	}
	return translate(h.bun.ScanRow(ctx, rows, model))
}

// rows reads all rows into a slice of models.
func (h hot) rows(ctx context.Context, models any, query string, args ...any) error {
	rows, err := h.on.QueryContext(ctx, query, args...) //nolint:rowserrcheck // ScanRows does.
	if err != nil {
		return translate(err)
	}
	return translate(h.bun.ScanRows(ctx, rows, models))
}
