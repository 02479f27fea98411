package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// handClock is a clock that stands still until it is set.
type handClock struct{ at atomic.Pointer[time.Time] }

func (c *handClock) now() time.Time { return *c.at.Load() }

func (c *handClock) set(t *testing.T, text string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	c.at.Store(&at)
}

// turns are the runs of a schedule, oldest first.
func (r *rig) turns(schedule int64) string {
	return r.text(`SELECT coalesce(string_agg(to_char(due_at AT TIME ZONE 'UTC', 'DD HH24:MI') || ' ' || outcome || coalesce(' ' || batch_id, '')
		|| CASE WHEN times > 1 THEN ' x' || times ELSE '' END, ', ' ORDER BY due_at), '') FROM schedule_runs WHERE schedule_id = $1`, schedule)
}

func (r *rig) wantTurns(schedule int64, want string) {
	r.t.Helper()
	if got := r.turns(schedule); got != want {
		r.t.Errorf("the schedule's times came to\n     %s\nwant %s", got, want)
	}
}

func (r *rig) tick(p *pipeline.Pipeline) {
	r.t.Helper()
	if err := p.RunDue(r.t.Context()); err != nil {
		r.t.Error(err)
	}
}

// TestScheduleRunsAgain goes through the days of one schedule: a time is skipped
// while the last batch is going, missed when nobody was there, left out while it
// is paused; the same form makes one schedule; every change is in the audit log.
func TestScheduleRunsAgain(t *testing.T) {
	t.Parallel()
	var c handClock
	c.set(t, "2026-11-02T08:00:00Z")
	r := newRig(t, setup{stopped: true, noWebhooks: true, pipeline: func(cfg *pipeline.Config) { cfg.Now = c.now }})
	template := r.submit(store.KindBatch, "https://a.test/1", "https://a.test/2")
	form := pipeline.ScheduleForm{BatchID: template, Name: " prices ", Cron: " 30  9 * * * ", Zone: "Europe/Berlin", Token: "once"}
	s, err := r.pipe.AddSchedule(t.Context(), form)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.pipe.AddSchedule(t.Context(), form); err != nil || again.ID != s.ID || s.Name != "prices" || s.Cron != "30 9 * * *" {
		t.Errorf("the form sent twice made %+v and %+v, %v", s, again, err)
	}
	r.tick(r.pipe)
	r.wantTurns(s.ID, "")
	// The batch itself has not ended.
	c.set(t, "2026-11-02T08:30:00Z")
	r.tick(r.pipe)
	r.tick(r.pipe)
	r.wantTurns(s.ID, "02 08:30 skipped")
	if got := r.text(`SELECT reason FROM schedule_runs`); got != "batch 1 was still going: 2 of its 2 URLs had no answer yet" {
		t.Errorf("the reason is %q", got)
	}
	r.endWith(template)
	c.set(t, "2026-11-03T08:30:02Z")
	r.tick(r.pipe)
	c.set(t, "2026-11-04T08:31:00Z")
	r.tick(r.pipe)
	r.wantTurns(s.ID, "02 08:30 skipped, 03 08:30 started 2, 04 08:30 skipped")
	b, err := r.store.Batch(t.Context(), 2)
	if err != nil || b.Name != "prices 2026-11-03 09:30 CET" || *b.Rerun != store.RerunSchedule || *b.ParentBatchID != template || b.Accepted != 2 {
		t.Errorf("the run made %+v, %v", b, err)
	}
	// Nobody is there for three days, and somebody is back on the fourth.
	r.endWith(2)
	c.set(t, "2026-11-08T07:00:00Z")
	r.tick(r.pipe)
	r.wantTurns(s.ID, "02 08:30 skipped, 03 08:30 started 2, 04 08:30 skipped, 05 08:30 missed x2, 07 08:30 started 3")
	// What is pressed while the last is going is skipped too.
	run, err := r.pipe.RunScheduleNow(t.Context(), s.ID)
	if err != nil || run.Outcome != store.RunSkipped || run.PressedBy == "" {
		t.Errorf("run now came to %+v, %v", run, err)
	}
	r.endWith(3)
	r.paused(&c, s.ID)
	want := "make, run, pause, run, resume, change, remove"
	if got := r.text(`SELECT string_agg(substr(what, 10), ', ' ORDER BY id) FROM audit_log WHERE kind = 'schedule'`); got != want {
		t.Errorf("the audit log has %s, want %s", got, want)
	}
}

// paused goes on with the schedule: paused, run by hand, resumed, changed and
// removed.
func (r *rig) paused(c *handClock, id int64) {
	t, ok := r.t.(*testing.T)
	if !ok {
		r.t.Fatal("of a test only")
	}
	ctx := t.Context()
	move := func(what string, do func(context.Context, int64) (bool, error), want bool) {
		t.Helper()
		if got, err := do(ctx, id); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
		}
	}
	move("pause", r.pipe.PauseSchedule, true)
	move("pause again", r.pipe.PauseSchedule, false)
	c.set(t, "2026-11-10T12:00:00Z")
	r.tick(r.pipe)
	run, err := r.pipe.RunScheduleNow(ctx, id)
	if err != nil || run.Outcome != store.RunStarted || *run.BatchID != 4 {
		t.Errorf("run now while paused came to %+v, %v", run, err)
	}
	r.endWith(4)
	move("resume", r.pipe.ResumeSchedule, true)
	move("resume again", r.pipe.ResumeSchedule, false)
	c.set(t, "2026-11-11T08:30:00Z")
	r.tick(r.pipe)
	r.endWith(5)
	change := pipeline.ScheduleForm{Name: "weekly", Cron: "0 6 * * mon", Zone: "America/New_York"}
	if changed, err := r.pipe.ChangeSchedule(ctx, id, change); err != nil || !changed {
		t.Errorf("change: %v, %v", changed, err)
	}
	s, err := r.store.Schedule(ctx, id)
	if err != nil || s.Cron != "0 6 * * MON" || !s.NextAt.Equal(time.Date(2026, 11, 16, 11, 0, 0, 0, time.UTC)) {
		t.Errorf("changed to %+v, %v", s, err)
	}
	_, err = r.pipe.ChangeSchedule(ctx, id, pipeline.ScheduleForm{Name: strings.Repeat("x", 201), Cron: "0 6 * *", Zone: "Mars"})
	if invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err); !ok || len(invalid.Fields) != 3 {
		t.Errorf("three mistakes: got %v", err)
	}
	move("remove", r.pipe.RemoveSchedule, true)
	move("remove again", r.pipe.RemoveSchedule, false)
	if _, err := r.pipe.RunScheduleNow(ctx, id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("run now when removed: got %v", err)
	}
	c.set(t, "2026-12-24T12:00:00Z")
	r.tick(r.pipe)
	r.wantTurns(id, "02 08:30 skipped, 03 08:30 started 2, 04 08:30 skipped, 05 08:30 missed x2, 07 08:30 started 3, "+
		"08 07:00 skipped, 10 12:00 started 4, 11 08:30 started 5")
}

// TestScheduleIsRunOnce: two processes that find the same time due at the same
// moment run it once; what a killed process had begun of it another does, once;
// and what can never be run is said instead of tried for ever.
func TestScheduleIsRunOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	template := r.submit(store.KindBatch, "https://shop.sandbox.test/item/1")
	r.endWith(template)
	yesterday := time.Now().UTC().AddDate(0, 0, -1).Truncate(time.Minute)
	s, err := r.pipe.AddSchedule(t.Context(), pipeline.ScheduleForm{BatchID: template, Cron: yesterday.Format("4 15 2 1 *"), Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	due := func() {
		t.Helper()
		r.exec(`UPDATE schedules SET next_at = $2 WHERE id = $1`, s.ID, yesterday)
	}
	due()
	other := r.newPipeline(setup{})
	held, err := r.eyes.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.ExecContext(t.Context(), `SELECT FROM schedules WHERE id = $1 FOR UPDATE`, s.ID); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	t.Cleanup(both.Wait)
	for _, p := range []*pipeline.Pipeline{r.pipe, other} {
		both.Go(func() { r.tick(p) })
	}
	eventually(t, "both to have found it due", func() bool {
		return r.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'UPDATE "schedules"%'`) == 2
	})
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	r.runOnce(s.ID, 2)

	// What a process was writing when it was killed is as if it never began.
	r.endWith(2)
	r.exec(`DELETE FROM schedule_runs`)
	due()
	b := r.newBarrier(map[string]string{"run": "BEFORE INSERT ON schedule_runs FOR EACH ROW"})
	w := r.startWorker()
	eventually(t, "the run to be under way", func() bool { return b.waiting() >= 1 })
	if n := r.number(`SELECT count(*) FROM batches`); n != 2 {
		t.Errorf("%d batches are there before the commit", n)
	}
	r.takeOver(w, b)
	eventually(t, "the other process to have run it", func() bool { return r.number(`SELECT count(*) FROM schedule_runs`) > 0 })
	made := r.number(`SELECT batch_id FROM schedule_runs`)
	r.ended(made)
	r.runOnce(s.ID, 3)

	r.exec(`UPDATE batches SET headers_sealed = $1 WHERE id = $2`, bytes.Repeat([]byte{1}, 60), template)
	run, err := r.pipe.RunScheduleNow(t.Context(), s.ID)
	if err != nil || run.Outcome != store.RunSkipped || !strings.Contains(run.Reason, "secret key") {
		t.Errorf("with headers that don't open: %+v, %v", run, err)
	}
	r.exec(`UPDATE schedules SET zone = 'Atlantis/Capital', next_at = now() WHERE id = $1`, s.ID)
	eventually(t, "it to be paused", func() bool {
		return r.number(`SELECT count(*) FROM schedules WHERE paused_by LIKE 'Rollcall%Atlantis%'`) == 1
	})
}

// runOnce wants a run of the schedule, of the last time that was due, and so many
// batches in all.
func (r *rig) runOnce(schedule, batches int64) {
	r.t.Helper()
	if got := r.turns(schedule); !strings.Contains(got, "started") || strings.Contains(got, ",") {
		r.t.Errorf("the time came to %s, want it started once", got)
	}
	if n := r.number(`SELECT count(*) FROM batches`); n != batches {
		r.t.Errorf("%d batches are there, want %d", n, batches)
	}
	if n := r.number(`SELECT count(*) FROM schedules WHERE next_at > now()`); n != 1 {
		r.t.Errorf("the next time is %s", r.text(`SELECT next_at::text FROM schedules`))
	}
}

// TestScheduleThatAlwaysFails keeps no other waiting, and is skipped with its
// reason in the end; a time that was noted already is moved on from.
func TestScheduleThatAlwaysFails(t *testing.T) {
	t.Parallel()
	var c handClock
	c.set(t, "2026-11-02T08:00:00Z")
	r := newRig(t, setup{stopped: true, noWebhooks: true, pipeline: func(cfg *pipeline.Config) { cfg.Now = c.now }})
	template := r.submit(store.KindBatch, "https://a.test/1")
	r.endWith(template)
	r.exec(`ALTER TABLE batches ADD CONSTRAINT refused CHECK (name NOT LIKE 'bad%')`)
	r.exec(`INSERT INTO schedules (name, template_batch_id, cron, zone, created_at, next_at)
		SELECT 'bad ' || n, $1, '0 9 * * *', 'UTC', '2026-11-01', '2026-11-02 09:00Z' FROM generate_series(1, 41) AS n`, template)
	s, err := r.pipe.AddSchedule(t.Context(), pipeline.ScheduleForm{Name: "good", BatchID: template, Cron: "5 9 * * *", Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	c.set(t, "2026-11-02T09:09:59Z")
	if err := r.pipe.RunDue(t.Context()); err == nil {
		t.Error("nothing failed")
	}
	made := r.number(`SELECT max(id) FROM batches`)
	turns := fmt.Sprint("02 09:05 started ", made)
	r.wantTurns(s.ID, turns)
	r.wantTurns(1, "")
	c.set(t, "2026-11-02T09:10:00Z")
	r.tick(r.pipe)
	r.wantTurns(1, "02 09:00 skipped")
	if got := r.text(`SELECT string_agg(DISTINCT reason || ' ' || next_at::timestamptz(0), ',') FROM schedule_runs JOIN schedules AS s ON s.id = schedule_id WHERE outcome = 'skipped'`); !strings.HasPrefix(got, "it could not be started for 10 minutes; Rollcall's log says why 2026-11-03") || strings.Contains(got, ",") {
		t.Errorf("the reasons are %q", got)
	}
	// Times that somebody has noted, such as by pressing at that very moment.
	r.exec(`UPDATE schedules SET next_at = NULL WHERE id <> $1`, s.ID)
	r.endWith(made)
	r.exec(`INSERT INTO schedule_runs (schedule_id, due_at, at, outcome) SELECT $1, at, at, 'skipped' FROM unnest(ARRAY['2026-11-03 09:05Z', '2026-11-05 09:05Z']::timestamptz[]) AS at`, s.ID)
	c.set(t, "2026-11-05T09:06:00Z")
	r.tick(r.pipe)
	turns += ", 03 09:05 skipped, 04 09:05 missed, 05 09:05 skipped"
	r.wantTurns(s.ID, turns)
	c.set(t, "2026-11-06T09:05:00Z")
	r.tick(r.pipe)
	r.wantTurns(s.ID, fmt.Sprint(turns, ", 06 09:05 started ", r.number(`SELECT max(id) FROM batches`)))
}

// TestScheduleChangedByAClockBehind doesn't go back to a time that the clock of
// another process has run.
func TestScheduleChangedByAClockBehind(t *testing.T) {
	t.Parallel()
	var c handClock
	c.set(t, "2026-11-02T08:00:00Z")
	r := newRig(t, setup{stopped: true, noWebhooks: true, pipeline: func(cfg *pipeline.Config) { cfg.Now = c.now }})
	template := r.submit(store.KindBatch, "https://a.test/1")
	r.endWith(template)
	form := pipeline.ScheduleForm{BatchID: template, Name: "p", Cron: "0 * * * *", Zone: "UTC"}
	s, err := r.pipe.AddSchedule(t.Context(), form)
	if err != nil {
		t.Fatal(err)
	}
	c.set(t, "2026-11-02T09:00:01Z")
	r.tick(r.pipe)
	made := r.number(`SELECT max(id) FROM batches`)
	r.endWith(made)
	if got := r.text(`SELECT name FROM batches WHERE id = $1`, made); got != "p 2026-11-02 09:00" {
		t.Errorf("the run's batch is called %q, want no zone beside a time in UTC", got)
	}
	c.set(t, "2026-11-02T08:59:59Z")
	next := func(after string) {
		t.Helper()
		if got := r.text(`SELECT to_char(next_at AT TIME ZONE 'UTC', 'DD HH24:MI') FROM schedules`); got != "02 10:00" {
			t.Errorf("after %s, the next time is %s", after, got)
		}
	}
	form.Name = "q"
	if changed, err := r.pipe.ChangeSchedule(t.Context(), s.ID, form); err != nil || !changed {
		t.Fatal(changed, err)
	}
	next("a change")
	if paused, err := r.pipe.PauseSchedule(t.Context(), s.ID); err != nil || !paused {
		t.Fatal(paused, err)
	}
	if resumed, err := r.pipe.ResumeSchedule(t.Context(), s.ID); err != nil || !resumed {
		t.Fatal(resumed, err)
	}
	next("a pause")
	c.set(t, "2026-11-02T10:00:01Z")
	r.tick(r.pipe)
	r.wantTurns(s.ID, fmt.Sprintf("02 09:00 started %d, 02 10:00 started %d", made, r.number(`SELECT max(id) FROM batches`)))
}
