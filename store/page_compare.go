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
	AStored       int64 // Results of both when it was worked out, and the items without.
	BStored       int64
	AWithout      int64
	BWithout      int64
	APages        int64 // Pages of each: one that came more than once is one.
	BPages        int64
	Unchanged     int64
	Changed       int64
	Recovered     int64
	Lost          int64
	Added         int64
	Gone          int64
	FailedBoth    int64
	Missing       int64
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

// The kinds. Each page of either batch is of one of them.
const (
	ComparedUnchanged ComparedKind = "unchanged" // Stored in both.
	ComparedChanged   ComparedKind = "changed"
	ComparedRecovered ComparedKind = "recovered" // In both, and stored only in the second.
	ComparedLost      ComparedKind = "lost"      // In both, and stored only in the first.
	ComparedNew       ComparedKind = "new"       // Stored in the second, not in the first at all.
	ComparedGone      ComparedKind = "gone"      // Stored in the first, not in the second at all.
	ComparedFailed    ComparedKind = "failed"    // Failed in both.
	ComparedMissing   ComparedKind = "missing"   // Stored in neither, and not failed in both.
)

// ComparedKinds are all of them, what matters most first.
func ComparedKinds() []ComparedKind {
	return []ComparedKind{
		ComparedChanged, ComparedLost, ComparedRecovered, ComparedNew, ComparedGone, ComparedFailed, ComparedMissing, ComparedUnchanged,
	}
}

// Pages is how many pages both batches have together: the sum of all kinds.
func (c *BatchComparison) Pages() int64 {
	var sum int64
	for _, kind := range ComparedKinds() {
		sum += c.Of(kind)
	}
	return sum
}

// Of is how many pages are of a kind.
func (c *BatchComparison) Of(kind ComparedKind) int64 {
	switch kind {
	case ComparedUnchanged:
		return c.Unchanged
	case ComparedChanged:
		return c.Changed
	case ComparedRecovered:
		return c.Recovered
	case ComparedLost:
		return c.Lost
	case ComparedFailed:
		return c.FailedBoth
	case ComparedMissing:
		return c.Missing
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

// CompareWith is the batch that a batch is compared with unless somebody says
// otherwise: the one it runs again, else the last before it of the same name, or
// with the same columns; ErrNotFound when there is neither among the last 1,000.
// One whose items were removed is passed over.
func (q Queries) CompareWith(ctx context.Context, b *Batch) (int64, error) {
	if b.ParentBatchID != nil {
		parent, err := q.Batch(ctx, *b.ParentBatchID)
		if err != nil || parent.PrunedAt == nil {
			return *b.ParentBatchID, err
		}
	}
	var id int64
	err := q.db.NewRaw(`SELECT o.id FROM (SELECT id, name, columns, pruned_at FROM batches WHERE id < ?id ORDER BY id DESC LIMIT 1000) o
		JOIN batches me ON me.id = ?id WHERE o.pruned_at IS NULL AND (o.name = me.name OR o.columns = me.columns)
		ORDER BY o.name = me.name DESC, o.id DESC LIMIT 1`, named{"id": b.ID}).Scan(ctx, &id)
	return id, translate(err)
}
