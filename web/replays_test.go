package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"rollcall/store"
)

// seedLog makes a webhook and a line of the vendor's log for each of n jobs, of
// which every fourth is settled, and returns the webhook.
func (b *bench) seedLog(t *testing.T, n int) int64 {
	t.Helper()
	hook := b.id(t, `INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
		VALUES ('0123456789abcdef', 'extract_completed', 'https://a.example/', 'live', now(), now()) RETURNING id`)
	batch := b.id(t, `INSERT INTO batches (name, kind, options, created_at) VALUES ('b', 'mixed', '{}', now()) RETURNING id`)
	b.exec(t, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id, accepted_at)
		SELECT $1, 'extract', CASE WHEN g % 4 = 0 THEN 'settled' ELSE 'accepted' END, 'submit', '\x01', 1, now(), 'v' || g, now() FROM generate_series(1, $2::int) g`, batch, n)
	b.exec(t, `INSERT INTO delivery_log (webhook_id, vendor_id, attempt, event_type, vendor_job_id, status, created_at, seen_at)
		SELECT $1, 'd.' || g, 1, 'extract_completed', 'v' || g, CASE WHEN g % 2 = 0 THEN 'failed' ELSE 'abandoned' END, timestamptz '2026-11-28 12:00Z' + g * interval '1 s', now()
		FROM generate_series(1, $2::int) g`, hook, n)
	return hook
}

// endAll writes the outcome of each job that has none.
func (b *bench) endAll(t *testing.T, replay int64, outcome store.ReplayOutcome) {
	t.Helper()
	err := b.store.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
		jobs, err := tx.ReplayWaiting(ctx, replay, 1000)
		if err != nil {
			return err
		}
		var ends []store.ReplayEnd
		for i := range jobs {
			ends = append(ends, store.ReplayEnd{JobID: jobs[i].JobID, Outcome: outcome, Detail: `<b>why</b>`})
		}
		return tx.EndReplayJobs(ctx, replay, ends, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// formTo is what the page's form to that path would send.
func formTo(t *testing.T, p page, action string) url.Values {
	t.Helper()
	form := p.doc.Find(`form[action="` + action + `"]`)
	if form.Length() == 0 {
		t.Fatalf("no form to %s: %s", action, p.text("main"))
	}
	values := url.Values{}
	for _, node := range form.Find("input[name]").Nodes {
		name, value, kind := "", "", ""
		for _, a := range node.Attr {
			switch a.Key {
			case "name":
				name = a.Val
			case "value":
				value = a.Val
			case "type":
				kind = a.Val
			}
		}
		if kind != "checkbox" {
			values.Add(name, value)
		}
	}
	return values
}

// TestReplayIsPlannedRunAndFollowed: from a filter to the outcomes, each step as
// an operator takes it.
func TestReplayIsPlannedRunAndFollowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hook := b.seedLog(t, 240)
	v := b.as(t, store.RoleOperator)
	picked := v.get(fmt.Sprintf("/replays/new?from=log&webhook=%d&status=failed&since=2026-11-28", hook))
	if got := picked.text("[data-testid=picked]"); !strings.Contains(got, "120 lines: all of the vendor's delivery log") || !strings.Contains(got, "with status failed since 2026-11-28 00:00 UTC") {
		t.Errorf("picked: got %q", got)
	}
	form := formTo(t, picked, "/replays")
	first, second := v.post("/replays", form), v.post("/replays", form)
	path := first.header.Get("Location")
	if first.status != http.StatusSeeOther || second.header.Get("Location") != path || !strings.HasPrefix(path, "/replays/") {
		t.Fatalf("a double click: got %d to %s and %s", first.status, path, second.header.Get("Location"))
	}
	var id int64
	if _, err := fmt.Sscanf(path, "/replays/%d", &id); err != nil {
		t.Fatal(err)
	}
	plan := v.get(path)
	said := plan.text("[data-testid=plan]")
	for _, want := range []string{"120 lines", "60 jobs to ask about", "About 60 vendor calls, about 6 s", "60 jobs are settled already", "Refetch the settled ones too: about 60 further calls"} {
		if !strings.Contains(said, want) {
			t.Errorf("the plan doesn't say %q: %s", want, said)
		}
	}
	if got := plan.doc.Find("#live").Length(); got != 0 {
		t.Error("a plan that doesn't run has a stream")
	}
	for i, want := range []string{"It was started.", "It had been started or dropped before."} {
		if got := v.submit(path+"/run", url.Values{"refetch": {"1"}}); got.status != http.StatusSeeOther || got.header.Get("Location") != path {
			t.Fatalf("run: got %d to %s", got.status, got.header.Get("Location"))
		}
		if got := v.get(path).text("[role=status]"); !strings.Contains(got, want) {
			t.Errorf("press %d: got %q, want %q", i+1, got, want)
		}
	}
	for _, step := range []struct{ verb, state string }{{"pause", "Paused"}, {"resume", "Running"}} {
		v.submit(path+"/"+step.verb, nil)
		if got := v.get(path).text(".facts"); !strings.Contains(got, step.state) {
			t.Errorf("after %s: got %q", step.verb, got)
		}
	}
	b.endAll(t, id, store.ReplayStillRunning)
	v.submit(path+"/cancel", nil)
	over := v.get(path)
	if got := over.text("[data-testid=ended]"); got != "120 of 120" {
		t.Errorf("progress: got %q", got)
	}
	if got := over.text(`[data-list=still_running] .count`); got != "120" || over.doc.Find("#live").Length() != 0 {
		t.Errorf("over: got %q still running", got)
	}
	if !strings.Contains(over.body, "&lt;b&gt;why&lt;/b&gt;") {
		t.Error("the reason isn't shown as text")
	}
	seen, next := map[string]bool{}, path+"?outcome=still_running"
	for next != "" {
		p := v.get(next)
		for _, node := range p.doc.Find("[data-testid=replay-jobs] tbody th a").EachIter() {
			href := node.AttrOr("href", "")
			if seen[href] {
				t.Errorf("%s is listed twice", href)
			}
			seen[href] = true
		}
		next = p.doc.Find("a[rel=next]").AttrOr("href", "")
	}
	if len(seen) != 120 {
		t.Errorf("got %d jobs listed, want 120", len(seen))
	}
	if got := v.get(path + "?outcome=failed").text("main"); !strings.Contains(got, "No job in this list") {
		t.Errorf("an empty list: got %q", got)
	}
	if got := v.get("/replays").text("[data-testid=replays]"); !strings.Contains(got, "with status failed") || !strings.Contains(got, "Cancelled") {
		t.Errorf("the list of replays: got %q", got)
	}
}

// verifiedInVain: a replay of a refused delivery alone says what became of it,
// and draws no bar of jobs that there are none of.
func (b *bench) verifiedInVain(t *testing.T, v *visitor, path string, delivery int64) {
	t.Helper()
	v.submit(path+"/run", nil)
	b.exec(t, `UPDATE deliveries SET status = 401, diagnosis = 'retired_secret: Version 1.' WHERE id = $1`, delivery)
	b.exec(t, `WITH r AS (UPDATE replay_deliveries SET outcome = 'refused' WHERE replay_id = $1::bigint)
		UPDATE replays SET refused = 1, state = 'done', ended_at = now() WHERE id = $1::bigint`, strings.TrimPrefix(path, "/replays/"))
	got := v.get(path)
	row := got.doc.Find("[data-testid=replay-deliveries] tbody tr")
	if row.Length() != 1 || row.Find("a").AttrOr("href", "") != "/deliveries/"+idText(delivery) || !strings.Contains(row.Text(), "Still refused") || !strings.Contains(row.Text(), "Signed with a retired secret") {
		t.Errorf("its delivery: got %q", row.Text())
	}
	if text := got.text("[data-testid=progress]"); text != "Refused deliveries: 0 taken up, 1 still refused, of 1" || got.doc.Find("[data-testid=progress] .bar").Length() != 0 {
		t.Errorf("progress: got %q", text)
	}
	if text := v.get("/").text("main"); !strings.Contains(text, "is done: it took up 0 of 1 refused delivery") {
		t.Errorf("the overview: got %q", text)
	}
}

// TestReplayOfTickedRows: of either list and of a job, and what can't be read
// names itself.
func TestReplayOfTickedRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hook := b.seedLog(t, 8)
	v := b.as(t, store.RoleOperator)
	job := b.id(t, `SELECT id FROM jobs WHERE vendor_job_id = 'v7'`)
	refused := b.deliver(t, "v1", "refused", []byte("{}"))
	b.exec(t, `UPDATE deliveries SET webhook_id = $1`, hook)
	query := fmt.Sprintf("?pick=%d.1.d.3&pick=%d.1.d.4&pick=%d&settle=%d", hook, hook, refused, job)
	got := v.post("/replays", formTo(t, v.get("/replays/new"+query), "/replays"))
	if got.status != http.StatusSeeOther {
		t.Fatalf("got %d: %s", got.status, got.text("main"))
	}
	plan := v.get(got.header.Get("Location")).text("[data-testid=plan]")
	for _, want := range []string{"2 jobs to ask about", "1 job is settled already", "1 refused delivery is verified again"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan doesn't say %q: %s", want, plan)
		}
	}
	const only = "[data-testid=only-refused]"
	if strings.Contains(plan, "no job that can be believed") {
		t.Errorf("the plan asks about jobs, and speaks of none: %s", plan)
	}
	got = v.post("/replays", formTo(t, v.get(fmt.Sprintf("/replays/new?pick=%d", refused)), "/replays"))
	alone := v.get(got.header.Get("Location"))
	if text := alone.text(only); !strings.Contains(text, "names no job that can be believed") {
		t.Errorf("a plan of a refused delivery alone says %q", text)
	}
	b.verifiedInVain(t, v, got.header.Get("Location"), refused)
	b.exec(t, `UPDATE delivery_log SET delivery_id = $1 WHERE vendor_id = 'd.5'`, refused)
	if text := v.get(alone.doc.Find(only+" a").AttrOr("href", "")).text("main"); !strings.Contains(text, "1 attempt ") || !strings.Contains(text, "Job 5") {
		t.Errorf("it leads to %q, want the attempt that was refused here", text)
	}
	for query, want := range map[string]string{
		"":                             "Nothing is ticked",
		"?pick=x":                      "One of the rows can't be found again",
		"?pick=1.x.y":                  "One of the rows can't be found again",
		"?settle=-1":                   "One of the rows can't be found again",
		"?from=log&http=abc":           "http: This is a whole number from 100 to 999.",
		"?from=received&verdict=maybe": "verdict: Choose one of",
		"?from=elsewhere":              "Nothing is ticked",
		"?from=log&standing=given_up":  "delivery log seen from here as given up",
	} {
		if got := v.get("/replays/new" + query); !strings.Contains(got.text("main"), want) || got.status >= 500 {
			t.Errorf("%s: got %d %q, want %q", query, got.status, got.text("main"), want)
		}
	}
	if got := v.submit("/replays", nil); got.status != http.StatusBadRequest {
		t.Errorf("a plan of nothing: got %d, want 400", got.status)
	}
	for _, path := range []string{"/replays/4711", "/replays/x", "/replays/4711/differences", "/replays/4711/differences/1", "/replays/4711/live"} {
		if got := v.get(path); got.status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, got.status)
		}
	}
	for _, path := range []string{"/replays/4711/run", "/replays/4711/pause", "/replays/4711/cancel", "/replays/4711/differences/1/replace"} {
		if got := v.submit(path, nil); got.status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, got.status)
		}
	}
}

// TestDifferenceIsShownAndReplaced: both contents as text, only what differs,
// and the earlier version kept.
func TestDifferenceIsShownAndReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.seed(t, "november", 4)
	item := s.items[0]
	b.put(t, item, []byte("# Lamp\nprice 12\nend"), []byte("<h1>Lamp</h1>"))
	replay := b.id(t, `INSERT INTO replays (state, picked, planned_by, planned_at, differing) VALUES ('done', 'x', 'bob', now(), 1) RETURNING id`)
	b.exec(t, `INSERT INTO replay_differences (replay_id, item_id, job_id, found_at, version, kept, markdown, html)
		VALUES ($1, $2, $3, now(), 1, true, $4, $5)`, replay, item, s.job, []byte("# Lamp\nprice 14 <script>alert(1)</script>\nend"), []byte("<h1>Lamp</h1>"))
	v := b.as(t, store.RoleOperator)
	list := v.get(fmt.Sprintf("/replays/%d/differences", replay))
	path := fmt.Sprintf("/replays/%d/differences/%d", replay, item)
	if list.doc.Find(`a[href="`+path+`"]`).Length() != 1 {
		t.Fatalf("the difference isn't listed: %s", list.text("main"))
	}
	got := v.get(path)
	if text := got.text("[data-testid=part-Markdown] [data-side=Stored] pre"); text != "price 12" {
		t.Errorf("stored: got %q", text)
	}
	if text := got.text("[data-testid=part-Markdown] [data-side=Fetched] pre"); text != "price 14 <script>alert(1)</script>" || strings.Contains(got.body, "<script>alert") {
		t.Errorf("fetched: got %q", text)
	}
	if text := got.text("[data-testid=part-HTML]"); !strings.Contains(text, "the same") {
		t.Errorf("HTML: got %q", text)
	}
	for i, want := range []string{"Replaced. The earlier version is kept.", "Nothing was replaced"} {
		v.submit(path+"/replace", nil)
		if text := v.get(path).text("main"); !strings.Contains(text, want) {
			t.Errorf("press %d: got %q, want %q", i+1, text, want)
		}
	}
	if n := b.id(t, `SELECT count(*) FROM result_versions WHERE item_id = $1 AND version = 1 AND markdown = $2`, item, []byte("# Lamp\nprice 12\nend")); n != 1 {
		t.Errorf("got %d earlier versions, want one", n)
	}
	if n := b.id(t, `SELECT version FROM results WHERE item_id = $1 AND markdown LIKE '%14%'::bytea AND markdown_sha256 = sha256(markdown)`, item); n != 2 {
		t.Errorf("got version %d, want 2", n)
	}
	if text := v.get(path).text("[data-testid=part-Markdown] [data-side=Stored] pre"); text != "price 12" {
		t.Errorf("after replacing, the earlier version: got %q", text)
	}
}

// TestReplayInABrowser: picked, planned, run, paused, resumed and cancelled, with
// the page following by itself.
func TestReplayInABrowser(t *testing.T) {
	t.Parallel()
	o := openTab(t)
	b := setupWith(t, Config{Sandbox: true, beat: 200 * time.Millisecond})
	b.addUser(t, "olga", store.RoleOperator)
	hook := b.seedLog(t, 20)
	o.open(t, fmt.Sprintf("%s/replays/new?from=log&webhook=%d&status=failed", b.url, hook))
	o.signIn(t, "olga")
	o.until(t, `document.querySelector("[data-testid=picked]")?.innerText.includes("10 lines")`)
	o.run(t, `document.querySelector("form[action='/replays'] button").click()`)
	o.until(t, `document.querySelector("[data-testid=plan]")?.innerText.includes("5 jobs to ask about")`)
	o.run(t, `document.querySelector("#refetch").click(); document.querySelector("form[action$='/run'] button").click()`)
	o.until(t, `document.querySelector("[data-live-state]")?.textContent === "Live" && document.querySelector("[data-testid=ended]").textContent === "0 of 10"`)
	id := b.id(t, `SELECT id FROM replays WHERE state = 'running' AND refetch AND run_by = 'olga'`)
	end := func(n int) {
		t.Helper()
		err := b.store.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
			jobs, err := tx.ReplayWaiting(ctx, id, n)
			if err != nil {
				return err
			}
			var ends []store.ReplayEnd
			for i := range jobs {
				ends = append(ends, store.ReplayEnd{JobID: jobs[i].JobID, Outcome: store.ReplaySettledNow})
			}
			return tx.EndReplayJobs(ctx, id, ends, time.Now())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	end(3)
	o.until(t, `document.querySelector("[data-testid=ended]").textContent === "3 of 10" && document.querySelector("[data-list=settled_now] .count").textContent === "3"`)
	o.run(t, `document.querySelector("form[action$='/pause'] button").click()`)
	o.until(t, `document.querySelector("form[action$='/resume'] button") && document.querySelector(".facts").innerText.includes("Paused")`)
	o.run(t, `document.querySelector("form[action$='/resume'] button").click()`)
	o.until(t, `document.querySelector("form[action$='/pause'] button") && document.querySelector(".facts").innerText.includes("Running")`)
	end(2)
	o.until(t, `document.querySelector("[data-testid=ended]").textContent === "5 of 10"`)
	o.run(t, `document.querySelector("form[action$='/cancel'] button").click()`)
	o.until(t, `document.querySelector(".facts").innerText.includes("Cancelled") && !document.querySelector("#live") && document.querySelector("[data-testid=ended]").textContent === "5 of 10"`)
	o.run(t, `document.querySelector("[data-list=waiting]").click()`)
	o.until(t, `location.search === "?outcome=waiting" && document.querySelectorAll("[data-testid=replay-jobs] tbody tr").length === 5`)
	for _, line := range o.hear() {
		if !strings.Contains(line, "net::ERR_") {
			t.Errorf("console: %s", line)
		}
	}
}
