package main

import "strings"

// letsBackIn has the newcomer, who is shut out, come back, be signed out, and set a new password by a link; an
// invitation is taken back, and a session at another computer ended.
func (b *chrome) letsBackIn(erin *chrome, password string) {
	b.t.Helper()
	b.visit("/users")
	b.press("[data-testid=users]", "erin")
	b.until("h1", "erin")
	b.click("form[action$='/enable'] button")
	b.until("[role=status]", "erin can sign in again")
	erin.signIn("erin", "erin chose another")
	erin.until("[data-live-state]", "Live")
	b.click("form[action^='/users/'][action$='/sign-out'] button")
	b.until("[role=status]", "erin is signed out: one session ended")
	erin.isOut()

	erin.signIn("ada", password)
	erin.until("[data-live-state]", "Live")
	b.endsOtherSession()
	erin.isOut()

	b.visit("/users")
	b.press("[data-testid=users]", "erin")
	b.until("h1", "erin")
	b.click("form[action$='/reset'] button")
	b.until("h1", "A new password for erin")
	erin.visit(b.linkShown())
	erin.until("h1", "Set a new password")
	erin.fill("#password", "erin chose a third")
	erin.fill("#password_again", "erin chose a third")
	erin.click("main form [type=submit]")
	erin.until("h1", "Overview")

	erin.visit(b.revokesLink())
	erin.until("h1", "can't be used")
	b.visit("/audit?kind=user&id=erin")
	b.until("[data-testid=audit]", `(?s)user.password.*one-time link.*user.reset_password.*user.end_sessions.*user.enable`)
}

// isOut waits for the sign-in page, which comes by itself; the button is the last of it.
func (b *chrome) isOut() {
	b.t.Helper()
	b.until("form [type=submit]", "^Sign in")
}

// endsOtherSession leaves only the session of this browser.
func (b *chrome) endsOtherSession() {
	b.t.Helper()
	const count = `String(document.querySelectorAll("[data-testid=sessions] tbody tr").length)`
	b.visit("/account")
	if n := b.value(count); n != "2" {
		b.t.Errorf("got %s sessions, want this one and another", n)
	}
	b.click("[data-testid=sessions] button[aria-label^='Sign out the session of']")
	b.until("[role=status]", "That session has ended")
	b.whole()
	if n := b.value(count); n != "1" {
		b.t.Errorf("got %s sessions, want this one alone", n)
	}
}

// linkShown is the path of the one-time link on the page.
func (b *chrome) linkShown() string {
	b.t.Helper()
	b.whole()
	link := b.value(`document.querySelector("[data-testid=link] code").title`)
	path := strings.TrimPrefix(link, b.base)
	if !strings.HasPrefix(path, "/invite/") {
		b.t.Fatalf("link %q does not lead to %s", link, b.base)
	}
	return path
}

// revokesLink makes an invitation, takes it back, and returns its path.
func (b *chrome) revokesLink() string {
	b.t.Helper()
	b.visit("/users")
	b.fill("#name", "frank")
	b.click("form[action='/users/invite'] button")
	b.until("h1", "An invitation for frank")
	path := b.linkShown()
	b.visit("/users")
	b.until("[data-testid=invites]", "frank")
	b.click("[data-testid=invites] button[aria-label='Revoke the link for frank']")
	b.until("[role=status]", "The link is revoked")
	b.whole()
	if left := b.text("[data-testid=invites]"); left != "" {
		b.t.Errorf("links still wait:\n%s", left)
	}
	return path
}
