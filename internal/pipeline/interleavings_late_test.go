package pipeline_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestInterleavingGivenUpThenLate: the batch counts it as failed, and as
// stored once its webhook comes.
func TestInterleavingGivenUpThenLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) {
		c.GiveUpAfter, c.WebhookFallback, c.NoReconcile = 500*time.Millisecond, 200*time.Millisecond, true
	}})
	finish, deliver := r.unfinished(), r.holdDeliveries()
	url := "https://shop.sandbox.test/item/1"
	id := r.submit(store.KindExtract, url)
	b := r.ended(id)
	r.wantBatch(b, 0, 1, 0)
	if got := r.code(id, url); got != "GAVE_UP" {
		t.Errorf("got %q, want GAVE_UP", got)
	}
	finish()
	deliver()
	b = r.batch(id, func(b *store.Batch) bool { return b.Stored() == 1 })
	r.wantBatch(b, 1, 0, 0)
	if b.StoredWebhook != 1 {
		t.Errorf("got %+v, want it stored by webhook", b)
	}
	r.balanced(id)
}

// TestInterleavingCancelAgainstCompletion: the vendor ends the job while it is
// being cancelled.
func TestInterleavingCancelAgainstCompletion(t *testing.T) {
	t.Parallel()
	t.Run("the job had ended", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, setup{noWebhooks: true})
		finish := r.unfinished()
		id := r.submit(store.KindBatch, sandbox.MadeURLs(5, 41)...)
		r.accepted(id)
		eventually(t, "the end at the vendor", func() bool { return r.sandbox.Books().Jobs[0].Status == "completed" })
		if done, err := r.pipe.CancelBatch(t.Context(), id); err != nil || done.Stoppable != 1 {
			t.Fatalf("got %+v, %v, want one job that the vendor is asked to stop", done, err)
		}
		eventually(t, "the vendor's no", func() bool { return r.number(`SELECT count(*) FROM job_events WHERE kind = 'cancel_declined'`) == 1 })
		finish()
		r.wantBatch(r.ended(id), 5, 0, 0)
		r.wantTrue(id)
	})
	t.Run("pages come in after it", func(t *testing.T) {
		t.Parallel()
		open := make(chan struct{})
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			<-open
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<h1>Page "+req.URL.Path+"</h1>")
		}))
		t.Cleanup(site.Close)
		release := sync.OnceFunc(func() { close(open) })
		t.Cleanup(release)
		r := newRig(t, setup{
			noWebhooks: true, sandbox: func(c *sandbox.Config) { c.Parallelism, c.AllowPrivate = 3, true },
			pipeline: func(c *pipeline.Config) { c.CancelGrace = 3 * time.Second },
		})
		var urls []string
		for _, page := range []string{"a", "b", "c", "d", "e", "f"} {
			urls = append(urls, site.URL+"/"+page)
		}
		id := r.submit(store.KindBatch, urls...)
		r.accepted(id)
		eventually(t, "three pages to run", func() bool { return r.pagesRunning() == 3 })
		if _, err := r.pipe.CancelBatch(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the vendor's yes", func() bool { return r.number(`SELECT count(*) FROM job_events WHERE kind = 'cancel_called'`) == 1 })
		release()
		b := r.ended(id)
		r.wantBatch(b, 3, 0, 3)
		if b.Charged != 3 {
			t.Errorf("got %d charged, want the three pages that were running", b.Charged)
		}
		r.wantTrue(id)
	})
}

// pagesRunning is how many pages run at the vendor.
func (r *rig) pagesRunning() int {
	n := 0
	books := r.sandbox.Books()
	for i := range books.Jobs {
		for k := range books.Jobs[i].Outcomes {
			if books.Jobs[i].Outcomes[k].Status == "processing" {
				n++
			}
		}
	}
	return n
}

// givenUp submits a URL whose job runs for longer than jobs are waited for, and
// returns its batch and its job. No net is on: what happens then is a test's.
func givenUp(t *testing.T, url string) (*rig, int64, int64) {
	t.Helper()
	clock := &shifted{}
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) {
		deaf(c)
		c.Now, c.GiveUpAfter = clock.now, time.Hour
	})})
	finish := r.unfinished()
	id := r.submit(store.KindExtract, url)
	job := r.accepted(id)
	clock.forward(2 * time.Hour)
	r.settleNow(job)
	r.wantBatch(r.ended(id), 0, 1, 0)
	finish()
	return r, id, job
}

func (r *rig) settleNow(job int64) {
	r.t.Helper()
	if err := r.pipe.SettleNow(r.t.Context(), job); err != nil {
		r.t.Fatal(err)
	}
}

// resubmitAll sends what failed of a batch again.
func (r *rig) resubmitAll(batch int64) {
	r.t.Helper()
	done, err := r.pipe.Resubmit(r.t.Context(), r.itemIDs(batch), store.AsPlanned{})
	if err != nil || done.Items == 0 {
		r.t.Fatalf("got %+v, %v, want items sent again", done, err)
	}
}

// newestJob waits until the batch's newest job is in a state, and returns it.
func (r *rig) newestJob(batch int64, state store.JobState) int64 {
	r.t.Helper()
	eventually(r.t, "the newest job to be "+string(state), func() bool {
		return r.text(`SELECT state FROM jobs WHERE batch_id = $1 ORDER BY id DESC LIMIT 1`, batch) == string(state)
	})
	return r.number(`SELECT max(id) FROM jobs WHERE batch_id = $1`, batch)
}

// TestInterleavingResubmittedThenLate: a person sends a URL again, and the job
// that was given up brings it home after all.
func TestInterleavingResubmittedThenLate(t *testing.T) {
	t.Parallel()
	const url = "https://shop.sandbox.test/item/1"
	t.Run("after the new call", func(t *testing.T) {
		t.Parallel()
		r, id, old := givenUp(t, url)
		r.resubmitAll(id)
		fresh := r.newestJob(id, store.JobAccepted)
		r.settleNow(old)
		r.wantBatch(r.ended(id), 1, 0, 0)
		eventually(t, "the vendor to end the new job", func() bool { return r.vendorDone() == 2 }) // Nobody looks twice.
		r.settleNow(fresh)
		b := r.batch(id, func(b *store.Batch) bool { return b.Charged == 2 })
		if b.Stored() != 1 || b.ChargedTwice != 1 {
			t.Errorf("got %d stored, %d charged twice, want 1, 1", b.Stored(), b.ChargedTwice)
		}
		if got := r.number(`SELECT job_id FROM results`); got != old {
			t.Errorf("the result is job %d's, want %d's: the first answer stays", got, old)
		}
		if got := r.text(`SELECT superseded::text FROM jobs WHERE id = $1`, fresh); got != "true" {
			t.Error("the new job is not marked superseded")
		}
		r.wantTrue(id)
	})
	t.Run("before the new call", func(t *testing.T) {
		t.Parallel()
		r, id, old := givenUp(t, url)
		declined := newOnce()
		declined.release()
		r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			if isSubmit(req) && declined.hold() {
				w.Header().Set("Retry-After", "3")
				answerJSON(w, http.StatusTooManyRequests, refusal("RATE_LIMITED", true), "")
				return
			}
			next.ServeHTTP(w, req)
		})
		r.resubmitAll(id)
		await(t, "the call that the vendor declines", declined.began)
		r.settleNow(old)
		r.wantBatch(r.ended(id), 1, 0, 0)
		r.newestJob(id, store.JobWithdrawn)
		if got := r.vendorJobs(url); got != 1 {
			t.Errorf("the vendor made %d jobs, want none for a page that was home", got)
		}
		r.wantTrue(id)
	})
}

// TestInterleavingReSettledAfterResubmission: the old job is settled anew while
// a new one carries its item, and says that it failed, for now or for good. It
// may neither fail the item nor send it again: only the item's current job may.
func TestInterleavingReSettledAfterResubmission(t *testing.T) {
	t.Parallel()
	for name, retryable := range map[string]bool{"failed for good": false, "failed for now": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, id, old := givenUp(t, "https://shop.sandbox.test/item/1")
			vendor := r.text(`SELECT vendor_job_id FROM jobs WHERE id = $1`, old)
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if req.URL.Path != "/v1/extract/"+vendor {
					next.ServeHTTP(w, req)
					return
				}
				rewrite(w, req, next, "", func(_ int, body map[string]any) {
					body["status"], body["data"], body["metadata"] = "failed", nil, nil
					body["error"] = map[string]any{"code": "TIMEOUT", "message": "said by the test", "retryable": retryable, "details": map[string]any{}}
				})
			})
			r.resubmitAll(id)
			fresh := r.newestJob(id, store.JobAccepted)
			r.settleNow(old)
			eventually(t, "the old job to be settled", func() bool { return r.text(`SELECT state FROM jobs WHERE id = $1`, old) == "settled" })
			b, err := r.store.Batch(t.Context(), id)
			if err != nil || b.Outstanding != 1 {
				t.Errorf("got %+v, %v, want the item outstanding", b, err)
			}
			eventually(t, "the vendor to end the new job", func() bool { return r.vendorDone() == 2 }) // Nobody looks twice.
			r.settleNow(fresh)
			r.wantBatch(r.ended(id), 1, 0, 0)
			if got := r.number(`SELECT count(*) FROM jobs`); got != 2 {
				t.Errorf("got %d jobs, want the two", got)
			}
			r.balanced(id)
		})
	}
}
