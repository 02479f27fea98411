package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"rollcall/store"
	"rollcall/store/storetest"
)

// TestExportsByOtherReaders: what was exported of hostile pages is read by programs that share nothing with those that
// wrote it: the CSV by Postgres, the Parquet file by hyparquet in a browser. unzip is in internal/export.
func TestExportsByOtherReaders(t *testing.T) {
	t.Parallel()
	o := openTab(t)
	b := setup(t)
	s := b.seed(t, "november", 26)
	pages := map[string]string{}
	for name, content := range hostileCorpus(t, "https://evil.example") {
		if !strings.HasPrefix(name, "made: ") {
			pages[name] = string(content)
		}
	}
	b.exec(t, `UPDATE batches SET name = $2 WHERE id = $1`, s.batch, "=1+1,\"\r\n;'")
	names := slices.Sorted(maps.Keys(pages))
	want := map[string]string{} // Markdown by the item's number; "" for none.
	for i, id := range s.items {
		want[idText(id)] = ""
		if i%4 == 0 || i%4 == 3 { // The stored ones.
			page := pages[names[len(want)%len(names)]]
			b.exec(t, `UPDATE results SET markdown = $2 WHERE item_id = $1`, id, []byte(page))
			want[idText(id)] = marked(page)
		}
	}
	v := b.as(t, store.RoleAnalyst)
	path := fmt.Sprintf("/batches/%d/export?chosen=1&markdown=on&format=", s.batch)
	if diff := cmp.Diff(byPostgres(t, v.get(path+"csv").body), want); diff != "" {
		t.Errorf("the CSV as Postgres reads it (got -, want +):\n%s", diff)
	}
	if diff := cmp.Diff(o.byHyparquet(t, []byte(v.get(path+"parquet").body)), want); diff != "" {
		t.Errorf("the Parquet file as hyparquet reads it (got -, want +):\n%s", diff)
	}
}

// marked is a text as any file may have it: a NUL and a byte that is no UTF-8 are a mark, and a run of them is one or more.
func marked(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\x00"), "\uFFFD", "\x00")
	for strings.Contains(text, "\x00\x00") {
		text = strings.ReplaceAll(text, "\x00\x00", "\x00")
	}
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}

// byPostgres reads a CSV file with COPY; it returns the Markdown of the items.
func byPostgres(t *testing.T, file string) map[string]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), storetest.EmptyDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	head, _, _ := strings.Cut(file, "\n")
	columns := strings.Split(strings.TrimRight(head, "\r"), ",")
	for i, name := range columns {
		columns[i] = pgx.Identifier{strings.Trim(name, `"`)}.Sanitize() + " text"
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE lines ("+strings.Join(columns, ", ")+")"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.PgConn().CopyFrom(t.Context(), strings.NewReader(file), "COPY lines FROM STDIN (FORMAT csv, HEADER match)"); err != nil {
		t.Fatalf("COPY: %v", err)
	}
	rows, err := conn.Query(t.Context(), "SELECT id, coalesce(markdown, '') FROM lines WHERE batch = $1", "=1+1,\"\r\n;'")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	var id, markdown string
	_, err = pgx.ForEachRow(rows, []any{&id, &markdown}, func() error { got[id] = marked(markdown); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return got
}

const hyparquetPage = `<!doctype html><meta charset="utf-8"><script type="module">
import { parquetReadObjects } from "/hyparquet/index.js"
const file = await (await fetch("/file")).arrayBuffer()
const rows = await parquetReadObjects({ file })
window.read = JSON.stringify(rows.map((row) => [String(row.id), row.markdown ?? ""]))
</script>`

// byHyparquet reads a Parquet file with a library of another language, which a browser runs.
func (o *tab) byHyparquet(t *testing.T, file []byte) map[string]string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/hyparquet/", http.FileServerFS(os.DirFS("../static/testdata")))
	mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(file) // The browser says what it misses.
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(hyparquetPage))
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	o.open(t, server.URL+"/")
	o.until(t, "window.read !== undefined")
	text, err := chromedp.Run(o.ctx, chromedp.Evaluate[string]("window.read"))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][2]string
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, row := range rows {
		got[row[0]] = marked(row[1])
	}
	return got
}
