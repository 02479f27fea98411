package pipeline_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestChargeBeyondReason: a charge that no counter could hold keeps neither
// its page nor its batch from being stored.
func TestChargeBeyondReason(t *testing.T) {
	t.Parallel()
	for _, kind := range []store.Kind{store.KindExtract, store.KindBatch} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.Mode = pipeline.ModePoll }})
			huge := json.Number("9000000000000")
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if !isJob(req) {
					next.ServeHTTP(w, req)
					return
				}
				rewrite(w, req, next, "", func(_ int, body map[string]any) {
					if body["tokens_charged"] != nil {
						body["tokens_charged"] = huge
					}
					results, _ := body["results"].([]any)
					for _, row := range results {
						if meta, ok := row.(map[string]any)["metadata"].(map[string]any); ok {
							meta["tokens_charged"] = huge
						}
					}
				})
			})
			id := r.submit(kind, "https://shop.sandbox.test/item/1", "https://shop.sandbox.test/item/2")
			b := r.ended(id)
			r.wantBatch(b, 2, 0, 0)
			if b.Charged != 2 {
				t.Errorf("got %d charged, want one for each page", b.Charged)
			}
			r.balanced(id)
		})
	}
}

// TestLateLookAtAClosedGate: the deadline passed while nobody could ask, and
// the gate is closed for a moment. The vendor is asked before the job is
// given up: its result is there.
func TestLateLookAtAClosedGate(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) {
		c.Mode, c.NoPoll, c.Now = pipeline.ModePoll, true, clock.now
	})})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	job := r.accepted(id)
	clock.forward(80 * time.Hour)
	r.exec(`UPDATE gates SET closed_until = $1, closings = 1 WHERE name = 'read'`, clock.now().Add(2*time.Second))
	if err := r.pipe.SettleNow(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	r.wantBatch(r.ended(id), 1, 0, 0)
}

// TestAdoptTakesNoJobOfAnotherRequestForThePage: a lost call is looked for
// while a call with other options for the same page is under way. The list
// does not tell the two apart, and the job itself only when it has ended.
func TestAdoptTakesNoJobOfAnotherRequestForThePage(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	var submits atomic.Int64
	looking, answering := newOnce(), newOnce()
	t.Cleanup(looking.release)
	t.Cleanup(answering.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case isSubmit(req) && submits.Add(1) == 1:
			panic(http.ErrAbortHandler)
		case isSubmit(req):
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, req)
			answering.hold()
			copyAnswer(w, rec)
			return
		case req.URL.Path == "/v1/extract/jobs":
			looking.hold()
		}
		next.ServeHTTP(w, req)
	})
	url := "https://shop.sandbox.test/slow/4s"
	lost := r.submit(store.KindExtract, url)
	await(t, "the look for the lost call", looking.began)
	other, err := r.pipe.Submit(t.Context(), pipeline.Submission{
		Text: url, Options: pipeline.Options{Formats: []string{"markdown", "html"}, RenderJS: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the other call", answering.began)
	looking.release()
	eventually(t, "the look to end", func() bool {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'adopt' AND (state = 'completed' OR metadata ? 'snoozes')`) > 0 ||
			r.number(`SELECT count(*) FROM jobs WHERE adopted`) > 0
	})
	answering.release()
	r.wantBatch(r.ended(other.BatchID), 1, 0, 0)
	r.wantBatch(r.ended(lost), 1, 0, 0)
	if got := r.number(`SELECT count(*) FROM jobs WHERE adopted`); got != 0 {
		t.Errorf("got %d adopted jobs, want none", got)
	}
}

// TestLostAnswerIsAdoptedThoughTheClocksDiffer: the first thing that a process
// asks the vendor is what became of a lost call, and the vendor's clock is
// another. The job is found, not made again.
func TestLostAnswerIsAdoptedThoughTheClocksDiffer(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	clock.forward(-10 * time.Minute)
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.Now = clock.now }})
	var lost atomic.Bool
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSubmit(req) && !lost.Swap(true) {
			next.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
	})
	url := "https://shop.sandbox.test/item/1"
	id := r.submit(store.KindExtract, url)
	r.wantBatch(r.ended(id), 1, 0, 0)
	if got := r.vendorJobs(url); got != 1 {
		t.Errorf("the vendor made %d jobs, want 1", got)
	}
}

// TestUncertainJobIsNotOpenForEver: the answer was lost and the vendor's list
// never comes whole. Past the deadline the job ends, for a person to decide.
func TestUncertainJobIsNotOpenForEver(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.Now = clock.now })})
	var lost atomic.Bool
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case isSubmit(req) && !lost.Swap(true):
			next.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		case strings.HasSuffix(req.URL.Path, "/jobs"):
			rewrite(w, req, next, "a list with a row that is none", func(_ int, body map[string]any) {
				body["jobs"] = []any{"not a job"}
			})
			return
		}
		next.ServeHTTP(w, req)
	})
	url := "https://shop.sandbox.test/item/1"
	id := r.submit(store.KindExtract, url)
	eventually(t, "the lost answer", func() bool { return r.text(`SELECT state FROM jobs`) == "uncertain" })
	clock.forward(80 * time.Hour)
	r.wantBatch(r.ended(id), 0, 1, 0)
	if got := r.code(id, url); got != "GAVE_UP" {
		t.Errorf("got code %q, want GAVE_UP", got)
	}
	if got := r.vendorJobs(url); got != 1 {
		t.Errorf("the vendor made %d jobs, want 1", got)
	}
}

// TestLongPauseOfTheAccountEndsNoJob: the balance was used up for longer than
// the deadline of jobs. When it is filled up again, what waited is called for.
func TestLongPauseOfTheAccountEndsNoJob(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.Mode, c.Now = pipeline.ModePoll, clock.now })})
	var refusing atomic.Bool
	refusing.Store(true)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSubmit(req) && refusing.Load() {
			answerJSON(w, http.StatusPaymentRequired, refusal("NO_BALANCE", false), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1", "https://shop.sandbox.test/item/2")
	eventually(t, "the pause", func() bool { return r.number(`SELECT count(*) FROM gates WHERE paused_at IS NOT NULL`) == 1 })
	clock.forward(80 * time.Hour)
	calls := r.number(`SELECT sum(call_no) FROM jobs`)
	eventually(t, "some probes", func() bool {
		return r.number(`SELECT sum(call_no) FROM jobs`) >= calls+4 || r.number(`SELECT count(*) FROM jobs WHERE state = 'refused'`) > 0
	})
	refusing.Store(false)
	var declined atomic.Int64
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		// The vendor is busy at first, as it always may be.
		if isSubmit(req) && declined.Add(1) == 2 {
			w.Header().Set("Retry-After", "1")
			answerJSON(w, http.StatusTooManyRequests, refusal("RATE_LIMITED", true), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	r.wantBatch(r.ended(id), 2, 0, 0)
}

// TestVendorThatTakesNoCallKeepsNoJobOpen: past the deadline a job that the
// vendor declines again and again ends, and a person may try it once more.
func TestVendorThatTakesNoCallKeepsNoJobOpen(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.Now = clock.now })})
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSubmit(req) {
			answerJSON(w, http.StatusServiceUnavailable, refusal("UNAVAILABLE", true), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	url := "https://shop.sandbox.test/item/1"
	id := r.submit(store.KindExtract, url)
	clock.forward(80 * time.Hour)
	r.wantBatch(r.ended(id), 0, 1, 0)
	if got := r.text(`SELECT error_code || ' ' || error_retryable FROM items`); got != "GAVE_UP true" {
		t.Errorf("got %q, want GAVE_UP, to be retried by a person", got)
	}
	if got := r.number(`SELECT max(call_no) FROM jobs`); got < 3 {
		t.Errorf("given up after %d calls, want 3 at least", got)
	}
}

// TestIntendedJobWithoutATaskIsCalledFor: its task is gone, whatever became of
// it. The reconciler gives it another; one that has a task keeps that.
func TestIntendedJobWithoutATaskIsCalledFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.Mode, c.NoReconcile = pipeline.ModePoll, true })})
	r.exec(`UPDATE gates SET closed_until = now() + interval '1 hour', closings = 1 WHERE name = 'submit'`)
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1", "https://shop.sandbox.test/item/2")
	eventually(t, "the tasks to wait", func() bool {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'dispatch' AND state = 'scheduled'`) == 2
	})
	r.exec(`DELETE FROM river_job WHERE kind = 'dispatch' AND (args->>'job_id')::bigint = (SELECT min(id) FROM jobs)`)
	if run, err := r.pipe.Reconcile(t.Context(), "person"); err != nil || run.Errors > 0 {
		t.Fatalf("got %+v, %v", run, err)
	}
	if got := r.number(`SELECT count(*) FROM river_job WHERE kind = 'dispatch'`); got != 2 {
		t.Errorf("got %d tasks, want one for each job", got)
	}
	r.exec(`UPDATE gates SET closed_until = NULL`)
	eventually(t, "the calls", func() bool {
		r.exec(`UPDATE river_job SET scheduled_at = now() WHERE kind = 'dispatch' AND state = 'scheduled'`) // A gate is read again after a while.
		return r.number(`SELECT count(*) FROM jobs WHERE state = 'intended'`) == 0
	})
	r.wantBatch(r.ended(id), 2, 0, 0)
	if got := r.number(`SELECT sum(call_no) FROM jobs`); got != 2 {
		t.Errorf("got %d calls, want 2", got)
	}
}

// TestAnswerThatCannotBeWrittenKeepsNoJobOpen: whatever keeps an answer out of
// the database, past its deadline the job ends.
func TestAnswerThatCannotBeWrittenKeepsNoJobOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) {
		c.Mode, c.GiveUpAfter = pipeline.ModePoll, 2*time.Second
	})})
	r.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no result today'; END $$`)
	r.exec(`CREATE TRIGGER no_result BEFORE INSERT ON results FOR EACH ROW EXECUTE FUNCTION refuse()`)
	url := "https://shop.sandbox.test/item/1"
	id := r.submit(store.KindExtract, url)
	r.wantBatch(r.ended(id), 0, 1, 0)
	if got := r.code(id, url); got != "GAVE_UP" {
		t.Errorf("got code %q, want GAVE_UP", got)
	}
	r.balanced()
}

// TestJobTakenOverByAnAdoptionIsCalledForAgain: a call outlived its claim, and
// the job that it made was given to an equal call whose answer was lost. Both
// end with a job of their own.
func TestJobTakenOverByAnAdoptionIsCalledForAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: silent(nil)})
	var submits atomic.Int64
	looking, answering := newOnce(), newOnce()
	t.Cleanup(looking.release)
	t.Cleanup(answering.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case isSubmit(req) && submits.Add(1) == 1:
			panic(http.ErrAbortHandler)
		case isSubmit(req):
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, req)
			answering.hold()
			copyAnswer(w, rec)
			return
		case req.URL.Path == "/v1/extract/jobs":
			looking.hold()
		}
		next.ServeHTTP(w, req)
	})
	url := "https://shop.sandbox.test/item/79"
	lost := r.submit(store.KindExtract, url)
	await(t, "the look for the lost call", looking.began)
	other := r.submit(store.KindExtract, url)
	await(t, "the equal call", answering.began)
	r.exec(`UPDATE jobs SET state = 'accepted', vendor_job_id = $1, adopted = true, accepted_at = $2, next_poll_at = $2, lease_until = NULL
		WHERE batch_id = $3`, r.sandbox.Books().Jobs[0].ID, time.Now(), lost)
	looking.release()
	answering.release()
	r.wantBatch(r.ended(lost), 1, 0, 0)
	r.wantBatch(r.ended(other), 1, 0, 0)
	if got := r.vendorJobs(url); got != 2 {
		t.Errorf("the vendor made %d jobs, want one for each submission", got)
	}
	r.balanced(lost, other)
}
