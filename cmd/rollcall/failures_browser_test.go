package main

import "rollcall/internal/sandbox"

// groupFailures resolves one group of a batch's failures with a note, and
// resubmits what is put back of it, as a group.
func (s *show) groupFailures() {
	s.t.Helper()
	s.must(s.sandbox.SetFaults(sandbox.Faults{sandbox.FaultItemFail: 1}))
	s.submit("Fails for good", sandbox.MadeURLs(3, 9)...)
	s.home()
	s.must(s.sandbox.SetFaults(nil))
	s.until("[data-testid=groups]", "Resubmit…")
	s.check("batch-groups")
	s.click("[data-testid=groups] tbody tr:first-child th a")
	s.until("[data-testid=group]", "failure")
	s.click("[data-testid=group] a[href^='/failures/resolve']")
	s.until("[data-testid=plan]", "no longer wait")
	s.click(".plan-foot [type=submit]")
	s.until("#note-error", "Say why")
	s.fill("#note", "The shop has closed.")
	s.check("resolve-plan")
	s.click(".plan-foot [type=submit]")
	s.until(".note-success", "resolved")
	s.visit("/failures?standing=resolved")
	s.until("[data-testid=failures]", "Resolved: The shop has closed.")
	s.check("failures-resolved")
	s.click("[data-testid=failures] tbody tr:first-child th a")
	s.until("[data-testid=resolved]", "The shop has closed.")
	s.click("[data-testid=resolved] button")
	s.until(".note-success", "1 failure waits again")
	s.visit("/failures")
	s.click("[data-testid=groups] tbody tr:first-child a[href^='/resubmit']")
	s.until("[data-testid=plan]", "asked for again: every failure of this group")
	s.click(".plan-foot form [type=submit]")
	s.until(".note-success", "resubmitted")
}
