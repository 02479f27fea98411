package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// recorder stands before the vendor and notes the webhook secrets that it hands out: nobody else sees them.
type recorder struct {
	vendor http.Handler

	mu      sync.Mutex
	seen    int
	secrets map[string]string
}

// ServeHTTP implements http.Handler.
func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	answer := httptest.NewRecorder()
	r.vendor.ServeHTTP(answer, req)
	r.mu.Lock()
	for _, found := range regexp.MustCompile(`"secret":\s*"([^"]+)"`).FindAllStringSubmatch(answer.Body.String(), -1) {
		r.secrets[fmt.Sprintf("webhook secret %d", r.seen)] = found[1]
		r.seen++
	}
	r.mu.Unlock()
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // The client may have gone.
}

// recordSecrets puts a recorder before the desk's vendor, and a password into the address of its database.
func (d *desk) recordSecrets(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{vendor: d.sandbox.Handler(), secrets: map[string]string{
		"API key": testVendorKey, "secret key": d.vars["ROLLCALL_SECRET_KEY"], "database password": "planted-database-password",
	}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	d.vars["SCRAPER_API_BASE_URL"], d.vars["ROLLCALL_LOG_LEVEL"] = server.URL, "debug"
	config, err := pgx.ParseConfig(d.vars["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(d.vars["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(config.User, r.secrets["database password"])
	d.vars["DATABASE_URL"] = u.String()
	return r
}

// noLeaks looks for every secret of the run in all that came of it: the log, what commands printed, each page, each file,
// and each row of each table.
func (d *desk) noLeaks(t *testing.T, r *recorder, b *browser, base string, printed ...string) {
	t.Helper()
	site, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cookie := range b.client.Jar.Cookies(site) {
		r.secrets["session"] = cookie.Value
	}
	if _, ok := r.secrets["webhook secret 3"]; !ok || r.secrets["session"] == "" {
		t.Fatalf("known are only %d secrets: no session, or none of a rotation", len(r.secrets))
	}
	from := map[string]string{"what was printed": strings.Join(printed, "\n"), "the database": d.rows(t)}
	for _, path := range []string{
		"/", "/batches", "/batches/1", "/batches/1/items", "/batches/new?from=1", "/items/1", "/jobs/1", "/results/1", "/failures", "/deliveries", "/deliveries/1",
		"/deliveries/log", "/webhooks", "/webhooks/1", "/webhooks/1/rotation", "/webhooks/check", "/users", "/audit", "/audit.csv", "/audit.jsonl", "/account",
		"/reconcile", "/replays", "/exports", "/no/such/page", "/readyz", "/healthz", "/metrics",
	} {
		res, err := b.client.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil || res.StatusCode >= http.StatusInternalServerError {
			t.Errorf("%s: %s, %v", path, res.Status, err)
		}
		from[path] = fmt.Sprint(path, res.Header, string(body))
	}
	for place, text := range from {
		found, err := leaks(strings.NewReader(text), r.secrets)
		if err != nil || len(found) > 0 {
			t.Errorf("%s holds %v, %v", place, found, err)
		}
	}
	planted := from["the database"] + r.secrets["webhook secret 0"]
	if found, err := leaks(strings.NewReader(planted), r.secrets); err != nil || len(found) != 1 {
		t.Errorf("one that was planted: got %v, %v", found, err)
	}
}

// rows is every row of every table, as JSON: bytes are hexadecimal.
func (d *desk) rows(t *testing.T) string {
	t.Helper()
	tables, err := d.store.Pool().Query(t.Context(), `SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(tables, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		rows, err := d.store.Pool().Query(t.Context(), "SELECT row_to_json(r)::text FROM "+name+" AS r")
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(name + "\n" + strings.Join(lines, "\n") + "\n")
	}
	return all.String()
}
