package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// ExportKey is where a walk through items goes on: by position in a batch, by
// id through all of them.
type ExportKey struct {
	ID       int64
	Position int
}

// ExportItem is an item that a file is to have, and how much of what is stored
// of it goes in, in bytes.
type ExportItem struct {
	ExportKey
	Bytes int64
}

// ExportParts are the contents that a file is to have.
type ExportParts struct{ Markdown, HTML, Links, Metadata bool }

func (p ExportParts) size() string {
	var size strings.Builder
	size.WriteString("0::bigint")
	for _, part := range p.named() {
		if part.in {
			fmt.Fprintf(&size, " + coalesce(octet_length(r.%s), 0)", part.name)
		}
	}
	return size.String()
}

type namedPart struct {
	name Part
	in   bool
}

func (p ExportParts) named() []namedPart {
	return []namedPart{{PartMarkdown, p.Markdown}, {PartHTML, p.HTML}, {PartLinks, p.Links}, {PartMetadata, p.Metadata}}
}

// exportWeighed is how many items have their contents weighed before an export.
const exportWeighed = 1_000

// ExportReach is how far one look for an export goes from a key on: the last item
// that it goes through, and false when it goes through all that is left. No look
// goes through more than a bounded number of items, however few of them fit.
func (q Queries) ExportReach(ctx context.Context, f ItemFilter, after ExportKey) (ExportKey, bool, error) {
	var reach ExportKey
	err := q.db.NewRaw("SELECT id, position FROM (?) AS near OFFSET ? LIMIT 1", f.from(q.db, after, "id, position"), f.Look()-1).Scan(ctx, &reach)
	if err = translate(err); errors.Is(err, ErrNotFound) {
		return ExportKey{}, false, nil
	}
	return reach, err == nil, err
}

// ExportItems lists items that fit a filter, those after a key that one look goes
// through, but none behind the other key unless that is zero: at most limit of
// them, in the order of their batch or, without one, of their ids.
func (q Queries) ExportItems(ctx context.Context, f ItemFilter, parts ExportParts, after, reach ExportKey, limit int) ([]ExportItem, error) {
	order, last := "id", reach.ID
	if f.Batch > 0 {
		order, last = "position", int64(reach.Position)
	}
	fit := f.narrow(q.db.NewSelect().TableExpr("(?) AS i", f.from(q.db, after, "*"))).ColumnExpr("i.id, i.position")
	if reach != (ExportKey{}) {
		fit = fit.Where("i.? <= ?", bun.Ident(order), last)
	}
	if f.Batch == 0 {
		// What of a batch that is going is still there would be any part of it.
		fit = fit.Where("i.batch_id <> ALL (ARRAY(SELECT id FROM batches WHERE pruned_at IS NOT NULL AND prune_ended_at IS NULL))")
	}
	var items []ExportItem
	err := q.db.NewSelect().TableExpr("(?) AS i", fit.Order("i."+order).Limit(int64(limit))).Join("LEFT JOIN results AS r ON r.item_id = i.id").
		ColumnExpr("i.id, i.position, "+parts.size()+" AS bytes").Order("i."+order).Scan(ctx, &items)
	return items, translate(err)
}

// from are the items behind the key, of the filter's batch and in its state, that
// one look goes through; without a batch, of all.
func (f ItemFilter) from(db bun.IDB, after ExportKey, columns string) *bun.SelectQuery {
	if f.Batch > 0 {
		return f.near(db, after.Position, columns)
	}
	return db.NewSelect().TableExpr("items AS i").ColumnExpr("?", bun.Safe(columns)).Where("i.id > ?", after.ID).Order("i.id").Limit(f.Look())
}

// ExportWeight is how large an export will be.
type ExportWeight struct {
	// Rows fit; when they are not Known, more may fit than one look found.
	Rows  int64
	Known bool
	// Bytes is about how much of the chosen contents these rows have.
	Bytes int64
}

// ExportSize weighs what fits a filter. A whole batch, or all of a state, is
// known from its counters; otherwise it looks at a bounded number of items. The
// contents of no more than a part of them are looked at.
func (q Queries) ExportSize(ctx context.Context, f ItemFilter, parts ExportParts) (ExportWeight, error) {
	var out ExportWeight
	var err error
	if f.Batch > 0 && f.Plain() {
		out, err = q.countedSize(ctx, f)
	} else {
		out, err = q.lookedSize(ctx, f)
	}
	if err != nil || out.Rows == 0 {
		return out, translate(err)
	}
	var row struct{ Rows, Bytes int64 }
	fit := f.narrow(q.db.NewSelect().TableExpr("(?) AS i", f.from(q.db, ExportKey{}, "*"))).ColumnExpr("i.id").Limit(exportWeighed)
	err = q.db.NewSelect().TableExpr("(?) AS i", fit).Join("LEFT JOIN results AS r ON r.item_id = i.id").
		ColumnExpr("count(*) AS rows, coalesce(sum("+parts.size()+"), 0)::bigint AS bytes").Scan(ctx, &row)
	if row.Rows > 0 {
		out.Bytes = row.Bytes / row.Rows * out.Rows
		if out.Rows <= row.Rows {
			out.Bytes = row.Bytes
		}
	}
	return out, translate(err)
}

// countedSize takes the number of rows from the counters of the batch.
func (q Queries) countedSize(ctx context.Context, f ItemFilter) (ExportWeight, error) {
	b, err := q.Batch(ctx, f.Batch)
	if err != nil {
		return ExportWeight{}, err
	}
	rows, known := map[ItemState]int64{
		"": b.Accepted, ItemOutstanding: b.Outstanding, ItemStored: b.Stored(), ItemFailed: b.Failed, ItemCancelled: b.Cancelled,
	}[f.State]
	return ExportWeight{Rows: rows, Known: known}, nil
}

func (q Queries) lookedSize(ctx context.Context, f ItemFilter) (ExportWeight, error) {
	var row struct{ Rows, Looked int64 }
	fit := f.narrow(q.db.NewSelect().TableExpr("(?) AS i", f.from(q.db, ExportKey{}, "*"))).ColumnExpr("count(*)")
	err := q.db.NewSelect().ColumnExpr("(?) AS rows", fit).
		ColumnExpr("(SELECT count(*) FROM (?) AS near) AS looked", f.from(q.db, ExportKey{}, "id")).Scan(ctx, &row)
	return ExportWeight{Rows: row.Rows, Known: row.Looked < f.Look()}, err
}

// ExportRow is an item with its batch's name and columns and what is stored of
// it. Sizes are those of the contents, -1 for none.
type ExportRow struct {
	Item
	BatchName    string
	Columns      []string
	Stored       bool // There is a result.
	Result       Result
	Mark         string
	MarkdownSize int64
	HTMLSize     int64
	LinksSize    int64
	MetadataSize int64
}

// ExportRows reads items, in no order. Contents larger than whole bytes are left
// out: ReadPart reads them piece by piece.
func (s *Store) ExportRows(ctx context.Context, ids []int64, parts ExportParts, whole int64) ([]ExportRow, error) {
	var content strings.Builder
	for _, part := range parts.named() {
		value := "NULL::bytea"
		if part.in {
			value = fmt.Sprintf("CASE WHEN octet_length(r.%[1]s) <= $2 THEN r.%[1]s END", part.name)
		}
		fmt.Fprintf(&content, ", %s, coalesce(octet_length(r.%s), -1)::bigint", value, part.name)
	}
	// With arguments the driver keeps the statement, and contents come as they
	// are instead of twice as long.
	rows, err := s.SQL().QueryContext(ctx, `SELECT i.id, i.batch_id, i.position, i.line, i.url, i.original, i.host, i.state, coalesce(i.net, ''), i.error_code,
			i.error_message, i.created_at, i.ended_at, coalesce(array_to_json(i.extra)::text, ''), b.name, coalesce(array_to_json(b.columns)::text, ''),
			r.item_id IS NOT NULL, r.stored_at, coalesce(r.title, ''), coalesce(r.mark, ''), r.http_status, r.duration_ms, r.charged,
			r.markdown_sha256, r.html_sha256, coalesce(r.version, 0), $2::bigint`+content.String()+`
		FROM items i JOIN batches b ON b.id = i.batch_id LEFT JOIN results r ON r.item_id = i.id WHERE i.id = ANY($1)`, ids, whole)
	if err != nil {
		return nil, translate(err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	out := make([]ExportRow, 0, len(ids))
	for rows.Next() {
		row, err := scanExport(rows)
		if err != nil {
			return nil, translate(err)
		}
		out = append(out, row)
	}
	return out, translate(rows.Err())
}

func scanExport(rows *sql.Rows) (ExportRow, error) {
	var r ExportRow
	var net, extra, columns string
	var stored sql.Null[time.Time]
	var whole int64
	err := rows.Scan(&r.ID, &r.BatchID, &r.Position, &r.Line, &r.URL, &r.Original, &r.Host, &r.State, &net, &r.ErrorCode,
		&r.ErrorMessage, &r.CreatedAt, &r.EndedAt, &extra, &r.BatchName, &columns,
		&r.Stored, &stored, &r.Result.Title, &r.Mark, &r.Result.HTTPStatus, &r.Result.DurationMS, &r.Result.Charged,
		&r.Result.MarkdownSHA256, &r.Result.HTMLSHA256, &r.Result.Version, &whole,
		&r.Result.Markdown, &r.MarkdownSize, &r.Result.HTML, &r.HTMLSize, &r.Result.Links, &r.LinksSize, &r.Result.Metadata, &r.MetadataSize)
	if err != nil {
		return r, err
	}
	r.Result.Net, r.Result.StoredAt = Net(net), stored.V
	if r.Extra, err = textArray(extra); err != nil {
		return r, err
	}
	r.Columns, err = textArray(columns)
	return r, err
}

// ReadPart reads a piece of a content that is of the version; ErrNotFound when
// the result has been replaced since.
func (q Queries) ReadPart(ctx context.Context, itemID int64, version int, part Part, from, length int64) ([]byte, error) {
	switch part {
	case PartMarkdown, PartHTML, PartLinks, PartMetadata:
	default:
		return nil, ErrNotFound
	}
	var piece []byte
	err := q.db.NewRaw("SELECT substring(? FROM ? FOR ?) FROM results WHERE item_id = ? AND version = ?",
		bun.Ident(part), from+1, length, itemID, version).Scan(ctx, &piece)
	return piece, translate(err)
}

// textArray reads a text[] that came as JSON; "" is none.
func textArray(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var values []string
	err := json.Unmarshal([]byte(text), &values)
	return values, err
}
