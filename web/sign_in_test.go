package web

import (
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/store"
)

func signInForm(name, pass string) url.Values {
	return url.Values{"name": {name}, "password": {pass}}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "Alice", store.RoleAnalyst)

	t.Run("leads back to the page asked for", func(t *testing.T) {
		t.Parallel()
		v := b.visit(t)
		asked := v.get("/batches?name=x")
		form := v.get(asked.header.Get("Location"))
		next, _ := form.doc.Find("input[name=next]").Attr("value")
		got := v.post("/sign-in", url.Values{"name": {"alice"}, "password": {password}, "next": {next}})
		if got.status != http.StatusSeeOther || got.header.Get("Location") != "/batches?name=x" {
			t.Errorf("got %d to %q, want 303 to /batches?name=x", got.status, got.header.Get("Location"))
		}
		if got := v.get("/batches"); got.status != http.StatusOK || !strings.Contains(got.text("header"), "Alice") {
			t.Errorf("after sign-in: got %d, header %q", got.status, got.text("header"))
		}
	})
	t.Run("says the same of a wrong name and a wrong password", func(t *testing.T) {
		t.Parallel()
		v := b.visit(t)
		wrong := v.post("/sign-in", signInForm("alice", "not the password"))
		unknown := v.post("/sign-in", signInForm("mallory", "not the password"))
		if wrong.status != http.StatusUnauthorized || unknown.status != http.StatusUnauthorized {
			t.Errorf("got %d and %d, want 401 twice", wrong.status, unknown.status)
		}
		if got, want := unknown.text("[role=alert]"), wrong.text("[role=alert]"); got != want || got == "" {
			t.Errorf("got %q and %q, want the same", got, want)
		}
		if got, _ := wrong.doc.Find("input[name=name]").Attr("value"); got != "alice" {
			t.Errorf("name in the form: got %q, want alice", got)
		}
	})
	t.Run("takes odd bytes", func(t *testing.T) {
		t.Parallel()
		b := setup(t) // Its failures delay everybody of one source.
		b.addUser(t, "Alice", store.RoleAnalyst)
		v := b.visit(t)
		for _, name := range []string{"\x00", "a\x00b", "\xff\xfe", strings.Repeat("x", 100_000), ""} {
			if got := v.post("/sign-in", signInForm(name, "x")); got.status != http.StatusUnauthorized && got.status != http.StatusTooManyRequests {
				t.Errorf("name %.10q: got %d, want 401", name, got.status)
			}
		}
	})
}

func TestSignInNeverLeadsAway(t *testing.T) {
	t.Parallel()
	for _, next := range []string{
		"//evil.example", "///evil.example", "/.//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "", "batches", "/\tx", "/a\nb",
	} {
		if got := back(next); got != "/" {
			t.Errorf("back(%q): got %q, want /", next, got)
		}
	}
	if got := back("/jobs/7?from=abc"); got != "/jobs/7?from=abc" {
		t.Errorf("a page of ours: got %q", got)
	}
}

func TestSignInDelaysAndNeverLocksOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	v := b.visit(t)
	var delayed page
	for range 12 {
		if delayed = v.post("/sign-in", signInForm("alice", "wrong password")); delayed.status == http.StatusTooManyRequests {
			break
		}
	}
	if delayed.status != http.StatusTooManyRequests || delayed.header.Get("Retry-After") == "" {
		t.Fatalf("got %d, Retry-After %q, want 429 with one", delayed.status, delayed.header.Get("Retry-After"))
	}
	if got, _ := delayed.doc.Find("input[name=name]").Attr("value"); got != "alice" || delayed.text("[role=alert]") == "" {
		t.Errorf("form: name %q, message %q", got, delayed.text("[role=alert]"))
	}
	// The right password is delayed as well, but only for a moment, however
	// often somebody fails.
	for range 20 {
		b.clock.advance(sourceWait)
		v.post("/sign-in", signInForm("alice", "wrong password"))
	}
	b.clock.advance(sourceWait)
	if got := v.post("/sign-in", signInForm("alice", password)); got.status != http.StatusSeeOther {
		t.Errorf("after the delay: got %d, want 303", got.status)
	}
}

func TestSessionIsRotatedAndEnds(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{SessionIdle: time.Hour, SessionMax: 3 * time.Hour})
	b.addUser(t, "alice", store.RoleAnalyst)
	v := b.visit(t)
	first := v.post("/sign-in", signInForm("alice", password)).header.Get("Set-Cookie")
	second := v.post("/sign-in", signInForm("alice", password)).header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
		if !strings.Contains(first, want) {
			t.Errorf("cookie %q: want %s in it", first, want)
		}
	}
	old := strings.TrimPrefix(strings.Split(first, ";")[0], "rollcall=")
	if strings.Contains(second, old) {
		t.Error("the session's token survived a sign-in")
	}
	stale := v.request(http.MethodGet, "/", nil)
	stale.Header.Set("Cookie", "rollcall="+old)
	if got := b.visit(t).do(stale); got.status != http.StatusSeeOther {
		t.Errorf("old token: got %d, want 303 to the sign-in", got.status)
	}

	b.clock.advance(59 * time.Minute)
	if got := v.get("/"); got.status != http.StatusOK {
		t.Fatalf("in use: got %d, want 200", got.status)
	}
	b.clock.advance(61 * time.Minute)
	if got := v.get("/batches"); got.header.Get("Location") != "/sign-in?next=%2Fbatches&note=expired" {
		t.Errorf("idle for an hour: got %d to %q", got.status, got.header.Get("Location"))
	}
	if got := v.get("/sign-in?note=expired"); got.text(".note-info") == "" {
		t.Error("no note about the ended session")
	}
}

func TestSessionEndsAtItsAbsoluteEnd(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{SessionIdle: time.Hour, SessionMax: 3 * time.Hour})
	u := b.addUser(t, "alice", store.RoleAnalyst)
	v := b.visit(t)
	v.post("/sign-in", signInForm("alice", password))
	for range 3 {
		b.clock.advance(59 * time.Minute)
		if got := v.get("/"); got.status != http.StatusOK {
			t.Fatalf("in use: got %d, want 200", got.status)
		}
	}
	b.clock.advance(5 * time.Minute)
	if got := v.get("/"); got.status != http.StatusSeeOther {
		t.Errorf("past the absolute end: got %d, want 303", got.status)
	}

	v.post("/sign-in", signInForm("alice", password))
	if _, err := b.store.DeleteUserSessions(t.Context(), u.ID, nil); err != nil {
		t.Fatal(err)
	}
	if got := v.get("/"); got.status != http.StatusSeeOther {
		t.Errorf("session deleted: got %d, want 303", got.status)
	}
}

func TestPartOfAPageIsNoSignIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	v := b.visit(t)
	r := v.request(http.MethodGet, "/batches/1/items", nil)
	r.Header.Set("HX-Request", "true")
	if got := v.do(r); got.status != http.StatusUnauthorized || got.header.Get("HX-Refresh") != "true" {
		t.Errorf("got %d, HX-Refresh %q, want 401 and the whole page asked for again", got.status, got.header.Get("HX-Refresh"))
	}
}

func TestDisabledUserIsOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAdmin)
	v := b.visit(t)
	v.post("/sign-in", signInForm("alice", password))
	if _, err := b.store.SQL().ExecContext(t.Context(), "UPDATE users SET disabled_at = now()"); err != nil {
		t.Fatal(err)
	}
	if got := v.get("/"); got.status != http.StatusSeeOther {
		t.Errorf("page: got %d, want 303", got.status)
	}
	if got := v.post("/sign-in", signInForm("alice", password)); got.status != http.StatusUnauthorized {
		t.Errorf("sign-in: got %d, want 401", got.status)
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	r := v.request(http.MethodGet, "/", nil)
	cookies := v.client.Jar.Cookies(r.URL)
	if got := v.submit("/sign-out", nil); got.status != http.StatusSeeOther {
		t.Fatalf("got %d, want 303", got.status)
	}
	again := b.visit(t)
	again.client.Jar.SetCookies(r.URL, cookies)
	if got := again.get("/"); got.status != http.StatusSeeOther {
		t.Errorf("the token after sign-out: got %d, want 303", got.status)
	}
}

func TestSecureCookies(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{SecureCookies: true, PublicURL: "https://desk.example"})
	b.addUser(t, "alice", store.RoleAnalyst)
	got := b.visit(t).post("/sign-in", signInForm("alice", password))
	if cookie := got.header.Get("Set-Cookie"); !strings.HasPrefix(cookie, "__Host-rollcall=") || !strings.Contains(cookie, "Secure") {
		t.Errorf("cookie: got %q, want a secure __Host- one", cookie)
	}
	if got.header.Get("Strict-Transport-Security") == "" {
		t.Error("no Strict-Transport-Security although the address is https")
	}
}

func TestChangesNeedTheSessionsToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, other := b.as(t, store.RoleOperator), b.as(t, store.RoleOperator)
	for name, form := range map[string]url.Values{
		"none": {}, "wrong": {csrfField: {newToken()}}, "another session's": {csrfField: {other.token()}},
	} {
		if got := v.post("/reconcile", form); got.status != http.StatusForbidden {
			t.Errorf("token %s: got %d, want 403", name, got.status)
		}
	}
	if got := v.submit("/reconcile", nil); got.status != http.StatusSeeOther {
		t.Errorf("own token: got %d, want 303", got.status)
	}
	if b.pipeline.runs != 1 {
		t.Errorf("runs: got %d, want 1", b.pipeline.runs)
	}
}

func TestForeignOriginsAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	for header, value := range map[string]string{
		"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example",
	} {
		v := b.visit(t)
		r := v.request(http.MethodPost, "/sign-in", strings.NewReader(signInForm("alice", password).Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(header, value)
		if got := v.do(r); got.status != http.StatusForbidden {
			t.Errorf("%s %s: got %d, want 403", header, value, got.status)
		}
	}
}

func TestSetUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visit(t)
	if got := v.get("/batches"); got.header.Get("Location") != "/setup" {
		t.Fatalf("with no user: got %d to %q, want /setup", got.status, got.header.Get("Location"))
	}
	first, err := b.server.EnsureSetupToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A second process of the installation prints its own.
	if _, err := b.server.EnsureSetupToken(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kept string
	if err := b.store.SQL().QueryRowContext(t.Context(), "SELECT value FROM settings").Scan(&kept); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(kept, first) || !strings.Contains(kept, hex.EncodeToString(tokenHash(first))) {
		t.Error("the settings hold something else than the token's hash")
	}
	if got := v.post("/setup", setUpForm("guess")); got.status != http.StatusForbidden || got.text("#token-error") == "" {
		t.Errorf("wrong token: got %d, message %q", got.status, got.text("#token-error"))
	}
	short := setUpForm(first)
	short.Set("password", "short")
	if got := v.post("/setup", short); got.status != http.StatusUnprocessableEntity || got.text("#password-error") == "" {
		t.Errorf("short password: got %d, message %q", got.status, got.text("#password-error"))
	}
}

func setUpForm(token string) url.Values {
	return url.Values{"token": {token}, "name": {"root"}, "password": {password}, "password_again": {password}}
}

func TestSetUpHappensOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visit(t)
	token, err := b.server.EnsureSetupToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var made sync.WaitGroup
	statuses := make(chan int, 4)
	for range cap(statuses) {
		made.Go(func() { statuses <- b.visit(t).post("/setup", setUpForm(token)).status })
	}
	made.Wait()
	close(statuses)
	created := 0
	for status := range statuses {
		if status == http.StatusSeeOther {
			created++
		}
	}
	users, err := b.store.Users(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if created != 1 || len(users) != 1 || users[0].Role != store.RoleAdmin {
		t.Errorf("four forms at once: %d made it, %d users, want one admin", created, len(users))
	}
	if got := v.get("/setup"); got.status != http.StatusNotFound {
		t.Errorf("set-up afterwards: got %d, want 404", got.status)
	}
	if another, err := b.server.EnsureSetupToken(t.Context()); err != nil || another != "" {
		t.Errorf("token afterwards: got %q, %v, want none", another, err)
	}
	if got := b.visit(t).post("/sign-in", signInForm("ROOT", password)); got.status != http.StatusSeeOther {
		t.Errorf("sign-in: got %d, want 303", got.status)
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
		"::ffff:192.0.2.7": "::ffff:192.0.2.7", "": "", "x": "x",
	} {
		if got := network(source); got != want {
			t.Errorf("%q: got %q, want %q", source, got, want)
		}
	}
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	h, err := newHasher()
	if err != nil {
		t.Fatal(err)
	}
	made := HashPassword(password)
	if !strings.Contains(made, "$m=19456,t=2,p=1$") {
		t.Errorf("got %s, want what OWASP advises at least", made)
	}
	if err := h.check(t.Context(), made, password); err != nil {
		t.Errorf("right password: got %v", err)
	}
	if err := h.check(t.Context(), made, password+"x"); err == nil {
		t.Error("wrong password passed")
	}
	for _, bad := range []string{
		"", "x", "$argon2id$v=19$m=1,t=1,p=1$!$!", "$argon2id$v=19$m=4000000000,t=1,p=1$AAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"$argon2i$v=19$m=19456,t=2,p=1$AAAA$AAAA",
	} {
		if err := h.check(t.Context(), bad, password); err == nil {
			t.Errorf("hash %q passed", bad)
		}
	}
	for pass, ok := range map[string]bool{
		"123456789": false, "1234567890": true, "ёёёёёёёёёё": true, strings.Repeat("x", 200): true, strings.Repeat("x", 201): false,
	} {
		if got := CheckPassword(t.Context(), pass) == ""; got != ok {
			t.Errorf("password of %d bytes: got %v, want %v", len(pass), got, ok)
		}
	}
}
