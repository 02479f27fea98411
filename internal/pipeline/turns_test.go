package pipeline_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// heldSubmits holds submits at the vendor until release, of which each is then
// answered by answer; so many URLs are submitted, a job each.
func heldSubmits(t *testing.T, atOnce, urls int, answer http.HandlerFunc) (*rig, *atomic.Int64, func()) {
	t.Helper()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) {
		asleep(c)
		c.VendorConcurrency = atOnce
	}})
	var n atomic.Int64
	gate := make(chan struct{})
	t.Cleanup(func() {
		select {
		case <-gate:
		default:
			close(gate)
		}
	})
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isSubmit(req) {
			next.ServeHTTP(w, req)
			return
		}
		n.Add(1)
		<-gate
		answer(w, req)
	})
	r.submit(store.KindExtract, sandbox.MadeURLs(urls, 5)...)
	eventually(t, "all turns to be taken, and all others to wait for one", func() bool {
		return int(n.Load()) == atOnce && r.pipe.CallsAhead() == urls-atOnce
	})
	return r, &n, func() { close(gate) }
}

// TestNoCallPassesAGateThatClosed: no more submit at once than the setting says,
// and those that wait for their turn see the gate that a refusal closes.
func TestNoCallPassesAGateThatClosed(t *testing.T) {
	t.Parallel()
	r, n, release := heldSubmits(t, 2, 6, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		answerJSON(w, http.StatusTooManyRequests, refusal("RATE_LIMITED", true), "")
	})
	release()
	eventually(t, "all to be put off", func() bool {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'dispatch' AND state = 'scheduled'`) == 6
	})
	if got := n.Load(); got != 2 {
		t.Errorf("%d submits reached the vendor, want the 2 that were under way", got)
	}
}

// TestNoCallBeginsAfterStop: those that wait for their turn when the process
// stops are left to the next.
func TestNoCallBeginsAfterStop(t *testing.T) {
	t.Parallel()
	r, n, release := heldSubmits(t, 1, 6, func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusServiceUnavailable, refusal("UNAVAILABLE", true), "")
	})
	stopped := make(chan error, 1)
	go func() { stopped <- r.pipe.Stop(context.WithoutCancel(t.Context())) }()
	eventually(t, "those that wait to leave", func() bool { return r.pipe.CallsAhead() == 0 })
	release()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if got := n.Load(); got != 1 {
		t.Errorf("%d submits reached the vendor, want the one that was under way", got)
	}
	if got := r.number(`SELECT count(*) FROM river_job WHERE kind = 'dispatch' AND state IN ('available', 'scheduled')`); got != 6 {
		t.Errorf("%d tasks are left to the next process, want 6", got)
	}
}

// TestNoPagePassesAGateThatClosed: a run that reads page after page looks at the
// gate before each.
func TestNoPagePassesAGateThatClosed(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.NoReconcile, c.URLsPerJob = true, 1000 }})
	var closed atomic.Bool
	var after atomic.Int64
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case isJob(req) && closed.Load():
			after.Add(1)
		case isJob(req) && req.URL.Query().Get("page") == "2":
			r.exec(`UPDATE gates SET closed_until = now() + interval '1 hour', closings = 1 WHERE name = 'read'`)
			r.exec(`SELECT pg_sleep(0.3)`) // A gate may be seen as it was a quarter of a second ago.
			closed.Store(true)
		}
		next.ServeHTTP(w, req)
	})
	r.submit(store.KindBatch, sandbox.MadeURLs(200, 5)...)
	eventually(t, "the run to be put off", func() bool {
		return closed.Load() && r.number(`SELECT count(*) FROM river_job WHERE kind = 'settle' AND state = 'scheduled' AND scheduled_at > now() + interval '1 min'`) == 1
	})
	if got := after.Load(); got != 0 {
		t.Errorf("%d pages were asked for after the gate closed", got)
	}
}

// TestWaitingForATurnIsNoTry: a settled job is fetched again until the vendor
// failed at it often enough, however often its task waited for a turn.
func TestWaitingForATurnIsNoTry(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) {
		asleep(c)
		c.VendorConcurrency = 1
	}})
	r.pipe.TurnWait(30 * time.Millisecond)
	jobs := r.openJobs(2)
	settle := func(job int64) {
		if err := r.pipe.SettleNow(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	settle(jobs[0])
	eventually(t, "the first to settle", func() bool { return r.number(`SELECT count(*) FROM jobs WHERE state = 'settled'`) == 1 })
	live := newOnce()
	t.Cleanup(live.release)
	var asked, counted atomic.Int64
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case !isJob(req) || live.hold():
		case asked.Add(1) == 1:
			answerJSON(w, http.StatusServiceUnavailable, refusal("UNAVAILABLE", true), "")
			return
		default:
			counted.Store(r.number(`SELECT refetch_tries FROM replay_jobs`))
		}
		next.ServeHTTP(w, req)
	})
	settle(jobs[1])
	await(t, "the live look", live.began)
	plan := r.planOf(store.ReplayPicks{JobIDs: jobs[:1]})
	r.run(plan.ID, true)
	eventually(t, "the fetch to have waited in vain", func() bool {
		return r.number(`SELECT coalesce(max((metadata->>'snoozes')::bigint), 0) FROM river_job WHERE kind = 'refetch'`) > 0
	})
	live.release()
	r.replayed(plan.ID)
	if got := r.text(`SELECT refetched FROM replay_jobs`); got != "same" || asked.Load() != 2 || counted.Load() != 1 {
		t.Errorf("got %q at ask %d with %d tries in vain, want the same, at the second ask, with one", got, asked.Load(), counted.Load())
	}
}
