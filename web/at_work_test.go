package web

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"rollcall/store"
)

// TestVendorsProgressBesideTheSum: while no item of a large job is home, its
// batch shows how far the vendor says it is, as it moves, and sums none of it.
func TestVendorsProgressBesideTheSum(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	path := fmt.Sprintf("/batches/%d", s.batch)
	before := v.get(path)
	if before.doc.Find("[data-testid=at-work], [data-testid=vendor-reports]").Length() != 0 {
		t.Error("nothing is at work, and the page tells how far it is")
	}
	big := b.id(t, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id, accepted_at)
		VALUES ($1, 'batch', 'accepted', 'submit', '\x00', 1000, now(), 'big', now()) RETURNING id`, s.batch)
	if got := v.get(path).text("[data-testid=at-work]"); got != "The vendor is at work. It has not reported yet how far it is." {
		t.Errorf("before its first answer: got %q", got)
	}
	watched := v.watch(path + "/live")
	watched.until(t, "has not reported yet how far")
	b.exec(t, `UPDATE jobs SET vendor_status = 'processing', vendor_reports = '{"total":1000,"completed":640,"failed":19,"pending":341}' WHERE id = $1`, big)
	b.exec(t, `SELECT pg_notify('rollcall_batch', $1)`, strconv.FormatInt(s.batch, 10))
	event := watched.until(t, "The vendor reports 659 of 1,000 done in the jobs at work.")
	if !strings.Contains(event, "vendor reports 659 of 1,000</small>") {
		t.Error("the job's row doesn't move with it")
	}
	after := v.get(path)
	if was, is := before.text("#roll-call"), after.text("#roll-call"); was != is {
		t.Errorf("roll call: got %q, want %q as before", is, was)
	}
	if got := after.text(fmt.Sprintf("#job-%d [data-testid=vendor-reports]", big)); got != "vendor reports 659 of 1,000" {
		t.Errorf("row: got %q", got)
	}
}

// TestFailuresInTheMenuMove with the pages that follow a stream.
func TestFailuresInTheMenuMove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	watched := v.watch("/live")
	watched.until(t, `hx-target="#menu-failures"`)
	s := b.seed(t, "november", 8)
	if err := b.store.Notify(t.Context(), s.batch); err != nil {
		t.Fatal(err)
	}
	watched.until(t, `2<span class="visually-hidden"> waiting</span>`)
	for path, section := range map[string]string{
		fmt.Sprintf("/items/%d", s.items[2]): "#follow", "/reconcile": "#follow",
	} {
		page := v.get(path)
		if page.doc.Find(section+"[hx-select-oob='#menu-failures']").Length() != 1 || page.text("#menu-failures") != "2 waiting" {
			t.Errorf("%s: its stream brings no number of failures to the menu", path)
		}
	}
	rows := v.get(v.get(fmt.Sprintf("/batches/%d", s.batch)).doc.Find("#items").AttrOr("data-rows", "") + "?id=" + idText(s.items[2]))
	if menu := rows.text("hx-partial[hx-target='#menu-failures']"); menu != "2 waiting" {
		t.Errorf("a batch's rows bring %q to the menu", menu)
	}
}
