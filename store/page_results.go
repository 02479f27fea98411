package store

import (
	"context"
)

// ResultFacts is a stored result without its content.
type ResultFacts struct {
	Result
	URL          string
	BatchID      int64
	BatchName    string
	MarkdownSize int64 // Bytes; -1 when the result has none.
	HTMLSize     int64 // Bytes; -1 when the result has none.
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
	err = q.db.NewRaw(`SELECT i.url, b.id, b.name, coalesce(octet_length(r.markdown), -1), coalesce(octet_length(r.html), -1)
		FROM items i JOIN batches b ON b.id = i.batch_id JOIN results r ON r.item_id = i.id WHERE i.id = ?`, itemID).
		Scan(ctx, &facts.URL, &facts.BatchID, &facts.BatchName, &facts.MarkdownSize, &facts.HTMLSize)
	return facts, translate(err)
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

// ResultPart reads at most limit bytes from the beginning of a part; nil when
// the result doesn't have it, ErrNotFound when there is no result.
func (q Queries) ResultPart(ctx context.Context, itemID int64, part Part, limit int64) ([]byte, error) {
	var column string
	switch part {
	case PartMarkdown, PartHTML, PartLinks, PartMetadata:
		column = string(part)
	default:
		return nil, ErrNotFound
	}
	var content []byte
	err := q.db.NewRaw("SELECT substring("+column+" FROM 1 FOR ?) FROM results WHERE item_id = ?", limit, itemID).
		Scan(ctx, &content)
	return content, translate(err)
}
