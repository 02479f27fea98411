package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"rollcall/store"
)

// TestBatchWhoseItemsWereRemoved: no page offers what needs them, or begins with
// it, and nothing is compared with it by itself.
func TestBatchWhoseItemsWereRemoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.seed(t, "Long ago", 3), b.seed(t, "Lately", 3)
	b.exec(t, `UPDATE items SET state = 'cancelled', ended_at = $2 WHERE batch_id = $1 AND state = 'outstanding'`, s.batch, b.clock.now())
	b.exec(t, `UPDATE batches SET cancelled = cancelled + outstanding, ended_at = $2, pruned_at = $2 WHERE id = $1`, s.batch, b.clock.now())
	b.exec(t, `UPDATE batches SET parent_batch_id = $1, rerun = 'all' WHERE id = $2`, s.batch, other.batch)
	v, id := b.as(t, store.RoleAnalyst), idText(s.batch)
	if p := v.get("/batches/" + id); p.status != http.StatusOK || p.doc.Find("#batch-menu").Length() != 0 {
		t.Errorf("its page: got %d, and offers %q", p.status, p.text("#batch-menu"))
	}
	if p := v.get("/compare/batches?b=" + idText(other.batch)); p.status != http.StatusOK || p.doc.Find("input#a").AttrOr("value", "") != "" {
		t.Errorf("the one that runs it again is compared with it: got %d, %q", p.status, p.doc.Find("input#a").AttrOr("value", ""))
	}
	for _, from := range []string{"/exports/new?batch=" + id, "/batches/" + id + "/export?format=csv", "/schedules/new?batch=" + id} {
		if p := v.get(from); p.status != http.StatusUnprocessableEntity || !strings.Contains(p.text("main"), "were removed") {
			t.Errorf("GET %s: got %d and %q", from, p.status, p.text("main"))
		}
	}
	for to, form := range map[string]url.Values{
		"/exports":   {"batch": {id}, "format": {"csv"}, "large": {"1"}},
		"/schedules": {"batch": {id}, "pick": {"daily"}, "time": {"06:00"}, "zone": {"UTC"}},
	} {
		if p := v.submit(to, form); p.status != http.StatusUnprocessableEntity || !strings.Contains(p.text("main"), "were removed") {
			t.Errorf("POST %s: got %d and %q", to, p.status, p.text("main"))
		}
	}
}
