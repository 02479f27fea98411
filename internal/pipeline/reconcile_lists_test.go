package pipeline_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestReconcileKnowsItsOwnCallsUnderWay: a job that the vendor lists and whose
// id is not written down yet is not taken for somebody else's; nor is one that
// was made just now.
func TestReconcileKnowsItsOwnCallsUnderWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: reconcileAlone})
	answer := newOnce()
	t.Cleanup(answer.release)
	var fresh atomic.Bool
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case isSubmit(req):
			next.ServeHTTP(heldAnswer{w, answer}, req)
		case req.URL.Path == "/v1/extract/jobs":
			rewrite(w, req, next, "", func(_ int, body map[string]any) { body["jobs"] = amongOthers(body["jobs"], fresh.Load()) })
		default:
			next.ServeHTTP(w, req)
		}
	})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	await(t, "the vendor to take the call", answer.began)
	if run := r.reconcile(); run.Listed != 2 || run.ForeignJobs != 1 || run.Woken != 0 {
		t.Errorf("got %+v, want our call's job listed and only the other one foreign", run)
	}
	answer.release()
	r.endedThere(1)
	fresh.Store(true)
	patient := r.newPipeline(setup{pipeline: func(c *pipeline.Config) { c.ReconcileOlderThan = time.Minute }})
	run, err := patient.Reconcile(t.Context(), "person")
	if err != nil {
		t.Fatal(err)
	}
	if run.Listed != 3 || run.ForeignJobs != 1 {
		t.Errorf("got %+v, want the job of just now left out", run)
	}
	if run := r.reconcile(); run.Listed != 3 || run.ForeignJobs != 1 {
		t.Errorf("got %+v, want our job known once its answer is written down", run)
	}
	r.wantBatch(r.ended(id), 1, 0, 0)
}

// amongOthers puts other people's jobs among those that the vendor lists, which
// are shown as ten seconds old: an old one, and one of just now.
func amongOthers(listed any, fresh bool) []any {
	rows := listedBefore(listed, 10*time.Second)
	old := listedJob("theirs-old", "completed")
	old["created_at"] = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	rows = append(rows, old)
	if fresh {
		rows = append(rows, listedJob("theirs-fresh", "completed"))
	}
	return rows
}

// heldAnswer keeps the answer to a call that the vendor has taken.
type heldAnswer struct {
	http.ResponseWriter
	until *once
}

func (h heldAnswer) WriteHeader(status int) {
	h.until.hold()
	h.ResponseWriter.WriteHeader(status)
}
