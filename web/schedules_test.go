package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestRunAgainPage: the plan counts exactly what is run again, the form sent
// twice makes one batch, and mistakes keep what was typed.
func TestRunAgainPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "prices", 8) // 4 stored, 2 failed, 2 outstanding.
	path := fmt.Sprintf("/batches/%d/rerun", s.batch)
	got := v.get(path)
	for _, want := range []string{"8 URLs are asked for again", "Up to 8 requests, in 1 job", "2 URLs of this batch are still outstanding"} {
		if !strings.Contains(got.text("[data-testid=plan]"), want) {
			t.Errorf("the plan doesn't say %q: %s", want, got.text("[data-testid=plan]"))
		}
	}
	got = v.get(path + "?which=failures")
	if plan := got.text("[data-testid=plan]"); !strings.Contains(plan, "2 URLs are asked for again") || strings.Contains(plan, "outstanding") {
		t.Errorf("the plan of the failures: %s", plan)
	}
	form := formTo(t, got, path)
	if form.Get("name") != "prices (failures again)" {
		t.Errorf("the name is %q", form.Get("name"))
	}
	long := url.Values{"which": {"failures"}, "name": {strings.Repeat("ä", 201)}, "once": form["once"]}
	wrong := v.submit(path, long)
	if kept, _ := wrong.doc.Find("#name").Attr("value"); wrong.status != http.StatusUnprocessableEntity || kept != long.Get("name") ||
		wrong.text("#name-error") != "The name is over 200 characters." {
		t.Errorf("a long name: got %d, %q kept, %q", wrong.status, kept, wrong.text("#name-error"))
	}
	if odd := v.submit(path, url.Values{"which": {"some"}}); odd.status != http.StatusUnprocessableEntity || !strings.Contains(odd.text("#error-summary"), "Choose all of it") {
		t.Errorf("which=some: got %d, %s", odd.status, odd.text("#error-summary"))
	}
	first, second := v.submit(path, form), v.submit(path, form)
	made := b.id(t, `SELECT max(id) FROM batches`)
	if to := first.header.Get("Location"); first.status != http.StatusSeeOther || to != fmt.Sprintf("/batches/%d", made) || second.header.Get("Location") != to {
		t.Errorf("pressed twice: %d to %q and %d to %q, want batch %d", first.status, to, second.status, second.header.Get("Location"), made)
	}
	if n := b.id(t, `SELECT count(*) FROM batches WHERE parent_batch_id = $1 AND rerun = 'failures' AND accepted = 2 AND created_by IS NOT NULL`, s.batch); n != 1 {
		t.Errorf("%d such batches were made, want 1", n)
	}
	line, err := b.server.rerunLineOf(t.Context(), &store.Batch{ID: s.batch})
	if err != nil || len(line.Again) != 1 || line.Again[0].Name != "prices (failures again)" || line.Of != nil {
		t.Errorf("the old batch's line is %+v, %v", line, err)
	}
	for _, id := range []string{"999", "0", "x"} {
		if got := v.get("/batches/" + id + "/rerun"); got.status != http.StatusNotFound {
			t.Errorf("batch %s: got %d, want 404", id, got.status)
		}
	}
}

// TestSchedulePages walks a schedule through its pages: typed with mistakes,
// looked at without scripts, made once, run, skipped, paused, changed, removed.
func TestSchedulePages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Date(2026, time.November, 27, 12, 0, 0, 0, time.UTC)
	b.pipeline.clock = func() time.Time { now = now.Add(time.Second); return now }
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "prices", 4)
	b.exec(t, `UPDATE batches SET stored_webhook = accepted - failed WHERE id = $1`, s.batch)
	if got := v.get("/schedules"); !strings.Contains(got.text("main"), "No schedule yet") {
		t.Errorf("an empty list: %s", got.text("main"))
	}
	blank := v.get(fmt.Sprintf("/schedules/new?batch=%d", s.batch))
	form := formTo(t, blank, "/schedules")
	if n := blank.doc.Find("[data-testid=next-runs] li").Length(); n != 5 {
		t.Errorf("the blank form shows %d runs, want 5", n)
	}
	wrong := url.Values{"batch": form["batch"], "once": form["once"], "name": {"Mine"}, "pick": {"cron"}, "cron": {"0 25 * * *"}, "zone": {"Europe/Bielefeld"}}
	got := v.submit("/schedules", wrong)
	if kept, _ := got.doc.Find("#cron").Attr("value"); got.status != http.StatusUnprocessableEntity || kept != "0 25 * * *" ||
		!strings.HasPrefix(got.text("#cron-error"), `The hour cannot be "25"`) || !strings.HasPrefix(got.text("#zone-error"), `No time zone is called "Europe/Bielefeld"`) {
		t.Errorf("two mistakes: %d, %q kept, %q, %q", got.status, kept, got.text("#cron-error"), got.text("#zone-error"))
	}
	if got.text("[data-testid=no-times]") == "" {
		t.Error("the next runs of what can't be read are shown")
	}
	weekly := url.Values{"batch": form["batch"], "once": form["once"], "name": {"Mine"}, "pick": {"weekly"}, "time": {"06:30"}, "zone": {"Europe/Berlin"}}
	if got := v.submit("/schedules", weekly); got.status != http.StatusUnprocessableEntity || got.text("#day-error") != "Tick at least one day." {
		t.Errorf("no day: %d, %q", got.status, got.text("#day-error"))
	}
	weekly["day"], weekly["show"] = []string{"4", "1"}, []string{"1"}
	shown := v.submit("/schedules", weekly)
	to := shown.header.Get("Location")
	if shown.status != http.StatusSeeOther || strings.Contains(to, "csrf") {
		t.Fatalf("show next runs: %d to %s", shown.status, to)
	}
	again := v.get(to)
	if got := again.text("[data-testid=next-runs] li:first-child strong"); !strings.Contains(got, "06:30 CE") {
		t.Errorf("the first run is %q", got)
	}
	part := v.get("/schedules/next?pick=weekly&day=1&time=06:30&zone=UTC")
	if part.doc.Find("nav").Length() != 0 || part.doc.Find("[data-testid=next-runs] li").Length() != 5 || !strings.Contains(part.body, "Every Monday at 06:30") {
		t.Errorf("the part with the next runs is %s", part.body)
	}
	v.nextRunsOf(b)
	form = formTo(t, again, "/schedules")
	if picked, _ := again.doc.Find("input[name=pick][checked]").Attr("value"); picked != "weekly" || again.doc.Find("input[name=day][checked]").Length() != 2 {
		t.Errorf("kept are %q with %d days", picked, again.doc.Find("input[name=day][checked]").Length())
	}
	form["pick"], form["day"] = weekly["pick"], weekly["day"]
	made, twice := v.submit("/schedules", form), v.submit("/schedules", form)
	path := made.header.Get("Location")
	if made.status != http.StatusSeeOther || path != "/schedules/1" || twice.header.Get("Location") != path {
		t.Fatalf("made: %d to %q, then to %q", made.status, path, twice.header.Get("Location"))
	}
	if got := v.get(path); !strings.Contains(got.text("[data-testid=when]"), "Every Monday and Thursday at 06:30, Europe/Berlin") {
		t.Errorf("it is %q", got.text("[data-testid=when]"))
	}
	b.schedulePresses(t, v, path)
}

// nextRunsOf: of a zone that isn't known no run is shown, but that it isn't; of
// the reader's own no time twice.
func (v *visitor) nextRunsOf(b *bench) {
	v.t.Helper()
	for _, zone := range []string{"", "Asia/Nowhere", "Local", "europe", "../etc/passwd", "a\x00b", "\xff", "<b>", strings.Repeat("z", 300)} {
		got := v.get("/schedules/next?" + url.Values{"pick": {"daily"}, "time": {"06:30"}, "zone": {zone}}.Encode())
		if got.status != http.StatusOK || !strings.Contains(got.text("[data-testid=no-times]"), "time zone") || got.doc.Find("li").Length() != 0 {
			v.t.Errorf("zone %q: %d, %q", zone, got.status, got.body)
		}
	}
	b.exec(v.t, `UPDATE users SET time_zone = 'Europe/Berlin'`)
	for zone, twice := range map[string]bool{"Europe/Berlin": false, "UTC": true} {
		got := v.get("/schedules/next?pick=daily&time=06:30&zone=" + url.QueryEscape(zone))
		if strings.Contains(got.body, "Your time") != twice || got.doc.Find("li").Length() != 5 {
			v.t.Errorf("zone %s for a reader in Berlin: %s", zone, got.body)
		}
	}
	b.exec(v.t, `UPDATE users SET time_zone = ''`)
}

// schedulePresses presses every button of a schedule.
func (b *bench) schedulePresses(t *testing.T, v *visitor, path string) {
	t.Helper()
	press := func(verb, says string) page {
		t.Helper()
		if got := v.submit(path+"/"+verb, nil); got.status != http.StatusSeeOther || got.header.Get("Location") != path {
			t.Fatalf("%s: got %d to %q", verb, got.status, got.header.Get("Location"))
		}
		got := v.get(path)
		if !strings.Contains(got.text(".note"), says) {
			t.Errorf("%s: the page says %q, want %q", verb, got.text(".note"), says)
		}
		return got
	}
	b.pipeline.usage = pipeline.Usage{Known: true, At: time.Now(), Remaining: new(int64(3))}
	plan := v.get(path + "/run").text("[data-testid=plan]")
	for _, want := range []string{"4 URLs are asked for again", "Up to 4 requests, in 1 job", "3 requests are left in the account", "fewer than this needs"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan of a run doesn't say %q: %s", want, plan)
		}
	}
	press("run", "Started: batch")
	if going := v.get(path + "/run"); !strings.Contains(going.text("[data-testid=going]"), "4 of 4 URLs outstanding") || going.doc.Find("[data-testid=plan] form").Length() != 0 {
		t.Errorf("while the last run is going the plan is %s", going.text("[data-testid=plan]"))
	}
	got := press("run", "Skipped: batch")
	if rows := got.text("[data-testid=runs]"); !strings.Contains(rows, "Skipped") || !strings.Contains(rows, "Started") || !strings.Contains(rows, "still going") {
		t.Errorf("the runs are %s", rows)
	}
	if got.text("[data-testid=going]") == "" {
		t.Error("the page doesn't say that the last run is going")
	}
	made, err := b.store.Batch(t.Context(), b.id(t, `SELECT max(id) FROM batches`))
	if err != nil {
		t.Fatal(err)
	}
	line, err := b.server.rerunLineOf(t.Context(), made)
	if err != nil || line.Of == nil || line.By == nil || line.By.Name != "Mine" || line.How != "schedule" {
		t.Errorf("the run's batch has the line %+v, %v", line, err)
	}
	press("pause", "Paused. Nothing starts")
	press("pause", "It isn't running")
	press("resume", "It goes on")
	change := v.get(path + "/change")
	form := formTo(t, change, path+"/change")
	if form.Get("time") != "06:30" || form.Get("name") != "Mine" {
		t.Errorf("the form to change it has %v", form)
	}
	form.Set("name", "Yours")
	form.Set("pick", "cron")
	form.Set("cron", "  5  4 * * sun ")
	if got := v.submit(path+"/change", form); got.status != http.StatusSeeOther {
		t.Errorf("change: got %d, %s", got.status, got.text("#error-summary"))
	}
	if got := v.get("/schedules"); got.doc.Find(".facts a[href='/batches']").Length() != 1 || !strings.Contains(got.text("[data-testid=schedules]"), "Yours") || !strings.Contains(got.text("[data-testid=schedules]"), "5 4 * * SUN") {
		t.Errorf("the list has %s", got.text("[data-testid=schedules]"))
	}
	b.exec(t, `UPDATE schedules SET next_at = now() - interval '1 hour'`)
	if got := v.get(path); !strings.Contains(got.text("[data-testid=state-note]"), "nothing took it up") {
		t.Errorf("overdue: %s", got.text("main"))
	}
	if got := v.get(path + "/remove"); !strings.Contains(got.text("main"), "Nothing starts by it any more") {
		t.Errorf("remove: %s", got.text("main"))
	}
	got = press("remove", "Removed. What it made stays.")
	if got.doc.Find(`form[action="`+path+`/run"]`).Length() != 0 {
		t.Error("a removed schedule can be run")
	}
	if got := v.get(path + "/run"); got.status != http.StatusSeeOther {
		t.Errorf("the plan of one that was removed: got %d, want 303", got.status)
	}
	if got := v.submit(path+"/run", nil); got.status != http.StatusNotFound {
		t.Errorf("run when removed: got %d, want 404", got.status)
	}
	if got := v.get("/schedules"); !strings.Contains(got.text("main"), "No schedule yet") {
		t.Errorf("the list after it: %s", got.text("main"))
	}
}
