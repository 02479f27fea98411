package pipeline_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/migrations"
	"rollcall/store"
	"rollcall/store/storetest"
)

// The search is measured over many results, which take long to make: with a
// database of its own the next run finds them there.
//
//	createdb rollcall_search
//	go test ./internal/pipeline -run '^$' -bench Search -benchtime 40x -search-dsn 'postgres:///rollcall_search?host=/var/run/postgresql'
var (
	searchDSN     = flag.String("search-dsn", "", "database that BenchmarkSearch fills once and keeps")
	searchResults = flag.Int("search-results", 200_000, "results that BenchmarkSearch makes")
)

// madeText makes pages of words as common as those of a language are.
type madeText struct {
	rand  *rand.Rand
	zipf  *rand.Zipf
	words []string
}

func newMadeText() *madeText {
	r := rand.New(rand.NewPCG(1, 2))
	m := &madeText{rand: r, zipf: rand.NewZipf(r, 1.07, 4, 80_000-1), words: make([]string, 80_000)}
	syllables := strings.Fields("ba de fi go lu ma ne pi ro su ta ve wi xo yu za ker lin mon per sol tan dor gim hal")
	for i := range m.words {
		for n := i + 1; n > 0; n /= len(syllables) {
			m.words[i] += syllables[n%len(syllables)]
		}
	}
	return m
}

func (m *madeText) page(size int) string {
	var out strings.Builder
	out.WriteString("# ")
	for n := 0; out.Len() < size; n++ {
		out.WriteString(m.words[m.zipf.Uint64()])
		switch {
		case n == 5:
			out.WriteString("\n\n")
		case m.rand.IntN(12) == 0:
			out.WriteString(". ")
		default:
			out.WriteByte(' ')
		}
	}
	return out.String()
}

// makeResults makes the results, in batches of 10,000 over a month, as if they were
// from before there was search.
func makeResults(tb testing.TB, dsn string, n int) {
	tb.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx)
	made := newMadeText()
	began := time.Date(2026, 10, 30, 0, 0, 0, 0, time.UTC)
	const batch, part = 10_000, 2000
	for at := 0; at < n; at += part {
		if at%batch == 0 {
			if _, err := conn.Exec(ctx, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted, stored_webhook)
				VALUES ($1, 'extract', '{}', $2, $3, $3, $3)`, fmt.Sprintf("made %d", at/batch), began, batch); err != nil {
				tb.Fatal(err)
			}
		}
		tx, err := conn.Begin(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		items, results := make([][]any, part), make([][]any, part)
		for i := range part {
			id := int64(at + i + 1)
			when := began.Add(time.Duration(float64(30*24*time.Hour) / float64(n) * float64(id)))
			items[i] = []any{id, int64(at/batch + 1), at%batch + i + 1, fmt.Sprintf("https://host%d.example/page/%d", made.rand.IntN(200), id), []byte{}, "stored", "webhook", when, when}
			text := made.page(8 << 10)
			title, _, _ := strings.Cut(text[2:], "\n")
			results[i] = []any{id, "webhook", when, title, []byte(text), 200}
		}
		copyRows(tb, tx, "items", []string{"id", "batch_id", "position", "url", "url_hash", "state", "net", "created_at", "ended_at"}, items)
		copyRows(tb, tx, "results", []string{"item_id", "net", "stored_at", "title", "markdown", "http_status"}, results)
		if _, err := tx.Exec(ctx, `TRUNCATE search_todo`); err != nil {
			tb.Fatal(err)
		}
		if err := tx.Commit(ctx); err != nil {
			tb.Fatal(err)
		}
	}
}

func copyRows(tb testing.TB, tx pgx.Tx, table string, columns []string, rows [][]any) {
	tb.Helper()
	if _, err := tx.CopyFrom(context.Background(), pgx.Identifier{table}, columns, pgx.CopyFromRows(rows)); err != nil {
		tb.Fatal(err)
	}
}

// searchBench is the database of the benchmark, filled and read into the search.
func searchBench(b *testing.B) *store.Store {
	b.Helper()
	dsn := *searchDSN
	if dsn == "" {
		dsn = storetest.DSN(b)
	} else if err := migrations.Up(b.Context(), dsn); err != nil {
		b.Fatal(err)
	}
	s := storetest.Open(b, dsn)
	var have int
	if err := s.SQL().QueryRowContext(b.Context(), `SELECT count(*) FROM search_words`).Scan(&have); err != nil {
		b.Fatal(err)
	}
	if have >= *searchResults {
		return s
	}
	began := time.Now()
	makeResults(b, dsn, *searchResults)
	b.Logf("%d results made in %s", *searchResults, time.Since(began).Round(time.Second))
	p := newIndexer(b, s)
	began = time.Now()
	for more := true; more; {
		var err error
		if more, err = p.Index(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(began)
	b.Logf("read into the search in %s: %.2f ms each", took.Round(time.Second), took.Seconds()*1000/float64(*searchResults))
	if _, err := s.SQL().ExecContext(b.Context(), `VACUUM ANALYZE`); err != nil {
		b.Fatal(err)
	}
	return s
}

// newIndexer is a pipeline without workers or a vendor, for its Index.
func newIndexer(tb testing.TB, s *store.Store) *pipeline.Pipeline {
	tb.Helper()
	p, err := pipeline.New(pipeline.Config{
		Store: s, Vendor: noVendor(tb), Now: time.Now, Logger: slog.New(slog.DiscardHandler), Key: make([]byte, 32), OnlySubmit: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// noVendor is a client that nobody answers.
func noVendor(tb testing.TB) *geonode.Client {
	tb.Helper()
	client, err := geonode.New(geonode.Config{BaseURL: "http://127.0.0.1:9", APIKey: "none", Now: time.Now})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return client
}

// searchKinds are the searches measured: w(n) is the word that is n-th in how
// common it is.
func searchKinds() map[string]store.Search {
	w := newMadeText().words
	day := time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)
	return map[string]store.Search{
		"every page":             {Text: w[0]},
		"common":                 {Text: w[40]},
		"common best":            {Text: w[40], Best: true},
		"middling":               {Text: w[3000]},
		"middling best":          {Text: w[3000], Best: true},
		"rare":                   {Text: w[60_000]},
		"none":                   {Text: "nosuchwordatall"},
		"two common":             {Text: w[30] + " " + w[50]},
		"common and rare":        {Text: w[30] + " " + w[20_000]},
		"phrase common":          {Text: `"` + w[1] + " " + w[2] + `"`},
		"phrase middling":        {Text: `"` + w[100] + " " + w[150] + `"`},
		"phrase rare":            {Text: `"` + w[4000] + " " + w[5000] + `"`},
		"or":                     {Text: w[2000] + " OR " + w[9000]},
		"exclusion":              {Text: w[300] + " -" + w[10]},
		"exclusion alone":        {Text: "-" + w[40]},
		"common in a host":       {Text: w[40], Host: "host7.example"},
		"middling in a host":     {Text: w[3000], Host: "host7.example"},
		"common in an old batch": {Text: w[40], BatchID: 2},
		"rare in a batch":        {Text: w[30_000], BatchID: 12},
		"common in old days":     {Text: w[40], From: day, Until: day.AddDate(0, 0, 1)},
		"rare in old days":       {Text: w[20_000], From: day, Until: day.AddDate(0, 0, 3)},
		"deep page":              {Text: w[40], After: store.SearchPlace{Seq: -150_000}},
		"e-mail":                 {Text: "nobody@nowhere.example"},
	}
}

// BenchmarkSearch measures a page of 20 with its snippets, as /search makes it.
func BenchmarkSearch(b *testing.B) {
	s := searchBench(b)
	var all []time.Duration
	for _, name := range slices.Sorted(maps.Keys(searchKinds())) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for range b.N {
				began := time.Now()
				searchOnce(b, s, searchKinds()[name])
				took = append(took, time.Since(began))
			}
			report(b, took)
			all = append(all, took...)
		})
	}
	b.Run("all of them", func(b *testing.B) { report(b, all) })
}

func searchOnce(b *testing.B, s *store.Store, q store.Search) {
	b.Helper()
	q.Limit, q.Now, q.Patience, q.Budget = 20, time.Now, 60*time.Millisecond, 2*time.Second // As web does.
	found, err := s.Search(b.Context(), q)
	if err != nil {
		b.Fatal(err)
	}
	texts := make([]string, len(found.Hits))
	for i := range found.Hits {
		texts[i] = pipeline.PlainText(found.Hits[i].Markdown, found.Hits[i].HTML)
	}
	if _, err := s.Snippets(b.Context(), q.Text, texts); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(found.Total), "matches")
}

func report(b *testing.B, took []time.Duration) {
	b.Helper()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	for _, p := range []int{50, 95, 99} {
		b.ReportMetric(float64(took[(len(took)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
	b.ReportMetric(0, "ns/op")
}
