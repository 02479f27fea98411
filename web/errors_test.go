package web

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"rollcall/store"
)

func TestErrorsInEveryShape(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	for accept, want := range map[string]string{
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "text/html", "application/json": "application/json",
		"text/plain": "text/plain", "*/*": "text/plain", "": "text/plain", "application/json, text/html": "application/json",
	} {
		r := v.request(http.MethodGet, "/batches/77", nil)
		r.Header.Set("Accept", accept)
		got := v.do(r)
		if got.status != http.StatusNotFound || !strings.HasPrefix(got.header.Get("Content-Type"), want) {
			t.Errorf("Accept %q: got %d as %q, want 404 as %s", accept, got.status, got.header.Get("Content-Type"), want)
		}
	}
	for _, path := range []string{"/batches/77", "/nowhere"} {
		page := v.get(path)
		if page.status != http.StatusNotFound || page.text(".sandbox") == "" || page.doc.Find("nav.menu").Length() != 1 {
			t.Errorf("%s: the error page has no banner or no menu", path)
		}
	}
}

func TestPanicsBecomePages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	b.server.echo.GET("/panic", func(echo.Context) error { panic("secret detail") })
	got := b.visit(t).get("/panic")
	if got.status != http.StatusInternalServerError || strings.Contains(got.body, "secret detail") || got.text("code") == "" {
		t.Errorf("got %d: %s", got.status, got.text("main"))
	}
	if !strings.Contains(b.log.String(), "secret detail") {
		t.Error("the log doesn't say what happened")
	}
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	for _, path := range []string{"/", "/sign-in", "/no/such/page", "/healthz", "/batches/77"} {
		got := v.get(path)
		for name, want := range map[string]string{
			"Content-Security-Policy": pagePolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			if value := got.header.Get(name); value != want {
				t.Errorf("%s: %s is %q, want %q", path, name, value, want)
			}
		}
	}
	link := v.get("/").doc.Find("link[rel=stylesheet]").First().AttrOr("href", "")
	if got := v.get(link); got.status != http.StatusOK || !strings.Contains(got.header.Get("Cache-Control"), "immutable") {
		t.Errorf("%s: got %d, Cache-Control %q", link, got.status, got.header.Get("Cache-Control"))
	}
}

func TestLogKeepsSecretsOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	v := b.visit(t)
	v.get("/setup?token=hush-token")
	v.post("/sign-in?next=hush-query", signInForm("alice", "hush-password"))
	b.raw(t, head("POST", "Content-Type: application/json", "Content-Length: 2")+"{}")
	v.get("//webhooks/geonode//abcdefghijklmnop")
	log := b.log.String()
	if strings.Contains(log, "hush") || strings.Contains(log, "abcdefghijklmnop") || !strings.Contains(log, "/webhooks/geonode/abcdef...") {
		t.Errorf("the log says too much, or nothing:\n%s", log)
	}
}

func TestSourceBehindProxies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		trusted []netip.Prefix
		want    string
	}{
		"nobody is trusted": {nil, "127.0.0.1"},
		"the proxy is":      {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, "198.51.100.9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, Config{TrustedProxies: tc.trusted})
			b.raw(t, head("POST", "Content-Type: application/json", "X-Forwarded-For: 203.0.113.1, 198.51.100.9", "Content-Length: 2")+"{}")
			if got := b.pipeline.received[0].Source; got != tc.want {
				t.Errorf("source: got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visit(t)
	ready := func() (int, Readiness) {
		got := v.get("/readyz")
		var state Readiness
		if err := json.Unmarshal([]byte(got.body), &state); err != nil {
			t.Fatal(err)
		}
		return got.status, state
	}
	if status, state := ready(); status != http.StatusOK || !state.Ready || state.Workers != "ok" {
		t.Errorf("well: got %d %+v", status, state)
	}
	b.pipeline.mu.Lock()
	b.pipeline.sick = errSick
	b.pipeline.mu.Unlock()
	if status, state := ready(); status != http.StatusOK || !state.Ready || state.Workers != "stuck" {
		t.Errorf("workers stuck: got %d %+v, want 200 and told apart", status, state)
	}
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	if status, state := ready(); status != http.StatusServiceUnavailable || state.Ready || state.Database != "unreachable" || state.Web != "ok" {
		t.Errorf("database away: got %d %+v, want 503", status, state)
	}
	if got := v.get("/healthz"); got.status != http.StatusOK {
		t.Errorf("process up: got %d, want 200", got.status)
	}
	if got := v.get("/"); got.status != http.StatusInternalServerError || got.text("h1") == "" {
		t.Errorf("a page without the database: got %d, want an error page", got.status)
	}
}

// TestTypedIsKeptWithoutTheDatabase: a batch that could not be taken up is on
// the page that says so, and internal text is not.
func TestTypedIsKeptWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	form := url.Values{"csrf_token": {v.token()}, "urls": {"https://kept.example/1\nhttps://kept.example/2"}, "format": {"markdown"}}
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	got := v.post("/batches", form)
	if got.status < http.StatusInternalServerError || !strings.Contains(got.text("#typed"), "https://kept.example/2") {
		t.Errorf("got %d with %q typed, want an error page that keeps it", got.status, got.text("#typed"))
	}
	if strings.Contains(got.body, "sql") {
		t.Errorf("internal text on the page:\n%s", got.body)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"desk.example", "://", "/path"} {
		if _, err := New(Config{PublicURL: bad}, nil, nil, nil, nil); err == nil {
			t.Errorf("public URL %q: got no error", bad)
		}
	}
}
