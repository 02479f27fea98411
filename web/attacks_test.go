package web

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"rollcall/store"
)

// derivations counts what is asked of argon2, by its cost.
type derivations struct {
	mu   sync.Mutex
	done []string
}

// count has a server's hasher tell of its work.
func (d *derivations) count(b *bench) {
	b.server.hasher.derive = func(password, salt []byte, time, memory uint32, threads uint8, length uint32) []byte {
		d.mu.Lock()
		d.done = append(d.done, fmt.Sprint(time, memory, threads, length))
		d.mu.Unlock()
		return argon2.IDKey(password, salt, time, memory, threads, length)
	}
}

// take returns what was done since it was last called.
func (d *derivations) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	done := d.done
	d.done = nil
	return done
}

// TestPasswordsAreGuessedInParallel: of forty guesses that arrive together three are looked at, whatever source each
// claims to have, and with the right one among them nobody gets in past the third.
func TestPasswordsAreGuessedInParallel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAdmin)
	var work derivations
	work.count(b)
	b.clock.stop() // Nobody earns another try by being slow.
	const guesses = 40
	statuses := make(chan int, guesses)
	var guessing sync.WaitGroup
	for i := range guesses {
		v := b.visit(t)
		guessing.Go(func() {
			r := v.request(http.MethodPost, "/sign-in", strings.NewReader(signInForm("Alice", fmt.Sprintf("guess number %d", i)).Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip"} {
				r.Header.Set(name, fmt.Sprintf("198.51.100.%d", i))
			}
			statuses <- v.do(r).status
		})
	}
	guessing.Wait()
	close(statuses)
	got := map[int]int{}
	for status := range statuses {
		got[status]++
	}
	const free = 3 // For one name from one source; the fourth counts, and the fifth must wait.
	if got[http.StatusUnauthorized] != free+1 || got[http.StatusTooManyRequests] != guesses-free-1 {
		t.Errorf("got %v, want %d times 401 and 429 for the others", got, free+1)
	}
	if n := len(work.take()); n != free+1 {
		t.Errorf("%d passwords were looked at, want %d", n, free+1)
	}
	if got := b.visit(t).post("/sign-in", signInForm("alice", password)); got.status != http.StatusTooManyRequests || len(work.take()) != 0 {
		t.Errorf("the right one among them: got %d, want 429 and nothing computed", got.status)
	}
}

// TestUnknownNamesTakeTheSameWork: who can't sign in costs one hash of the same price, whatever the reason, so that the
// time of an answer tells no names.
func TestUnknownNamesTakeTheSameWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `UPDATE users SET password_hash = $1 WHERE id = $2`, HashPassword(password), b.addUser(t, "alice", store.RoleAnalyst).ID)
	b.exec(t, `UPDATE users SET password_hash = $1, disabled_at = now() WHERE id = $2`, HashPassword(password), b.addUser(t, "bob", store.RoleAnalyst).ID)
	var work derivations
	work.count(b)
	v := b.visit(t)
	wrong := v.post("/sign-in", signInForm("alice", "not the password"))
	want := work.take()
	if len(want) != 1 || wrong.status != http.StatusUnauthorized {
		t.Fatalf("a wrong password: got %d with %v computed, want 401 with one hash", wrong.status, want)
	}
	for name, form := range map[string]url.Values{
		"unknown": signInForm("mallory", "not the password"), "disabled": signInForm("bob", password), "empty": signInForm("", ""),
		"a long password": signInForm("eve", strings.Repeat("x", 100_000)), "no text": signInForm("\x00\xff", "\x00"),
	} {
		got := v.post("/sign-in", form)
		if did := work.take(); got.status != wrong.status || !slices.Equal(did, want) {
			t.Errorf("%s: got %d with %v computed, want %d with %v", name, got.status, did, wrong.status, want)
		}
		if got.text("main") != wrong.text("main") {
			t.Errorf("%s: the page says %q, of a wrong password %q", name, got.text("main"), wrong.text("main"))
		}
	}
}

// TestSessionsAreNotFixed: a cookie that somebody else has put into the browser, made up or of their own session, is not
// the one of who signs in, and lets nobody in.
func TestSessionsAreNotFixed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAdmin)
	mallory := b.as(t, store.RoleAnalyst)
	site, err := url.Parse(b.url)
	if err != nil {
		t.Fatal(err)
	}
	theirs := mallory.client.Jar.Cookies(site)[0].Value
	for name, planted := range map[string]string{"made up": newToken(), "mallory's own": theirs, "no token": "x", "odd": strings.Repeat("%00", 14) + "a"} {
		v := b.visit(t)
		v.client.Jar.SetCookies(site, []*http.Cookie{{Name: "rollcall", Value: planted, Path: "/"}})
		if got := v.post("/sign-in", signInForm("alice", password)); got.status != http.StatusSeeOther {
			t.Fatalf("%s: sign-in: got %d", name, got.status)
		}
		if got := v.client.Jar.Cookies(site)[0].Value; got == planted || len(got) != tokenLength {
			t.Errorf("%s: the session has the planted token", name)
		}
		again := b.visit(t)
		again.client.Jar.SetCookies(site, []*http.Cookie{{Name: "rollcall", Value: planted, Path: "/"}})
		if got := again.get("/users"); got.status != http.StatusSeeOther {
			t.Errorf("%s: with the planted token: got %d, want the sign-in", name, got.status)
		}
	}
}

// TestChangesFromOtherSites sends a change with all that browsers say of where it comes from: neither the right headers
// nor the token alone is enough.
func TestChangesFromOtherSites(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{PublicURL: "https://desk.example"})
	v := b.as(t, store.RoleOperator)
	token := v.token()
	for _, tt := range []struct {
		name, site, origin string
		want               int // With the token.
	}{
		{"no header at all", "", "", http.StatusSeeOther},
		{"same origin", "same-origin", b.url, http.StatusSeeOther},
		{"typed or bookmarked", "none", "", http.StatusSeeOther},
		{"the public address", "same-origin", "https://desk.example", http.StatusSeeOther},
		{"an old browser, same origin", "", b.url, http.StatusSeeOther},
		{"an old browser, elsewhere", "", "https://evil.example", http.StatusForbidden},
		{"a sandboxed frame", "", "null", http.StatusForbidden},
		{"another site", "cross-site", "https://evil.example", http.StatusForbidden},
		{"a sister site", "same-site", "https://other.desk.example", http.StatusForbidden},
		{"another site that says nothing of its origin", "cross-site", "", http.StatusForbidden},
		{"no word of the standard", "friendly", "https://evil.example", http.StatusForbidden},
	} {
		for sent, want := range map[string]int{token: tt.want, "": http.StatusForbidden, newToken(): http.StatusForbidden} {
			r := v.request(http.MethodPost, "/reconcile", strings.NewReader(url.Values{csrfField: {sent}}.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for name, value := range map[string]string{"Sec-Fetch-Site": tt.site, "Origin": tt.origin} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			if got := v.do(r); got.status != want {
				t.Errorf("%s, own token %v: got %d, want %d", tt.name, sent == token, got.status, want)
			}
		}
	}
	// A token in the address, or in JSON or text that a form of another site can send, is none.
	for _, kind := range []string{"text/plain", "application/json", "multipart/form-data; boundary=x"} {
		r := v.request(http.MethodPost, "/reconcile?"+csrfField+"="+token, strings.NewReader(csrfField+"="+token))
		r.Header.Set("Content-Type", kind)
		if got := v.do(r); got.status != http.StatusForbidden && got.status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 403", kind, got.status)
		}
	}
	if n := b.pipeline.runs; n != 5 {
		t.Errorf("%d changes were made, want the 5 that are ours", n)
	}
}

// elsewhere are addresses of other sites, as redirects have been fooled with.
func elsewhere() []string {
	return []string{
		"https://evil.example", "//evil.example", "///evil.example", `/\evil.example`, `\\evil.example`, "/\t/evil.example", "/\r\n/evil.example", "/%09/evil.example",
		"https:evil.example", "javascript:alert(1)", "data:text/html,x", "evil.example", "@evil.example", "/..//evil.example", "/.//evil.example", "http://127.0.0.1@evil.example/",
		"/x\r\nSet-Cookie: a=b", "/\u2028/evil.example", " //evil.example", "/" + strings.Repeat("a", 3000),
	}
}

// TestNobodyIsLedElsewhere: whatever address or host is asked for to go on to, every answer leads to a page of ours, by a
// path alone.
func TestNobodyIsLedElsewhere(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{PublicURL: "https://desk.example"})
	in, out := b.as(t, store.RoleAdmin), b.visit(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	token, site := in.token(), &url.URL{Scheme: "https", Host: "desk.example", Path: "/sign-in"}
	ours := func(what string, got page) {
		t.Helper()
		to := got.header.Get("Location")
		u, err := site.Parse(to)
		if err != nil || u.Host != site.Host || u.Scheme != site.Scheme || strings.HasPrefix(u.Path, "//") || to != "" && !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
			t.Errorf("%s: leads to %q", what, to)
		}
		if got.header.Get("Set-Cookie") == "a=b" {
			t.Errorf("%s: got %v", what, got.header)
		}
	}
	for i, to := range elsewhere() {
		query := url.QueryEscape(to)
		ours("signed in, next="+to, in.get("/sign-in?next="+query))
		form := out.get("/sign-in?next=" + query)
		if next, _ := form.doc.Find("input[name=next]").Attr("value"); next != back(to) {
			t.Errorf("the form of %q has %q", to, next)
		}
		if i%4 == 0 { // One way back is read in one place.
			b.exec(t, `DELETE FROM sign_in_delays`)
			v := b.visit(t)
			done := v.post("/sign-in", url.Values{"name": {"alice"}, "password": {password}, "next": {to}})
			ours("signing in with "+to, done)
		}
		r := in.as("evil.example", http.MethodPost, "/account/settings", url.Values{csrfField: {token}, "next": {to}, "back": {to}, "theme": {"dark"}})
		r.Header.Set("Referer", "https://evil.example/")
		r.Header.Set("X-Forwarded-Host", "evil.example")
		ours("settings", in.do(r))
	}
	for _, path := range []string{"//evil.example/", "/%2f/evil.example", `/\evil.example`, "//evil.example/..", "/batches/", "/Batches", "/static", "/webhooks/geonode/"} {
		conn, reader := b.dial(t)
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: evil.example\r\nAccept: text/html\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		got := answerOf(t, reader)
		ours(path, page{header: got.header})
		if strings.Contains(got.body, "//evil.example") || got.status >= http.StatusInternalServerError {
			t.Errorf("%s: got %d, %.200s", path, got.status, got.body)
		}
	}
	b.hostIsNeverBelieved(t, in)
}

// hostIsNeverBelieved: no page names the host that a request came to.
func (b *bench) hostIsNeverBelieved(t *testing.T, v *visitor) {
	t.Helper()
	for _, path := range []string{"/", "/users", "/webhooks", "/account", "/no/such", "/batches/new"} {
		r := v.as("evil.example", http.MethodGet, path, nil)
		for _, name := range []string{"X-Forwarded-Host", "X-Original-Host", "X-Host", "X-Original-Url", "X-Rewrite-Url"} {
			r.Header.Set(name, "evil.example")
		}
		if got := v.do(r); strings.Contains(got.body, "evil.example") || got.header.Get("Location") != "" {
			t.Errorf("%s: the host is on the page, or it leads to %q", path, got.header.Get("Location"))
		}
	}
}

// TestLogLinesAreNotForged: whatever somebody sends, a line of the log is one line, and says its own things only.
func TestLogLinesAreNotForged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "mallory\nlevel=ERROR msg=forged", store.RoleAnalyst)
	v := b.visit(t)
	v.post("/sign-in", signInForm("mallory\nlevel=ERROR msg=forged", password))
	v.post("/sign-in", signInForm("nobody\r\ntime=0 level=ERROR msg=forged", "x"))
	v.get("/x%0alevel=ERROR%20msg=forged%1b[31m%00")
	v.get("/batches/1?a=%0alevel=ERROR%20msg=forged")
	for _, header := range []string{"User-Agent", "X-Forwarded-For", "Accept-Language", "X-Request-Id", "Cookie"} {
		b.raw(t, "GET /sign-in HTTP/1.1\r\nHost: desk\r\n"+header+": a\tlevel=ERROR msg=forged \xff\r\nConnection: close\r\n\r\n")
	}
	b.raw(t, "FORGED\x0b/ HTTP/1.1\r\nHost: a\r\n\r\n")
	lines := bufio.NewScanner(strings.NewReader(b.log.String()))
	seen := 0
	for lines.Scan() {
		seen++
		line := lines.Text()
		if !strings.HasPrefix(line, "time=2") || strings.Contains(line, "level=ERROR msg=forged") && !strings.Contains(line, `"`) || strings.ContainsAny(line, "\x1b\x00") || !utf8.ValidString(line) {
			t.Errorf("a line is forged: %q", line)
		}
		if before, _, ok := strings.Cut(line, "forged"); ok && strings.Count(before, `"`)%2 == 0 {
			t.Errorf("what was sent stands outside of quotes: %q", line)
		}
	}
	if !strings.Contains(b.log.String(), "forged") || seen < 5 {
		t.Errorf("the log has %d lines and nothing of what was sent", seen)
	}
}
