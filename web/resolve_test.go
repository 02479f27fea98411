package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"rollcall/store"
)

// TestResolveAGroup: from the groups of a batch's failures to those of one, its
// plan, a note that is asked for, the press, and back again from the item.
func TestResolveAGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 16)
	failed := []int64{s.items[1], s.items[5], s.items[9], s.items[13]}
	b.exec(t, `UPDATE items SET error_message = 'status 404 after ' || id || ' ms' WHERE id <> $1 AND state = 'failed'`, failed[3])
	batch := v.get(fmt.Sprintf("/batches/%d", s.batch))
	groups := batch.doc.Find("[data-testid=groups] tbody tr")
	if first := groups.First().Text(); groups.Length() != 2 || !strings.Contains(first, "status 404 after # ms") || !strings.Contains(first, "Resubmit… NOT_FOUND") {
		t.Fatalf("got %d groups, first %q", groups.Length(), first)
	}
	list := v.get(groups.First().Find("th a").First().AttrOr("href", ""))
	if list.text("[data-testid=group] strong") != "3 failures" || list.doc.Find("[data-testid=failures] tbody tr").Length() != 3 {
		t.Fatalf("the group: got %q", list.text("main"))
	}
	if again := v.get(list.doc.Find("[data-testid=group] a[href^='/resubmit?']").AttrOr("href", "")); !strings.Contains(again.text("[data-testid=plan]"), "3 URLs are asked for again: every failure of this group of the batch november") {
		t.Errorf("plan to resubmit: got %q", again.text("[data-testid=plan]"))
	}
	plan := v.get(list.doc.Find("[data-testid=group] a[href^='/failures/resolve?']").AttrOr("href", ""))
	form := plan.hidden("/failures/resolve")
	for _, note := range []string{"", "  ", strings.Repeat("é", noteMost+1)} {
		form.Set("note", note)
		got := v.submit("/failures/resolve", form)
		if got.status != http.StatusUnprocessableEntity || got.text("#note-error") == "" || got.text("#note") != strings.TrimSpace(note) {
			t.Errorf("note of %d: got %d %q", len(note), got.status, got.text("#note-error"))
		}
		if kept := got.hidden("/failures/resolve"); kept.Get("set") != form.Get("set") || kept.Get("batch") != idText(s.batch) {
			t.Errorf("the form lost its set: %v", kept)
		}
	}
	form.Set("note", " Taken off the shop. ")
	got := v.submit("/failures/resolve", form)
	want := resolveCall{ids: failed[:3], note: "Taken off the shop."}
	if len(b.pipeline.resolves) != 1 || !slices.Equal(b.pipeline.resolves[0].ids, want.ids) || b.pipeline.resolves[0].note != want.note {
		t.Fatalf("got %d, resolved %+v, want %+v", got.status, b.pipeline.resolves, want)
	}
	if back := got.header.Get("Location"); back != fmt.Sprintf("/failures?batch=%d", s.batch) {
		t.Errorf("back to %q, want the batch's failures", back)
	}
	b.exec(t, `UPDATE items SET resolved_at = now(), resolved_note = 'Taken off <b>.', resolved_by = (SELECT id FROM users LIMIT 1) WHERE id = $1`, failed[0])
	checkResolved(t, b, v, failed[0])
}

// checkResolved looks for a resolved failure wherever it is shown, or isn't.
func checkResolved(t *testing.T, b *bench, v *visitor, id int64) {
	t.Helper()
	for path, want := range map[string]string{
		"/failures": "3 failures", "/failures?standing=resolved": "1 failure", "/failures?standing=all": "4 failures",
	} {
		if got := v.get(path).text(".filters-total"); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := v.get("/failures").text("#menu-failures"); got != "3 waiting" {
		t.Errorf("menu: got %q", got)
	}
	item := v.get("/items/" + idText(id))
	if note := item.text("[data-testid=resolved]"); !strings.Contains(note, "Resolved by") || !strings.Contains(note, "Taken off <b>.") {
		t.Errorf("item: got %q", note)
	}
	got := v.submit("/failures/unresolve", item.hidden("/failures/unresolve"))
	if last := b.pipeline.resolves[len(b.pipeline.resolves)-1]; last.note != "" || !slices.Equal(last.ids, []int64{id}) || got.header.Get("Location") != "/items/"+idText(id) {
		t.Errorf("unresolved %+v, back to %q", last, got.header.Get("Location"))
	}
	for _, path := range []string{"/failures?group=x", "/failures?standing=lost", "/failures/resolve?item=x"} {
		if got := v.get(path); got.status < 400 || got.status > 404 {
			t.Errorf("%s: got %d", path, got.status)
		}
	}
	if got := v.submit("/failures/resolve", url.Values{"set": {"!"}, "before": {"1"}, "note": {"x"}}); got.status != http.StatusBadRequest {
		t.Errorf("a damaged plan: got %d", got.status)
	}
}
