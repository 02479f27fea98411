package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rollcall/store"
)

// leakReport is what came of the search for secrets in all that the drill produced.
type leakReport struct {
	Secrets    int     `json:"secrets"`     // Looked for, each in every spelling.
	SearchedMB float64 `json:"searched_mb"` // Logs, database rows, pages and the report.
	Found      int     `json:"found"`       // Secrets in places: a leak each.

	told []string
}

const (
	// drillAdmin is who reads the pages in the end.
	drillAdmin = "drill-admin"
	// Names of secrets.
	apiKey, adminPassword = "API key", "admin's password"
)

// plantSecrets gives the database's address a password, which a private Postgres doesn't ask for, and makes an admin's.
func (d *drill) plantSecrets() error {
	u, err := url.Parse(d.dsn)
	if err != nil {
		return errors.New("the private Postgres has an address that is none") // With the address, err could hold a secret.
	}
	d.secrets = map[string]string{
		apiKey: d.config.GeonodeScraperAPIKey, "secret key": d.config.SecretKey, "database password": randomPassword(), adminPassword: randomPassword(),
	}
	raw, err := hex.DecodeString(d.config.SecretKey)
	if err != nil {
		return fmt.Errorf("secret key: %w", err)
	}
	d.secrets["secret key as bytes"] = string(raw)
	u.User = url.UserPassword(u.User.Username(), d.secrets["database password"])
	d.dsn = u.String()
	return nil
}

// drillPages are read in the end, by an admin.
func drillPages() []string {
	return []string{
		"/", "/batches", "/batches/1", "/batches/1/items", "/items/1", "/jobs/1", "/results/1", "/failures", "/deliveries", "/deliveries/1",
		"/deliveries/log", "/webhooks", "/webhooks/1", "/webhooks/1/rotation", "/users", "/audit", "/audit.csv", "/account", "/reconcile", "/replays",
		"/exports", "/no/such/page", "/readyz", "/healthz", "/metrics",
	}
}

// readPages reads pages of the servers before they end: none may fail, whatever the servers have been through. It
// returns them with their headers by address.
func (d *drill) readPages(ctx context.Context) (map[string]string, error) {
	for _, server := range d.servers {
		if err := server.waitReady(ctx); err != nil {
			d.problem("no pages were read: %v", err)
			return nil, ctx.Err()
		}
	}
	client, err := d.signIn(ctx)
	if err != nil {
		d.problem("no pages were read: %v", err)
		return nil, ctx.Err()
	}
	defer client.CloseIdleConnections()
	pages := map[string]string{}
	for _, path := range drillPages() {
		res, err := request(ctx, client, http.MethodGet, d.balancer+path, nil)
		if err != nil {
			d.problem("page %s: %v", path, err)
			continue
		}
		if res.status >= http.StatusInternalServerError {
			d.problem("page %s: got %d", path, res.status)
		}
		pages[path] = res.text
	}
	return pages, ctx.Err()
}

// signIn signs the admin in, and notes the session as a secret.
func (d *drill) signIn(ctx context.Context) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	form := url.Values{"name": {drillAdmin}, "password": {d.secrets[adminPassword]}}
	res, err := request(ctx, client, http.MethodPost, d.balancer+"/sign-in", form)
	if err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	if res.status != http.StatusSeeOther {
		return nil, fmt.Errorf("sign in: got %d", res.status)
	}
	site, err := url.Parse(d.balancer)
	if err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	for i, cookie := range jar.Cookies(site) {
		if len(cookie.Value) >= leastSecret {
			d.secrets[fmt.Sprintf("session %d", i+1)] = cookie.Value
		}
	}
	return client, nil
}

// said is an answer as text, headers and all; the cookies that it sets are for whoever signs in.
type said struct {
	status int
	text   string
}

func request(ctx context.Context, client *http.Client, method, address string, form url.Values) (said, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return said{}, err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := client.Do(req)
	if err != nil {
		return said{}, err
	}
	defer func() { _ = res.Body.Close() }() // It was read.
	body, err := io.ReadAll(res.Body)
	res.Header.Del("Set-Cookie")
	return said{res.StatusCode, fmt.Sprint(res.Header) + "\n" + string(body)}, err
}

// searchForSecrets looks for every secret of the drill in all that it produced.
func (d *drill) searchForSecrets(ctx context.Context, pages map[string]string, report string) (leakReport, error) {
	made, err := d.madeSecrets(ctx)
	if err != nil {
		return leakReport{}, err
	}
	secrets := maps.Clone(d.secrets)
	for i, m := range made {
		secrets[fmt.Sprintf("webhook secret %d", i+1)] = m.Secret
	}
	s := &leakSearch{
		secrets: secrets, report: leakReport{Secrets: len(secrets)}, canary: strings.TrimPrefix(d.balancer, "http://"), sung: map[string]bool{},
		tells: map[string]string{"sandbox.log": apiKey}, // The simulated vendor says which key it takes.
	}
	if len(made) == 0 {
		s.tell("the vendor made no secret of a webhook")
	}
	if err := s.files(d.dir); err != nil {
		return leakReport{}, err
	}
	if err := s.rows(ctx, d); err != nil {
		return leakReport{}, err
	}
	for _, path := range slices.Sorted(maps.Keys(pages)) {
		// What a page may break anywhere is one word all the same, to who copies it.
		if err := s.look("page "+path, "pages", strings.NewReader(strings.ReplaceAll(pages[path], "<wbr>", ""))); err != nil {
			return leakReport{}, err
		}
	}
	s.alive("logs", "database", "pages")
	return s.report, s.look("the report", "report", strings.NewReader(report))
}

// leakSearch looks for secrets in one place after another. The canary is no secret, and is known to be in some places:
// where it isn't found nothing was searched.
type leakSearch struct {
	secrets map[string]string
	canary  string
	sung    map[string]bool
	tells   map[string]string // The secret that a place is there to tell, if any.
	report  leakReport
}

func (s *leakSearch) tell(format string, args ...any) {
	s.report.Found++
	s.report.told = append(s.report.told, fmt.Sprintf(format, args...))
}

// look searches one place, which is one of a kind of places.
func (s *leakSearch) look(place, kind string, r io.Reader) error {
	const canary = "canary"
	all := maps.Clone(s.secrets)
	all[canary] = s.canary
	counted := &countingReader{Reader: r}
	found, err := leaks(counted, all)
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	s.report.SearchedMB += float64(counted.n) / (1 << 20)
	for _, name := range found {
		switch name {
		case canary:
			s.sung[kind] = true
		case s.tells[place]:
		default:
			s.tell("LEAK: %s holds the %s", place, name)
		}
	}
	return nil
}

// alive tells of the kinds of places in which the canary wasn't.
func (s *leakSearch) alive(kinds ...string) {
	for _, kind := range kinds {
		if !s.sung[kind] {
			s.tell("the search for secrets found nothing in the %s, not even what must be there", kind)
		}
	}
}

// files searches all files of a folder.
func (s *leakSearch) files(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(path) //nolint:gosec // Of the drill's own folder.
		if err != nil {
			return fmt.Errorf("look for secrets: %w", err)
		}
		defer func() { _ = file.Close() }() // It was only read.
		return s.look(filepath.Base(path), "logs", file)
	})
}

// rows searches every row of every table, as JSON: bytes are hexadecimal there.
func (s *leakSearch) rows(ctx context.Context, d *drill) error {
	tables, err := d.lines(ctx, `SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`)
	if err != nil {
		return err
	}
	for _, table := range tables {
		out, in := io.Pipe()
		go func() {
			_ = in.CloseWithError(writeRows(ctx, d.store, table, in)) // It never fails.
		}()
		err := s.look("table "+table, "database", out)
		_ = out.Close() // Ends the writer when the search failed; it never fails itself.
		if err != nil {
			return err
		}
	}
	return nil
}

// writeRows writes each row of a table as a line of JSON.
func writeRows(ctx context.Context, st *store.Store, table string, out io.Writer) error {
	rows, err := st.SQL().QueryContext(ctx, "SELECT row_to_json(r)::text FROM "+table+" AS r")
	if err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return fmt.Errorf("read %s: %w", table, err)
		}
		if _, err := io.WriteString(out, text+"\n"); err != nil {
			return err
		}
	}
	return rows.Err()
}

// countingReader counts what is read.
type countingReader struct {
	io.Reader
	n int64
}

// Read implements io.Reader.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}
