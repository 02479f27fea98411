package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// SearchDepth is how many matches are counted, and of how many the best are
// found: the newest ones.
const SearchDepth = 1000

// Search asks for results by their words. Zero members narrow nothing.
type Search struct {
	Text        string // As websearch_to_tsquery reads it: words, "a phrase", OR, -without.
	BatchID     int64
	Host        string
	From, Until time.Time // When it was stored: the first moment, and the first after the last.
	Best        bool      // The best of the newest SearchDepth first, not the newest.
	After       SearchPlace
	Limit       int
	// Now is the clock by which a search that takes long is cut short: after
	// Patience when it has found a page, and after Budget in any case.
	Now              func() time.Time
	Patience, Budget time.Duration
}

// SearchPlace is where a list of what was found goes on: after the row that has
// both. Rank counts only in a list of the best. The zero value is the beginning.
type SearchPlace struct {
	Seq  int64
	Rank float32
}

// Begins reports the beginning of a list.
func (p SearchPlace) Begins() bool { return p == SearchPlace{} }

// SearchHit is a result that has the words.
type SearchHit struct {
	Place      SearchPlace
	ItemID     int64
	URL        string
	BatchID    int64
	BatchName  string
	Title      string
	StoredAt   time.Time
	HTTPStatus *int
	Mark       Mark
	Markdown   []byte // The beginning, of which a snippet is made.
	HTML       []byte // The beginning, when there is no Markdown.
}

// SearchFound is one page of what was found.
type SearchFound struct {
	Hits  []SearchHit
	More  bool  // There are further ones after the last.
	Total int64 // Matches, at most SearchDepth+1.
	// AtLeast reports that there may be more matches than Total: it took too long
	// to count them.
	AtLeast bool
	// Cut reports that time was up: results stored before Back were not looked
	// through, and the list goes on after Rest.
	Cut  bool
	Back time.Time
	Rest SearchPlace
	// Blank reports a text without any word to look for, and Without one that
	// names only what is not to be there: that would be to read every result.
	Blank, Without bool
}

// match is a result found, before it is read.
type match struct {
	ItemID int64
	Seq    int64
	Rank   float32
}

func (m match) place() SearchPlace { return SearchPlace{Seq: m.Seq, Rank: m.Rank} }

// after reports that the match comes after the place in a list of its kind.
func (m match) after(p SearchPlace, best bool) bool {
	if best && m.Rank != p.Rank {
		return m.Rank < p.Rank
	}
	return m.Seq < p.Seq
}

// Search finds results, newest first, bucket by bucket until SearchDepth are
// found: what a search costs doesn't grow with what older results there are.
func (s *Store) Search(ctx context.Context, q Search) (*SearchFound, error) {
	out := &SearchFound{}
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		// Postgres thinks little of the cost of unpacking words row by row.
		if _, err := tx.db.NewRaw(`SET LOCAL enable_seqscan = off`).Exec(ctx); err != nil {
			return err
		}
		query, err := tx.understand(ctx, q.Text, out)
		if err != nil || out.Blank || out.Without {
			return err
		}
		matches, err := tx.searchPage(ctx, q, armsOf(query), out)
		if err != nil {
			return err
		}
		out.Hits, err = tx.hits(ctx, matches)
		return err
	})
	return out, translate(err)
}

// understand tells whether there is anything to look for, and the tsquery that
// the text is.
func (t Tx) understand(ctx context.Context, text string, out *SearchFound) (string, error) {
	var nodes int
	var tree, query string // The tree is what of the search an index can answer: T when nothing.
	err := t.db.NewRaw(`SELECT numnode(q), querytree(q), q::text FROM websearch_to_tsquery('simple', ?) AS q`, CleanText(text)).
		Scan(ctx, &nodes, &tree, &query)
	out.Blank, out.Without = nodes == 0, nodes > 0 && (tree == "T" || tree == "")
	return query, err
}

// searchPage finds the matches of one page of the list.
func (t Tx) searchPage(ctx context.Context, q Search, arms []arm, out *SearchFound) ([]match, error) {
	w, err := t.newWalk(ctx, q, arms)
	if err != nil {
		return nil, err
	}
	all, err := w.collect(ctx, SearchPlace{}, SearchDepth+1)
	if err != nil {
		return nil, err
	}
	out.Total, out.AtLeast = int64(len(all)), w.cut || w.enough
	if q.Best {
		all, err = t.ranked(ctx, q.Text, all[:min(len(all), SearchDepth)])
		if err != nil {
			return nil, err
		}
	}
	rest := all
	if !q.After.Begins() {
		rest = nil
		for _, m := range all {
			if m.after(q.After, q.Best) {
				rest = append(rest, m)
			}
		}
	}
	if deeper := !q.Best && (out.Total > SearchDepth || w.enough); deeper && len(rest) <= q.Limit {
		w.began = q.Now()
		if rest, err = w.collect(ctx, q.After, q.Limit+1); err != nil {
			return nil, err
		}
	}
	out.More = len(rest) > q.Limit
	rest = rest[:min(len(rest), q.Limit)]
	if w.cut && !out.More {
		out.Cut, out.Back, out.Rest = true, w.back, SearchPlace{Seq: w.rest}
	}
	return rest, nil
}

// walk goes through the buckets of a search, newest first.
type walk struct {
	t       Tx
	q       Search
	buckets []searchBucket
	arms    []arm    // What an index can tell of a search that has phrases; nil of any other.
	tags    []string // Each result has all of them.
	began   time.Time
	enough  bool // Patience was up with a page found.
	cut     bool
	back    time.Time
	rest    int64
}

type searchBucket struct {
	Bucket         int64
	Oldest, Newest time.Time
}

func (t Tx) newWalk(ctx context.Context, q Search, arms []arm) (*walk, error) {
	w := &walk{t: t, q: q, arms: arms, began: q.Now(), tags: []string{}}
	if q.BatchID > 0 {
		w.tags = append(w.tags, batchTag(q.BatchID))
	}
	if q.Host != "" {
		tag := hostTag(q.Host)
		if tag == "" {
			return w, nil // No result has such a host.
		}
		w.tags = append(w.tags, tag)
	}
	query := t.db.NewSelect().TableExpr("search_buckets").Column("bucket", "oldest", "newest").Order("bucket DESC")
	if !q.From.IsZero() {
		query = query.Where("newest >= ?", q.From)
	}
	if !q.Until.IsZero() {
		query = query.Where("oldest < ?", q.Until)
	}
	return w, translate(query.Scan(ctx, &w.buckets))
}

// How many buckets one statement goes through: fewer while that takes long,
// more while it doesn't.
const (
	widestSpan = 128
	quickSpan  = 10 * time.Millisecond
	slowSpan   = 60 * time.Millisecond
)

// collect finds the newest matches after a place, at most most of them, unless
// time is up.
func (w *walk) collect(ctx context.Context, from SearchPlace, most int) ([]match, error) {
	var found []match
	before := int64(1<<63 - 1)
	if !from.Begins() {
		before = from.Seq
	}
	span := 1
	for at := w.first(before); at < len(w.buckets) && len(found) < most; {
		if w.over(len(found), w.buckets[at], (w.buckets[at].Bucket+1)<<bucketBits) {
			break
		}
		upTo := min(at+span, len(w.buckets))
		began := w.q.Now()
		some, err := w.span(ctx, w.buckets[at:upTo], before, most, len(found))
		if err != nil {
			return nil, err
		}
		found, at = append(found, some...), upTo
		if w.enough || w.cut {
			break
		}
		switch took := w.q.Now().Sub(began); {
		case took < quickSpan:
			span = min(4*span, widestSpan)
		case took > slowSpan:
			span = max(1, span/4)
		}
	}
	return found, nil
}

// first is the index of the newest bucket that holds something before a place.
func (w *walk) first(before int64) int {
	for i, b := range w.buckets {
		if b.Bucket<<bucketBits < before {
			return i
		}
	}
	return len(w.buckets)
}

// over notes that time is up, with so many found, before a place in a bucket.
func (w *walk) over(found int, at searchBucket, rest int64) bool {
	took := w.q.Now().Sub(w.began)
	if found > w.q.Limit && took >= w.q.Patience && w.q.Patience > 0 {
		w.enough = true
		return true
	}
	if took < w.q.Budget {
		return false
	}
	w.cut, w.back, w.rest = true, at.Newest, rest
	return true
}

// span finds the newest matches in some buckets, at most as many as are left of
// most, when so many are found already. It ends before its time is over only for
// a search that has phrases.
func (w *walk) span(ctx context.Context, buckets []searchBucket, before int64, most, found int) ([]match, error) {
	if w.arms != nil {
		return w.phrases(ctx, buckets, before, most, found)
	}
	var out []match
	err := w.in(buckets, before).Where("w.words @@ websearch_to_tsquery('simple', ?)", CleanText(w.q.Text)).
		Order("w.seq DESC").Limit(int64(most-found)).Scan(ctx, &out)
	return out, translate(err)
}

// in are the results in some buckets that the search is narrowed to by other
// things than words.
func (w *walk) in(buckets []searchBucket, before int64) *bun.SelectQuery {
	tags := make([]string, len(buckets))
	for i, b := range buckets {
		tags[i] = bucketTag(b.Bucket)
	}
	query := w.t.db.NewSelect().TableExpr("search_words AS w").Column("item_id", "seq").
		Where("w.tags && ARRAY[?]::text[]", bun.List(tags)).Where("w.seq < ?", before)
	if len(w.tags) > 0 {
		query = query.Where("w.tags @> ARRAY[?]::text[]", bun.List(w.tags))
	}
	if !w.q.From.IsZero() {
		query = query.Where("w.stored_at >= ?", w.q.From)
	}
	if !w.q.Until.IsZero() {
		query = query.Where("w.stored_at < ?", w.q.Until)
	}
	return query
}

// ranked orders matches by how well they fit, the newer first of equals.
func (t Tx) ranked(ctx context.Context, text string, matches []match) ([]match, error) {
	if len(matches) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(matches))
	for i, m := range matches {
		ids[i] = m.ItemID
	}
	var out []match
	// The rank is divided by the logarithm of the length: long pages have every word.
	err := t.db.NewRaw(`SELECT w.item_id, w.seq, ts_rank(w.words, websearch_to_tsquery('simple', ?), 1) AS rank
		FROM search_words w WHERE w.item_id IN (?) ORDER BY rank DESC, w.seq DESC`, CleanText(text), bun.List(ids)).Scan(ctx, &out)
	return out, translate(err)
}

// snippetFrom is how much of a result's beginning a snippet is looked for in.
const snippetFrom = 16 << 10

// hits reads what the list shows of the matches, in their order.
func (t Tx) hits(ctx context.Context, matches []match) ([]SearchHit, error) {
	if len(matches) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(matches))
	for i, m := range matches {
		ids[i] = m.ItemID
	}
	rows, err := t.tx.Tx.QueryContext(ctx, `SELECT r.item_id, i.url, b.id, b.name, r.title, r.stored_at, r.http_status, r.mark,
			substring(r.markdown FROM 1 FOR $2),
			CASE WHEN coalesce(octet_length(r.markdown), 0) = 0 THEN substring(r.html FROM 1 FOR $2) END
		FROM results r JOIN items i ON i.id = r.item_id JOIN batches b ON b.id = i.batch_id WHERE r.item_id = ANY ($1::bigint[])`,
		ids, snippetFrom)
	if err != nil {
		return nil, translate(err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	by := make(map[int64]SearchHit, len(ids))
	for rows.Next() {
		var h SearchHit
		err := rows.Scan(&h.ItemID, &h.URL, &h.BatchID, &h.BatchName, &h.Title, &h.StoredAt, &h.HTTPStatus, &h.Mark, &h.Markdown, &h.HTML)
		if err != nil {
			return nil, translate(err)
		}
		by[h.ItemID] = h
	}
	if err := rows.Err(); err != nil {
		return nil, translate(err)
	}
	hits := make([]SearchHit, 0, len(matches))
	for _, m := range matches {
		if h, ok := by[m.ItemID]; ok {
			h.Place = m.place()
			hits = append(hits, h)
		}
	}
	return hits, nil
}

// The characters around a word found, in a snippet. No text that comes in may
// have them.
const (
	SnippetOn  = "\x02"
	SnippetOff = "\x03"
)

// Snippets are the pieces of the texts that have the words searched for, each
// word between SnippetOn and SnippetOff; the beginning of a text without any.
func (s *Store) Snippets(ctx context.Context, search string, texts []string) ([]string, error) {
	return s.headlines(ctx, search, `MaxFragments=2, MaxWords=30, MinWords=12, FragmentDelimiter=" … "`, texts)
}

// headlines has Postgres mark the words searched for in texts; options say how
// much of each it leaves.
func (s *Store) headlines(ctx context.Context, search, options string, texts []string) ([]string, error) {
	rows, err := s.SQL().QueryContext(ctx, `SELECT ts_headline('simple', e.body, websearch_to_tsquery('simple', $1),
			'StartSel="`+SnippetOn+`", StopSel="`+SnippetOff+`", `+options+`')
		FROM unnest($2::text[]) WITH ORDINALITY AS e (body, place) ORDER BY e.place`, CleanText(search), texts)
	if err != nil {
		return nil, translate(err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	var out []string
	for rows.Next() {
		var snippet string
		if err := rows.Scan(&snippet); err != nil {
			return nil, translate(err)
		}
		out = append(out, snippet)
	}
	return out, translate(rows.Err())
}
