package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"rollcall/store"
)

func passwordForm(old, password string) url.Values {
	return url.Values{"old_password": {old}, "password": {password}, "password_again": {password}}
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	b := setup(t)
	u := b.addUser(t, "alice", store.RoleAnalyst)
	here, there := b.visit(t), b.visit(t)
	for _, v := range []*visitor{here, there} {
		v.post("/sign-in", signInForm("alice", password))
	}
	differ := passwordForm(password, "a new passphrase")
	differ.Set("password_again", "another")
	for name, tt := range map[string]struct {
		form  url.Values
		field string
	}{
		"wrong old one": {passwordForm("not this one", "a new passphrase"), "old_password"},
		"too short":     {passwordForm(password, "short"), "password"},
		"two kinds":     {differ, "password_again"},
	} {
		got := here.submit("/account/password", tt.form)
		if got.status != http.StatusUnprocessableEntity || got.text("#"+tt.field+"-error") == "" {
			t.Errorf("%s: got %d, %q", name, got.status, got.text("main"))
		}
	}
	if got := here.submit("/account/password", passwordForm(password, "a new passphrase")); got.status != http.StatusSeeOther {
		t.Fatalf("got %d, %q", got.status, got.text("main"))
	}
	if here.get("/").status != http.StatusOK || there.get("/").status != http.StatusSeeOther {
		t.Error("this session must go on, and the other end")
	}
	if got := there.post("/sign-in", signInForm("alice", "a new passphrase")); got.status != http.StatusSeeOther {
		t.Errorf("sign-in: got %d", got.status)
	}
	if got := b.audited(t)[1]; got != "alice user.password alice" {
		t.Errorf("audit log: got %q", got)
	}
	for range 8 {
		here.submit("/account/password", passwordForm("guess", "a newer passphrase"))
	}
	if got := here.submit("/account/password", passwordForm("guess", "a newer passphrase")); !strings.Contains(got.text("#old_password-error"), "Too many") {
		t.Errorf("guessing user %d's password: got %d, %q", u.ID, got.status, got.text("main"))
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	got := v.submit("/account/settings", url.Values{"time_zone": {"Mars/Olympus"}, "theme": {"pink"}})
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text("#time_zone-error"), "Mars/Olympus") || got.text("#theme-error") == "" {
		t.Errorf("bad values: got %d, %q", got.status, got.text("main"))
	}
	for _, zone := range []string{"Local", "../../etc/passwd", "/etc/localtime", "europe\x00/berlin", strings.Repeat("A", 100)} {
		if got := v.submit("/account/settings", url.Values{"time_zone": {zone}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("zone %q: got %d, want 422", zone, got.status)
		}
	}
	if got := v.submit("/account/settings", url.Values{"time_zone": {"Asia/Kolkata"}, "theme": {"dark"}}); got.status != http.StatusSeeOther {
		t.Fatalf("got %d, %q", got.status, got.text("main"))
	}
	html := v.get("/account").doc.Find("html")
	if html.AttrOr("data-zone", "") != "Asia/Kolkata" || html.AttrOr("data-theme-default", "") != "dark" {
		t.Errorf("pages: got %q, %q", html.AttrOr("data-zone", ""), html.AttrOr("data-theme-default", ""))
	}
	if got := v.get("/account").doc.Find("option[selected]"); got.Length() != 2 || got.First().AttrOr("value", "") != "Asia/Kolkata" {
		t.Errorf("chosen: got %d", got.Length())
	}
	// One that the list hasn't, and the database of zones has.
	v.submit("/account/settings", url.Values{"time_zone": {"US/Pacific"}})
	if got := v.get("/account").doc.Find("#time_zone option[selected]").AttrOr("value", ""); got != "US/Pacific" {
		t.Errorf("chosen: got %q", got)
	}
}

func TestZones(t *testing.T) {
	t.Parallel()
	for _, name := range append(strings.Fields(zoneNames), "UTC") {
		if !knownZone(name) {
			t.Errorf("%s: not known", name)
		}
	}
	if groups := zoneGroups("US/Pacific"); groups[0].Name != "" || len(groups) < 8 {
		t.Errorf("got %d groups", len(groups))
	}
}

func TestOwnSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	here, there := b.visit(t), b.visit(t)
	there.post("/sign-in", signInForm("alice", password))
	b.clock.advance(time.Minute)
	r := here.request(http.MethodPost, "/sign-in", strings.NewReader(signInForm("alice", password).Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("User-Agent", "Netscape <b>4.0</b>")
	here.do(r)
	rows := here.get("/account").doc.Find("[data-testid=sessions] tbody tr")
	first := page{doc: goquery.NewDocumentFromNode(rows.Get(0))}
	if rows.Length() != 2 || !strings.Contains(first.text("th"), "This one") || !strings.Contains(first.text("th"), "Netscape <b>4.0</b>") || !strings.Contains(rows.Text(), "127.0.0.1") {
		t.Fatalf("sessions: got %d, %q", rows.Length(), rows.Text())
	}
	action := rows.Eq(1).Find("form").AttrOr("action", "")
	stranger := b.as(t, store.RoleAdmin)
	if got := stranger.submit(action, nil); got.status != http.StatusSeeOther || there.get("/").status != http.StatusOK {
		t.Errorf("a stranger: got %d, or the session has ended", got.status)
	}
	if got := here.submit(action, nil); got.header.Get("Location") != accountPath || there.get("/").status != http.StatusSeeOther {
		t.Errorf("the other: got %d to %q", got.status, got.header.Get("Location"))
	}
	there.post("/sign-in", signInForm("alice", password))
	if got := here.submit("/account/sessions/end", nil); got.status != http.StatusSeeOther || there.get("/").status != http.StatusSeeOther {
		t.Errorf("everywhere else: got %d", got.status)
	}
	if got := here.get("/account").doc.Find("[data-testid=sessions] tbody tr"); got.Length() != 1 {
		t.Errorf("left: got %d, want this one", got.Length())
	}
	action = here.get("/account").doc.Find("[data-testid=sessions] form").AttrOr("action", "")
	if got := here.submit(action, nil); got.header.Get("Location") != signInPath || here.get("/").status != http.StatusSeeOther {
		t.Errorf("this one: got %d to %q", got.status, got.header.Get("Location"))
	}
}
