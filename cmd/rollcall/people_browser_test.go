package main

import (
	"encoding/csv"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// choose picks an option of a drop-down.
func (b *chrome) choose(selector, value string) {
	b.t.Helper()
	b.once(selector, fmt.Sprintf(`e.value = %q;`, value))
}

// TestAdminAndNewcomerInBrowsers: an admin invites somebody, who accepts, looks
// after their account, and is shut out while they look at a live page; the
// audit log tells of it, as a file too.
func TestAdminAndNewcomerInBrowsers(t *testing.T) {
	t.Parallel()
	findChromium(t) // Before anything is started for it.
	run := start(t, nil, "demo", "--urls", "20", "--listen", freeAddress(t))
	base := run.log.match(t, regexp.MustCompile(`Open +(\S+)`))
	password := run.log.match(t, regexp.MustCompile(`ada +(\S+)`))
	ada, erin := openChrome(t, base), openChrome(t, base)
	ada.visit("/sign-in")
	ada.signIn("ada", password)

	ada.visit("/users")
	ada.fill("#name", "erin")
	ada.choose("#role", "operator")
	ada.click("form[action='/users/invite'] button")
	ada.until("h1", "An invitation for erin")
	ada.check("people-link")
	path := ada.linkShown()
	ada.visit("/users")
	ada.until("[data-testid=invites]", "erin")
	ada.check("people-users")

	erin.accept(path)
	erin.looksAfterAccount()

	ada.visit("/users")
	ada.value(`[...document.querySelectorAll("[data-testid=users] a")].find((a) => a.textContent === "erin").click() ?? ""`)
	ada.until("h1", "erin")
	ada.check("people-user")
	ada.choose("#role", "analyst")
	ada.click("form[action$='/role'] button")
	ada.until("[role=status]", "erin is an analyst now")

	erin.visit("/")
	erin.until(".account-name", "Analyst")
	erin.until("[data-live-state]", "Live")
	ada.click("form[action$='/disable'] button")
	ada.until("[role=status]", "signed out everywhere")
	erin.until("h1", "Sign in") // By itself: the page was left alone.
	ada.readsAudit()
	ada.letsBackIn(erin, password)
}

// accept opens the one-time link at the path and chooses a password.
func (b *chrome) accept(path string) {
	b.t.Helper()
	b.visit(path)
	b.until("h1", "Welcome")
	b.fill("#password", "short")
	b.fill("#password_again", "shorter")
	b.click("main form [type=submit]")
	b.until("#password-error", "at least 10")
	b.check("people-invite")
	b.fill("#password", "erin chose this one")
	b.fill("#password_again", "erin chose this one")
	b.click("main form [type=submit]")
	b.until("h1", "Overview")
	b.visit(path)
	b.until("h1", "can't be used")
}

// looksAfterAccount chooses zone and theme, which is the later word on what the
// button in the menu chose, and another password.
func (b *chrome) looksAfterAccount() {
	b.t.Helper()
	// Chromium's note that the used link's page is a 404.
	b.mu.Lock()
	b.said = nil
	b.mu.Unlock()
	b.visit("/account")
	b.until("[data-testid=sessions]", "This one")
	b.check("people-account")
	b.click("[data-theme-switch]")
	const theme = `document.documentElement.dataset.theme`
	if got := b.value(theme); got != "light" {
		b.t.Errorf("the button: got theme %q, want light", got)
	}
	b.choose("#time_zone", "Asia/Kolkata")
	b.choose("#theme", "dark")
	b.click("form[action='/account/settings'] button")
	b.until("[role=status]", "Saved")
	b.until("footer", "Asia/Kolkata")
	if got := b.value(theme); got != "dark" {
		b.t.Errorf("the account's setting: got theme %q, want dark", got)
	}
	b.fill("#old_password", "erin chose this one")
	b.fill("#password", "erin chose another")
	b.fill("#password_again", "erin chose another")
	b.click("form[action='/account/password'] button")
	b.until("[role=status]", "The password is changed")
}

// readsAudit filters the audit log and takes it along.
func (b *chrome) readsAudit() {
	b.t.Helper()
	b.visit("/audit")
	b.until("[data-testid=audit]", "user.disable")
	b.check("people-audit")
	b.fill("#id", "erin")
	b.click(".filters button")
	b.until("#error-summary", "Choose what")
	b.choose("[name=kind]", "user")
	b.click(".filters button")
	b.until("[data-testid=audit]", `(?s)user.disable.*user.role.*analyst.*user.password.*user.settings.*user.accept_invite.*user.invite`)
	text := b.value(`fetch([...document.querySelectorAll("a")].find((a) => a.textContent.includes("CSV")).href).then((r) => r.text())`)
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) < 7 || lines[1][5] != "user.disable" {
		b.t.Errorf("the file: %v in\n%s", err, text)
	}
}
