package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/migrations"
	"rollcall/store"
	"rollcall/store/storetest"
)

func TestServeNeedsAKey(t *testing.T) {
	t.Parallel()
	got := rollcall(t, envOf(map[string]string{"ROLLCALL_MODE": "pigeon"}), "serve")
	if got.code != 1 || !strings.Contains(got.errOut, "GEONODE_SCRAPER_API_KEY") || !strings.Contains(got.errOut, "ROLLCALL_MODE") {
		t.Errorf("got %+v, want both mistakes", got)
	}
}

func TestServeRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	_, err := st.SQL().ExecContext(t.Context(), "UPDATE schema_release SET requires = $1", migrations.Release+1)
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{
		"DATABASE_URL": st.Pool().Config().ConnString(), "GEONODE_SCRAPER_API_KEY": "x", "ROLLCALL_LISTEN": "127.0.0.1:0",
		"ROLLCALL_DATA_DIR": t.TempDir(),
	}
	got := rollcall(t, envOf(vars), "serve")
	if got.code != 1 || !strings.Contains(got.errOut, "newer, incompatible release") {
		t.Errorf("got %+v", got)
	}
}

// Another key would leave every secret and header in the database closed.
func TestServeRefusesAnotherKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.vars["ROLLCALL_SECRET_KEY"] = strings.Repeat("cd", 32)
	// Nor does what a newer release added go unsaid, on which this one can run.
	if _, err := d.store.SQL().ExecContext(t.Context(), `INSERT INTO bun_migrations (name, group_id) VALUES ('20991231000001', 99)`); err != nil {
		t.Fatal(err)
	}
	got := rollcall(t, envOf(d.vars), "serve")
	if !strings.Contains(got.errOut, "a newer release of Rollcall has migrated this database (1 migrations from 20991231000001 on)") {
		t.Errorf("got %+v, want a warning of a newer schema", got)
	}
	if got.code != 1 || !strings.Contains(got.errOut, "not the key that this database was begun with") {
		t.Errorf("got %+v", got)
	}
}

// TestServe signs in, submits and reads what came of it, over real HTTP and real processes.
func TestServe(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	known := d.recordSecrets(t)
	password := "correct horse battery"
	known.secrets["password"], known.secrets["custom header"] = password, "planted-header-value"
	run := start(t, d.vars, "serve")
	base := run.address()
	if got := statusOf(t.Context(), base+"/readyz"); got != http.StatusOK {
		t.Errorf("readyz: got %d, want 200", got)
	}
	setUp := run.log.match(t, regexp.MustCompile(`first admin" open=(\S+)`))
	if got := statusOf(t.Context(), setUp); got != http.StatusOK {
		t.Errorf("%s: got %d, want the form of the first admin", setUp, got)
	}
	printed := mustRun(t, d.vars, "webhook", "register")
	if err := d.addUser(t.Context(), "alice", store.RoleAdmin, password); err != nil {
		t.Fatal(err)
	}
	browser := signIn(t, base, "alice", password)
	form := url.Values{"urls": {"https://shop.sandbox.test/item/1\nhttps://news.sandbox.test/story/2"}, "name": {"two pages"}, "format": {"markdown", "html"}, "headers": {"X-Token: planted-header-value"}}
	form.Set("csrf_token", browser.token(base+"/batches/new"))
	location := browser.post(base+"/batches", form)
	if !strings.HasPrefix(location, "/batches/") {
		t.Fatalf("got sent to %q, want the batch", location)
	}
	var id int64
	if _, err := fmt.Sscanf(location, "/batches/%d", &id); err != nil {
		t.Fatal(err)
	}
	if b := d.until(id, patience, func(b *store.Batch) bool { return b.Outstanding == 0 }); b.Stored() != 2 {
		t.Errorf("got %+v, want two stored", b)
	}
	printed += mustRun(t, d.vars, "webhook", "rotate", "1") + mustRun(t, d.vars, "doctor")
	d.noLeaks(t, known, browser, base, printed)
	run.signal(os.Interrupt)
	if code := run.exit(patience); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	if found, err := leaks(strings.NewReader(run.log.String()), known.secrets); err != nil || len(found) > 0 {
		t.Errorf("the log holds %v, %v", found, err)
	}
}

// browser is an HTTP client with cookies that follows nothing.
type browser struct {
	t      *testing.T
	client *http.Client
}

func signIn(t *testing.T, base, name, password string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, client: &http.Client{
		Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	b.post(base+"/sign-in", url.Values{"name": {name}, "password": {password}})
	return b
}

// post sends a form and returns where the answer leads.
func (b *browser) post(address string, form url.Values) string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = res.Body.Close() // Only where it leads is wanted.
	if res.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("%s answers %s", address, res.Status)
	}
	return res.Header.Get("Location")
}

// token is the one that the forms of a page send along.
func (b *browser) token(address string) string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // It was only read.
	page, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	found := regexp.MustCompile(`name="csrf_token" value="([^"]+)"`).FindSubmatch(page)
	if found == nil {
		b.t.Fatalf("no form in %s:\n%s", address, page)
	}
	return html.UnescapeString(string(found[1]))
}

// mustRun runs a command line in this process and returns what it printed.
func mustRun(t *testing.T, vars map[string]string, args ...string) string {
	t.Helper()
	got := rollcall(t, envOf(vars), args...)
	if got.code != 0 {
		t.Fatalf("%v: exit %d: %s", args, got.code, got.errOut)
	}
	return got.out
}

// TestSIGTERMLosesNothing ends a server in the middle of a batch: it finishes in order, and the next one brings the
// rest home.
func TestSIGTERMLosesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	first := start(t, d.vars, "serve")
	first.address()
	mustRun(t, d.vars, "webhook", "register")
	id := d.submit(store.KindExtract, 120)
	d.until(id, patience, underWay)
	first.signal(terminated)
	if code := first.exit(patience); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	if b := d.until(id, time.Second, func(*store.Batch) bool { return true }); b.Outstanding == 0 {
		t.Error("nothing was left for the second process: the test shows nothing")
	}
	second := start(t, d.vars, "serve")
	second.address()
	d.home(id, patience)
}

// TestDrain holds a delivery open while the process is told to end: it turns unready, refuses new work, and a second
// signal ends it at once.
func TestDrain(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	run := start(t, d.vars, "serve")
	base := run.address()
	var hooks []listedWebhook
	if err := json.Unmarshal([]byte(mustRun(t, d.vars, "webhook", "register", "--json")), &hooks); err != nil {
		t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // The process at the other end is gone by then.
	_, err = conn.Write([]byte("POST " + strings.TrimPrefix(hooks[0].URL, base) + " HTTP/1.1\r\nHost: x\r\n" +
		"Content-Type: application/json\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	// The server asks for the body once it handles the request.
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("got %q, %v, want to be asked for the body", line, err)
	}
	run.signal(terminated)
	for limit := time.Now().Add(patience); statusOf(t.Context(), base+"/readyz") != http.StatusServiceUnavailable; {
		if time.Now().After(limit) {
			t.Fatal("the process never turned unready")
		}
	}
	if got := statusOf(t.Context(), base+"/healthz"); got != http.StatusOK {
		t.Errorf("healthz: got %d, want 200", got)
	}
	if got := statusOf(t.Context(), base+"/sign-in"); got != http.StatusServiceUnavailable {
		t.Errorf("sign-in: got %d, want 503", got)
	}
	if code := run.insist(terminated, 10*time.Second); code == 0 {
		t.Error("the second signal ended in order, want at once")
	}
}

// TestSixMigrateAtOnce starts six processes on an empty database.
func TestSixMigrateAtOnce(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"DATABASE_URL": storetest.EmptyDSN(t), "ROLLCALL_DATA_DIR": t.TempDir()}
	var all sync.WaitGroup
	for range 6 {
		p := start(t, vars, "migrate", "up")
		all.Go(func() {
			<-p.done
			if p.code != 0 {
				t.Errorf("exit %d: %s", p.code, p.log)
			}
		})
	}
	all.Wait()
	if err := migrations.Check(t.Context(), vars["DATABASE_URL"]); err != nil {
		t.Error(err)
	}
}

// TestRolesShareTheWork runs the pages and the background work as two processes: the first takes a batch and its
// deliveries in, the second does everything else.
func TestRolesShareTheWork(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	as := func(role string) map[string]string {
		vars := maps.Clone(d.vars)
		vars["ROLLCALL_ROLE"] = role
		return vars
	}
	pages := start(t, as("web"), "serve")
	pages.address()
	mustRun(t, d.vars, "webhook", "register")
	id := d.submit(store.KindMixed, 20)
	vars := as("worker")
	vars["ROLLCALL_LISTEN"] = "127.0.0.1:0"
	worker := start(t, vars, "serve")
	base := worker.address()
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/sign-in": 404} {
		if got := statusOf(t.Context(), base+path); got != want {
			t.Errorf("worker %s: got %d, want %d", path, got, want)
		}
	}
	if b := d.home(id, patience); b.StoredWebhook == 0 {
		t.Errorf("got %+v, want some by webhook", b)
	}
	for _, p := range []*process{pages, worker} {
		p.signal(terminated)
		if code := p.exit(patience); code != 0 {
			t.Errorf("exit %d, want 0", code)
		}
	}
}
