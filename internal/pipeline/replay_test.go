package pipeline_test

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestReplayHasOneOutcomeForEachJob: settled ones cost no call, open ones are
// settled by the net replay, and of the others is said what the look found.
func TestReplayHasOneOutcomeForEachJob(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: asleep})
	jobs := r.openJobs(8)
	settled, running, lost, broken, forgotten := jobs[0], jobs[1], jobs[2], jobs[3], jobs[4]
	if err := r.pipe.SettleNow(t.Context(), settled); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first job to settle", func() bool { return r.text(`SELECT state FROM jobs WHERE id = $1`, settled) == "settled" })
	r.exec(`UPDATE jobs SET state = 'given_up', error_code = 'GAVE_UP', ended_at = now() - interval '1 day' WHERE id = $1`, jobs[5])
	r.exec(`UPDATE jobs SET accepted_at = now() - interval '100 days' WHERE id = $1`, forgotten)
	var mu sync.Mutex
	asked := map[string]int{}
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		id := path.Base(req.URL.Path)
		if !isJob(req) {
			next.ServeHTTP(w, req)
			return
		}
		mu.Lock()
		asked[id]++
		mu.Unlock()
		switch id {
		case r.vendorID(running), r.vendorID(forgotten):
			answerProcessing(w, req)
		case r.vendorID(lost):
			answerJSON(w, http.StatusNotFound, refusal("NOT_FOUND", false), "")
		case r.vendorID(broken):
			answerJSON(w, http.StatusInternalServerError, refusal("INTERNAL", true), "")
		default:
			next.ServeHTTP(w, req)
		}
	})
	hook := r.logged()
	r.exec(`INSERT INTO delivery_log (webhook_id, vendor_id, attempt, vendor_job_id, status, created_at, seen_at)
		VALUES ($1, 'other', 1, 'not-ours', 'failed', now(), now()), ($1, 'none', 1, '', 'failed', now(), now()), ($1, 'again', 2, $2, 'failed', now(), now())`, hook, r.vendorID(running))
	plan := r.plan(hook)
	if want := (store.Frozen{Lines: 11, Unnamed: 1, ForeignJobs: 1, Jobs: 8, SettledBefore: 1, Calls: 7, RefetchCalls: 1}); plan.Frozen != want {
		t.Errorf("got %+v frozen, want %+v", plan.Frozen, want)
	}
	mu.Lock()
	if n := len(asked); n != 0 {
		t.Errorf("planning asked the vendor %d times", n)
	}
	mu.Unlock()
	r.run(plan.ID, false)
	got := r.replayed(plan.ID)
	for job, want := range map[int64]string{
		settled: "already_settled", running: "still_running", lost: "unknown_to_vendor", broken: "error", forgotten: "failed",
		jobs[5]: "settled_now", jobs[6]: "settled_now", jobs[7]: "settled_now",
	} {
		if is := r.outcome(plan.ID, job); is != want {
			t.Errorf("job %d: got %s, want %s\n%s", job, is, want, r.text(`SELECT detail FROM replay_jobs WHERE job_id = $1`, job))
		}
	}
	if got.AlreadySettled != 1 || got.SettledNow != 3 || got.StillRunning != 1 || got.Failed != 1 || got.UnknownToVendor != 1 || got.Errors != 1 {
		t.Errorf("got counters %+v", got)
	}
	if n := r.number(`SELECT count(*) FROM results WHERE net = 'replay'`); n != 4 {
		t.Errorf("got %d results by replay, want 4: three now and the one by hand before", n)
	}
	mu.Lock()
	if asked[r.vendorID(settled)] != 0 || asked["not-ours"] != 0 {
		t.Errorf("the vendor was asked about a settled or a foreign job: %v", asked)
	}
	mu.Unlock()
	for _, job := range jobs[1:] {
		if n := r.number(`SELECT count(*) FROM job_events WHERE job_id = $1 AND kind = 'woken' AND detail = $2`, job, fmt.Sprintf("replay %d", plan.ID)); n != 1 {
			t.Errorf("job %d was woken %d times, want once", job, n)
		}
	}
	r.balanced()

	second := r.plan(hook)
	r.run(second.ID, false)
	if again := r.replayed(second.ID); again.AlreadySettled != 4 || again.SettledNow != 0 {
		t.Errorf("the same once more: got %+v, want nothing settled by it", again)
	}
}

// TestReplayIsStartedOnce: by whoever comes first, however often a form is sent.
func TestReplayIsStartedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: asleep})
	ctx := store.WithActor(t.Context(), store.Actor{Name: "olga", Source: "192.0.2.1"})
	ids := make([]int64, 6)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			plan, err := r.pipe.PlanReplay(ctx, pipeline.ReplayRequest{Picked: "x", Token: "one-form"})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = plan.ID
		})
	}
	all.Wait()
	if slices.Min(ids) != slices.Max(ids) || ids[0] == 0 {
		t.Fatalf("one form made plans %v", ids)
	}
	started := make([]bool, 6)
	for i := range started {
		all.Go(func() {
			var err error
			if started[i], err = r.pipe.RunReplay(ctx, ids[0], false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(slices.DeleteFunc(started, func(yes bool) bool { return !yes })); n != 1 {
		t.Errorf("it was started %d times", n)
	}
	for _, move := range []func(context.Context, int64) (bool, error){r.pipe.PauseReplay, r.pipe.ResumeReplay, r.pipe.CancelReplay} {
		for i, want := range []bool{true, false} {
			if ok, err := move(ctx, ids[0]); err != nil || ok != want {
				t.Errorf("press %d: got %v, %v, want %v", i+1, ok, err, want)
			}
		}
	}
	got := r.text(`SELECT string_agg(what || ' ' || who || ' ' || on_id, ', ' ORDER BY id) FROM audit_log`)
	moves := r.text(`SELECT string_agg(concat_ws('>', before->>'state', after->>'state'), ' ' ORDER BY id) FROM audit_log`)
	if moves != "planned planned>running running>paused paused>running running>cancelled" {
		t.Errorf("audit: got the states %s", moves)
	}
	id := strconv.FormatInt(ids[0], 10)
	if want := "replay.plan olga " + id + ", replay.run olga " + id + ", replay.pause olga " + id + ", replay.resume olga " + id + ", replay.cancel olga " + id; got != want {
		t.Errorf("audit: got %s, want %s", got, want)
	}
	if n := r.number(`SELECT count(*) FROM river_job WHERE kind = 'replay'`); n != 1 {
		t.Errorf("got %d tasks, want one", n)
	}
	dry, err := r.pipe.PlanReplay(ctx, pipeline.ReplayRequest{Picked: "x", DryRun: true})
	if err != nil || r.number(`SELECT count(*) FROM replays`) != 1 {
		t.Errorf("a dry run left something: %+v, %v", dry, err)
	}
	if _, err := r.pipe.RunReplay(ctx, 4711, false); err == nil {
		t.Error("a replay that is not there was run")
	}
}

// TestReplayPausesResumesAndCancels: a pause lets what is under way end and
// begins with nothing; a resume goes on; a cancel ends it for good.
func TestReplayPausesResumesAndCancels(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: asleep})
	jobs := r.openJobs(60)
	hook := r.logged()
	first, second := r.plan(hook), r.plan(hook)
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isJob(req) {
			<-gate
		}
		next.ServeHTTP(w, req)
	})
	under := func(id int64) int64 {
		return r.number(`SELECT count(*) FROM replay_jobs WHERE replay_id = $1 AND state = 'woken'`, id)
	}
	r.run(first.ID, false)
	eventually(t, "as many under way as may be", func() bool { return under(first.ID) == 50 })
	if ok, err := r.pipe.PauseReplay(t.Context(), first.ID); err != nil || !ok {
		t.Fatalf("pause: got %v, %v", ok, err)
	}
	open()
	tasks := func() int64 {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'replay' AND state <> 'completed'`)
	}
	eventually(t, "what was under way to end", func() bool { return tasks() == 0 })
	got, err := r.store.Replay(t.Context(), first.ID)
	if err != nil || got.State != store.ReplayPaused || got.SettledNow != 50 || got.Ended() != 50 {
		t.Errorf("paused: got %+v, %v, want the 50 under way settled and no more", got, err)
	}
	if n := r.number(`SELECT count(*) FROM jobs WHERE state = 'settled'`); n != 50 {
		t.Errorf("got %d jobs settled while it is paused, want 50", n)
	}
	r.run(second.ID, false)
	eventually(t, "the other replay to settle the rest", func() bool { return r.replayed(second.ID).State == store.ReplayDone })
	if ok, err := r.pipe.ResumeReplay(t.Context(), first.ID); err != nil || !ok {
		t.Fatalf("resume: got %v, %v", ok, err)
	}
	if got := r.replayed(first.ID); got.State != store.ReplayDone || got.SettledNow != 50 || got.AlreadySettled != 10 {
		t.Errorf("resumed: got %+v, want the other ten passed over", got)
	}
	third := r.plan(hook)
	if ok, err := r.pipe.CancelReplay(t.Context(), third.ID); err != nil || !ok {
		t.Fatalf("cancel: got %v, %v", ok, err)
	}
	if ok, err := r.pipe.RunReplay(t.Context(), third.ID, false); err != nil || ok || tasks() != 0 {
		t.Errorf("a cancelled plan was run: %v, %v", ok, err)
	}
	for _, job := range jobs {
		if n := r.number(`SELECT count(*) FROM job_events WHERE job_id = $1 AND kind = 'woken'`, job); n != 1 {
			t.Errorf("job %d was woken %d times by both, want once", job, n)
		}
	}
}

// TestReplayCancelledWhileItRuns: what is under way ends and is counted, what
// has not begun never does.
func TestReplayCancelledWhileItRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: asleep})
	r.openJobs(55)
	plan := r.plan(r.logged())
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isJob(req) {
			<-gate
		}
		next.ServeHTTP(w, req)
	})
	r.run(plan.ID, false)
	eventually(t, "as many under way as may be", func() bool {
		return r.number(`SELECT count(*) FROM replay_jobs WHERE state = 'woken'`) == 50
	})
	if ok, err := r.pipe.CancelReplay(t.Context(), plan.ID); err != nil || !ok {
		t.Fatalf("cancel: got %v, %v", ok, err)
	}
	open()
	eventually(t, "its task to end", func() bool {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'replay' AND state <> 'completed'`) == 0
	})
	got, err := r.store.Replay(t.Context(), plan.ID)
	if err != nil || got.State != store.ReplayCancelled || got.SettledNow != 50 || got.Ended() != 50 {
		t.Errorf("got %+v, %v, want 50 settled and five never begun", got, err)
	}
}

// TestReplayGoesBehindLiveWork: its tasks wait until nothing live is left, and a
// job that something live wakes is brought forward.
func TestReplayGoesBehindLiveWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) {
		asleep(c)
		c.VendorConcurrency = 1
	}, client: func(c *geonode.Config) { c.Timeouts.Status = time.Minute }}) // It waits for all that follows.
	r.pipe.TurnWait(12 * time.Second) // Those behind go back to the queue after a third.
	jobs := r.openJobs(5)
	plan := r.planOf(store.ReplayPicks{JobIDs: jobs[1:4]})
	var mu sync.Mutex
	var order []string
	gate := newOnce()
	t.Cleanup(gate.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isJob(req) {
			mu.Lock()
			order = append(order, path.Base(req.URL.Path))
			mu.Unlock()
			gate.hold()
		}
		next.ServeHTTP(w, req)
	})
	settle := func(job int64) {
		if err := r.pipe.SettleNow(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	settle(jobs[0])
	await(t, "the one turn at the vendor to be taken", gate.began)
	r.run(plan.ID, false)
	waiting := func(priority int) int64 {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'settle' AND state <> 'completed' AND priority = $1`, priority)
	}
	eventually(t, "the replay's tasks", func() bool { return waiting(4) == 3 })
	settle(jobs[4])
	brought := time.Now()
	settle(jobs[3])
	if behind, live := waiting(4), waiting(1); behind != 2 || live != 3 {
		t.Errorf("got %d tasks behind and %d live, want 2 and 3", behind, live)
	}
	eventually(t, "both live ones to wait for their turn", func() bool {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'settle' AND state = 'running' AND priority = 1
			AND ((args->>'job_id')::bigint = $1 OR (args->>'job_id')::bigint = $2 AND attempted_at > $3)`, jobs[4], jobs[3], brought) == 2 &&
			r.pipe.LooksAhead() == 2
	})
	gate.release()
	r.replayed(plan.ID)
	mu.Lock()
	defer mu.Unlock()
	place := func(job int64) int { return slices.Index(order, r.vendorID(job)) }
	if len(order) != 5 || max(place(jobs[3]), place(jobs[4])) > min(place(jobs[1]), place(jobs[2])) {
		t.Errorf("the vendor was asked in the order %v, want what is live first", order)
	}
}

// TestReplayWaitsForAGate: while the vendor throttles, a replay begins with
// nothing and gives nothing up.
func TestReplayWaitsForAGate(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) {
		asleep(c)
		c.Now = clock.now
	}})
	r.openJobs(3)
	plan := r.plan(r.logged())
	r.exec(`UPDATE gates SET closed_until = now() + interval '1 hour', closings = 1 WHERE name = 'read'`)
	clock.forward(time.Second) // A gate is seen as it was for a moment.
	r.run(plan.ID, false)
	eventually(t, "the runner to find the gate shut", func() bool { return r.number(`SELECT count(*) FROM replays WHERE shut_at IS NOT NULL`) == 1 })
	if n := r.number(`SELECT count(*) FROM replay_jobs WHERE state <> 'waiting'`); n != 0 {
		t.Errorf("%d jobs were begun with while the gate is shut", n)
	}
	clock.forward(2 * time.Hour)
	if got := r.replayed(plan.ID); got.SettledNow != 3 {
		t.Errorf("got %+v, want all settled once the gate opens", got)
	}
}
