package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"rollcall/store"
)

func TestOverview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	empty := v.get("/")
	if empty.status != http.StatusOK || empty.text(".sandbox") == "" {
		t.Fatalf("empty: got %d, banner %q", empty.status, empty.text(".sandbox"))
	}
	b.seed(t, "november", 8)
	got := v.get("/")
	for selector, want := range map[string]string{
		"[data-testid=running]": "november", "[data-testid=figures]": "4 Stored in 7 days", "[data-testid=days] tfoot": "Together 8 4 2 0 2",
		"[data-testid=nets] li[data-net=webhook]": "4 100 %",
	} {
		if text := got.text(selector); !strings.Contains(text, want) {
			t.Errorf("%s: got %q, want %q in it", selector, text, want)
		}
	}
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `UPDATE gates SET paused_at = now(), paused_status = 402, paused_reason = 'no tokens left' WHERE name = 'submit'`)
	b.exec(t, `INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
		VALUES ('abcdefghijklmnopqr', 'batch_completed', 'https://desk.example/webhooks/geonode/abcdefghijklmnopqr', 'inactive', now(), now())`)
	operator, analyst := b.as(t, store.RoleOperator), b.as(t, store.RoleAnalyst)
	got := operator.get("/failures")
	if alerts := got.doc.Find("[role=alert]"); alerts.Length() != 2 || !strings.Contains(alerts.Text(), "no credit") {
		t.Errorf("got %d alerts: %q", alerts.Length(), alerts.Text())
	}
	b.exec(t, `INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
		VALUES ('anotheranotheranother', 'batch_completed', 'https://desk.example/webhooks/geonode/anotheranotheranother', 'live', now(), now())`)
	if alerts := operator.get("/failures").doc.Find("[role=alert]"); alerts.Length() != 1 {
		t.Errorf("with another live webhook for the event: got %d alerts: %q", alerts.Length(), alerts.Text())
	}
	const resume = "form[action='/dispatch/resume']"
	if got.doc.Find(resume).Length() != 1 || analyst.get("/").doc.Find(resume).Length() != 0 {
		t.Error("the button to resume: want it for operators only")
	}
	if got := operator.submit("/dispatch/resume", nil); got.status != http.StatusSeeOther || b.pipeline.resumes != 1 {
		t.Errorf("resume: got %d, called %d times", got.status, b.pipeline.resumes)
	}
	part := operator.request(http.MethodGet, "/reconcile", nil)
	part.Header.Set("HX-Request", "true")
	if got := operator.do(part); got.status != http.StatusOK || got.text(".note-success") != "" {
		t.Errorf("part of a page: got %d and the note %q, which is for a whole one", got.status, got.text(".note-success"))
	}
	if got := operator.get("/"); got.text(".note-success") == "" {
		t.Error("no note about what was done")
	}
	if got := operator.get("/"); got.text(".note-success") != "" {
		t.Error("the note is shown twice")
	}
	hooks := b.as(t, store.RoleAdmin).get("/webhooks")
	if !strings.Contains(hooks.text("[data-testid=webhooks]"), "Inactive") || strings.Contains(hooks.body, "abcdefghijklmnopqr") {
		t.Errorf("webhooks: got %q, want the state and a masked address", hooks.text("[data-testid=webhooks]"))
	}
}

func TestBatchesArePagedByKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	// Many batches of one moment: only their ids tell them apart.
	b.exec(t, `INSERT INTO batches (name, kind, options, created_at) SELECT 'n' || g, 'batch', '{}', timestamptz '2026-01-01' + (g / 40) * interval '1 s'
		FROM generate_series(1, 120) g`)
	seen := walk(t, v, "/batches", "[data-testid=batches] tbody th a")
	if len(seen) != 120 || seen[0] != "n120" || seen[119] != "n1" {
		t.Errorf("got %d batches from %q to %q, want 120 from n120 to n1", len(seen), seen[0], seen[len(seen)-1])
	}
	if got := walk(t, v, "/batches?name=N11", "[data-testid=batches] tbody th a"); len(got) != 11 {
		t.Errorf("named n11: got %d, want 11", len(got))
	}
	for _, name := range []string{"%25", "_", "%5C", "%00", "%ff", "'--"} {
		if got := v.get("/batches?name=" + name); got.status != http.StatusOK || strings.Contains(got.body, "n120") {
			t.Errorf("name %s: got %d, want 200 and nothing found", name, got.status)
		}
	}
	for _, cursor := range []string{"x", "AAAA", "%00", strings.Repeat("A", 22), strings.Repeat("_", 22), strings.Repeat("A", 5000)} {
		if got := v.get("/batches?from=" + cursor); got.status != http.StatusBadRequest {
			t.Errorf("cursor %.10s: got %d, want 400", cursor, got.status)
		}
	}
}

// walk follows a list to its end and returns the texts of what it shows.
func walk(t *testing.T, v *visitor, path, selector string) []string {
	t.Helper()
	var seen []string
	for range 20 {
		got := v.get(path)
		if got.status != http.StatusOK {
			t.Fatalf("%s: got %d", path, got.status)
		}
		got.doc.Find(selector).Each(func(_ int, s *goquery.Selection) { seen = append(seen, strings.TrimSpace(s.Text())) })
		next, more := got.doc.Find("a[rel=next]").Attr("href")
		if !more {
			return seen
		}
		path = next
	}
	t.Fatal("the list has no end")
	return nil
}

func TestBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 120)
	path := fmt.Sprintf("/batches/%d", s.batch)
	got := v.get(path)
	for selector, want := range map[string]string{
		"h1": "november", "[data-testid=roll-call] [data-balance=ok]": "The sum balances", "[data-testid=options]": "JavaScript rendered",
		"[data-testid=jobs] tbody": "Settled", "#jobs-total": "1", "#item-tabs [aria-current=true]": "All 120",
	} {
		if text := got.text(selector); !strings.Contains(text, want) {
			t.Errorf("%s: got %q, want %q in it", selector, text, want)
		}
	}
	if got.doc.Find("[data-live]").Length() != 1 {
		t.Error("a batch with something outstanding has no live stream")
	}
	const urls = "[data-testid=items] tbody th a"
	for state, want := range map[string]int{"": 120, "?state=stored": 60, "?state=failed": 30, "?state=outstanding": 30, "?state=cancelled": 0, "?state=nonsense": 120} {
		seen := walk(t, v, path+"/items"+state, urls)
		if len(seen) != want {
			t.Errorf("items %q: got %d, want %d", state, len(seen), want)
		}
	}
	b.exec(t, `UPDATE rejected_lines SET stored_item = $1 WHERE batch_id = $2 AND line = 3`, s.items[0], s.batch)
	if file := v.get(path + "/rejected.csv").body; !strings.Contains(file, ",/results/"+idText(s.items[0])+"\n") {
		t.Errorf("the file of rejected lines names no result: %s", file)
	}
	rejected := v.get(path + "/items?state=rejected")
	if link := rejected.doc.Find("[data-testid=rejected] td a").AttrOr("href", ""); link != "/results/"+idText(s.items[0]) {
		t.Errorf("a line whose page was stored leads to %q", link)
	}
	if text := rejected.text("[data-testid=rejected]"); !strings.Contains(text, "javascript:alert(1)") || !strings.Contains(text, "is line 1 again") {
		t.Errorf("rejected lines: got %q", text)
	}
}

func TestJobsOfABatchArePaged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "many jobs", 4)
	b.exec(t, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at)
		SELECT $1, 'extract', 'intended', 'submit', '\x00', 1, now() FROM generate_series(1, 49)`, s.batch)
	if seen := walk(t, v, fmt.Sprintf("/batches/%d", s.batch), "[data-testid=jobs] tbody th a"); len(seen) != 50 {
		t.Errorf("got %d jobs, want 50", len(seen))
	}
}

func TestItemAndJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleOperator)
	s := b.seed(t, "november", 60)
	delivery := b.deliver(t, s.vendorID, "accepted", []byte(`{"job_id":"x"}`))
	failed := v.get(fmt.Sprintf("/items/%d", s.items[1]))
	if text := failed.text("[data-testid=failure]"); !strings.Contains(text, "NOT_FOUND gone <b>") {
		t.Errorf("failure: got %q", text)
	}
	if text := failed.text("[data-testid=lineage] tbody"); !strings.Contains(text, fmt.Sprintf("Job %d", s.job)) || !strings.Contains(text, "current") {
		t.Errorf("lineage: got %q", text)
	}
	if text := failed.text("[aria-label=Answer]"); !strings.Contains(text, "Place in the batch 2") || strings.Contains(text, "Line") || failed.doc.Find("[data-testid=columns]").Length() != 0 {
		t.Errorf("without columns: got %q and %q", text, failed.text("[data-testid=columns]"))
	}
	b.exec(t, `UPDATE batches SET columns = ARRAY['sku', '<b>note'] || array_fill(''::text, ARRAY[50]) WHERE id = $1`, s.batch)
	b.exec(t, `UPDATE items SET extra = ARRAY['SKU-0002', '<i>' || repeat('é', 1500)] || array_fill('v'::text, ARRAY[50]) WHERE batch_id = $1`, s.batch)
	b.exec(t, `UPDATE items SET line = 1082, original = ' <a.example/2>,' WHERE id = $1`, s.items[1])
	failed = v.get(fmt.Sprintf("/items/%d", s.items[1]))
	if text := failed.text("[aria-label=Answer]"); !inOrder(text, "Line of the file or text 1,082", "Was <a.example/2>, blanks around it removed, quotes or brackets around it removed") {
		t.Errorf("where it comes from: got %q", text)
	}
	line := failed.doc.Find("[data-testid=columns] div")
	if text := failed.text("[aria-labelledby=columns-title]"); line.Length() != 50 || !inOrder(text, "sku SKU-0002", "<b>note <i>é", "é…", "without a name v", "2 further columns") || strings.Count(text, "é") != 997 {
		t.Errorf("columns of its line: got %d and %q", line.Length(), text)
	}
	if text := v.get(fmt.Sprintf("/results/%d?tab=metadata", s.items[0])).text("[data-testid=columns]"); !strings.HasPrefix(text, "sku SKU-0002") {
		t.Errorf("columns at the result: got %q", text)
	}
	job := fmt.Sprintf("/jobs/%d", s.job)
	got := v.get(job)
	var kinds []string
	got.doc.Find("[data-testid=timeline] li").Each(func(_ int, li *goquery.Selection) {
		kind, _ := li.Attr("data-kind")
		kinds = append(kinds, kind)
	})
	if want := "intended called delivery stored settled"; strings.Join(kinds, " ") != want {
		t.Errorf("timeline: got %q, want %q", kinds, want)
	}
	if href, _ := got.doc.Find("[data-kind=delivery] a").Attr("href"); href != fmt.Sprintf("/deliveries/%d", delivery) {
		t.Errorf("delivery's link: got %q", href)
	}
	if text := got.text("[aria-labelledby=vendor-title]"); !strings.Contains(text, "9 of 12") || !strings.Contains(text, "Failed –") {
		t.Errorf("vendor reports: got %q, want 9 of 12 and an unknown number of failures", text)
	}
	if seen := walk(t, v, job, "[data-testid=items] tbody th a"); len(seen) != 60 {
		t.Errorf("items of the job: got %d, want 60", len(seen))
	}
	if got := v.submit(job+"/settle", nil); got.status != http.StatusSeeOther || len(b.pipeline.settled) != 1 || b.pipeline.settled[0] != s.job {
		t.Errorf("settle now: got %d, asked for %v", got.status, b.pipeline.settled)
	}
	if got := v.submit("/jobs/999999/settle", nil); got.status != http.StatusNotFound {
		t.Errorf("settle an unknown job: got %d, want 404", got.status)
	}
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 4)
	first := b.deliver(t, s.vendorID, "accepted", []byte(`{"a":1}`))
	b.deliver(t, "nobody's", "refused", []byte("\x00\xff\x01"))
	last := b.deliver(t, "", "unreadable", []byte{})
	if seen := walk(t, v, "/deliveries", "[data-testid=deliveries] tbody th a"); len(seen) != 3 {
		t.Errorf("got %d, want 3", len(seen))
	}
	for filter, want := range map[string]int{
		"?verdict=refused": 1, "?verdict=accepted": 1, "?event=batch_completed": 3,
		"?event=x": 0, "?verdict=refused&event=batch_completed": 1,
	} {
		if seen := walk(t, v, "/deliveries"+filter, "[data-testid=deliveries] tbody th a"); len(seen) != want {
			t.Errorf("%s: got %d, want %d", filter, len(seen), want)
		}
	}
	got := v.get(fmt.Sprintf("/deliveries/%d", first))
	if text := got.text("[data-testid=headers]"); !strings.Contains(text, "s1") || strings.Contains(text, "hush") {
		t.Errorf("headers: got %q, want the signature and no credentials", text)
	}
	if href, _ := got.doc.Find("dd a[href^='/jobs/']").Attr("href"); href != fmt.Sprintf("/jobs/%d", s.job) || got.text("#source") != `{"a":1}` {
		t.Errorf("job %q, body %q", href, got.text("#source"))
	}
	if got := v.get(fmt.Sprintf("/deliveries/%d", first+1)); !strings.Contains(got.text("#bytes"), "00 ff 01") {
		t.Errorf("a body that isn't text: got %q, want its bytes", got.text("#bytes"))
	}
	if got := v.get(fmt.Sprintf("/deliveries/%d", last)); got.status != http.StatusOK {
		t.Errorf("an empty delivery: got %d", got.status)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 220)
	b.exec(t, `UPDATE items SET error_code = 'TIMEOUT' WHERE id = $1`, s.items[1])
	const rows = "[data-testid=failures] tbody th a"
	if seen := walk(t, v, "/failures", rows); len(seen) != 55 {
		t.Errorf("got %d, want 55", len(seen))
	}
	if seen := walk(t, v, "/failures?code=TIMEOUT", rows); len(seen) != 1 {
		t.Errorf("with a code: got %d, want 1", len(seen))
	}
	got := v.get("/failures")
	if text := got.text("select[name=code]"); text != "All NOT_FOUND TIMEOUT" {
		t.Errorf("codes: got %q", text)
	}
	if text := got.text(".filters-total"); text != "55 failures" {
		t.Errorf("total: got %q", text)
	}
	if text := got.text(".menu-count"); !strings.HasPrefix(text, "55") {
		t.Errorf("beside the menu: got %q", text)
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleOperator)
	b.exec(t, `INSERT INTO reconcile_runs (trigger, started_at, finished_at, window_start, window_end, listed, woken)
		SELECT 'timer', now() - g * interval '10 min', now() - g * interval '10 min', now(), now(), 300, 3 FROM generate_series(1, 60) g`)
	b.exec(t, `INSERT INTO reconcile_runs (trigger, started_at, window_start, window_end) VALUES ('person', now(), now(), now())`)
	if seen := walk(t, v, "/reconcile", "[data-testid=runs] tbody th"); len(seen) != 61 || !strings.Contains(seen[0], "by a person") {
		t.Errorf("got %d runs, the newest %q", len(seen), seen[0])
	}
	if got := v.get("/reconcile"); got.doc.Find("form[action='/reconcile'] button[disabled]").Length() != 1 {
		t.Error("while a run is going on, another can be asked for")
	}
}

func TestUsersAndAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAdmin)
	b.addUser(t, "bob <b>", store.RoleAnalyst)
	if text := v.get("/users").text("[data-testid=users]"); !strings.Contains(text, "bob <b>") || !strings.Contains(text, "Analyst") {
		t.Errorf("users: got %q", text)
	}
	if got := v.get("/account"); got.status != http.StatusOK || got.text("h1") != "Account" {
		t.Errorf("account: got %d", got.status)
	}
}
