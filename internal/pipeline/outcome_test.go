package pipeline_test

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

func maxResponse(n int64) func(*geonode.Config) {
	return func(c *geonode.Config) { c.MaxResponse = n }
}

// silent is for tests of what is logged as an error.
func silent(change func(*pipeline.Config)) func(*pipeline.Config) {
	return func(c *pipeline.Config) {
		c.Logger = slog.New(slog.DiscardHandler)
		if change != nil {
			change(c)
		}
	}
}

// unknownJobs answers reads of jobs with 404 while it is on.
func unknownJobs(on *atomic.Bool) intercept {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isJob(req) && on.Load() {
			answerJSON(w, http.StatusNotFound, refusal("NOT_FOUND", false), "")
			return
		}
		next.ServeHTTP(w, req)
	}
}

// TestForgottenJobFailsAfterThreeReadsOverTheWindow: neither one 404 nor three
// quick ones are believed.
func TestForgottenJobFailsAfterThreeReadsOverTheWindow(t *testing.T) {
	t.Parallel()
	window := 1500 * time.Millisecond
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) {
		c.Mode, c.ForgottenAfter, c.PollCap = pipeline.ModePoll, window, 100*time.Millisecond
	})})
	var gone atomic.Bool
	gone.Store(true)
	r.front.set(unknownJobs(&gone))
	url := "https://shop.sandbox.test/item/1"
	id := r.submit(store.KindExtract, url)
	r.wantBatch(r.ended(id), 0, 1, 0)
	if got := r.code(id, url); got != "VENDOR_FORGOT" {
		t.Errorf("got %q, want VENDOR_FORGOT", got)
	}
	if n := r.number(`SELECT not_found FROM jobs`); n < 3 {
		t.Errorf("got %d reads, want 3 at least", n)
	}
	if ms := r.number(`SELECT (extract(epoch FROM ended_at - not_found_at) * 1000)::bigint FROM jobs`); ms < window.Milliseconds() {
		t.Errorf("given up after %d ms, want %s at least", ms, window)
	}
	// The vendor finds it again: what a person's look shows is still stored.
	gone.Store(false)
	if err := r.pipe.SettleNow(t.Context(), r.onlyJob(id)); err != nil {
		t.Fatal(err)
	}
	b := r.batch(id, func(b *store.Batch) bool { return b.Stored() == 1 })
	r.wantBatch(b, 1, 0, 0)
	r.balanced(id)
}

// TestNotFoundIsNotBelievedOfAnotherAccount: after a change of the API key
// the old jobs are unknown, and nothing is failed for that.
func TestNotFoundIsNotBelievedOfAnotherAccount(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) {
		c.Mode, c.ForgottenAfter, c.PollCap = pipeline.ModePoll, 300*time.Millisecond, 100*time.Millisecond
	})})
	var gone atomic.Bool
	gone.Store(true)
	r.front.set(unknownJobs(&gone))
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/slow/300ms")
	r.accepted(id)
	r.exec(`UPDATE jobs SET account = 'the one before'`)
	eventually(t, "many 404s over the window", func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE not_found >= 6 AND not_found_at < $1`, time.Now().Add(-time.Second)) == 1
	})
	if got := r.text(`SELECT state FROM jobs`); got != "accepted" {
		t.Errorf("the job is %s, want accepted", got)
	}
	gone.Store(false)
	r.wantBatch(r.ended(id), 1, 0, 0)
}

// TestManyNotFoundFailNothing: when most reads are 404 the vendor is not
// itself, and no job is given up.
func TestManyNotFoundFailNothing(t *testing.T) {
	t.Parallel()
	s := setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) {
		c.Mode, c.ForgottenAfter, c.PollCap = pipeline.ModePoll, 2*time.Second, 100*time.Millisecond
	})}
	r := newRig(t, s)
	var gone atomic.Bool
	gone.Store(true)
	r.front.set(unknownJobs(&gone))
	id := r.submit(store.KindExtract, sandbox.MadeURLs(15, 20)...)
	eventually(t, "404s over the window for every job", func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE not_found >= 4 AND not_found_at < $1`, time.Now().Add(-3*time.Second)) == 15
	})
	// A process that begins now has seen none of it.
	if err := r.pipe.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.pipe = r.newPipeline(s)
	r.start(s)
	reads := r.number(`SELECT sum(not_found) FROM jobs`)
	eventually(t, "some reads of the new process", func() bool { return r.number(`SELECT sum(not_found) FROM jobs`) > reads+40 })
	if got := r.number(`SELECT count(*) FROM jobs WHERE state <> 'accepted'`); got != 0 {
		t.Errorf("got %d jobs given up, want none", got)
	}
	if reason, _, err := r.store.Alarm(t.Context(), time.Now().Add(-time.Minute)); err != nil || !strings.Contains(reason, "more than a fifth") {
		t.Errorf("the alarm is %q, %v; want it to say that many are lost", reason, err)
	}
	gone.Store(false)
	r.wantBatch(r.ended(id), 15, 0, 0)
	r.balanced(id)
}

// TestWakeWhileGivingUpIsNotLost: the webhook lands while settle fetches the
// state that makes it give up. Nothing asks again, so settle must.
func TestWakeWhileGivingUpIsNotLost(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) {
		deaf(c)
		c.Now, c.GiveUpAfter = clock.now, time.Hour
	}})
	var processing atomic.Bool
	processing.Store(true)
	fetching := newOnce()
	t.Cleanup(fetching.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isJob(req) || !processing.Load() {
			next.ServeHTTP(w, req)
			return
		}
		fetching.hold()
		answerJSON(w, http.StatusServiceUnavailable, refusal("BUSY", true), "")
	})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/slow/1s")
	job := r.accepted(id)
	clock.forward(2 * time.Hour)
	if err := r.pipe.SettleNow(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	await(t, "settle to fetch", fetching.began)
	eventually(t, "the webhook", func() bool { return r.number(`SELECT count(*) FROM deliveries`) == 1 })
	processing.Store(false)
	fetching.release()
	r.wantBatch(r.ended(id), 1, 0, 0)
}

// TestVendorCancelledItems: what had not run when the vendor cancelled the job
// ends cancelled, reported or not.
func TestVendorCancelledItems(t *testing.T) {
	t.Parallel()
	for name, omitted := range map[string]bool{"listed": false, "left out": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{sandbox: func(c *sandbox.Config) {
				c.Parallelism, c.Switches.CancelledOmitted = 2, omitted
			}})
			urls := append([]string{"https://shop.sandbox.test/slow/3s", "https://news.sandbox.test/slow/3s"}, sandbox.MadeURLs(8, 21)...)
			id := r.submit(store.KindBatch, urls...)
			r.accepted(id)
			vendor := r.text(`SELECT vendor_job_id FROM jobs`)
			if _, err := r.client.CancelBatch(t.Context(), vendor); err != nil {
				t.Fatal(err)
			}
			b := r.ended(id)
			if b.Cancelled < 8 || b.Failed != 0 || b.Cancelled+b.Stored() != 10 {
				t.Errorf("got %d cancelled, %d stored, %d failed, want at least 8 cancelled and none failed", b.Cancelled, b.Stored(), b.Failed)
			}
			if got := r.number(`SELECT count(*) FROM items WHERE state = 'cancelled' AND error_code <> 'VENDOR_CANCELLED'`); got != 0 {
				t.Errorf("%d cancelled items do not say why", got)
			}
			if diff, _, err := r.store.RecountBatches(t.Context(), 0, 10); err != nil || len(diff) > 0 {
				t.Errorf("got %v, %v", diff, err)
			}
		})
	}
}

// TestItemErrorPolicies: items carry no flag, so the code decides whether a
// failure is tried again. A code nobody knows is left to a person.
func TestItemErrorPolicies(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	jobs := map[string]int64{"NOT_FOUND": 1, "SOMETHING_NEW": 1, "RATE_LIMITED": 4, "TARGET_HTTP_503": 4, "TARGET_BLOCKED": 1}
	var urls []string
	for code := range jobs {
		urls = append(urls, "https://shop.sandbox.test/fail/"+code)
	}
	id := r.submit(store.KindBatch, urls...)
	r.wantBatch(r.ended(id), 0, 5, 0)
	for code, want := range jobs {
		url := "https://shop.sandbox.test/fail/" + code
		if got := r.number(`SELECT count(*) FROM job_items ji JOIN items i ON i.id = ji.item_id WHERE i.url = $1`, url); got != want {
			t.Errorf("%s: got %d jobs, want %d", code, got, want)
		}
		if got := r.code(id, url); got != code {
			t.Errorf("got code %q, want %q", got, code)
		}
	}
	if got := r.number(`SELECT count(*) FROM items WHERE error_retryable`); got != 2 {
		t.Errorf("got %d failures marked retryable, want 2", got)
	}
	r.balanced(id)
}

// TestSupersededJobCountsAsChargedTwice: two jobs of a lineage bring the same
// item; the first stores it, the second is marked.
func TestSupersededJobCountsAsChargedTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: deaf})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1", "https://shop.sandbox.test/item/2")
	eventually(t, "both jobs' ids", func() bool { return r.number(`SELECT count(*) FROM jobs WHERE state = 'accepted'`) == 2 })
	eventually(t, "both jobs' ends", func() bool {
		books := r.sandbox.Books()
		return !books.Jobs[0].EndedAt.IsZero() && !books.Jobs[1].EndedAt.IsZero()
	})
	first := r.onlyJob(id)
	r.exec(`INSERT INTO job_items (job_id, input_index, item_id) SELECT $1 + 1, 1, item_id FROM job_items WHERE job_id = $1`, first)
	r.exec(`UPDATE items SET current_job_id = $1 + 1 WHERE current_job_id = $1`, first)
	if err := r.pipe.SettleNow(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	r.batch(id, func(b *store.Batch) bool { return b.Stored() == 1 })
	if err := r.pipe.SettleNow(t.Context(), first+1); err != nil {
		t.Fatal(err)
	}
	b := r.ended(id)
	if b.Charged != 3 || b.ChargedTwice != 1 {
		t.Errorf("got %d charged, %d of them twice, want 3, 1", b.Charged, b.ChargedTwice)
	}
	if got := r.text(`SELECT string_agg(superseded::text, ' ' ORDER BY id) FROM jobs`); got != "false true" {
		t.Errorf("got superseded %q, want the second job alone", got)
	}
	if got := r.text(`SELECT outcome FROM job_items WHERE job_id = $1 AND input_index = 1`, first+1); got != "superseded" {
		t.Errorf("got outcome %q, want superseded", got)
	}
	if got := r.number(`SELECT job_id FROM results ORDER BY item_id LIMIT 1`); got != first {
		t.Errorf("the result is job %d's, want %d's: the first answer stays", got, first)
	}
}

// TestVendorThatHangsDoesNotKeepAJobOpen: the look's time runs out, and the
// job's deadline holds all the same.
func TestVendorThatHangsDoesNotKeepAJobOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{
		noWebhooks: true,
		client:     func(c *geonode.Config) { c.Timeouts.Status = 5 * time.Minute },
		pipeline:   silent(func(c *pipeline.Config) { c.Mode, c.GiveUpAfter = pipeline.ModePoll, 5*time.Second }),
	})
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isJob(req) {
			<-req.Context().Done()
			return
		}
		next.ServeHTTP(w, req)
	})
	url := "https://shop.sandbox.test/item/1"
	id := r.submit(store.KindExtract, url)
	r.wantBatch(r.ended(id), 0, 1, 0)
	if got := r.code(id, url); got != "GAVE_UP" {
		t.Errorf("got %q, want GAVE_UP", got)
	}
}
