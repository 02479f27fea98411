package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// addTo collects a form's hidden fields.
func addTo(form url.Values) func(int, *goquery.Selection) {
	return func(_ int, s *goquery.Selection) { form.Add(s.AttrOr("name", ""), s.AttrOr("value", "")) }
}

// hidden are the fields that a page's form sends along, without the token.
func (p page) hidden(action string) url.Values {
	form := url.Values{}
	p.doc.Find("form[action='" + action + "'] input[type=hidden]").Each(addTo(form))
	form.Del(csrfField)
	return form
}

func TestCancelBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	path := fmt.Sprintf("/batches/%d", s.batch)
	if link := v.get(path).doc.Find("a[href='" + path + "/cancel']"); link.Length() != 1 {
		t.Error("no way to cancel on the batch's page")
	}
	b.pipeline.cancelPlan = pipeline.CancelPlan{Jobs: 30, Unsent: 12, UnsentURLs: 1200, Calling: 1, Stoppable: 3, StoppableURLs: 150, RunsOut: 13, Ended: 1}
	plan := v.get(path + "/cancel")
	for _, want := range []string{
		"12 jobs with 1,200 URLs not sent yet", "1 call under way", "3 jobs at the vendor with 150 URLs", "may still land",
		"13 jobs that can't be stopped", "1 job already ended",
	} {
		if text := plan.text("[data-testid=plan]"); !strings.Contains(text, want) {
			t.Errorf("plan: got %q, want %q in it", text, want)
		}
	}
	if len(b.pipeline.cancelled) != 0 {
		t.Fatal("looking at the plan cancelled something")
	}
	got := v.submit(path+"/cancel", nil)
	if got.status != http.StatusSeeOther || got.header.Get("Location") != path || len(b.pipeline.cancelled) != 1 || b.pipeline.cancelled[0] != s.batch {
		t.Fatalf("cancel: got %d to %q, cancelled %v", got.status, got.header.Get("Location"), b.pipeline.cancelled)
	}
	b.exec(t, `WITH b AS (UPDATE batches SET cancel_requested_at = now() WHERE id = $1)
		INSERT INTO audit_log (at, who, what, kind, on_id) VALUES (now(), 'bert', 'batch.cancel', 'batch', $1::bigint::text), (now() + interval '1 s', 'carla', 'batch.cancel', 'batch', $1::bigint::text)`, s.batch)
	after := v.get(path)
	if note := after.text(".note-success"); !strings.Contains(note, "12 jobs were withdrawn") || !strings.Contains(note, "13 jobs can't be stopped") {
		t.Errorf("note: got %q", note)
	}
	if note := after.text("[data-testid=cancel-asked]"); !inOrder(note, "A cancel was asked for", "by bert", "may land") {
		t.Errorf("asked: got %q, want when, by whom first, and what may come yet", note)
	}
	if again := after.doc.Find("#batch-actions a[href='" + path + "/cancel']"); again.Text() != "Ask again…" || after.text("#batch-actions [data-flag]") != "Cancel asked" {
		t.Errorf("once asked: got %q, want that it was, and a way to ask again", after.text("#batch-actions"))
	}
	b.exec(t, `UPDATE batches SET ended_at = now() WHERE id = $1`, s.batch)
	ended := v.get(path)
	if note := ended.text("[data-testid=cancel-asked]"); !inOrder(note, "A cancel was asked for", "by bert", "counted as cancelled") || strings.Contains(note, "may land") {
		t.Errorf("ended: got %q, want still when and by whom, and that nothing may come", note)
	}
	if ended.doc.Find("a[href='"+path+"/cancel']").Length() != 0 {
		t.Error("an ended batch can still be cancelled")
	}
	// Long after, from a page that was left open.
	b.pipeline.cancelPlan = pipeline.CancelPlan{Jobs: 30, RunsOut: 30}
	if out := v.get(path + "/cancel"); out.doc.Find("form[action='"+path+"/cancel']").Length() != 1 || !strings.Contains(out.text("[data-testid=plan]"), "Nothing more is sent") {
		t.Errorf("a plan of jobs that run out: got %q, want their failures kept from being sent again", out.text("[data-testid=plan]"))
	}
	b.pipeline.cancelPlan = pipeline.CancelPlan{Jobs: 30, Ended: 30}
	if late := v.get(path + "/cancel"); late.doc.Find("form[action='"+path+"/cancel']").Length() != 0 || !strings.Contains(late.text("[data-testid=plan]"), "Nothing is left to stop") {
		t.Errorf("a plan of nothing: got %q", late.text("[data-testid=plan]"))
	}
	b.pipeline.cancelPlan = pipeline.CancelPlan{}
	v.submit(path+"/cancel", nil)
	if note := v.get(path).text(".note-info"); !strings.Contains(note, "Nothing was left to cancel") {
		t.Errorf("a second press: got %q", note)
	}
}

// TestCancelJobs is for operators: one job from its page, several from the
// batch's.
func TestCancelJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	operator, analyst := b.as(t, store.RoleOperator), b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	open := b.id(t, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at)
		VALUES ($1, 'batch', 'intended', 'submit', '\x00', 1, now()) RETURNING id`, s.batch)
	batchPath, tick := fmt.Sprintf("/batches/%d", s.batch), fmt.Sprintf("input[name=job][value='%d']", open)
	boxes := operator.get(batchPath).doc.Find("form[action='/jobs/cancel'] input[name=job]")
	if boxes.Length() != 1 || boxes.AttrOr("value", "") != idText(open) {
		t.Errorf("boxes to tick: got %d, want the open job's only", boxes.Length())
	}
	if page := analyst.get(batchPath); page.doc.Find("form[action='/jobs/cancel']").Length() != 0 || page.doc.Find(".no-ticks "+tick).Length() != 1 {
		t.Error("an analyst may tick jobs")
	}
	one := fmt.Sprintf("/jobs/cancel?job=%d", open)
	if link := operator.get("/jobs/" + idText(open)).doc.Find("a[href='" + one + "']"); link.Length() != 1 {
		t.Error("no way to cancel on the job's page")
	}
	b.pipeline.cancelPlan = pipeline.CancelPlan{Jobs: 2, Unsent: 1, UnsentURLs: 1, Ended: 1}
	plan := operator.get(fmt.Sprintf("%s&job=%d&job=%d", one, s.job, open))
	form := plan.hidden("/jobs/cancel")
	if len(form["job"]) != 2 || !strings.Contains(plan.text("h1"), "2 jobs") {
		t.Fatalf("plan: got %q for %v", plan.text("h1"), form["job"])
	}
	if got := operator.submit("/jobs/cancel", form); got.header.Get("Location") != batchPath || len(b.pipeline.cancelled) != 2 {
		t.Errorf("cancel: got %d to %q, cancelled %v", got.status, got.header.Get("Location"), b.pipeline.cancelled)
	}
	if got := operator.get("/jobs/cancel"); got.status != http.StatusOK || got.doc.Find("form[action='/jobs/cancel']").Length() != 0 {
		t.Errorf("nothing ticked: got %d", got.status)
	}
	for query, want := range map[string]int{"?job=x": 400, "?job=0": 400, "?job=999999": 404, "?job=9223372036854775808": 400, "?" + strings.Repeat("job=7&job=8&", 600): 404} {
		if got := operator.get("/jobs/cancel" + query); got.status != want {
			t.Errorf("%.40s: got %d, want %d", query, got.status, want)
		}
	}
	b.exec(t, `UPDATE jobs SET cancel_requested_at = now() WHERE id = $1`, open)
	if got := operator.get("/jobs/" + idText(open)).text(".page-actions"); got != "Cancel asked Ask again…" {
		t.Errorf("once asked: got %q on the job's page", got)
	}
	if got := operator.submit("/jobs/cancel", nil); got.status != http.StatusBadRequest {
		t.Errorf("cancel nothing: got %d, want 400", got.status)
	}
}

// TestCancelCrawl speaks of pages, of which a crawl's number isn't known.
func TestCancelCrawl(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleOperator)
	batch := b.id(t, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted) VALUES ('docs', 'crawl', '{}', now(), 1, 1) RETURNING id`)
	job := b.id(t, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at)
		VALUES ($1, 'crawl', 'accepted', 'submit', '\x00', 1, now()) RETURNING id`, batch)
	b.pipeline.cancelPlan = pipeline.CancelPlan{Jobs: 3, Stoppable: 1, StoppableURLs: 1, RunsOut: 2}
	for _, path := range []string{fmt.Sprintf("/batches/%d/cancel", batch), fmt.Sprintf("/jobs/cancel?job=%d", job)} {
		text := v.get(path).text("[data-testid=plan]")
		if !inOrder(text, "The crawl is under way at the vendor", "2 pages asked for alone that can't be stopped", "Cancel the crawl") || strings.Contains(text, "URL") {
			t.Errorf("%s: got %q", path, text)
		}
	}
}
