package main

import (
	"fmt"
	"testing"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestOperatorsInABrowser drives what operators and admins come for on a whole Rollcall: a secret is changed, a delivery
// that was refused is found and says why, the vendor's log is replayed, what differs is replaced, a webhook is changed and
// removed, and all of it is in the audit log.
func TestOperatorsInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t) // Before anything is started for it.
	s := openShow(t)
	s.must(s.addUser(t.Context(), "carol", store.RoleAdmin, "correct horse battery"))
	s.must(s.demo.sandbox.SetFaults(sandbox.Faults{sandbox.FaultWrongSig: 1}))
	s.submit("Forged", sandbox.MadeURLs(8, 3)...)
	s.home()
	s.must(s.demo.sandbox.SetFaults(nil))
	s.refusedDelivery()
	s.replayFromLog()
	s.refetchAndReplace()
	s.forbiddenToOperators()
	s.visit("/account")
	s.value(`(() => { document.querySelector("form[action='/sign-out'] button").click(); return ""; })()`)
	s.until("h1", "Sign in")
	s.signIn("carol", "correct horse battery")
	s.rotateInABrowser()
	s.changeWebhook()
	s.auditOfAll()
}

// refusedDelivery finds what was refused and reads why.
func (s *show) refusedDelivery() {
	s.t.Helper()
	s.visit("/deliveries?verdict=refused")
	s.until("[data-testid=deliveries]", "Refused")
	s.check("deliveries-refused")
	s.click("[data-testid=deliveries] tbody th a")
	s.until("h1", "Delivery")
	s.until("main", "(?i)signature")
	s.check("delivery-refused")
	s.verifyAgain()
}

// replayFromLog reads the vendor's log, picks what failed, plans and runs it to its end.
func (s *show) replayFromLog() {
	s.t.Helper()
	s.visit("/deliveries/log")
	s.click("form[action='/deliveries/log/read'] button")
	s.until("[data-testid=log]", "(?i)refused|given up|failed")
	s.check("delivery-log")
	s.visit("/replays/new?from=log&status=abandoned")
	s.until("h1", "(?i)replay")
	s.visit("/replays/new?from=log")
	s.click("form[action='/replays'] button[type=submit]")
	s.until("[data-testid=plan]", "(?i)settled")
	s.check("replay-planned")
	s.click("#run button[type=submit], button[form=run][type=submit]")
	s.until("main", "(?i)done")
	s.until("[data-testid=replay-jobs]", "(?i)settled")
	s.check("replay-done")
}

// forbiddenToOperators are pages of admins.
func (s *show) forbiddenToOperators() {
	s.t.Helper()
	paths := []string{"/webhooks", "/webhooks/1/rotation", "/users", "/audit"}
	for _, path := range paths {
		if got := s.value(fmt.Sprintf(`fetch(%q).then((r) => String(r.status))`, path)); got != "403" {
			s.t.Errorf("%s answers an operator %s, want 403", path, got)
		}
	}
	// Chromium notes each of them, a moment later.
	eventually(s.t, "the console's notes", patience, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.said) < len(paths) {
			return false
		}
		s.said = nil
		return true
	})
}

// rotateInABrowser changes the secret of a webhook and follows it to its end.
func (s *show) rotateInABrowser() {
	s.t.Helper()
	s.visit("/webhooks")
	s.until("[data-testid=webhooks]", "batch_completed")
	s.check("webhooks")
	s.click("[data-testid=webhooks] tbody a[href^='/webhooks/']")
	s.click("a[href$='/rotation']")
	s.until("h1", "Secret of")
	s.click("form[action$='/rotate'] .btn-primary")
	s.until("[data-testid=steps]", "The vendor makes a new secret")
	s.until("main", "Done")
	s.until("[data-testid=secrets]", "(?i)in use")
	s.check("rotation-done")
	s.emergency()
	// What is signed with it comes home by webhook at once.
	s.submit("With the new secret", sandbox.MadeURLs(3, 4)...)
	s.home()
	s.visit("/webhooks")
	s.until("[data-testid=webhooks]", "(?i)active")
}

// auditOfAll finds what was done, by whom.
func (s *show) auditOfAll() {
	s.t.Helper()
	s.visit("/audit")
	for _, what := range []string{"webhook.rotate", "replay.run", "replay.plan", "batch.submit"} {
		s.until("[data-testid=audit]", what)
	}
	s.check("audit")
	s.auditAsFiles("delivery.verify", "replay.run", "replay.replace", "webhook.rotate", "webhook.describe", "webhook.form", "webhook.remove")
}
