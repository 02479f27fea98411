package store

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// bucketBits makes a bucket of a place in the order of the search: 512 results
// in a row share one. A search walks the buckets from the newest on. Smaller
// ones let a phrase of common words, for which each page that has the words is
// unpacked, end as soon as there is a page to show; larger ones are fewer.
const bucketBits = 9

// Unread is a result whose words are not in the search yet, with the beginning
// of its content. Markdown comes alone where there is some.
type Unread struct {
	Seq        int64 // Its place in the order of the search.
	ItemID     int64
	Version    int
	StoredAt   time.Time
	BatchID    int64
	Host       string
	URL        string
	Title      string
	HTTPStatus *int
	Markdown   []byte
	HTML       []byte
}

// Words is what the search keeps of a result. Text is clean and short enough
// for a tsvector, or Trouble says why there is none.
type Words struct {
	Unread
	Text       string
	Trouble    string
	Mark       Mark
	MarkReason string
}

// Unreads is a group of results to read, and the rows that ask for it.
type Unreads struct {
	Rows []Unread
	todo []int64
}

// None reports that nothing was there to take.
func (u Unreads) None() bool { return len(u.todo) == 0 }

// TakeUnread locks the oldest results that are to be read, at most limit of
// them, and at most bytes of each one's content. Rows that another process has
// taken are passed over.
func (t Tx) TakeUnread(ctx context.Context, limit, bytes int64) (Unreads, error) {
	var out Unreads
	var todo []struct{ Seq, ItemID int64 }
	err := t.db.NewRaw(`SELECT seq, item_id FROM search_todo ORDER BY seq LIMIT ? FOR UPDATE SKIP LOCKED`, limit).Scan(ctx, &todo)
	if err != nil || len(todo) == 0 {
		return out, translate(err)
	}
	newest := map[int64]int64{} // A result replaced meanwhile is read once.
	for _, row := range todo {
		out.todo = append(out.todo, row.Seq)
		newest[row.ItemID] = row.Seq
	}
	ids, seqs := make([]int64, 0, len(newest)), make([]int64, 0, len(newest))
	for id, seq := range newest {
		ids, seqs = append(ids, id), append(seqs, seq)
	}
	out.Rows, err = t.unread(ctx, ids, seqs, bytes)
	return out, err
}

// unread reads the beginning of results, each with its place in the search.
func (t Tx) unread(ctx context.Context, ids, seqs []int64, bytes int64) ([]Unread, error) {
	rows, err := t.tx.Tx.QueryContext(ctx, `SELECT e.seq, r.item_id, r.version, r.stored_at, i.batch_id, i.host, i.url, r.title, r.http_status,
			substring(r.markdown FROM 1 FOR $3),
			CASE WHEN coalesce(octet_length(r.markdown), 0) = 0 THEN substring(r.html FROM 1 FOR $3) END
		FROM unnest($1::bigint[], $2::bigint[]) AS e (item_id, seq)
			JOIN results r ON r.item_id = e.item_id JOIN items i ON i.id = e.item_id
		ORDER BY e.seq`, ids, seqs, bytes)
	if err != nil {
		return nil, translate(err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	var out []Unread
	for rows.Next() {
		var u Unread
		err := rows.Scan(&u.Seq, &u.ItemID, &u.Version, &u.StoredAt, &u.BatchID, &u.Host, &u.URL, &u.Title, &u.HTTPStatus, &u.Markdown, &u.HTML)
		if err != nil {
			return nil, translate(err)
		}
		out = append(out, u)
	}
	return out, translate(rows.Err())
}

// Older is a group of results from before there was search.
type Older struct {
	Rows    []Unread // Those that were never read.
	Keyless []Keyless
}

// Keyless is a result that was stored before results had a key of their page.
type Keyless struct {
	ItemID int64
	URL    string
}

// TakeOlder goes one group further through the results from before there was
// search, from the newest to the oldest. Done reports that there are no more,
// or that another process is at it.
func (t Tx) TakeOlder(ctx context.Context, limit, bytes int64, now time.Time) (Older, bool, error) {
	var older Older
	var place []struct {
		At          time.Time
		ItemID, Seq int64
	}
	err := t.db.NewRaw(`SELECT at, item_id, seq FROM search_backfill WHERE done_at IS NULL FOR UPDATE SKIP LOCKED`).Scan(ctx, &place)
	if err != nil || len(place) == 0 {
		return older, true, translate(err)
	}
	var found []struct {
		ItemID   int64
		StoredAt time.Time
		Known    bool
		URL      *string
	}
	err = t.db.NewRaw(`SELECT r.item_id, r.stored_at, EXISTS (SELECT FROM search_words w WHERE w.item_id = r.item_id) AS known,
			CASE WHEN r.page_key IS NULL THEN (SELECT i.url FROM items i WHERE i.id = r.item_id) END AS url
		FROM results r WHERE (r.stored_at, r.item_id) < (?, ?) ORDER BY r.stored_at DESC, r.item_id DESC LIMIT ?`,
		place[0].At, place[0].ItemID, limit).Scan(ctx, &found)
	if err != nil {
		return older, false, translate(err)
	}
	if len(found) == 0 {
		_, err = t.db.NewRaw(`UPDATE search_backfill SET done_at = ?`, now).Exec(ctx)
		return older, true, translate(err)
	}
	var ids, seqs []int64
	seq := place[0].Seq
	for _, row := range found {
		if !row.Known {
			ids, seqs = append(ids, row.ItemID), append(seqs, seq)
			seq--
		}
		if row.URL != nil {
			older.Keyless = append(older.Keyless, Keyless{row.ItemID, *row.URL})
		}
	}
	last := found[len(found)-1]
	_, err = t.db.NewRaw(`UPDATE search_backfill SET at = ?, item_id = ?, seq = ?`, last.StoredAt, last.ItemID, seq).Exec(ctx)
	if err != nil || len(ids) == 0 {
		return older, false, translate(err)
	}
	older.Rows, err = t.unread(ctx, ids, seqs, bytes)
	return older, false, err
}

// PutPageKeys gives results that have none the keys of their pages, each in the
// place of its item.
func (t Tx) PutPageKeys(ctx context.Context, itemIDs []int64, keys [][]byte) error {
	if len(itemIDs) == 0 {
		return nil
	}
	_, err := t.tx.Tx.ExecContext(ctx, `UPDATE results r SET page_key = e.key FROM unnest($1::bigint[], $2::bytea[]) AS e (item_id, key)
		WHERE r.item_id = e.item_id AND r.page_key IS NULL`, itemIDs, keys)
	return translate(err)
}

// AskWords puts results on the list of those to be read.
func (t Tx) AskWords(ctx context.Context, rows []Unread) error {
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ItemID
	}
	_, err := t.tx.Tx.ExecContext(ctx, `INSERT INTO search_todo (item_id) SELECT unnest($1::bigint[])`, ids)
	return translate(err)
}

// DropUnread takes what was read off the list.
func (t Tx) DropUnread(ctx context.Context, u Unreads) error {
	_, err := t.tx.Tx.ExecContext(ctx, `DELETE FROM search_todo WHERE seq = ANY ($1::bigint[])`, u.todo)
	return translate(err)
}

// PutWords makes results findable by their words, in place of what was known of
// them, and marks those that look empty or blocked. Of two calls for one result
// the one with the later place stands. Content that Postgres can't make a
// tsvector of is ErrUnsearchable, and content that takes too long ErrTooSlow.
func (t Tx) PutWords(ctx context.Context, rows []Words) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := t.db.NewRaw(`SET LOCAL statement_timeout = '8s'`).Exec(ctx); err != nil {
		return translate(err)
	}
	if err := t.putMarks(ctx, rows); err != nil {
		return err
	}
	words, near, err := t.takeApart(ctx, rows)
	if err != nil {
		return err
	}
	n := len(rows)
	ids, seqs, versions, at := make([]int64, n), make([]int64, n), make([]int, n), make([]time.Time, n)
	tags, troubles := make([]string, n), make([]string, n)
	for i := range rows {
		r := &rows[i]
		ids[i], seqs[i], versions[i], at[i] = r.ItemID, r.Seq, r.Version, r.StoredAt
		tags[i], troubles[i] = strings.Join(r.tags(), " "), r.Trouble
	}
	_, err = t.tx.Tx.ExecContext(ctx, `INSERT INTO search_words AS w (item_id, seq, version, stored_at, tags, trouble, words, near)
		SELECT e.item_id, e.seq, e.version, e.stored_at, string_to_array(e.tags, ' '), e.trouble, e.words::tsvector, e.near
		FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::timestamptz[], $5::text[], $6::text[], $7::text[], $8::bytea[])
				AS e (item_id, seq, version, stored_at, tags, trouble, words, near)
			JOIN results r ON r.item_id = e.item_id
		ON CONFLICT (item_id) DO UPDATE SET seq = EXCLUDED.seq, version = EXCLUDED.version, stored_at = EXCLUDED.stored_at,
			tags = EXCLUDED.tags, trouble = EXCLUDED.trouble, words = EXCLUDED.words, near = EXCLUDED.near WHERE w.seq < EXCLUDED.seq`,
		ids, seqs, versions, at, tags, troubles, words, near)
	if err != nil {
		return translate(err)
	}
	return t.widenBuckets(ctx, rows)
}

// takeApart has Postgres find the words of results, each as it writes a
// tsvector, and makes their signatures.
func (t Tx) takeApart(ctx context.Context, rows []Words) ([]string, [][]byte, error) {
	n := len(rows)
	titles, urls, texts := make([]string, n), make([]string, n), make([]string, n)
	for i := range rows {
		if r := &rows[i]; r.Trouble == "" {
			titles[i], urls[i], texts[i] = CleanText(r.Title), addressWords(r.URL), r.Text
		}
	}
	found, err := t.tx.Tx.QueryContext(ctx, `SELECT (setweight(to_tsvector('simple', e.title), 'A')
			|| setweight(to_tsvector('simple', e.url), 'B') || to_tsvector('simple', e.body))::text
		FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS e (title, url, body, place) ORDER BY e.place`, titles, urls, texts)
	if err != nil {
		return nil, nil, translate(err)
	}
	defer func() { _ = found.Close() }() // Err tells what went wrong.
	words, near := make([]string, 0, n), make([][]byte, 0, n)
	for found.Next() {
		var text string
		if err := found.Scan(&text); err != nil {
			return nil, nil, translate(err)
		}
		words, near = append(words, text), append(near, nearOf(text))
	}
	return words, near, translate(found.Err())
}

// addressWords is an address and its words by themselves: Postgres takes a host
// or a path for one word, which nobody looks for in full.
func addressWords(url string) string {
	url = CleanText(url)
	return url + " " + wordsApart(url)
}

// wordsApart is a text with a space for every character that is of no word.
func wordsApart(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) {
			return r
		}
		return ' '
	}, text)
}

// tags are what a search is narrowed by beside words.
func (w *Words) tags() []string {
	tags := []string{bucketTag(w.Seq >> bucketBits), batchTag(w.BatchID)}
	if host := hostTag(w.Host); host != "" {
		tags = append(tags, host)
	}
	return tags
}

func bucketTag(bucket int64) string { return "b:" + strconv.FormatInt(bucket, 10) }

func batchTag(id int64) string { return "n:" + strconv.FormatInt(id, 10) }

// longestHost is the longest host that is looked for: no name is longer.
const longestHost = 255

func hostTag(host string) string {
	host = CleanText(host)
	if host == "" || len(host) > longestHost || strings.ContainsAny(host, " \t\r\n") {
		return ""
	}
	return "h:" + host
}

// putMarks corrects the marks of results whose content is still what was read.
func (t Tx) putMarks(ctx context.Context, rows []Words) error {
	ids, versions := make([]int64, len(rows)), make([]int, len(rows))
	marks, reasons := make([]string, len(rows)), make([]string, len(rows))
	for i := range rows {
		r := &rows[i]
		ids[i], versions[i], marks[i], reasons[i] = r.ItemID, r.Version, string(r.Mark), r.MarkReason
	}
	_, err := t.tx.Tx.ExecContext(ctx, `UPDATE results r SET mark = e.mark, mark_reason = e.reason
		FROM unnest($1::bigint[], $2::int[], $3::text[], $4::text[]) AS e (item_id, version, mark, reason)
		WHERE r.item_id = e.item_id AND r.version = e.version AND (r.mark, r.mark_reason) IS DISTINCT FROM (e.mark, e.reason)`,
		ids, versions, marks, reasons)
	return translate(err)
}

// widenBuckets notes the buckets that the rows are in and the times they span.
func (t Tx) widenBuckets(ctx context.Context, rows []Words) error {
	n := len(rows)
	seqs, at := make([]int64, n), make([]time.Time, n)
	for i := range rows {
		seqs[i], at[i] = rows[i].Seq, rows[i].StoredAt
	}
	_, err := t.tx.Tx.ExecContext(ctx, `INSERT INTO search_buckets AS b (bucket, oldest, newest)
		SELECT e.seq >> $3::int, min(e.at), max(e.at)
		FROM unnest($1::bigint[], $2::timestamptz[]) AS e (seq, at) GROUP BY 1 ORDER BY 1
		ON CONFLICT (bucket) DO UPDATE SET oldest = least(b.oldest, EXCLUDED.oldest), newest = greatest(b.newest, EXCLUDED.newest)
			WHERE b.oldest > EXCLUDED.oldest OR b.newest < EXCLUDED.newest`, seqs, at, bucketBits)
	return translate(err)
}

// SearchBacklog is what the search does not find yet.
type SearchBacklog struct {
	Waiting int64 // Results stored or replaced since; at most one more than CountLimit.
	// Older reports that results from before there was search are still being
	// gone through, and From that those stored from then on have been.
	Older bool
	From  time.Time
}

// Any reports that something is to be read.
func (b SearchBacklog) Any() bool { return b.Waiting > 0 || b.Older }

// SearchBacklog counts what is to be read.
func (q Queries) SearchBacklog(ctx context.Context) (SearchBacklog, error) {
	b, err := q.searchBackfill(ctx)
	if err != nil {
		return b, err
	}
	b.Waiting, err = q.countAtMost(ctx, q.db.NewSelect().TableExpr("search_todo"), CountLimit+1)
	return b, err
}

// AnyUnread reports that some result is to be read, without counting.
func (q Queries) AnyUnread(ctx context.Context) (bool, error) {
	var is bool
	err := q.db.NewRaw(`SELECT EXISTS (SELECT FROM search_todo) OR EXISTS (SELECT FROM search_backfill WHERE done_at IS NULL OR near_below IS NOT NULL)`).Scan(ctx, &is)
	return is, translate(err)
}

func (q Queries) searchBackfill(ctx context.Context) (SearchBacklog, error) {
	var rows []struct{ At time.Time }
	err := q.db.NewRaw(`SELECT b.at FROM search_backfill b WHERE b.done_at IS NULL
		AND EXISTS (SELECT FROM results r WHERE (r.stored_at, r.item_id) < (b.at, b.item_id))`).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return SearchBacklog{}, translate(err)
	}
	return SearchBacklog{Older: true, From: rows[0].At}, nil
}
