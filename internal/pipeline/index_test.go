package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/preflight"
	"rollcall/store"
	"rollcall/store/storetest"
)

// library is a database with results, and what reads them into the search.
type library struct {
	t     *testing.T
	store *store.Store
	pipe  *pipeline.Pipeline
	clock time.Time
	n     int
}

func newLibrary(t *testing.T) *library {
	t.Helper()
	s := storetest.New(t)
	l := &library{t: t, store: s, pipe: newIndexer(t, s), clock: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	for range 2 {
		l.exec(`INSERT INTO batches (name, kind, options, created_at, submitted, accepted) VALUES ('b', 'extract', '{}', $1, 1000, 1000)`, l.clock)
	}
	return l
}

func (l *library) exec(query string, args ...any) {
	l.t.Helper()
	if _, err := l.store.SQL().ExecContext(l.t.Context(), query, args...); err != nil {
		l.t.Fatal(err)
	}
}

func (l *library) count(query string) int {
	l.t.Helper()
	var n int
	if err := l.store.SQL().QueryRowContext(l.t.Context(), query).Scan(&n); err != nil {
		l.t.Fatal(err)
	}
	return n
}

// add stores a result an hour after the last one and returns its item.
func (l *library) add(batch int64, host, title, markdown string) int64 {
	l.t.Helper()
	l.n++
	l.clock = l.clock.Add(time.Hour)
	id := int64(l.n)
	l.exec(`INSERT INTO items (id, batch_id, position, url, url_hash, state, net, created_at, ended_at) OVERRIDING SYSTEM VALUE
		VALUES ($1, $2, $3, $4, $5, 'stored', 'webhook', $6, $6)`, id, batch, l.n, fmt.Sprintf("https://%s/spring-lists/%d", host, id), []byte{byte(l.n)}, l.clock)
	l.exec(`INSERT INTO results (item_id, net, stored_at, title, markdown, http_status) VALUES ($1, 'webhook', $2, $3, $4, 200)`,
		id, l.clock, title, []byte(markdown))
	return id
}

// read reads everything into the search.
func (l *library) read() {
	l.t.Helper()
	for more := true; more; {
		var err error
		if more, err = l.pipe.Index(l.t.Context()); err != nil {
			l.t.Fatal(err)
		}
	}
}

// find searches with a clock that stands still.
func (l *library) find(q store.Search) *store.SearchFound {
	l.t.Helper()
	if q.Limit == 0 {
		q.Limit = 20
	}
	if q.Now == nil {
		q.Now, q.Budget = func() time.Time { return l.clock }, time.Second
	}
	found, err := l.store.Search(l.t.Context(), q)
	if err != nil {
		l.t.Fatalf("search %q: %v", q.Text, err)
	}
	return found
}

func (l *library) want(what string, q store.Search, want ...int64) {
	l.t.Helper()
	var got []int64
	hits := l.find(q).Hits
	for i := range hits {
		got = append(got, hits[i].ItemID)
	}
	if !slices.Equal(got, want) {
		l.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// keyed checks that results from before there were keys of pages got theirs.
func (l *library) keyed(items ...int64) {
	l.t.Helper()
	for _, item := range items {
		var key []byte
		if err := l.store.SQL().QueryRowContext(l.t.Context(), `SELECT page_key FROM results WHERE item_id = $1`, item).Scan(&key); err != nil {
			l.t.Fatal(err)
		}
		var url string
		if err := l.store.SQL().QueryRowContext(l.t.Context(), `SELECT url FROM items WHERE id = $1`, item).Scan(&url); err != nil {
			l.t.Fatal(err)
		}
		if want := preflight.Key(preflight.Canonical(url, false, false)); !bytes.Equal(key, want[:]) {
			l.t.Errorf("the page of item %d is told by %x, want %x", item, key, want)
		}
	}
}

// TestSearch: what was stored, before there was search and since, is found by
// its words, newest first, and narrowed by batch, host and time.
func TestSearch(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	first := l.add(1, "a.example", "Copper kettle", "A kettle of copper, made by hand. Contact: smith@maker.example, phone 555-1234.")
	second := l.add(1, "b.example", "Pan", "A copper pan and a lid. [See](https://maker.example/pans/42) for more, or https://maker.example/lids.")
	l.exec(`DELETE FROM search_todo`) // These two are from before.
	third := l.add(2, "a.example", "", "# Teapot\n\nA teapot is no kettle: read/write about it. "+strings.Repeat("copper ", 30))
	fourth := l.add(2, "c.example", "Café", "Die Straße nach Zürich, Preis 1.299 €. <script>alert('kettle')</script>")
	if got, err := l.store.SearchBacklog(t.Context()); err != nil || got.Waiting != 2 || !got.Older || !got.Any() {
		t.Errorf("backlog before: got %+v, %v, want 2 newer ones and older ones", got, err)
	}
	l.want("nothing is found before it is read", store.Search{Text: "copper"})
	l.read()
	if got, err := l.store.SearchBacklog(t.Context()); err != nil || got.Any() {
		t.Errorf("backlog after: got %+v, %v, want none", got, err)
	}
	l.keyed(first, second)
	day := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	for what, tc := range map[string]struct {
		q    store.Search
		want []int64
	}{
		"a word":               {store.Search{Text: "COPPER"}, []int64{third, second, first}},
		"two words":            {store.Search{Text: "copper kettle"}, []int64{third, first}},
		"a phrase":             {store.Search{Text: `"copper kettle"`}, []int64{first}},
		"or":                   {store.Search{Text: "pan OR teapot"}, []int64{third, second}},
		"exclusion":            {store.Search{Text: "copper -pan"}, []int64{third, first}},
		"an e-mail address":    {store.Search{Text: "smith@maker.example"}, []int64{first}},
		"an address":           {store.Search{Text: pipeline.SearchText("https://maker.example/pans/42")}, []int64{second}},
		"an address at an end": {store.Search{Text: pipeline.SearchText(`"http://maker.example/lids"`)}, []int64{second}},
		"a word of its path":   {store.Search{Text: "spring copper"}, []int64{third, second, first}},
		"its own host":         {store.Search{Text: "c.example"}, []int64{fourth}},
		"a number":             {store.Search{Text: "1.299"}, []int64{fourth}},
		"another language":     {store.Search{Text: "straße"}, []int64{fourth}},
		"a slash":              {store.Search{Text: pipeline.SearchText("read/write")}, []int64{third}},
		"in a batch":           {store.Search{Text: "copper", BatchID: 1}, []int64{second, first}},
		"on a host":            {store.Search{Text: "kettle", Host: "a.example"}, []int64{third, first}},
		"on no host":           {store.Search{Text: "kettle", Host: "a b"}, nil},
		"since":                {store.Search{Text: "copper", From: day.Add(time.Hour)}, []int64{third, second}},
		"until":                {store.Search{Text: "copper", Until: day.Add(time.Hour)}, []int64{first}},
		"the best first":       {store.Search{Text: "copper", Best: true}, []int64{first, third, second}},
		"nothing":              {store.Search{Text: "aluminum"}, nil},
		"nothing in any batch": {store.Search{Text: "copper", BatchID: 99}, nil},
	} {
		l.want(what, tc.q, tc.want...)
	}
	l.turnPages(third, second, first)
	l.losePatience(third)
	l.replace(first)
}

// turnPages goes through what is found one by one, in both orders.
func (l *library) turnPages(newest ...int64) {
	l.t.Helper()
	for _, best := range []bool{false, true} {
		var got []int64
		q := store.Search{Text: "copper", Best: best, Limit: 1}
		for range newest {
			page := l.find(q)
			if len(page.Hits) != 1 || page.Total != 3 || page.More == (len(got) == 2) {
				l.t.Fatalf("page after %v: got %+v", got, page)
			}
			got, q.After = append(got, page.Hits[0].ItemID), page.Hits[0].Place
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(newest))) {
			l.t.Errorf("pages, best %t: got %v, want each of %v once", best, got, newest)
		}
	}
	if got := l.find(store.Search{Text: `"" - '`}); !got.Blank {
		l.t.Errorf("no word: got %+v", got)
	}
	if got := l.find(store.Search{Text: "-copper"}); !got.Without {
		l.t.Errorf("only an exclusion: got %+v", got)
	}
	// Time is up at once: the list goes on where it ended.
	late := store.Search{Text: "copper", Now: func() time.Time { return l.clock }}
	if got := l.find(late); !got.Cut || len(got.Hits) > 0 || got.Rest.Begins() {
		l.t.Errorf("no time: got %+v, want it cut at the beginning", got)
	} else if l.want("after the cut", store.Search{Text: "copper", After: got.Rest}, newest...); got.Back.IsZero() {
		l.t.Error("no time: how far back it went isn't said")
	}
}

// losePatience: a search that has found a page and takes long doesn't count on.
func (l *library) losePatience(newest int64) {
	l.t.Helper()
	now := l.clock
	q := store.Search{Text: "copper", Limit: 0, Patience: time.Millisecond, Budget: time.Hour, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}}
	// What was there before search is in a bucket of its own, and is not looked through.
	got, err := l.store.Search(l.t.Context(), q)
	if err != nil || !got.AtLeast || got.Total != 1 || got.Cut {
		l.t.Errorf("without patience: got %+v, %v, want the newest bucket of %d alone, and at least 1", got, err, newest)
	}
}

// replace replaces a result, as a replay's difference does.
func (l *library) replace(id int64) {
	l.t.Helper()
	l.exec(`UPDATE results SET version = version + 1, stored_at = $2, title = '', markdown = $3 WHERE item_id = $1`,
		id, l.clock.Add(time.Hour), []byte("Please complete the captcha"))
	l.read()
	l.want("its new words", store.Search{Text: "captcha"}, id)
	l.want("its old words", store.Search{Text: "smith"})
	if got := l.find(store.Search{Text: "captcha"}).Hits[0].Mark; got != store.MarkBlocked {
		l.t.Errorf("mark: got %q, want it marked anew", got)
	}
}

// TestNothingIsReadTwiceOrLost: rows that another process holds are passed
// over, and are read when that process dies.
func TestNothingIsReadTwiceOrLost(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.read() // There is nothing from before.
	id := l.add(1, "a.example", "", "kettle")
	died := errors.New("the process died")
	err := l.store.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
		taken, err := tx.TakeUnread(ctx, 10, 1000)
		if err != nil || len(taken.Rows) != 1 {
			return fmt.Errorf("took %+v: %w", taken, err)
		}
		if err := tx.PutWords(ctx, []store.Words{{Unread: taken.Rows[0], Text: "kettle"}}); err != nil {
			return err
		}
		if err := tx.DropUnread(ctx, taken); err != nil {
			return err
		}
		if more, err := l.pipe.Index(context.WithoutCancel(ctx)); more || err != nil {
			t.Errorf("beside another: got %t, %v, want nothing to read", more, err)
		}
		return died
	})
	if !errors.Is(err, died) {
		t.Fatal(err)
	}
	l.want("before the next run", store.Search{Text: "kettle"})
	l.read()
	l.want("after it", store.Search{Text: "kettle"}, id)
	// A result that was removed meanwhile holds nobody up.
	gone := l.add(1, "a.example", "", "kettle")
	l.exec(`DELETE FROM results WHERE item_id = $1`, gone)
	l.read()
	if n := l.count(`SELECT count(*) FROM search_todo`); n > 0 {
		t.Errorf("%d rows are left on the list", n)
	}
}

// TestWhatHoldsTooManyWords: a text that no tsvector holds is read in part, and
// those beside it whole.
func TestWhatHoldsTooManyWords(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	var text strings.Builder
	for i := 0; text.Len() < 256<<10; i++ {
		fmt.Fprintf(&text, "%x.ab/%x ", i, i)
	}
	before := l.add(1, "a.example", "", "kettle one")
	large := l.add(1, "a.example", "", "kettle two "+text.String())
	long := l.add(1, "a.example", "", "kettle three "+strings.Repeat("x", 300<<10))
	broken := l.add(1, strings.Repeat("h", 300)+".example", strings.Repeat("t", 5000), "kettle four \x00 \xff\xfe \u202e caf\xe9")
	l.read()
	l.want("all of them", store.Search{Text: "kettle"}, broken, long, large, before)
	if n := l.count(`SELECT count(*) FROM search_words WHERE trouble <> ''`); n > 0 {
		t.Errorf("%d results could not be read at all", n)
	}
	if n := l.count(`SELECT count(*) FROM search_todo`); n > 0 {
		t.Errorf("%d rows are left on the list", n)
	}
}

// TestStoredResultsBecomeSearchable: settling leaves a row, and the workers do
// the rest by themselves.
func TestStoredResultsBecomeSearchable(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.NoIndex = false }})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/p/1", "https://shop.sandbox.test/p/2")
	r.ended(id)
	ctx, cancel := context.WithTimeout(t.Context(), patienceOfTests)
	defer cancel()
	for {
		backlog, err := r.store.SearchBacklog(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !backlog.Any() {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still to be read: %+v", backlog)
		case <-time.After(20 * time.Millisecond):
		}
	}
	found, err := r.store.Search(t.Context(), store.Search{Text: "shop.sandbox.test", Limit: 20, Now: time.Now, Budget: time.Minute})
	if err != nil || len(found.Hits) != 2 {
		t.Errorf("got %+v, %v, want both pages", found, err)
	}
}
