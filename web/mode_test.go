package web

import (
	"strings"
	"testing"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestOverviewTellsWhatAutoModeMeans, since when and why, and says nothing of a reason that isn't that of the mode.
func TestOverviewTellsWhatAutoModeMeans(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	want := func(text string, reason bool) {
		t.Helper()
		got := v.get("/").text("[data-testid=mode]")
		if !strings.Contains(got, text) || strings.Contains(got, "the reason then: ") != reason {
			t.Errorf("got %q, want %q in it, a reason: %v", got, text, reason)
		}
	}
	b.server.cfg.Mode = string(pipeline.ModeAuto)
	want("Auto: ends are learned of by webhook", false)
	b.exec(t, `INSERT INTO mode_changes (id, at, mode, reason) VALUES (1, '2026-11-29 12:00:00+00', 'webhook', 'all is well'),
		(2, '2026-11-29 14:03:00+00', 'poll', '31 of the last 50 completed jobs had their webhook within 60 s')`)
	want("Auto: ends are learned of by webhook", false)
	b.pipeline.distrust.Store(true)
	want("by polling since 29 Nov 2026, 14:03 UTC the reason then: 31 of the last 50 completed jobs had their webhook within 60 s", true)
	b.server.cfg.Mode = string(pipeline.ModePoll)
	want("Poll: ends are learned of by polling", false)
}

// TestJobWhosePollIsDue doesn't show a next poll in the past: while lists answer for a job it stays due.
func TestJobWhosePollIsDue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	b.seed(t, "november", 8)
	b.exec(t, `UPDATE jobs SET state = 'accepted', next_poll_at = '2026-11-29 12:00:00+00' WHERE id = 1`)
	if got := v.get("/jobs/1").text("main"); !strings.Contains(got, "Next poll due, within seconds") {
		t.Errorf("got %q", got)
	}
	b.exec(t, `UPDATE jobs SET next_poll_at = '2096-11-29 12:00:00+00' WHERE id = 1`)
	if got := v.get("/jobs/1").text("main"); !strings.Contains(got, "Next poll 29 Nov 2096") {
		t.Errorf("got %q", got)
	}
}
