package pipeline_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestLostAnswerIsAdopted: the vendor took the call and its answer was lost.
// The job is found and adopted, even by a vendor's clock that was put right
// right after; the vendor is not called again.
func TestLostAnswerIsAdopted(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]struct {
		kind  store.Kind
		jumps time.Duration
	}{
		"extract": {store.KindExtract, 0}, "batch": {store.KindBatch, 0},
		"extract, clock forward": {store.KindExtract, 10 * time.Minute}, "batch, clock back": {store.KindBatch, -10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := each.kind
			var ahead atomic.Int64
			r := newRig(t, setup{noWebhooks: each.jumps != 0, sandbox: func(c *sandbox.Config) {
				c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			}})
			var lost atomic.Bool
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if isSubmit(req) && !lost.Swap(true) {
					next.ServeHTTP(httptest.NewRecorder(), req)
					if ahead.Store(int64(each.jumps)); each.jumps != 0 {
						if _, err := r.pipe.Reconcile(req.Context(), "command"); err != nil { // Whose answers show the time.
							t.Error(err)
						}
					}
					panic(http.ErrAbortHandler)
				}
				next.ServeHTTP(w, req)
			})
			urls := sandbox.MadeURLs(7, 9)
			if kind == store.KindExtract {
				urls = urls[:1]
			}
			id := r.submit(kind, urls...)
			r.wantBatch(r.ended(id), int64(len(urls)), 0, 0)
			if got := r.vendorJobs(urls[0]); got != 1 {
				t.Errorf("the vendor made %d jobs, want 1", got)
			}
			if got := r.number(`SELECT count(*) FROM jobs WHERE adopted AND call_no = 1`); got != 1 {
				t.Errorf("got %d adopted jobs, want 1", got)
			}
			r.balanced(id)
		})
	}
}

// TestLostBatchThatShowsItsRowsLate: the vendor took the call, and its batch
// ended before all its rows could be read. That is no look in vain.
func TestLostBatchThatShowsItsRowsLate(t *testing.T) {
	t.Parallel()
	for name, shown := range map[string]int{"some rows": 2, "none": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.MissingGap = time.Minute }})
			var submits, looks atomic.Int64
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if isSubmit(req) && submits.Add(1) == 1 {
					next.ServeHTTP(httptest.NewRecorder(), req)
					panic(http.ErrAbortHandler)
				}
				rec := httptest.NewRecorder()
				next.ServeHTTP(rec, req)
				if batch := endedBatch(rec.Body.Bytes()); batch != nil && looks.Add(1) <= 2 {
					batch["results"] = batch["results"].([]any)[:shown]
					rec.Header().Del("Content-Length")
					rec.Body.Reset()
					if err := json.NewEncoder(rec.Body).Encode(batch); err != nil {
						t.Error(err)
					}
				}
				copyAnswer(w, rec)
			})
			id := r.submit(store.KindBatch, sandbox.MadeURLs(5, 9)...)
			r.wantBatch(r.ended(id), 5, 0, 0)
			if n := looks.Load(); n < 3 {
				t.Errorf("its rows were read %d times, want more than the two that lacked some", n)
			}
			if got := submits.Load(); got != 1 {
				t.Errorf("the vendor was called %d times, want once", got)
			}
			if got := r.number(`SELECT count(*) FROM jobs WHERE adopted AND call_no = 1`); got != 1 {
				t.Errorf("got %d adopted jobs, want 1", got)
			}
		})
	}
}

// endedBatch is an answer about a batch that ended, or nil.
func endedBatch(body []byte) map[string]any {
	var batch map[string]any
	if json.Unmarshal(body, &batch) != nil || batch["status"] != "completed" || batch["results"] == nil {
		return nil
	}
	return batch
}

// TestManyLostBatchesAreNotReadForEachOther: a batch that was read for one lost
// call is not read again for every other.
func TestManyLostBatchesAreNotReadForEachOther(t *testing.T) {
	t.Parallel()
	const jobs, perJob = 20, 5
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.URLsPerJob = perJob }})
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSubmit(req) {
			next.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
	})
	id := r.submit(store.KindBatch, sandbox.MadeURLs(jobs*perJob, 9)...)
	r.wantBatch(r.ended(id), jobs*perJob, 0, 0)
	// Each is read once for whoever looked first, once for its own call and once
	// or twice when it is settled; each for all others would be a hundred and more.
	if n := r.sandbox.Books().Calls["batch.status"].Total; n > 5*jobs {
		t.Errorf("%d status calls for %d lost batches", n, jobs)
	}
	r.balanced(id)
}

// TestLostRequestIsCalledAgain: the call never reached the vendor. Only after
// two looks that find nothing, a gap apart, is it made again.
func TestLostRequestIsCalledAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []store.Kind{store.KindExtract, store.KindBatch} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{})
			var lost atomic.Bool
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if isSubmit(req) && !lost.Swap(true) {
					panic(http.ErrAbortHandler)
				}
				next.ServeHTTP(w, req)
			})
			urls := sandbox.MadeURLs(3, 10)
			if kind == store.KindExtract {
				urls = urls[:1]
			}
			id := r.submit(kind, urls...)
			r.wantBatch(r.ended(id), int64(len(urls)), 0, 0)
			if got := r.vendorJobs(urls[0]); got != 1 {
				t.Errorf("the vendor made %d jobs, want 1", got)
			}
			if got := r.number(`SELECT call_no FROM jobs`); got != 2 {
				t.Errorf("got %d calls, want 2", got)
			}
			gap := r.number(`SELECT (extract(epoch FROM max(at) FILTER (WHERE kind = 'not_found_at_vendor')
				- max(at) FILTER (WHERE kind = 'uncertain')) * 1000)::bigint FROM job_events`)
			if gap < 200 {
				t.Errorf("called again %d ms after the lost call, want at least the gap of 200", gap)
			}
			if got := r.sandbox.Books().Calls[string(kind)+".list"].Total; got < 2 {
				t.Errorf("got %d looks at the list, want 2", got)
			}
			r.balanced(id)
		})
	}
}

// TestAdoptTakesNoJobOfACallUnderWay: while a lost call is looked for, an
// equal call is made. Its job appears in the list and is not the lost one's.
func TestAdoptTakesNoJobOfACallUnderWay(t *testing.T) {
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
	url := "https://shop.sandbox.test/item/78"
	lost := r.submit(store.KindExtract, url)
	await(t, "the look for the lost call", looking.began)
	other := r.submit(store.KindExtract, url)
	await(t, "the equal call", answering.began)
	looking.release()
	eventually(t, "the look to end", func() bool {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'adopt' AND (state = 'completed' OR metadata ? 'snoozes')`) > 0 ||
			r.number(`SELECT count(*) FROM jobs WHERE adopted`) > 0
	})
	answering.release()
	r.wantBatch(r.ended(other), 1, 0, 0)
	r.wantBatch(r.ended(lost), 1, 0, 0)
	if got := r.vendorJobs(url); got != 2 {
		t.Errorf("the vendor made %d jobs, want 2", got)
	}
	if got := r.number(`SELECT count(*) FROM jobs WHERE adopted`); got != 0 {
		t.Errorf("got %d adopted jobs, want none", got)
	}
}

// TestALostCallIsNotTakenForAChild: the vendor lists a crawl's pages as jobs of
// their own, and a page that is fetched again by itself looks like the crawl's.
func TestALostCallIsNotTakenForAChild(t *testing.T) {
	t.Parallel()
	var later atomic.Int64 // By how much the vendor's clock has moved on.
	r := newRig(t, setup{sandbox: func(c *sandbox.Config) {
		c.Switches.ChildrenListed = true
		c.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	}})
	url := sandbox.MadeURLs(1, 9)[0]
	r.wantBatch(r.ended(r.submit(store.KindBatch, url, sandbox.MadeURLs(2, 9)[1])), 2, 0, 0)
	later.Store(int64(20 * time.Second))                                // Retries come no sooner; dates are good to a second.
	if _, err := r.pipe.Reconcile(t.Context(), "command"); err != nil { // Whose answers show the time.
		t.Fatal(err)
	}
	var lost atomic.Bool
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSubmit(req) && !lost.Swap(true) {
			next.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
	})
	id := r.submit(store.KindExtract, url)
	r.wantBatch(r.ended(id), 1, 0, 0)
	adopted, ours := r.text(`SELECT vendor_job_id FROM jobs WHERE batch_id = $1`, id), ""
	books := r.sandbox.Books()
	for i := range books.Jobs {
		if books.Jobs[i].Kind == "extract" {
			ours = books.Jobs[i].ID
		}
	}
	if adopted != ours {
		t.Errorf("job %s was adopted, and the call made %s", adopted, ours)
	}
}

// TestLostAnswerIsAdoptedAfterAJump: the vendor's clock had jumped before the
// call, which nobody knew yet, and has been put right since. What another answer
// told meanwhile is known to a process that was not there.
func TestLostAnswerIsAdoptedAfterAJump(t *testing.T) {
	t.Parallel()
	for name, jumps := range map[string]time.Duration{"forward": 10 * time.Minute, "back": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64
			r := newRig(t, setup{stopped: true, noWebhooks: true, sandbox: func(c *sandbox.Config) {
				c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			}})
			look := func(p *pipeline.Pipeline) {
				t.Helper()
				if _, err := p.Reconcile(t.Context(), "command"); err != nil { // Whose answers show the time.
					t.Fatal(err)
				}
			}
			url := sandbox.MadeURLs(1, 9)[0]
			id := r.submit(store.KindExtract, url)
			other := r.newPipeline(setup{noWebhooks: true})
			look(other)
			var lost atomic.Bool
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if !isSubmit(req) || lost.Load() {
					next.ServeHTTP(w, req)
					return
				}
				ahead.Store(int64(jumps))
				next.ServeHTTP(httptest.NewRecorder(), req)
				look(other)
				ahead.Store(0)
				lost.Store(true)
				panic(http.ErrAbortHandler)
			})
			if err := r.pipe.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.wantBatch(r.ended(id), 1, 0, 0)
			if got := r.vendorJobs(url); got != 1 {
				t.Errorf("the vendor made %d jobs, want 1", got)
			}
		})
	}
}
