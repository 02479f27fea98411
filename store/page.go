package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// The pages' own queries, in the files page_*.go, only read. Every list is
// walked by key along an index and bounded; nothing here skips rows by number
// or counts without an end.

// Key is where a list ordered by time and id, newest first, goes on: after the
// row that has both. The zero Key is the beginning.
type Key struct {
	At time.Time
	ID int64
}

// CountLimit is the number above which the pages stop counting.
const CountLimit = 10_000

// searchDepth bounds how many rows of a list a filter without an index of its
// own looks at for one page.
const searchDepth = 10_000

// after narrows a newest-first query to what comes after the key.
func after(q *bun.SelectQuery, column string, key Key) *bun.SelectQuery {
	if key.ID == 0 {
		return q
	}
	return q.Where("(?, id) < (?, ?)", bun.Ident(column), key.At, key.ID)
}

// countUpTo counts the rows of a query, which selects anything, up to one more
// than CountLimit.
func (q Queries) countUpTo(ctx context.Context, rows *bun.SelectQuery) (int64, error) {
	return q.countAtMost(ctx, rows, CountLimit+1)
}

func (q Queries) countAtMost(ctx context.Context, rows *bun.SelectQuery, most int) (int64, error) {
	var n int64
	err := q.db.NewSelect().ColumnExpr("count(*)").
		TableExpr("(?) AS counted", rows.ColumnExpr("1").Limit(int64(most))).Scan(ctx, &n)
	return n, translate(err)
}

// names finds what people are called.
func (q Queries) names(ctx context.Context, ids []int64) (map[int64]string, error) {
	names := make(map[int64]string, len(ids))
	if len(ids) == 0 {
		return names, nil
	}
	var rows []struct {
		ID   int64
		Name string
	}
	err := q.db.NewRaw("SELECT id, name FROM users WHERE id IN (?)", bun.List(ids)).Scan(ctx, &rows)
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names, translate(err)
}
