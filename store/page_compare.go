package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// ResultSide is a result, or an earlier version of one, to be compared.
type ResultSide struct {
	ItemID   int64
	Version  int
	Latest   bool
	URL      string
	BatchID  int64
	Batch    string
	Net      Net
	StoredAt time.Time
	Title    string
	// Sizes in bytes, -1 for none.
	MarkdownSize, HTMLSize int64
	MarkdownSHA256         []byte `bun:"markdown_sha256"`
	HTMLSHA256             []byte `bun:"html_sha256"`
	PageKey                []byte
}

// CompareSide is a version of an item's result; version 0 is what is stored now.
// ErrNotFound when there is none.
func (q Queries) CompareSide(ctx context.Context, itemID int64, version int) (*ResultSide, error) {
	s := &ResultSide{}
	err := q.db.NewRaw(`SELECT i.id AS item_id, i.url, i.batch_id, b.name AS batch, v.version, v.latest, v.net, v.stored_at, v.title,
			coalesce(octet_length(v.markdown), -1) AS markdown_size, coalesce(octet_length(v.html), -1) AS html_size, v.markdown_sha256, v.html_sha256, v.page_key
		FROM (SELECT item_id, version, true AS latest, net, stored_at, title, markdown, html, markdown_sha256, html_sha256, page_key FROM results WHERE item_id = ?id
			UNION ALL SELECT item_id, version, false, net, stored_at, title, markdown, html, markdown_sha256, html_sha256, NULL FROM result_versions WHERE item_id = ?id) v
		JOIN items i ON i.id = v.item_id JOIN batches b ON b.id = i.batch_id
		WHERE v.version = ?version OR ?version = 0 AND v.latest LIMIT 1`, named{"id": itemID, "version": version}).Scan(ctx, s)
	return s, translate(err)
}

// ComparePart reads at most limit bytes of a content of a side.
func (q Queries) ComparePart(ctx context.Context, s *ResultSide, part Part, limit int64) ([]byte, error) {
	if part != PartMarkdown && part != PartHTML {
		return nil, ErrNotFound
	}
	table := "result_versions"
	if s.Latest {
		table = "results"
	}
	var content []byte
	err := q.db.NewRaw("SELECT substring(? FROM 1 FOR ?) FROM ? WHERE item_id = ? AND version = ?",
		bun.Ident(part), limit, bun.Ident(table), s.ItemID, s.Version).Scan(ctx, &content)
	return content, translate(err)
}

// BatchComparison is what became of the pages of one batch in another.
type BatchComparison struct {
	bun.BaseModel `bun:"table:comparisons,alias:cp"`
	ID            int64 `bun:",pk,autoincrement"`
	ABatchID      int64 `bun:"a_batch_id"`
	BBatchID      int64 `bun:"b_batch_id"`
	State         string
	AskedAt       time.Time
	EndedAt       *time.Time
	AStored       int64 // Results of both when it was worked out.
	BStored       int64
	Unchanged     int64
	Changed       int64
	Added         int64
	Gone          int64
	Reason        string
}

// The states of a comparison.
const (
	ComparisonWaiting = "waiting"
	ComparisonDone    = "done"
	ComparisonFailed  = "failed"
)

// ComparedKind is what became of a page.
type ComparedKind string

// The kinds.
const (
	ComparedUnchanged ComparedKind = "unchanged"
	ComparedChanged   ComparedKind = "changed"
	ComparedNew       ComparedKind = "new"
	ComparedGone      ComparedKind = "gone"
)

// ComparedKinds are all of them, what matters most first.
func ComparedKinds() []ComparedKind {
	return []ComparedKind{ComparedChanged, ComparedNew, ComparedGone, ComparedUnchanged}
}

// Of is how many pages are of a kind.
func (c *BatchComparison) Of(kind ComparedKind) int64 {
	switch kind {
	case ComparedUnchanged:
		return c.Unchanged
	case ComparedChanged:
		return c.Changed
	case ComparedNew:
		return c.Added
	case ComparedGone:
		return c.Gone
	}
	return 0
}

// ComparisonOf is the comparison of two batches; ErrNotFound when nobody has
// asked for it.
func (q Queries) ComparisonOf(ctx context.Context, a, b int64) (*BatchComparison, error) {
	c := &BatchComparison{}
	err := q.db.NewSelect().Model(c).Where("cp.a_batch_id = ? AND cp.b_batch_id = ?", a, b).Scan(ctx)
	return c, translate(err)
}

// AskComparison has two batches compared, anew when they were before, and
// returns the comparison's id.
func (t Tx) AskComparison(ctx context.Context, a, b int64, now time.Time) (int64, error) {
	var id int64
	err := t.db.NewRaw(`INSERT INTO comparisons (a_batch_id, b_batch_id, state, asked_at) VALUES (?a, ?b, 'waiting', ?now)
		ON CONFLICT (a_batch_id, b_batch_id) DO UPDATE SET state = 'waiting', asked_at = ?now, ended_at = NULL, reason = '' RETURNING id`,
		named{"a": a, "b": b, "now": now}).Scan(ctx, &id)
	return id, translate(err)
}

// BatchComparison is one comparison; ErrNotFound when there is none.
func (q Queries) BatchComparison(ctx context.Context, id int64) (*BatchComparison, error) {
	c := &BatchComparison{}
	err := q.db.NewSelect().Model(c).Where("cp.id = ?", id).Scan(ctx)
	return c, translate(err)
}

// sideOf is one page a row of a batch's results: of pages that came more than
// once, the first.
const sideOf = `(SELECT DISTINCT ON (page) coalesce(r.page_key, substring(sha256(convert_to(i.url, 'UTF8')) FROM 1 FOR 16)) AS page, i.id, i.position, i.url_hash,
		coalesce(r.markdown_sha256, r.html_sha256) AS sum
	FROM items i JOIN results r ON r.item_id = i.id WHERE i.batch_id = ? ORDER BY page, i.position)`

// CompareBatches works a comparison out, in place of what it was. It reports
// false when the comparison isn't waiting any more.
func (t Tx) CompareBatches(ctx context.Context, c *BatchComparison, now time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE comparisons SET state = 'done', ended_at = ? WHERE id = ? AND state = 'waiting'`, now, c.ID).Exec(ctx))
	if err != nil || n == 0 {
		return false, err
	}
	if _, err := t.db.NewRaw(`DELETE FROM comparison_pages WHERE comparison_id = ?`, c.ID).Exec(ctx); err != nil {
		return false, translate(err)
	}
	_, err = t.db.NewRaw(`WITH a AS MATERIALIZED `+sideOf+`, b AS MATERIALIZED `+sideOf+`,
		both_sides AS (SELECT a.id AS a_id, b.id AS b_id, coalesce(a.position, b.position) AS place,
			CASE WHEN a.id IS NULL THEN 'new' WHEN b.id IS NULL THEN 'gone' WHEN a.sum IS NOT DISTINCT FROM b.sum THEN 'unchanged' ELSE 'changed' END AS kind,
			coalesce((SELECT o.state FROM items o WHERE b.id IS NULL AND o.url_hash = a.url_hash AND o.batch_id = ? ORDER BY o.position LIMIT 1),
				(SELECT o.state FROM items o WHERE a.id IS NULL AND o.url_hash = b.url_hash AND o.batch_id = ? ORDER BY o.position LIMIT 1), '') AS other
			FROM a FULL JOIN b ON a.page = b.page)
		INSERT INTO comparison_pages (comparison_id, kind, n, a_item_id, b_item_id, other_state)
		SELECT ?, kind, row_number() OVER (PARTITION BY kind ORDER BY place, coalesce(a_id, b_id)), a_id, b_id, other FROM both_sides`,
		c.ABatchID, c.BBatchID, c.BBatchID, c.ABatchID, c.ID).Exec(ctx)
	if err != nil {
		return false, translate(err)
	}
	_, err = t.db.NewRaw(`UPDATE comparisons cp SET unchanged = k.unchanged, changed = k.changed, added = k.added, gone = k.gone,
			a_stored = (SELECT stored_webhook + stored_poll + stored_reconcile + stored_replay + stored_sync FROM batches WHERE id = cp.a_batch_id),
			b_stored = (SELECT stored_webhook + stored_poll + stored_reconcile + stored_replay + stored_sync FROM batches WHERE id = cp.b_batch_id)
		FROM (SELECT count(*) FILTER (WHERE kind = 'unchanged') AS unchanged, count(*) FILTER (WHERE kind = 'changed') AS changed,
			count(*) FILTER (WHERE kind = 'new') AS added, count(*) FILTER (WHERE kind = 'gone') AS gone
			FROM comparison_pages WHERE comparison_id = ?0) k WHERE cp.id = ?0`, c.ID).Exec(ctx)
	return err == nil, translate(err)
}

// FailComparison notes that a comparison could not be worked out.
func (q Queries) FailComparison(ctx context.Context, id int64, reason string, now time.Time) error {
	_, err := q.db.NewRaw(`UPDATE comparisons SET state = 'failed', reason = ?, ended_at = ? WHERE id = ? AND state = 'waiting'`,
		CleanText(reason), now, id).Exec(ctx)
	return translate(err)
}

// ForgetComparisons deletes comparisons asked for before the time, at most limit
// of them.
func (q Queries) ForgetComparisons(ctx context.Context, before time.Time, limit int) (int64, error) {
	return affected(q.db.NewRaw(`DELETE FROM comparisons WHERE id IN (SELECT id FROM comparisons
		WHERE asked_at < ? AND state <> 'waiting' ORDER BY asked_at, id LIMIT ?)`, before, limit).Exec(ctx))
}

// ComparedPage is a page in the list of a comparison.
type ComparedPage struct {
	N          int
	AItemID    *int64 `bun:"a_item_id"`
	BItemID    *int64 `bun:"b_item_id"`
	OtherState ItemState
	URL        string
	ASize      *int64 `bun:"a_size"` // Of Markdown, else of HTML, in bytes.
	BSize      *int64 `bun:"b_size"`
}

// PageCompared lists pages of a kind, those after the given one.
func (q Queries) PageCompared(ctx context.Context, comparisonID int64, kind ComparedKind, after int, limit int64) ([]ComparedPage, error) {
	var rows []ComparedPage
	err := q.db.NewRaw(`SELECT p.n, p.a_item_id, p.b_item_id, p.other_state, i.url,
			coalesce(octet_length(ra.markdown), octet_length(ra.html))::bigint AS a_size, coalesce(octet_length(rb.markdown), octet_length(rb.html))::bigint AS b_size
		FROM comparison_pages p JOIN items i ON i.id = coalesce(p.b_item_id, p.a_item_id)
		LEFT JOIN results ra ON ra.item_id = p.a_item_id LEFT JOIN results rb ON rb.item_id = p.b_item_id
		WHERE p.comparison_id = ? AND p.kind = ? AND p.n > ? ORDER BY p.n LIMIT ?`, comparisonID, kind, after, limit).Scan(ctx, &rows)
	return rows, translate(err)
}

// CompareWith is the batch that a batch is compared with unless somebody says
// otherwise: the one it runs again, else the last before it of the same name, or
// with the same columns; ErrNotFound when there is neither among the last 1,000.
func (q Queries) CompareWith(ctx context.Context, b *Batch) (int64, error) {
	if b.ParentBatchID != nil {
		return *b.ParentBatchID, nil
	}
	var id int64
	err := q.db.NewRaw(`SELECT o.id FROM (SELECT id, name, columns FROM batches WHERE id < ?id ORDER BY id DESC LIMIT 1000) o
		JOIN batches me ON me.id = ?id WHERE o.name = me.name OR o.columns = me.columns
		ORDER BY o.name = me.name DESC, o.id DESC LIMIT 1`, named{"id": b.ID}).Scan(ctx, &id)
	return id, translate(err)
}
