package pipeline_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// deaf switches every net off but webhooks.
func deaf(c *pipeline.Config) { c.NoPoll, c.NoReconcile = true, true }

// accepted waits until the batch's only job has its vendor id.
func (r *rig) accepted(batch int64) int64 {
	r.t.Helper()
	id := r.onlyJob(batch)
	eventually(r.t, "the vendor's id", func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE id = $1 AND vendor_job_id IS NOT NULL`, id) == 1
	})
	return id
}

// TestLostWakeUp: the webhook lands while settle is fetching a state that is
// not the last. No poll asks again, so settle itself must.
func TestLostWakeUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: deaf})
	fetching := newOnce()
	t.Cleanup(fetching.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isJob(req) || fetching.taken.Load() {
			next.ServeHTTP(w, req)
			return
		}
		fetching.hold()
		answerProcessing(w, req)
	})
	deliver := r.holdDeliveries()
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	job := r.accepted(id)
	if err := r.pipe.SettleNow(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	await(t, "settle to fetch", fetching.began)
	deliver()
	eventually(t, "the webhook", func() bool { return r.number(`SELECT count(*) FROM deliveries`) == 1 })
	fetching.release()
	b := r.ended(id)
	if b.StoredWebhook != 1 {
		t.Errorf("got %+v, want one stored by webhook", b)
	}
	if got := r.sandbox.Books().Calls["extract.status"].Total; got != 1 {
		t.Errorf("got %d reads after the stale one, want the one that the wake asked for", got)
	}
}

// copyAnswer passes on what was recorded.
func copyAnswer(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// TestWakeBetweenSettlesCloseAndTheTasksEnd: while settle closes a look at a
// job that still runs, its webhook comes. The task that is just ending must
// not swallow the one that the webhook asks for.
func TestWakeBetweenSettlesCloseAndTheTasksEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: deaf})
	b := r.newBarrier(map[string]string{
		"ending": `BEFORE UPDATE ON river_job FOR EACH ROW WHEN (NEW.kind = 'settle' AND NEW.state = 'completed')`,
	})
	finish := r.unfinished()
	deliver := r.holdDeliveries()
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	job := r.accepted(id)
	if err := r.pipe.SettleNow(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	eventually(t, "settle to end its task", func() bool { return b.waiting() > 0 })
	finish()
	deliver()
	eventually(t, "the webhook to be taken up or to wait for the job's row", func() bool {
		return r.number(`SELECT count(*) FROM deliveries`) > 0 ||
			r.number(`SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype IN ('transactionid', 'tuple')`) > 0
	})
	b.lift()
	if got := r.ended(id); got.StoredWebhook != 1 {
		t.Errorf("got %+v, want one stored by webhook", got)
	}
}

// TestDuplicateOfAnUnsettledJobWakesIt: the first delivery's settle could not
// read the job; the vendor's second delivery must bring it home. One that
// comes after that changes nothing.
func TestDuplicateOfAnUnsettledJobWakesIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: deaf})
	var broken atomic.Bool
	broken.Store(true)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isJob(req) && broken.Load() {
			answerJSON(w, http.StatusServiceUnavailable, refusal("UNAVAILABLE", true), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	var first atomic.Pointer[http.Request]
	r.receiver.swallow(func(req *http.Request, body []byte) bool {
		again := req.Clone(req.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		first.CompareAndSwap(nil, again)
		return true
	})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	job := r.accepted(id)
	eventually(t, "the look that fails", func() bool {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'settle' AND state = 'completed'`) == 1
	})
	broken.Store(false)
	if b, err := r.store.Batch(t.Context(), id); err != nil || b.Outstanding != 1 {
		t.Fatalf("got %+v, %v, want it outstanding", b, err)
	}
	r.redeliver(first.Load())
	if b := r.ended(id); b.StoredWebhook != 1 {
		t.Errorf("got %+v, want one stored by webhook", b)
	}
	eventually(t, "the job to be settled", func() bool { return r.text(`SELECT state FROM jobs WHERE id = $1`, job) == "settled" })
	seq := r.number(`SELECT wake_seq FROM jobs WHERE id = $1`, job)
	r.redeliver(first.Load())
	if got := r.number(`SELECT wake_seq FROM jobs WHERE id = $1`, job); got != seq {
		t.Errorf("a duplicate of a settled job woke it: wake %d, was %d", got, seq)
	}
	if got := r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'duplicate'`); got != 2 {
		t.Errorf("got %d duplicates, want 2", got)
	}
	r.balanced(id)
}

// redeliver sends a captured delivery once more and wants a 2xx.
func (r *rig) redeliver(old *http.Request) {
	r.t.Helper()
	body := peek(old)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.hooks.URL+old.URL.Path, bytes.NewReader([]byte(body)))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header = old.Header.Clone()
	resp, err := r.hooks.Client().Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		r.t.Errorf("got %d, want 200", resp.StatusCode)
	}
}

// TestWebhookBeforeThe202: the delivery is committed before the vendor's
// answer arrives, so the event is held and dispatch must claim it.
func TestWebhookBeforeThe202(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: deaf})
	answering := newOnce()
	t.Cleanup(answering.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isSubmit(req) {
			next.ServeHTTP(w, req)
			return
		}
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, req)
		answering.hold()
		copyAnswer(w, rec)
	})
	id := r.submit(store.KindBatch, sandbox.MadeURLs(3, 5)...)
	await(t, "the submit", answering.began)
	eventually(t, "the held event", func() bool { return r.number(`SELECT count(*) FROM processed_events WHERE state = 'held'`) == 1 })
	answering.release()
	if b := r.ended(id); b.StoredWebhook != 3 {
		t.Errorf("got %+v, want three stored by webhook", b)
	}
	if got := r.text(`SELECT state FROM processed_events`); got != string(store.EventClaimed) {
		t.Errorf("the event is %s, want claimed", got)
	}
	r.balanced(id)
}

// TestWebhookBeforeThe202WithStaleReads: under the vendor's own fault half of
// the jobs also read as running for a while after their webhook.
func TestWebhookBeforeThe202WithStaleReads(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sandbox: func(c *sandbox.Config) { c.Faults = sandbox.Faults{sandbox.FaultEarly: 1} }})
	id := r.submit(store.KindMixed, sandbox.MadeURLs(40, 6)...)
	b := r.ended(id)
	r.wantBatch(b, 40, 0, 0)
	r.balanced(id)
	if got := r.number(`SELECT count(*) FROM processed_events WHERE state <> 'claimed'`); got != 0 {
		t.Errorf("%d events were not claimed", got)
	}
}

// TestHeldEventBecomesForeign: nobody's event is given up after a while, but
// not while a call of ours is in doubt.
func TestHeldEventBecomesForeign(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true, pipeline: func(c *pipeline.Config) { c.HeldFor = time.Minute }})
	r.exec(`INSERT INTO processed_events (vendor_job_id, event_type, received_at, state)
		VALUES ('theirs', 'extract_completed', $1, 'held'), ('too-new', 'extract_completed', $2, 'held')`,
		time.Now().Add(-2*time.Minute), time.Now())
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	sweep := func() {
		t.Helper()
		if err := r.pipe.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	foreign := func() int64 { return r.number(`SELECT count(*) FROM processed_events WHERE state = 'foreign'`) }
	r.exec(`UPDATE jobs SET state = 'uncertain', call_no = 1, lease_until = $2 WHERE batch_id = $1`, id, time.Now().Add(time.Hour))
	sweep()
	if got := foreign(); got != 0 {
		t.Errorf("got %d foreign events while a job is uncertain, want 0", got)
	}
	r.exec(`UPDATE jobs SET state = 'intended', lease_until = NULL WHERE batch_id = $1`, id)
	sweep()
	if got := foreign(); got != 1 {
		t.Errorf("got %d foreign events, want 1", got)
	}
	// Should the job turn up after all, the event is its own again.
	r.exec(`UPDATE jobs SET state = 'accepted', vendor_job_id = 'theirs', accepted_at = now() WHERE batch_id = $1`, id)
	in := r.ownWebhook("extract_completed", "theirs")
	if err := r.pipe.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := r.pipe.Receive(t.Context(), in); a.Status != http.StatusOK || a.Verdict != store.VerdictDuplicate {
		t.Errorf("got %+v, want a duplicate", a)
	}
	if got := r.text(`SELECT state FROM processed_events WHERE vendor_job_id = 'theirs'`); got != string(store.EventClaimed) {
		t.Errorf("the event is %s, want claimed", got)
	}
}
