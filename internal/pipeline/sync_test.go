package pipeline_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// try asks for one URL now and waits for what becomes of it.
func (r *rig) try(url string) (*store.Batch, *store.Item) {
	r.t.Helper()
	got, err := r.pipe.TryNow(r.t.Context(), pipeline.Submission{Text: url, Options: pipeline.Options{Formats: []string{"markdown", "html"}}})
	if err != nil {
		r.t.Fatal(err)
	}
	b := r.ended(got.BatchID)
	item, err := r.store.Item(r.t.Context(), got.ItemID)
	if err != nil {
		r.t.Fatal(err)
	}
	return b, item
}

func isSync(req *http.Request) bool {
	return req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/v1/extract")
}

func TestTryNowStoresTheAnswerUnderNetSync(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	b, _ := r.try(sandbox.MadeURLs(1, 1)[0])
	r.wantBatch(b, 1, 0, 0)
	if b.StoredSync != 1 || b.Charged != 1 {
		t.Errorf("%d stored by sync and %d charged, want one of each", b.StoredSync, b.Charged)
	}
	r.balanced(b.ID)
}

func TestALostSyncAnswerIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	var calls atomic.Int32
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSync(req) && calls.Add(1) == 1 {
			next.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
	})
	b, item := r.try(sandbox.MadeURLs(1, 1)[0])
	r.wantBatch(b, 0, 1, 0)
	if item.ErrorCode != "SYNC_LOST" || calls.Load() != 1 {
		t.Errorf("the item failed with %s after %d calls, want SYNC_LOST after one", item.ErrorCode, calls.Load())
	}
	// A person may have it fetched as an async job: the same item, answered once.
	if _, err := r.pipe.Resubmit(t.Context(), []int64{item.ID}, store.AsPlanned{}); err != nil {
		t.Fatal(err)
	}
	r.wantBatch(r.ended(b.ID), 1, 0, 0)
	r.balanced(b.ID)
}

// TestASyncCallThatTakesTooLongIsLost: the vendor stops waiting before the page is there, and charges it all the same.
func TestASyncCallThatTakesTooLongIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sandbox: func(c *sandbox.Config) { c.SyncTimeout = 50 * time.Millisecond }})
	b, item := r.try("https://news.sandbox.test/slow/8m")
	r.wantBatch(b, 0, 1, 0)
	if item.ErrorCode != "SYNC_LOST" {
		t.Errorf("the item failed with %s, want SYNC_LOST", item.ErrorCode)
	}
}

func TestASyncCallThatTheVendorRefusesSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sandbox: func(c *sandbox.Config) { c.Faults = sandbox.Faults{sandbox.FaultItemFail: 1} }})
	b, item := r.try(sandbox.MadeURLs(1, 1)[0])
	r.wantBatch(b, 0, 1, 0)
	if item.ErrorCode == "" || item.ErrorCode == "SYNC_LOST" || b.Charged != 0 {
		t.Errorf("the item failed with %q and %d charged, want the vendor's code and nothing", item.ErrorCode, b.Charged)
	}
}

func TestAThrottledSyncCallIsMadeWhenTheGateOpens(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	var calls atomic.Int32
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSync(req) && calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			answerJSON(w, http.StatusTooManyRequests, refusal("RATE_LIMITED", true), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	b, _ := r.try(sandbox.MadeURLs(1, 1)[0])
	r.wantBatch(b, 1, 0, 0)
	r.balanced(b.ID)
}

func TestASyncCallWhoseProcessDiedIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	got, err := r.pipe.TryNow(t.Context(), pipeline.Submission{Text: sandbox.MadeURLs(1, 1)[0]})
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`UPDATE sync_calls SET called_at = created_at, lease_until = created_at - interval '1 second'`)
	r.start(setup{noWebhooks: true})
	r.wantBatch(r.ended(got.BatchID), 0, 1, 0)
	if code := r.text(`SELECT error_code FROM items WHERE id = $1`, got.ItemID); code != "SYNC_LOST" {
		t.Errorf("the item failed with %s, want SYNC_LOST", code)
	}
	if n := r.sandbox.Books().Calls["extract.sync"].Total; n != 0 {
		t.Errorf("the vendor was asked %d times by who found the claim", n)
	}
}

// TestASyncAnswerAfterAJobsCountsAsChargedTwice: a call that was taken for lost
// is answered after all, when a person has had the page fetched by a job.
func TestASyncAnswerAfterAJobsCountsAsChargedTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	asked := newOnce()
	t.Cleanup(asked.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSync(req) && !asked.taken.Load() {
			asked.hold()
		}
		next.ServeHTTP(w, req)
	})
	got, err := r.pipe.TryNow(t.Context(), pipeline.Submission{Text: sandbox.MadeURLs(1, 1)[0]})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the call", asked.began)
	r.exec(`UPDATE items SET state = 'failed', error_code = 'SYNC_LOST', ended_at = created_at WHERE id = $1`, got.ItemID)
	r.exec(`UPDATE batches SET failed = 1 WHERE id = $1`, got.BatchID)
	if _, err := r.pipe.Resubmit(t.Context(), []int64{got.ItemID}, store.AsPlanned{}); err != nil {
		t.Fatal(err)
	}
	r.wantBatch(r.ended(got.BatchID), 1, 0, 0)
	asked.release()
	b := r.batch(got.BatchID, func(b *store.Batch) bool { return b.Charged == 2 })
	if b.ChargedTwice != 1 || b.StoredSync != 0 {
		t.Errorf("got %d charged twice and %d stored by sync, want 1, 0", b.ChargedTwice, b.StoredSync)
	}
	r.balanced(b.ID)
}

func TestReconcileFindsASyncCallWithoutATask(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	got, err := r.pipe.TryNow(t.Context(), pipeline.Submission{Text: sandbox.MadeURLs(1, 1)[0]})
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`DELETE FROM river_job WHERE kind = 'sync'`)
	r.exec(`UPDATE sync_calls SET created_at = created_at - interval '1 hour'`)
	r.start(setup{noWebhooks: true})
	if _, err := r.pipe.Reconcile(t.Context(), "command"); err != nil {
		t.Fatal(err)
	}
	r.wantBatch(r.ended(got.BatchID), 1, 0, 0)
}
