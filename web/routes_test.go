package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"rollcall/store"
)

// TestRoutesAccess walks the table: whoever a route isn't for doesn't get it.
func TestRoutesAccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	roles := map[string]*visitor{
		"analyst": b.as(t, store.RoleAnalyst), "operator": b.as(t, store.RoleOperator), "admin": b.as(t, store.RoleAdmin),
	}
	tokens := map[string]string{}
	for role, v := range roles {
		tokens[role] = v.token()
	}
	signedOut := b.visit(t)
	for _, r := range b.server.routes() {
		if r.who < analysts {
			continue
		}
		path := strings.ReplaceAll(r.path, ":id", "999")
		checkSignedOut(t, signedOut, r, path)
		for role, v := range roles {
			if r.path == "/sign-out" || r.stream && r.who.allows(store.Role(role)) && !strings.Contains(r.path, ":id") {
				continue // It would end the session, or not end by itself.
			}
			got := call(v, r.method, path, tokens[role])
			if allowed := r.who.allows(store.Role(role)); allowed == (got.status == http.StatusForbidden) {
				t.Errorf("%s %s as %s: got %d, allowed %v", r.method, path, role, got.status, allowed)
			}
			if got.status >= 500 {
				t.Errorf("%s %s as %s: got %d", r.method, path, role, got.status)
			}
		}
	}
}

func call(v *visitor, method, path, token string) page {
	if method == http.MethodPost {
		return v.post(path, url.Values{csrfField: {token}})
	}
	return v.get(path)
}

func checkSignedOut(t *testing.T, v *visitor, r route, path string) {
	t.Helper()
	got := call(v, r.method, path, "")
	if r.method == http.MethodPost {
		if got.status != http.StatusUnauthorized {
			t.Errorf("%s %s signed out: got %d, want 401", r.method, path, got.status)
		}
		return
	}
	if r.stream {
		if got.status != http.StatusUnauthorized {
			t.Errorf("%s signed out: got %d, want 401", path, got.status)
		}
		return
	}
	want := "/sign-in?next=" + url.QueryEscape(path)
	if path == "/" {
		want = "/sign-in"
	}
	if got.status != http.StatusSeeOther || got.header.Get("Location") != want {
		t.Errorf("%s %s signed out: got %d to %q, want 303 to %q", r.method, path, got.status, got.header.Get("Location"), want)
	}
}

func TestRoutesRefuseWrongMethods(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAdmin)
	methods := map[string][]string{}
	for _, r := range b.server.routes() {
		methods[r.path] = append(methods[r.path], r.method)
	}
	for pattern, known := range methods {
		if strings.HasSuffix(pattern, "*") {
			continue // The static handler has its own.
		}
		path := strings.NewReplacer(":id", "999", ":endpoint", "abcdefgh").Replace(pattern)
		got := v.do(v.request(http.MethodDelete, path, nil))
		if got.status != http.StatusMethodNotAllowed {
			t.Errorf("DELETE %s: got %d, want 405", path, got.status)
		}
		for _, method := range known {
			if !strings.Contains(got.header.Get("Allow"), method) {
				t.Errorf("DELETE %s: Allow is %q, want %s in it", path, got.header.Get("Allow"), method)
			}
		}
	}
}

func TestPathsThatNameNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAdmin)
	for _, pattern := range []string{
		"/batches/%", "/batches/%/items", "/batches/%/live", "/items/%", "/jobs/%", "/results/%", "/results/%/preview",
		"/results/%/download", "/deliveries/%", "/webhooks/%", "/preflights/%", "/preflights/%/rejected.csv", "/batches/%/rejected.csv",
	} {
		for _, id := range []string{
			"999", "0", "-1", "+1", "01", "abc", "1e3", "9223372036854775807", "9223372036854775808",
			"99999999999999999999999", "%00", "1%00", "%ff", "1;drop",
		} {
			path := strings.ReplaceAll(pattern, "%", id)
			if got := v.get(path); got.status != http.StatusNotFound {
				t.Errorf("GET %s: got %d, want 404", path, got.status)
			}
		}
	}
	if got := v.get("/no/such/page"); got.status != http.StatusNotFound || got.text("h1") == "" {
		t.Errorf("unknown page: got %d with heading %q, want 404 as a page", got.status, got.text("h1"))
	}
}
