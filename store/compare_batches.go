package store

import (
	"context"
	"time"
)

// comparedItems are the items of a batch with the key of their page. Only what is stored has one: an item without a
// result has that of a result of the same URL in one of the two batches, or the one that its URL as it stands makes.
const comparedItems = `SELECT i.id, i.position, i.state, r.item_id IS NOT NULL AS stored, coalesce(r.markdown_sha256, r.html_sha256) AS sum,
		CASE WHEN r.item_id IS NULL THEN coalesce(k.page, substring(i.url_hash FROM 1 FOR 16))
			ELSE coalesce(r.page_key, substring(i.url_hash FROM 1 FOR 16)) END AS page
	FROM items i LEFT JOIN results r ON r.item_id = i.id LEFT JOIN keys k ON k.url_hash = i.url_hash
	WHERE i.batch_id = `

// comparedPages is one page a row of a batch: of pages that came more than once, the first that is stored, else the
// first.
func comparedPages(batch string) string {
	return `(SELECT DISTINCT ON (page) * FROM (` + comparedItems + batch + `) i ORDER BY page, stored DESC, position)`
}

// comparedKind says what became of a page.
const comparedKind = `CASE
		WHEN a.stored AND b.stored THEN CASE WHEN a.sum IS NOT DISTINCT FROM b.sum THEN 'unchanged' ELSE 'changed' END
		WHEN a.stored THEN CASE WHEN b.id IS NULL THEN 'gone' ELSE 'lost' END
		WHEN b.stored THEN CASE WHEN a.id IS NULL THEN 'new' ELSE 'recovered' END
		WHEN a.state = 'failed' AND b.state = 'failed' THEN 'failed'
		ELSE 'missing' END`

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
	_, err = t.db.NewRaw(`WITH keys AS MATERIALIZED (SELECT DISTINCT ON (i.url_hash) i.url_hash, r.page_key AS page
			FROM items i JOIN results r ON r.item_id = i.id WHERE i.batch_id IN (?a, ?b) AND r.page_key IS NOT NULL ORDER BY i.url_hash, r.page_key),
		a AS MATERIALIZED `+comparedPages("?a")+`, b AS MATERIALIZED `+comparedPages("?b")+`,
		both_sides AS (SELECT a.id AS a_id, b.id AS b_id, coalesce(a.state, '') AS a_state, coalesce(b.state, '') AS b_state,
			coalesce(a.position, b.position) AS place, `+comparedKind+` AS kind
			FROM a FULL JOIN b ON a.page = b.page)
		INSERT INTO comparison_pages (comparison_id, kind, n, a_item_id, b_item_id, a_state, b_state)
		SELECT ?id, kind, row_number() OVER (PARTITION BY kind ORDER BY place, coalesce(a_id, b_id)), a_id, b_id, a_state, b_state FROM both_sides`,
		named{"a": c.ABatchID, "b": c.BBatchID, "id": c.ID}).Exec(ctx)
	if err != nil {
		return false, translate(err)
	}
	return true, t.countCompared(ctx, c.ID)
}

// countCompared counts the pages of a comparison, and notes how both batches stand.
func (t Tx) countCompared(ctx context.Context, id int64) error {
	stored := func(of string) string {
		return of + ".stored_webhook + " + of + ".stored_poll + " + of + ".stored_reconcile + " + of + ".stored_replay + " + of + ".stored_sync"
	}
	_, err := t.db.NewRaw(`UPDATE comparisons cp SET unchanged = k.unchanged, changed = k.changed, recovered = k.recovered, lost = k.lost,
			added = k.added, gone = k.gone, failed_both = k.failed_both, missing = k.missing, a_pages = k.a_pages, b_pages = k.b_pages,
			a_stored = `+stored("a")+`, b_stored = `+stored("b")+`, a_without = a.failed + a.cancelled, b_without = b.failed + b.cancelled
		FROM (SELECT count(*) FILTER (WHERE kind = 'unchanged') AS unchanged, count(*) FILTER (WHERE kind = 'changed') AS changed,
				count(*) FILTER (WHERE kind = 'recovered') AS recovered, count(*) FILTER (WHERE kind = 'lost') AS lost,
				count(*) FILTER (WHERE kind = 'new') AS added, count(*) FILTER (WHERE kind = 'gone') AS gone,
				count(*) FILTER (WHERE kind = 'failed') AS failed_both, count(*) FILTER (WHERE kind = 'missing') AS missing,
				count(a_item_id) AS a_pages, count(b_item_id) AS b_pages
			FROM comparison_pages WHERE comparison_id = ?0) k, batches a, batches b
		WHERE cp.id = ?0 AND a.id = cp.a_batch_id AND b.id = cp.b_batch_id`, id).Exec(ctx)
	return translate(err)
}

// ComparedPage is a page in the list of a comparison.
type ComparedPage struct {
	N       int
	AItemID *int64    `bun:"a_item_id"` // Nil: the page isn't in the batch.
	BItemID *int64    `bun:"b_item_id"`
	AState  ItemState `bun:"a_state"` // When it was worked out.
	BState  ItemState `bun:"b_state"`
	URL     string
	ASize   *int64 `bun:"a_size"` // Of Markdown and HTML together, in bytes, as everywhere; nil without a result.
	BSize   *int64 `bun:"b_size"`
}

// PageCompared lists pages of a kind, those after the given one.
func (q Queries) PageCompared(ctx context.Context, comparisonID int64, kind ComparedKind, after int, limit int64) ([]ComparedPage, error) {
	var rows []ComparedPage
	err := q.db.NewRaw(`SELECT p.n, p.a_item_id, p.b_item_id, p.a_state, p.b_state, i.url,
			CASE WHEN ra.item_id IS NOT NULL THEN coalesce(octet_length(ra.markdown), 0)::bigint + coalesce(octet_length(ra.html), 0) END AS a_size,
			CASE WHEN rb.item_id IS NOT NULL THEN coalesce(octet_length(rb.markdown), 0)::bigint + coalesce(octet_length(rb.html), 0) END AS b_size
		FROM comparison_pages p JOIN items i ON i.id = coalesce(p.b_item_id, p.a_item_id)
		LEFT JOIN results ra ON ra.item_id = p.a_item_id LEFT JOIN results rb ON rb.item_id = p.b_item_id
		WHERE p.comparison_id = ? AND p.kind = ? AND p.n > ? ORDER BY p.n LIMIT ?`, comparisonID, kind, after, limit).Scan(ctx, &rows)
	return rows, translate(err)
}
