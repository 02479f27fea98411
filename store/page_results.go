package store

import (
	"context"
	"time"
)

// ResultFacts is a stored result, or an earlier version of one, without its
// content.
type ResultFacts struct {
	Result
	URL          string
	Line         *int    // Where the item stands in the list that was submitted; nil where there was none.
	Original     *string // What its line held where the URL was mended.
	BatchID      int64
	BatchName    string
	MarkdownSize int64      // Bytes; -1 when the result has none.
	HTMLSize     int64      // Bytes; -1 when the result has none.
	Latest       int        // The number of the present version.
	ReplacedAt   *time.Time // Of an earlier version.
}

// PageResult is what is known of an item's result; ErrNotFound when it has
// none. Content, links and metadata are left to ResultPart.
func (q Queries) PageResult(ctx context.Context, itemID int64) (*ResultFacts, error) {
	facts := new(ResultFacts)
	err := q.db.NewSelect().Model(&facts.Result).ExcludeColumn("markdown", "html", "links", "metadata").
		Where("r.item_id = ?", itemID).Scan(ctx)
	if err != nil {
		return nil, translate(err)
	}
	facts.Latest = facts.Version
	err = q.db.NewRaw(`SELECT i.url, i.line, i.original, b.id, b.name, coalesce(octet_length(r.markdown), -1), coalesce(octet_length(r.html), -1)
		FROM items i JOIN batches b ON b.id = i.batch_id JOIN results r ON r.item_id = i.id WHERE i.id = ?`, itemID).
		Scan(ctx, &facts.URL, &facts.Line, &facts.Original, &facts.BatchID, &facts.BatchName, &facts.MarkdownSize, &facts.HTMLSize)
	return facts, translate(err)
}

// PageResultVersion is PageResult for a version: of an earlier one less is
// known. ErrNotFound when there is none.
func (q Queries) PageResultVersion(ctx context.Context, itemID int64, version int) (*ResultFacts, error) {
	facts, err := q.PageResult(ctx, itemID)
	if err != nil || version == facts.Version {
		return facts, err
	}
	was := *facts
	was.Result = Result{ItemID: itemID, PageKey: facts.PageKey, Version: version}
	err = q.db.NewRaw(`SELECT job_id, net, stored_at, replaced_at, title, markdown_sha256, html_sha256,
			coalesce(octet_length(markdown), -1), coalesce(octet_length(html), -1)
		FROM result_versions WHERE item_id = ? AND version = ?`, itemID, version).
		Scan(ctx, &was.JobID, &was.Net, &was.StoredAt, &was.ReplacedAt, &was.Title, &was.MarkdownSHA256, &was.HTMLSHA256,
			&was.MarkdownSize, &was.HTMLSize)
	if err != nil {
		return nil, translate(err)
	}
	return &was, nil
}

// Part names one of the contents of a result.
type Part string

// The parts of a result.
const (
	PartMarkdown Part = "markdown"
	PartHTML     Part = "html"
	PartLinks    Part = "links"
	PartMetadata Part = "metadata"
)

// column is the column that has the part, or "".
func (p Part) column() string {
	switch p {
	case PartMarkdown, PartHTML, PartLinks, PartMetadata:
		return string(p)
	}
	return ""
}

// ResultPart reads at most limit bytes from the beginning of a part; nil when
// the result doesn't have it, ErrNotFound when there is no result.
func (q Queries) ResultPart(ctx context.Context, itemID int64, part Part, limit int64) ([]byte, error) {
	if part.column() == "" {
		return nil, ErrNotFound
	}
	var content []byte
	err := q.db.NewRaw("SELECT substring("+part.column()+" FROM 1 FOR ?) FROM results WHERE item_id = ?", limit, itemID).
		Scan(ctx, &content)
	return content, translate(err)
}

// VersionPart is ResultPart for an earlier version.
func (q Queries) VersionPart(ctx context.Context, itemID int64, version int, part Part, limit int64) ([]byte, error) {
	if part.column() == "" {
		return nil, ErrNotFound
	}
	var content []byte
	err := q.db.NewRaw("SELECT substring("+part.column()+" FROM 1 FOR ?) FROM result_versions WHERE item_id = ? AND version = ?",
		limit, itemID, version).Scan(ctx, &content)
	return content, translate(err)
}

// ResultVersion is an earlier version of a result, without its content.
type ResultVersion struct {
	Version        int
	Net            Net
	StoredAt       time.Time
	ReplacedAt     time.Time
	Title          string
	Bytes          int64
	MarkdownSHA256 []byte `bun:"markdown_sha256"`
	HTMLSHA256     []byte `bun:"html_sha256"`
}

// maxVersions bounds the versions shown; a person makes each.
const maxVersions = 100

// PageResultVersions lists the earlier versions of a result, latest first.
func (q Queries) PageResultVersions(ctx context.Context, itemID int64) ([]ResultVersion, error) {
	var rows []ResultVersion
	err := q.db.NewRaw(`SELECT version, net, stored_at, replaced_at, title, markdown_sha256, html_sha256,
			coalesce(octet_length(markdown), 0)::bigint + coalesce(octet_length(html), 0) AS bytes
		FROM result_versions WHERE item_id = ? ORDER BY version DESC LIMIT ?`, itemID, maxVersions).Scan(ctx, &rows)
	return rows, translate(err)
}

// CountResultVersions counts the earlier versions.
func (q Queries) CountResultVersions(ctx context.Context, itemID int64) (int64, error) {
	return q.countUpTo(ctx, q.db.NewSelect().TableExpr("result_versions").Where("item_id = ?", itemID))
}

// SameRow is another result of the same page, however its URL was spelled.
type SameRow struct {
	ItemID     int64
	URL        string `bun:"url"`
	BatchID    int64
	BatchName  string
	StoredAt   time.Time
	HTTPStatus *int `bun:"http_status"`
	Mark       Mark
	Bytes      int64
	// Equal reports the same content, to the byte.
	Equal bool
}

// PageSame lists the other results of the page that a result is of, newest
// first; none when it isn't known which page that is.
func (q Queries) PageSame(ctx context.Context, of *ResultFacts, from Key, limit int64) ([]SameRow, error) {
	if of.PageKey == nil {
		return nil, nil
	}
	var rows []SameRow
	query := q.db.NewSelect().TableExpr("results AS r").Join("JOIN items AS i ON i.id = r.item_id").Join("JOIN batches AS b ON b.id = i.batch_id").
		ColumnExpr("r.item_id, i.url, b.id AS batch_id, b.name AS batch_name, r.stored_at, r.http_status, r.mark").
		ColumnExpr("coalesce(octet_length(r.markdown), 0)::bigint + coalesce(octet_length(r.html), 0) AS bytes").
		ColumnExpr("(r.markdown_sha256, r.html_sha256) IS NOT DISTINCT FROM (?::bytea, ?::bytea) AS equal", of.MarkdownSHA256, of.HTMLSHA256).
		Where("r.page_key = ?", of.PageKey).Where("r.item_id <> ?", of.ItemID)
	if from.ID != 0 {
		query = query.Where("(r.stored_at, r.item_id) < (?, ?)", from.At, from.ID)
	}
	err := query.Order("r.stored_at DESC", "r.item_id DESC").Limit(limit).Scan(ctx, &rows)
	return rows, translate(err)
}

// CountSame counts the other results of the page.
func (q Queries) CountSame(ctx context.Context, of *ResultFacts) (int64, error) {
	if of.PageKey == nil {
		return 0, nil
	}
	return q.countUpTo(ctx, q.db.NewSelect().TableExpr("results AS r").Where("r.page_key = ?", of.PageKey).Where("r.item_id <> ?", of.ItemID))
}

// ResultTimes is when an item went which step of its way. What isn't known is nil.
type ResultTimes struct {
	Submitted   time.Time
	Accepted    *time.Time // By the vendor, of the job that brought the result.
	Called      *time.Time
	VendorEnded *time.Time // As the vendor says, by our clock.
}

// PageResultTimes reads when the item of a result was submitted, and when its
// job was accepted and done.
func (q Queries) PageResultTimes(ctx context.Context, itemID int64, jobID *int64) (ResultTimes, error) {
	var t ResultTimes
	err := q.db.NewRaw(`SELECT i.created_at, coalesce(j.called_at, sc.called_at), j.accepted_at, j.vendor_ended_at
		FROM items i LEFT JOIN jobs j ON j.id = ? LEFT JOIN sync_calls sc ON sc.item_id = i.id WHERE i.id = ?`, jobID, itemID).
		Scan(ctx, &t.Submitted, &t.Called, &t.Accepted, &t.VendorEnded)
	return t, translate(err)
}
