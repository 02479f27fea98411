package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"rollcall/static"
)

// filled is a route's path with this id, and below it that of a part.
func filled(path, id, part string) string {
	return strings.NewReplacer(":id", id, ":item", part, ":batch", part, ":endpoint", "abcdefghijklmnop", ":token", strings.Repeat("a", tokenLength), "*", "none.css").Replace(path)
}

// named are the ids that the route's own thing and its part have, or "".
func named(things map[string]int64, path string) (string, string) {
	before, after, ok := strings.Cut(path, "/:id")
	if !ok {
		return "", ""
	}
	if _, part, ok := strings.Cut(after, "/:"); ok {
		part, _, _ = strings.Cut(part, "/")
		return idText(things[before]), idText(things[before+"/:"+part])
	}
	return idText(things[before]), ""
}

// own is a route's path with what is there.
func own(things map[string]int64, path string) string {
	id, part := named(things, path)
	return filled(path, id, part)
}

// TestRouterIsTheTable: what the router serves is the table, nothing more and nothing less.
func TestRouterIsTheTable(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: Config{}.withDefaults(), log: slog.New(slog.DiscardHandler)}
	var want, got []string
	for _, r := range s.routes() {
		want = append(want, r.method+" "+r.path)
		if r.method == http.MethodGet && !r.stream {
			want = append(want, "HEAD "+r.path)
		}
		if r.method != http.MethodGet && r.method != http.MethodPost {
			t.Errorf("%s %s: the table knows GET and POST", r.method, r.path)
		}
	}
	for _, r := range s.newEcho().Routes() {
		if r.Method != "echo_route_not_found" || r.Path != webhookPath {
			got = append(got, r.Method+" "+r.Path)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the router has\n%s\nthe table\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestWhoMayIsMeant holds the table itself: the rest of these tests believe it.
func TestWhoMayIsMeant(t *testing.T) {
	t.Parallel()
	open := []string{
		"GET " + signInPath, "POST " + signInPath, "GET " + setUpPath, "POST " + setUpPath, "GET " + invitePrefix + ":token", "POST " + invitePrefix + ":token",
		"POST " + webhookPath, "GET /healthz", "GET /readyz", "GET " + static.Prefix + "*",
	}
	for _, r := range new(Server).routes() {
		line := r.method + " " + r.path
		if got, want := r.who < analysts, slices.Contains(open, line); got != want {
			t.Errorf("%s: open to all is %v, want %v", line, got, want)
		}
		of := func(prefix string) bool { return strings.HasPrefix(r.path, prefix) }
		least := analysts
		switch {
		case r.who < analysts:
			continue
		case of("/users"), of("/webhooks"), of("/audit"):
			least = admins
		case of("/replays"), of("/jobs/cancel"), r.method == http.MethodPost && (of("/reconcile") || of("/dispatch") || of("/deliveries") || of("/jobs")):
			least = operators
		}
		if r.who != least {
			t.Errorf("%s: got access %d, want %d", line, r.who, least)
		}
	}
}

// TestEveryRouteAnswersAsItsTableSays asks for each route as everybody, with each method and with ids of every kind.
func TestEveryRouteAnswersAsItsTableSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// No two kinds share an id.
	b.exec(t, `SELECT setval(format('public.%I', sequencename)::regclass, 1000 * row_number() OVER (ORDER BY sequencename)) FROM pg_sequences WHERE schemaname = 'public'`)
	all := b.callers(t)
	owner := b.id(t, `SELECT id FROM users WHERE name = 'analyst'`)
	things := b.things(t, owner)
	known := map[string][]string{}
	for _, r := range b.server.routes() {
		known[r.path] = append(known[r.path], r.method)
		if r.method == http.MethodGet && !r.stream {
			known[r.path] = append(known[r.path], http.MethodHead)
		}
	}
	for _, r := range b.server.routes() {
		b.wantMethods(t, r, known, append(all.in, all.out...))
		if r.who < analysts {
			continue
		}
		b.wantSignedIn(t, r, own(things, r.path), all)
	}
	if got := b.ask(t, all.in[2], http.MethodGet, "/no/such/page", nil); got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), "<h1") {
		t.Errorf("unknown page: got %d, want 404 as a page", got.Code)
	}
	b.speaksItsReadersLanguage(t, all.in[2], things)
	for _, r := range b.server.routes() {
		if r.who >= analysts && strings.Contains(r.path, ":") {
			b.wantForeign(t, r, things, all)
		}
	}
	for _, r := range b.server.routes() {
		if r.who >= analysts && r.path != "/sign-out" && r.path != "/account/sessions/:id/end" { // These end the session.
			b.wantOwn(t, r, things, all)
		}
	}
}

// wantMethods: whoever asks, a method that isn't the path's is refused with those that are.
func (b *bench) wantMethods(t *testing.T, r route, known map[string][]string, who []caller) {
	t.Helper()
	path := filled(r.path, "7", "8")
	for i, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
		if slices.Contains(known[r.path], method) || slices.Contains(known[strings.TrimSuffix(r.path, lastOf(r.path))+":id"], method) {
			continue // The latter: a word that could be an id is one to the routes that it isn't.
		}
		want := http.StatusMethodNotAllowed
		if method == http.MethodOptions && r.path != webhookPath {
			want = http.StatusNoContent
		}
		got := b.ask(t, who[i%len(who)], method, path, nil)
		if got.Code != want {
			t.Errorf("%s %s as %s: got %d, want %d", method, path, who[i%len(who)].name, got.Code, want)
		}
		for _, each := range known[r.path] {
			if !strings.Contains(got.Header().Get("Allow"), each) {
				t.Errorf("%s %s: Allow is %q, want %s in it", method, path, got.Header().Get("Allow"), each)
			}
		}
	}
}

func lastOf(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// wantSignedIn: who isn't signed in is asked to, whatever their cookie was; whose role is below gets nothing, with and
// without the token; and whose role would do changes nothing without the token.
func (b *bench) wantSignedIn(t *testing.T, r route, path string, all callers) {
	t.Helper()
	for _, c := range all.out {
		got := b.ask(t, c, r.method, path, c.form())
		switch to := got.Header().Get("Location"); {
		case r.method == http.MethodPost || r.stream:
			if got.Code != http.StatusUnauthorized {
				t.Errorf("%s %s, %s: got %d, want 401", r.method, path, c.name, got.Code)
			}
		case got.Code != http.StatusSeeOther || to != signInOf(path, c):
			t.Errorf("%s %s, %s: got %d to %q, want 303 to %q", r.method, path, c.name, got.Code, to, signInOf(path, c))
		}
	}
	for _, c := range all.in {
		if allowed := r.who.allows(c.role); allowed && r.method != http.MethodPost {
			continue
		}
		form := c.form()
		if r.who.allows(c.role) {
			form.Set(csrfField, all.out[0].csrf) // Somebody else's.
		}
		if got := b.ask(t, c, r.method, path, form); got.Code != http.StatusForbidden {
			t.Errorf("%s %s as %s: got %d, want 403", r.method, path, c.name, got.Code)
		}
	}
}

func signInOf(path string, c caller) string {
	to := signInPath
	if path != "/" {
		to += "?next=" + url.QueryEscape(path)
	}
	if c.cookie != "" {
		to = withParam(to, "note", "expired")
	}
	return to
}

// least is the caller whose role is just enough.
func (all callers) least(r route) caller {
	for _, c := range all.in {
		if r.who.allows(c.role) {
			return c
		}
	}
	return caller{}
}

// wantForeign: an id that is of another kind, of somebody else, gone, or no id at all is not found, in every route.
func (b *bench) wantForeign(t *testing.T, r route, things map[string]int64, all callers) {
	t.Helper()
	id, part := named(things, r.path)
	bad := []string{
		"999999", "0", "-1", "+" + id, "0" + id, id + ".0", id + "%20", id + "%00", "%00", "%ff", "1e3", "abc", "9223372036854775807",
		"9223372036854775808", strings.Repeat("9", 400), id + "%2F..%2F" + id, "..%2f..%2fetc%2fpasswd", "%252e%252e",
	}
	for kind, other := range things {
		if text := idText(other); text != id && !slices.Contains(bad, text) && !strings.Contains(kind, ":") {
			bad = append(bad, text)
		}
	}
	for i, each := range bad {
		b.wantNotFound(t, all.least(r), r, filled(r.path, each, part), isID(each))
		if part != "" && each != part && i%3 == 0 {
			b.wantNotFound(t, all.least(r), r, filled(r.path, id, each), false)
		}
	}
	if strings.HasPrefix(r.path, "/preflights/") || strings.HasPrefix(r.path, "/exports/") {
		b.wantNotFound(t, all.stranger, r, own(things, r.path), true)
	}
}

// wantNotFound asks for what is not there, or not for this caller.
func (b *bench) wantNotFound(t *testing.T, c caller, r route, path string, isID bool) {
	t.Helper()
	want := http.StatusNotFound
	if isID && (r.path == "/account/sessions/:id/end" || r.path == "/users/invites/:id/revoke") {
		want = http.StatusSeeOther // What has ended already is said so, and so is what never was.
	}
	got := b.ask(t, c, r.method, path, c.form())
	if got.Code != want {
		t.Errorf("%s %.120s as %s: got %d to %q, want %d", r.method, path, c.name, got.Code, got.Header().Get("Location"), want)
	}
}

// isID reports what idParam takes.
func isID(text string) bool {
	var id int64
	n, err := fmt.Sscanf(text, "%d", &id)
	return n == 1 && err == nil && id > 0 && idText(id) == text
}

// wantOwn: what is there opens for the least role that may, also where its id stands in the query or the form; written in
// another way it opens for nobody else.
func (b *bench) wantOwn(t *testing.T, r route, things map[string]int64, all callers) {
	t.Helper()
	c, path, form := all.least(r), own(things, r.path), url.Values{}
	for name, thing := range map[string]string{"batch": "/batches", "a": "/batches", "b": "/webhooks/:batch", "job": "/jobs", "item": "/items", "webhook": "/webhooks"} {
		form.Set(name, idText(things[thing]))
	}
	if r.path == compareResultsPath {
		form.Set("a", idText(things["/items"]))
		form.Set("b", idText(things["/items"]))
	}
	form.Set("form", "auto")
	if r.method == http.MethodGet {
		path, form = path+"?"+form.Encode(), nil
	} else {
		form.Set(csrfField, c.csrf)
	}
	got := b.ask(t, c, r.method, path, form)
	switch got.Code {
	case http.StatusOK, http.StatusSeeOther, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusConflict:
	default:
		t.Errorf("%s %s as %s: got %d\n%.300s", r.method, path, c.name, got.Code, got.Body)
	}
	if len(path) < 3 || r.method != http.MethodGet {
		return
	}
	twin := fmt.Sprintf("/%%%x%s", path[1], path[2:])
	if got := b.ask(t, all.out[0], r.method, twin, nil); got.Code == http.StatusOK {
		t.Errorf("%s, which is %s, opens without a session", twin, path)
	}
}
