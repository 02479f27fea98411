package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"rollcall/store"
)

// TestFollowJob: the page of a job asks for itself whenever the job has moved,
// whether or not anybody was told, and the stream ends with the job.
func TestFollowJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 4)
	b.exec(t, `UPDATE jobs SET state = 'accepted', ended_at = NULL, settle_net = NULL WHERE id = $1`, s.job)
	page := v.get("/jobs/" + idText(s.job))
	if page.doc.Find("#follow").AttrOr("hx-get", "") != "/jobs/"+idText(s.job) || page.doc.Find("#live").Length() != 1 {
		t.Error("the page of an open job doesn't follow it")
	}
	watched := v.watch(fmt.Sprintf("/jobs/%d/live", s.job))
	watched.until(t, "event: items") // The page may be older than the stream.
	b.exec(t, `UPDATE jobs SET polls = polls + 1, vendor_status = 'processing' WHERE id = $1`, s.job)
	watched.until(t, "event: items") // Found by looking.
	b.exec(t, `UPDATE jobs SET state = 'settled', ended_at = now() WHERE id = $1`, s.job)
	if err := b.store.Notify(t.Context(), s.batch); err != nil {
		t.Fatal(err)
	}
	watched.until(t, "event: done")
	watched.ended(t)
	if v.get("/jobs/"+idText(s.job)).doc.Find("#live").Length() != 0 {
		t.Error("the page of a settled job waits for news")
	}
}

// TestFollowItem ends as soon as the item has its answer, at once if it has it.
func TestFollowItem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 4)
	watched := v.watch(fmt.Sprintf("/items/%d/live", s.items[2]))
	watched.until(t, "event: items")
	b.exec(t, `UPDATE items SET state = 'failed', error_code = 'X', ended_at = now() WHERE id = $1`, s.items[2])
	if err := b.store.Notify(t.Context(), s.batch); err != nil {
		t.Fatal(err)
	}
	watched.until(t, "event: done")
	watched.ended(t)
	if late := v.watch(fmt.Sprintf("/items/%d/live", s.items[2])); !strings.Contains(late.until(t, "event: items"), "items") {
		t.Error("who comes late isn't told to look")
	}
}

// TestFollowReconcile tells of each run's start and end.
func TestFollowReconcile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleOperator)
	watched := v.watch("/reconcile/live")
	watched.until(t, "event: items")
	run := b.id(t, `INSERT INTO reconcile_runs (trigger, started_at, window_start, window_end) VALUES ('person', now(), now(), now()) RETURNING id`)
	watched.until(t, "event: items")
	b.exec(t, `UPDATE reconcile_runs SET finished_at = now() WHERE id = $1`, run)
	watched.until(t, "event: items")
	for _, path := range []string{"/jobs/999/live", "/items/999/live", "/jobs/x/live"} {
		if got := v.get(path); got.status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, got.status)
		}
	}
}
