package store

import "context"

// ItemColumn is one of the other columns of an item's line: its name in the file, "" when it has none, and the value.
type ItemColumn struct {
	Name  string
	Value string
}

// ItemColumns reads what came with an item's line beside its URL, in the file's order: the first columns up to the
// limit, no value of more characters than said. The second value is how many columns there are.
func (q Queries) ItemColumns(ctx context.Context, itemID int64, limit, characters int) ([]ItemColumn, int, error) {
	var rows []struct {
		ItemColumn
		Total int
	}
	err := q.db.NewRaw(`SELECT coalesce(b.columns[n], '') AS name, left(i.extra[n], ?characters) AS value, cardinality(i.extra) AS total
		FROM items i JOIN batches b ON b.id = i.batch_id, generate_series(1, least(cardinality(i.extra), ?limit)) n
		WHERE i.id = ?item AND i.extra IS NOT NULL ORDER BY n`, named{"item": itemID, "limit": limit, "characters": characters}).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return nil, 0, translate(err)
	}
	columns := make([]ItemColumn, len(rows))
	for i := range rows {
		columns[i] = rows[i].ItemColumn
	}
	return columns, rows[0].Total, nil
}
