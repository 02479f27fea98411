package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall/store"
)

// person is who is signed in.
func (v *visitor) person() *store.User {
	v.t.Helper()
	u, err := v.bench.store.UserByName(v.t.Context(), v.get("/account").doc.Find(".account-name strong").Text())
	if err != nil {
		v.t.Fatal(err)
	}
	return u
}

// audited lists what the audit log says was done, newest first: who, what and
// on what.
func (b *bench) audited(t *testing.T) []string {
	t.Helper()
	rows, _, err := b.store.PageAudit(t.Context(), store.AuditFilter{}, store.Key{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range rows {
		lines = append(lines, strings.TrimSpace(rows[i].Who+" "+rows[i].What+" "+rows[i].OnID))
	}
	return lines
}

// invited invites a name and returns the page that shows the link.
func (v *visitor) invited(name string, role store.Role) page {
	v.t.Helper()
	made := v.submit("/users/invite", url.Values{"name": {name}, "role": {string(role)}})
	if made.status != http.StatusSeeOther {
		v.t.Fatalf("invite: got %d, %s", made.status, made.text("main"))
	}
	return v.get(made.header.Get("Location"))
}

func link(p page) string { return p.doc.Find("[data-testid=link] code").AttrOr("title", "") }

func TestInvite(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{PublicURL: "https://desk.example"})
	admin := b.as(t, store.RoleAdmin)
	shown := admin.invited("erin", store.RoleOperator)
	token, ok := strings.CutPrefix(link(shown), "https://desk.example/invite/")
	if !ok || len(token) != tokenLength {
		t.Fatalf("link: got %q", link(shown))
	}
	if again := admin.get("/users/invites/1"); link(again) != "" || !strings.Contains(again.text("main"), "shown before") {
		t.Errorf("shown again: got %q", again.text("main"))
	}
	if list := admin.get("/users").text("[data-testid=invites]"); !strings.Contains(list, "erin") || strings.Contains(list, token) {
		t.Errorf("links that wait: got %q", list)
	}
	erin := b.visit(t)
	form := erin.get("/invite/" + token)
	if form.status != http.StatusOK || form.doc.Find("input[name=name]").AttrOr("value", "") != "erin" || form.header.Get("Referrer-Policy") != "no-referrer" {
		t.Fatalf("the link: got %d, %q", form.status, form.text("main"))
	}
	short := erin.post("/invite/"+token, url.Values{"password": {"short"}, "password_again": {"other"}})
	if short.status != http.StatusUnprocessableEntity || short.text("#password-error") == "" || short.text("#password_again-error") == "" {
		t.Errorf("bad password: got %d, %q", short.status, short.text("main"))
	}
	done := erin.post("/invite/"+token, url.Values{"password": {password}, "password_again": {password}})
	if done.status != http.StatusSeeOther || erin.person().Role != store.RoleOperator {
		t.Fatalf("accepted: got %d, %q", done.status, done.text("main"))
	}
	if got := b.visit(t).post("/sign-in", signInForm("erin", password)); got.status != http.StatusSeeOther {
		t.Errorf("sign-in with the new password: got %d", got.status)
	}
	if log := b.log.String(); strings.Contains(log, token) || !strings.Contains(log, "/invite/...") {
		t.Error("the log has the token, or not the address")
	}
	var kept int
	err := b.store.SQL().QueryRowContext(t.Context(), `SELECT count(*) FROM sessions, audit_log
		WHERE position($1 IN encode(data, 'escape') || coalesce(before::text, '') || coalesce(after::text, '')) > 0`, token).Scan(&kept)
	if err != nil || kept > 0 {
		t.Errorf("the token is kept in %d rows, %v", kept, err)
	}
}

// as is a request that names another host, with the session all the same.
func (v *visitor) as(host, method, path string, form url.Values) *http.Request {
	v.t.Helper()
	r := v.request(method, path, strings.NewReader(form.Encode()))
	for _, cookie := range v.client.Jar.Cookies(r.URL) {
		r.AddCookie(cookie)
	}
	r.Host = host
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// TestInviteHostIsNeverTheRequests: whatever host a request names, the link
// leads to the public address, or names none.
func TestInviteHostIsNeverTheRequests(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{"https://desk.example/": "https://desk.example/invite/", "": "/invite/"} {
		b := setupWith(t, Config{PublicURL: public})
		admin := b.as(t, store.RoleAdmin)
		form := url.Values{"name": {"erin"}, "role": {"analyst"}, csrfField: {admin.token()}}
		r := admin.as("evil.example", http.MethodPost, "/users/invite", form)
		r.Header.Set("X-Forwarded-Host", "evil.example")
		made := admin.do(r)
		shown := admin.do(admin.as("evil.example", http.MethodGet, made.header.Get("Location"), nil))
		if got := link(shown); !strings.HasPrefix(got, want) || strings.Contains(shown.body+made.header.Get("Location"), "evil.example") {
			t.Errorf("public %q: got link %q", public, got)
		}
		if got := strings.Contains(shown.text("main"), "ROLLCALL_PUBLIC_URL"); got != (public == "") {
			t.Errorf("public %q: hint is %v", public, got)
		}
	}
}

// TestLinksThatCantBeUsed: expired, used, revoked and made-up ones get the same
// page, by GET and by POST.
func TestLinksThatCantBeUsed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.as(t, store.RoleAdmin)
	token := func(name string) string {
		return strings.TrimPrefix(link(admin.invited(name, store.RoleAnalyst)), "/invite/")
	}
	used, revoked, expired := token("used"), token("revoked"), token("expired")
	pass := url.Values{"password": {password}, "password_again": {password}}
	if got := b.visit(t).post("/invite/"+used, pass); got.status != http.StatusSeeOther {
		t.Fatalf("use: got %d", got.status)
	}
	if got := admin.submit("/users/invites/2/revoke", nil); got.header.Get("Location") != "/users" {
		t.Fatalf("revoke: got %d", got.status)
	}
	if got := admin.submit("/users/invites/2/revoke", nil); got.status != http.StatusSeeOther {
		t.Errorf("revoked again: got %d", got.status)
	}
	b.clock.advance(inviteFor - time.Minute)
	if got := b.visit(t).get("/invite/" + expired); got.status != http.StatusOK {
		t.Errorf("a minute before its end: got %d", got.status)
	}
	b.clock.advance(time.Minute)
	want := b.visit(t).get("/invite/" + newToken())
	if want.status != http.StatusNotFound || want.text("h1") != "This link can't be used" {
		t.Fatalf("made up: got %d, %q", want.status, want.text("main"))
	}
	for name, token := range map[string]string{"used": used, "revoked": revoked, "expired": expired, "too short": "x", "odd": "%00%ff"} {
		if got := b.visit(t).get("/invite/" + token); got.status != want.status || got.body != want.body {
			t.Errorf("%s: got %d, %q", name, got.status, got.text("main"))
		}
		if got := b.visit(t).post("/invite/"+token, pass); got.status != want.status || got.body != want.body {
			t.Errorf("%s, sent: got %d, %q", name, got.status, got.text("main"))
		}
	}
}

// TestLinksAreNotGuessed: after twenty that don't exist a source must wait, for
// these and not for signing in; a good one costs nothing.
func TestLinksAreNotGuessed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.as(t, store.RoleAdmin)
	good := link(admin.invited("erin", store.RoleAnalyst))
	v := b.visit(t)
	for range 25 {
		if got := v.get(good); got.status != http.StatusOK {
			t.Fatalf("a good link, often: got %d", got.status)
		}
	}
	var got page
	for i := range 25 {
		if got = v.get("/invite/" + newToken()); got.status == http.StatusTooManyRequests {
			if i < 20 {
				t.Errorf("try %d is refused already", i)
			}
			break
		}
	}
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Fatalf("got %d, want 429 with Retry-After", got.status)
	}
	if got := v.post("/sign-in", signInForm("nobody", "x")); got.status != http.StatusUnauthorized {
		t.Errorf("sign-in: got %d, want 401", got.status)
	}
}

func TestInviteForm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.as(t, store.RoleAdmin)
	b.addUser(t, "bob", store.RoleAnalyst)
	for name, tt := range map[string]struct {
		form  url.Values
		field string
	}{
		"no name":      {url.Values{"role": {"analyst"}}, "name"},
		"a name taken": {url.Values{"name": {"BOB"}, "role": {"analyst"}}, "name"},
		"a long name":  {url.Values{"name": {strings.Repeat("x", 81)}, "role": {"analyst"}}, "name"},
		"no such role": {url.Values{"name": {"eve"}, "role": {"king"}}, "role"},
	} {
		got := admin.submit("/users/invite", tt.form)
		if got.status != http.StatusUnprocessableEntity || got.text("#"+tt.field+"-error") == "" {
			t.Errorf("%s: got %d, %q", name, got.status, got.text("main"))
		}
		if typed := got.doc.Find("#name").AttrOr("value", ""); typed != tt.form.Get("name") {
			t.Errorf("%s: the name is %q in the form", name, typed)
		}
	}
}

// TestAdminsLeaveTheirOwnAccountAlone: no slip, and no admin by themselves, ends
// the last one's rights.
func TestAdminsLeaveTheirOwnAccountAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.as(t, store.RoleAdmin)
	b.as(t, store.RoleAdmin)
	mine := "/users/" + idText(admin.person().ID)
	for verb, form := range map[string]url.Values{"role": {"role": {"analyst"}}, "disable": nil, "enable": nil, "reset": nil} {
		if got := admin.submit(mine+"/"+verb, form); got.status != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", verb, got.status)
		}
	}
	if got := admin.get(mine); got.doc.Find("main form[action^='/users/']").Length() > 0 {
		t.Error("the page offers what is refused")
	}
	if u := admin.person(); u.Role != store.RoleAdmin || u.DisabledAt != nil {
		t.Errorf("got %+v", u)
	}
	if got := admin.submit(mine+"/sign-out", nil); got.header.Get("Location") != signInPath {
		t.Errorf("sign out everywhere: got %d to %q", got.status, got.header.Get("Location"))
	}
	if got := admin.get("/"); got.status != http.StatusSeeOther {
		t.Errorf("afterwards: got %d", got.status)
	}
}

func TestChangesOfAUser(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin, bob := b.as(t, store.RoleAdmin), b.as(t, store.RoleAnalyst)
	u := bob.person()
	path := "/users/" + idText(u.ID)
	change := func(verb string, form url.Values) {
		t.Helper()
		if got := admin.submit(path+"/"+verb, form); got.status != http.StatusSeeOther {
			t.Errorf("%s: got %d, %q", verb, got.status, got.text("main"))
		}
	}
	if got := admin.submit(path+"/role", url.Values{"role": {"king"}}); got.status != http.StatusUnprocessableEntity || got.text("#role-error") == "" {
		t.Errorf("no such role: got %d", got.status)
	}
	change("role", url.Values{"role": {"operator"}})
	if bob.person().Role != store.RoleOperator || bob.get("/jobs/cancel?id=1").status == http.StatusForbidden {
		t.Error("the role isn't in force at the next request")
	}
	change("disable", nil)
	if got := bob.get("/"); got.status != http.StatusSeeOther {
		t.Errorf("disabled: got %d", got.status)
	}
	if got := admin.submit(path+"/reset", nil); got.header.Get("Location") != path || !strings.Contains(admin.get(path).text("[role=status]"), "disabled") {
		t.Errorf("reset while disabled: got %d to %q", got.status, got.header.Get("Location"))
	}
	change("enable", nil)
	if got := bob.get("/"); got.status != http.StatusSeeOther {
		t.Error("a session came back with the account")
	}
	if got := bob.post("/sign-in", signInForm(u.Name, password)); got.status != http.StatusSeeOther {
		t.Errorf("enabled: got %d", got.status)
	}
	change("sign-out", nil)
	if got := bob.get("/"); got.status != http.StatusSeeOther {
		t.Error("signed out everywhere, and still in")
	}
	b.resets(t, admin, bob, u)
	want := []string{"user.reset_password", "user.end_sessions", "user.enable", "user.disable", "user.role"}
	var got []string
	for _, line := range b.audited(t) {
		if who, what, ok := strings.Cut(line, " "); ok && strings.HasPrefix(who, "admin-") && what != "user.sign_in "+who {
			got = append(got, strings.TrimSuffix(what, " "+u.Name))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("audit log: got %v, want %v", got, want)
	}
	if got := admin.get("/users/999"); got.status != http.StatusNotFound {
		t.Errorf("nobody: got %d", got.status)
	}
}

// resets gives bob a new password by a link.
func (b *bench) resets(t *testing.T, admin, bob *visitor, u *store.User) {
	t.Helper()
	made := admin.submit("/users/"+idText(u.ID)+"/reset", nil)
	path := link(admin.get(made.header.Get("Location")))
	if got := bob.post("/sign-in", signInForm(u.Name, password)); got.status != http.StatusUnauthorized {
		t.Errorf("the old password: got %d", got.status)
	}
	if form := bob.get(path); !strings.Contains(form.text("h1"), "new password") {
		t.Errorf("the link: got %d, %q", form.status, form.text("main"))
	}
	fresh := url.Values{"password": {"another passphrase"}, "password_again": {"another passphrase"}}
	if got := bob.post(path, fresh); got.status != http.StatusSeeOther || bob.get("/").status != http.StatusOK {
		t.Errorf("a new password: got %d", got.status)
	}
}
