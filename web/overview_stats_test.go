package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// hourOf writes what was counted of an hour.
func (b *bench) hourOf(t *testing.T, h store.HourStats) {
	t.Helper()
	if h.SubmitLatency == nil {
		h.SubmitLatency = store.Latencies{}
	}
	h.VendorLatency, h.RolledAt = store.Latencies{}, b.clock.now()
	if err := b.store.SaveHour(t.Context(), &h); err != nil {
		t.Fatal(err)
	}
}

// firstBatch writes a batch that was submitted and ended then.
func (b *bench) firstBatch(t *testing.T, at time.Time) {
	t.Helper()
	b.exec(t, `INSERT INTO batches (name, kind, options, created_at, ended_at) VALUES ('The first', 'batch', '{}', $1, $1)`, at)
}

// cell is a figure of the row that begins then.
func (p page) cell(at time.Time, name string) string {
	return p.text(`[data-series] tr:has(time[datetime="` + at.UTC().Format("2006-01-02T15:04:05.000Z") + `"]) [data-s="` + name + `"]`)
}

// TestFiguresOfTheOverview: hours, their sums, what is unknown, the scorecard,
// and calls saved, all as they were counted.
func TestFiguresOfTheOverview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.clock.advance(b.clock.now().Truncate(time.Hour).Add(90 * time.Minute).Sub(b.clock.now())) // Far from any full hour.
	v := b.as(t, store.RoleAnalyst)
	if got := v.get("/"); !strings.Contains(got.text("#overview-series"), "No hour was counted yet") || got.text("[data-testid=saved]") == "" {
		t.Errorf("before anything: %q", got.text("#overview-series"))
	}
	hour := b.clock.now().UTC().Truncate(time.Hour)
	b.firstBatch(t, hour.Add(-3*time.Hour+time.Minute))
	if _, err := b.store.CountCallsFrom(t.Context(), hour.Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	slow := make(store.Latencies, 41) // All of them took 72 to 102 s.
	slow[40] = 12
	b.hourOf(t, store.HourStats{Hour: hour.Add(-3 * time.Hour), StoredPoll: 12, SubmitLatency: slow, Charged: 12, JobsCompleted: 12})
	b.hourOf(t, store.HourStats{
		Hour: hour.Add(-2 * time.Hour), StoredWebhook: 1000, StoredSync: 1, Charged: 1500, JobsCompleted: 1003, JobsFailed: 4, JobsCancelled: 3,
		InTime: 990, RepairedPoll: 9, RepairedReconcile: 1, ComparedJobs: 1010, CallsEachSecond: 50_000, CallsBackoff: 6000,
		DeliveriesAccepted: 995, DeliveriesRefused: 2,
	})
	b.hourOf(t, store.HourStats{Hour: hour.Add(-time.Hour)})
	if err := b.store.AddCalls(t.Context(), []store.CallCount{
		{Hour: hour.Add(-2 * time.Hour), Kind: "submit", N: 1010}, {Hour: hour.Add(-2 * time.Hour), Kind: "list", N: 40}, {Hour: hour.Add(-2 * time.Hour), Kind: "status", N: 1100},
	}); err != nil {
		t.Fatal(err)
	}
	b.liveHook(t, "extraction_completed")
	b.pipeline.ahead, b.pipeline.heard = -90*time.Second, true
	limit, left := int64(10_000), int64(3000)
	b.pipeline.usage = pipeline.Usage{Known: true, Limit: &limit, Remaining: &left, Days: []pipeline.UsageDay{
		{Day: b.clock.now().AddDate(0, 0, -1), Used: 4000}, {Day: b.clock.now().AddDate(0, 0, -2), Used: 3000}, {Day: b.clock.now().AddDate(0, 0, -20), Used: 9000},
	}}
	got := v.get("/")
	for _, want := range []struct {
		back       int
		name, text string
	}{
		{3, "stored", "12"},
		{3, "poll", "12"},
		{3, "submit50", "1 min 33 s"},
		{3, "calls", "–"},
		{2, "stored", "1,001"},
		{2, "webhook", "1,000"},
		{2, "submit50", "–"},
		{2, "calls", "2,150"},
		{1, "stored", "0"},
		{1, "calls", "0"},
		{0, "stored", "–"},
		{5, "stored", "–"},
		{5, "calls", "–"},
	} {
		if text := got.cell(hour.Add(-time.Duration(want.back)*time.Hour), want.name); text != want.text {
			t.Errorf("%s, %d hours ago: got %q, want %q", want.name, want.back, text, want.text)
		}
	}
	for at, want := range map[string]string{
		"[data-series] tfoot [data-s=stored]": "1,013", "[data-testid=first-try] strong": "99 %", "[data-testid=clock]": "1 min 30 s behind",
		"[data-testid=calls] strong": "2,150", "[data-testid=saved] strong:first-of-type": "48,860", "[data-testid=saved] strong:nth-of-type(2)": "4,860",
	} {
		if text := got.text(at); text != want {
			t.Errorf("%s: got %q, want %q", at, text, want)
		}
	}
	lasts := b.clock.now().Add(3 * 24 * time.Hour).UTC().Format("2 Jan 2006") // 7,000 a week, 3,000 left.
	if text := got.text("[data-testid=quota]"); !strings.Contains(text, "3,000 left of 10,000") || !strings.Contains(text, lasts) {
		t.Errorf("quota: %q, want until %s", text, lasts)
	}
	b.figuresByDay(t, v, hour)
}

// figuresByDay: days are those of the reader's zone, half hours off are said to
// be, and a day with an hour that isn't counted yet isn't known.
func (b *bench) figuresByDay(t *testing.T, v *visitor, hour time.Time) {
	t.Helper()
	b.exec(t, `UPDATE users SET time_zone = 'Asia/Kolkata'`)
	got := v.get("/?span=" + views.SpanMonth)
	if n := got.doc.Find("[data-series] tbody tr").Length(); n != chartDays {
		t.Fatalf("%d days, want %d", n, chartDays)
	}
	if note := got.text("#overview-series > p"); !strings.Contains(note, "from 00:30 to 00:30") {
		t.Errorf("of half hours the page says %q", note)
	}
	zone, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	year, month, day := hour.Add(-2 * time.Hour).In(zone).Date()
	midnight := time.Date(year, month, day, 0, 0, 0, 0, zone)
	whole := int64(1001)
	if !hour.Add(-3 * time.Hour).Before(midnight) {
		whole += 12 // The hour before began on the same day there.
	}
	if text := got.cell(midnight, "stored"); text != views.Known(whole).String() {
		t.Errorf("stored on %s: got %q, want %d", midnight, text, whole)
	}
	b.exec(t, `DELETE FROM hourly_stats WHERE hour = $1`, hour.Add(-2*time.Hour))
	if text := v.get("/").text("[data-series] tfoot [data-s=stored]"); text != "–" {
		t.Errorf("together, with an hour missing: %q", text)
	}
}

// verdictOfRuns: what one reconcile run can't read the next reads, so a run with
// errors is no trouble and is spoken of as what it is; several in a row that
// lasted are, until one reads all.
func (b *bench) verdictOfRuns(t *testing.T, now time.Time, since func(time.Time), want func(string, ...string) page) {
	t.Helper()
	run := func(ago time.Duration, errors int) time.Time {
		t.Helper()
		at := now.Add(-ago)
		b.exec(t, `INSERT INTO reconcile_runs (trigger, started_at, finished_at, window_start, window_end, errors, note)
			VALUES ('timer', $1, $2, $1, $1, $3, 'webhook list: status 500')`, at, at.Add(time.Second), errors)
		return at.Add(time.Second)
	}
	run(8*time.Hour, 0)
	run(7*time.Hour, 2)
	since(now.Add(-10 * time.Hour))
	if text := b.as(t, store.RoleAnalyst).get("/").text("[data-testid=tried-again]"); !strings.HasPrefix(text, "2 errors, tried again by the next run") {
		t.Errorf("of the last run it says %q", text)
	}
	run(7*time.Hour-10*time.Second, 1)
	run(7*time.Hour-20*time.Second, 1) // The third in a row, within a demo's seconds.
	since(now.Add(-10 * time.Hour))
	run(6*time.Hour, 0)
	for _, ago := range []time.Duration{50 * time.Minute, 40 * time.Minute} {
		run(ago, 1)
	}
	b.exec(t, `INSERT INTO reconcile_runs (trigger, started_at, window_start, window_end) VALUES ('timer', $1, $1, $1)`, now.Add(-35*time.Minute)) // Killed.
	since(now.Add(-10 * time.Hour))
	run(30*time.Minute, 1)
	want(views.VerdictLook, "Each of the last 3 reconcile runs met an error: webhook list: status 500")
	over := run(20*time.Minute, 0)
	since(over)
	want(views.VerdictWell, "3 reconcile runs in a row met errors")
	run(10*time.Minute, 1)
	since(over)
}

// TestVerdictOfTheOverview: what is the matter, and since when nothing is.
func TestVerdictOfTheOverview(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{Mode: "auto"})
	v := b.as(t, store.RoleAnalyst)
	now := b.clock.now().UTC()
	want := func(level string, texts ...string) page {
		t.Helper()
		got := v.get("/")
		if is := got.doc.Find("[data-testid=verdict] .verdict").AttrOr("data-level", ""); is != level {
			t.Errorf("got %q, want %q", is, level)
		}
		for _, text := range texts {
			if all := got.text("[data-testid=verdict]"); !strings.Contains(all, text) {
				t.Errorf("the verdict is %q, want %q in it", all, text)
			}
		}
		return got
	}
	want(views.VerdictNew, "Submit URLs")
	b.firstBatch(t, now.Add(-5*24*time.Hour))
	since := func(at time.Time) {
		t.Helper()
		got := want(views.VerdictWell, "All is well")
		if is, want := got.doc.Find("[data-testid=verdict] time").AttrOr("datetime", ""), at.Format("2006-01-02T15:04:05.000Z"); is != want {
			t.Errorf("well since %s, want %s", is, want)
		}
	}
	since(now.Add(-5 * 24 * time.Hour))
	b.exec(t, `INSERT INTO gate_pauses (name, paused_at, resumed_at) VALUES ('submit', $1, $2)`, now.Add(-30*time.Hour), now.Add(-29*time.Hour))
	since(now.Add(-29 * time.Hour))
	want(views.VerdictWell, "dispatch stood still for 1 h")
	for i, unsigned := range []bool{false, true} {
		at := now.Add(time.Duration(i-20) * time.Hour)
		b.exec(t, `UPDATE deliveries SET received_at = $1, unsigned = $2 WHERE id = $3`, at, unsigned, b.deliver(t, "v", "refused", []byte("{}")))
	}
	since(now.Add(-20 * time.Hour))
	if got := want(views.VerdictWell, "a delivery was refused"); got.doc.Find(`[data-testid=verdict] a[href^="/deliveries/"]`).Length() != 1 {
		t.Error("the delivery isn't led to")
	}
	if err := b.store.RaiseAlarm(t.Context(), "the vendor forgets", now.Add(-10*time.Hour)); err != nil {
		t.Fatal(err)
	}
	since(now.Add(-10 * time.Hour))
	hook := b.liveHook(t, "batch_completed")
	since(now.Add(-10 * time.Hour))
	b.verdictOfRuns(t, now, since, want)
	b.pipeline.distrust.Store(true)
	want(views.VerdictLook, "Webhooks aren't relied on")
	b.exec(t, `UPDATE webhooks SET state = 'inactive' WHERE id = $1`, hook)
	b.exec(t, `UPDATE gates SET paused_at = $1, paused_status = 402 WHERE name = 'submit'`, now)
	want(views.VerdictBad, "no credit left (402)", "The webhook for batch_completed brings nothing home")
	b.exec(t, `UPDATE gates SET paused_at = NULL`)
	b.exec(t, `UPDATE webhooks SET state = 'removed'`)
	b.pipeline.mu.Lock()
	b.pipeline.sick = http.ErrServerClosed
	b.pipeline.mu.Unlock()
	want(views.VerdictBad, "background work of this server stands still")
	b.pipeline.mu.Lock()
	b.pipeline.sick, b.pipeline.still = nil, now.Add(-5*time.Minute)
	b.pipeline.mu.Unlock()
	want(views.VerdictBad, "Work is due and none of it is done")
	feed := v.get("/").text("[data-testid=happened]")
	for _, text := range []string{"The first ended: 0 of 0 stored", "After 1 h dispatch goes on"} {
		if !strings.Contains(feed, text) {
			t.Errorf("what happened last is %q, want %q in it", feed, text)
		}
	}
}
