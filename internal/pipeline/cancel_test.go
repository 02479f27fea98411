package pipeline_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

func TestCancelWithdrawsWhatWasNotSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	batch := r.submit(store.KindExtract, sandbox.MadeURLs(25, 1)...)
	plan, err := r.pipe.PlanCancelBatch(t.Context(), batch)
	if err != nil || plan.Unsent != 25 || plan.UnsentURLs != 25 || plan.Jobs != 25 {
		t.Fatalf("the plan is %+v, %v; want all 25 unsent", plan, err)
	}
	for range 2 { // Twice does no more than once.
		if _, err := r.pipe.CancelBatch(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	b := r.ended(batch)
	r.wantBatch(b, 0, 0, 25)
	if b.EndedAt == nil {
		t.Error("the batch has not ended")
	}
	r.start(setup{noWebhooks: true})
	if err := r.pipe.Idle(t.Context()); err != nil { // Their tasks have run.
		t.Fatal(err)
	}
	if n := len(r.sandbox.Books().Jobs); n != 0 {
		t.Errorf("the vendor was asked for %d jobs that were cancelled before", n)
	}
	r.balanced()
}

func TestCancelAsksTheVendorToStopABatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sandbox: func(c *sandbox.Config) {
		c.RunTime, c.Switches.CancelFreezes = time.Hour, true // Nothing ends but by being cancelled.
	}})
	batch := r.submit(store.KindBatch, sandbox.MadeURLs(20, 1)...)
	job := r.accepted(batch)
	done, err := r.pipe.CancelJobs(t.Context(), []int64{job})
	if err != nil || done.Stoppable != 1 || done.StoppableURLs != 0 {
		t.Fatalf("got %+v, %v; want one job that the vendor is asked to stop", done, err)
	}
	r.wantBatch(r.ended(batch), 0, 0, 20)
	r.balanced()
}

func TestCancelOfAnExtractJobLetsItRunOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	finish := r.unfinished()
	batch := r.submit(store.KindExtract, sandbox.MadeURLs(1, 1)...)
	r.accepted(batch)
	done, err := r.pipe.CancelBatch(t.Context(), batch)
	if err != nil || done.RunsOut != 1 {
		t.Fatalf("got %+v, %v; want one job that runs out", done, err)
	}
	finish()
	r.wantBatch(r.ended(batch), 1, 0, 0)
	r.balanced(batch)
}

func TestCancelDuringTheCallReachesTheVendorAfterIt(t *testing.T) {
	t.Parallel()
	for _, kind := range []store.Kind{store.KindBatch, store.KindCrawl} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{sandbox: func(c *sandbox.Config) {
				c.RunTime, c.Switches.CancelFreezes = time.Hour, true // Nothing ends but by being cancelled.
			}})
			calling, goOn := make(chan struct{}), make(chan struct{})
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/v1/"+string(kind)) {
					close(calling)
					<-goOn
				}
				next.ServeHTTP(w, req)
			})
			batch := r.submit(kind, sandbox.MadeURLs(1, 1)...)
			await(t, "the call", calling)
			done, err := r.pipe.CancelBatch(t.Context(), batch)
			if err != nil || done.Calling != 1 {
				t.Fatalf("got %+v, %v; want one job that is being called for", done, err)
			}
			close(goOn)
			r.crawled(batch)
			if n := r.sandbox.Books().Calls[string(kind)+".cancel"].Total; n == 0 {
				t.Error("the vendor was never asked to cancel what it had just taken")
			}
			r.balanced()
		})
	}
}

func TestACancelledBatchMakesNoRetries(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{
		noWebhooks: true,
		sandbox:    func(c *sandbox.Config) { c.Faults = sandbox.Faults{sandbox.FaultItemFail: 1} },
		pipeline: func(c *pipeline.Config) { // A look that began before the cancel would know nothing of it.
			asleep(c)
			c.RetryGaps = c.RetryGaps[:1]
		},
	})
	batch := r.submit(store.KindExtract, sandbox.MadeURLs(8, 1)...)
	r.batch(batch, func(*store.Batch) bool {
		return r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND state = 'accepted'`, batch) == 8
	})
	if _, err := r.pipe.CancelBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	r.endedThere(8)
	for _, job := range r.jobsOf(batch) {
		r.settleNow(job)
	}
	r.ended(batch)
	if n := r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND origin = 'retry' AND state <> 'withdrawn'`, batch); n != 0 {
		t.Errorf("%d jobs were called for after the batch was cancelled", n)
	}
	r.balanced(batch)
}

// TestThePlanOfACancelCountsWhatIsOutstanding, not what the jobs began with.
func TestThePlanOfACancelCountsWhatIsOutstanding(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	batch := r.submit(store.KindBatch, sandbox.MadeURLs(30, 1)...)
	r.exec(`UPDATE items SET state = 'failed', error_code = 'GONE', ended_at = created_at WHERE batch_id = $1 AND position <= 12`, batch)
	job := r.number(`SELECT min(id) FROM jobs WHERE batch_id = $1`, batch)
	for name, plan := range map[string]func() (pipeline.CancelPlan, error){
		"batch": func() (pipeline.CancelPlan, error) { return r.pipe.PlanCancelBatch(t.Context(), batch) },
		"job":   func() (pipeline.CancelPlan, error) { return r.pipe.PlanCancelJobs(t.Context(), []int64{job}) },
	} {
		got, err := plan()
		want := map[string]pipeline.CancelPlan{
			"batch": {BatchID: batch, Jobs: 2, Unsent: 2, UnsentURLs: 18}, "job": {Jobs: 1, Unsent: 1, UnsentURLs: 8},
		}[name]
		if err != nil || got != want {
			t.Errorf("%s: the plan is %+v, %v; want %+v", name, got, err, want)
		}
	}
}
