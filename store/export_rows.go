package store

import (
	"context"
	"database/sql"
	"encoding/json"
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

// ExportItems lists items that fit a filter, those after the key: at most limit
// of them, in the order of their batch or, without one, of their ids.
func (q Queries) ExportItems(ctx context.Context, f ItemFilter, parts ExportParts, after ExportKey, limit int) ([]ExportItem, error) {
	var items []ExportItem
	query := f.narrow(q.db.NewSelect().TableExpr("items AS i").Join("LEFT JOIN results AS r ON r.item_id = i.id")).
		ColumnExpr("i.id, i.position, " + parts.size() + " AS bytes")
	if f.Batch > 0 {
		query = query.Where("i.position > ?", after.Position).Order("i.position")
	} else {
		query = query.Where("i.id > ?", after.ID).Order("i.id")
	}
	err := query.Limit(int64(limit)).Scan(ctx, &items)
	return items, translate(err)
}

// ExportSize is how many items fit a filter and how many bytes of the chosen
// parts they have, looking at no more than limit items.
func (q Queries) ExportSize(ctx context.Context, f ItemFilter, parts ExportParts, limit int) (int64, int64, error) {
	var row struct{ Rows, Bytes int64 }
	fit := f.narrow(q.db.NewSelect().TableExpr("items AS i").Join("LEFT JOIN results AS r ON r.item_id = i.id")).
		ColumnExpr(parts.size() + " AS bytes").Limit(int64(limit))
	err := q.db.NewSelect().TableExpr("(?) AS fit", fit).ColumnExpr("count(*) AS rows, coalesce(sum(bytes), 0)::bigint AS bytes").Scan(ctx, &row)
	return row.Rows, row.Bytes, translate(err)
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
	rows, err := s.SQL().QueryContext(ctx, `SELECT i.id, i.batch_id, i.position, i.url, i.host, i.state, coalesce(i.net, ''), i.error_code,
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
	err := rows.Scan(&r.ID, &r.BatchID, &r.Position, &r.URL, &r.Host, &r.State, &net, &r.ErrorCode,
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
