package pipeline_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestInterleavingWrongNumberedBatch: results whose index and URL do not go
// together are written under neither.
func TestInterleavingWrongNumberedBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	r.front.set(results("", func(list []any) []any {
		a, b := list[0].(map[string]any), list[1].(map[string]any)
		a["url"], b["url"] = b["url"], a["url"]
		return list
	}))
	urls := sandbox.MadeURLs(5, 14)
	id := r.submit(store.KindBatch, urls...)
	r.wantBatch(r.ended(id), 3, 2, 0)
	for _, u := range urls[:2] {
		if got := r.code(id, u); got != "MISNUMBERED" {
			t.Errorf("%s: got %q, want MISNUMBERED", u, got)
		}
	}
	if got := r.number(`SELECT count(*) FROM jobs WHERE misnumbered`); got != 1 {
		t.Errorf("got %d flagged jobs, want 1", got)
	}
	if diff, _, err := r.store.RecountBatches(t.Context(), 0, 10); err != nil || len(diff) > 0 {
		t.Errorf("got %v, %v", diff, err)
	}
}

// TestInterleavingTwoSettlesAtOnce: a process slept over its look, as a
// laptop does, and another look brought the job home meanwhile. What the first
// still writes is no second charge.
func TestInterleavingTwoSettlesAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(deaf)})
	asleep := newOnce()
	t.Cleanup(asleep.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isJob(req) || asleep.taken.Load() {
			next.ServeHTTP(w, req)
			return
		}
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, req)
		asleep.hold()
		copyAnswer(w, rec)
	})
	r.exec(`CREATE TABLE turned (at timestamptz)`)
	r.exec(`CREATE FUNCTION turned() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO turned VALUES (now()); RETURN NULL; END $$`)
	r.exec(`CREATE TRIGGER turned AFTER UPDATE OF settle_page ON jobs FOR EACH STATEMENT EXECUTE FUNCTION turned()`)
	id := r.submit(store.KindBatch, "https://shop.sandbox.test/item/1", "https://shop.sandbox.test/item/2")
	job := r.accepted(id)
	eventually(t, "the end at the vendor", func() bool { return r.sandbox.Books().Jobs[0].Status == "completed" })
	if err := r.pipe.SettleNow(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	await(t, "the look that sleeps", asleep.began)
	r.exec(`UPDATE river_job SET state = 'available' WHERE kind = 'settle' AND state = 'running'`)
	r.wantBatch(r.ended(id), 2, 0, 0)
	asleep.release()
	eventually(t, "the look that slept to commit", func() bool { return r.number(`SELECT count(*) FROM turned`) == 2 })
	if got := r.text(`SELECT charged || ' ' || charged_twice FROM batches`); got != "2 0" {
		t.Errorf("got %q charged and charged twice, want 2 and 0", got)
	}
	if got := r.text(`SELECT charged || ' ' || superseded FROM jobs`); got != "2 false" {
		t.Errorf("got %q, want the job charged 2 and not superseded", got)
	}
	r.balanced(id)
}

// TestInterleavingSameURLInTwoBatchesWithALost202: of six equal calls, each of a
// batch of its own, three answers and three requests are lost. No two jobs share a vendor job, and none is refused.
func TestInterleavingSameURLInTwoBatchesWithALost202(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	var calls atomic.Int64
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		n := int64(7)
		if isSubmit(req) {
			n = calls.Add(1)
		}
		switch {
		case n <= 3:
			next.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		case n <= 6:
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
	})
	url := "https://shop.sandbox.test/item/77"
	var ids []int64
	for range 6 {
		ids = append(ids, r.submit(store.KindExtract, url))
	}
	for _, id := range ids {
		r.wantBatch(r.ended(id), 1, 0, 0)
	}
	if got := r.vendorJobs(url); got != 6 {
		t.Errorf("the vendor made %d jobs for six submissions, want 6", got)
	}
	if got := r.number(`SELECT count(DISTINCT vendor_job_id) FROM jobs`); got != 6 {
		t.Errorf("got %d vendor jobs recorded, want 6", got)
	}
	r.balanced(ids...)
}

// TestInterleavingResponseOverItsBound: answers over the bound are read in
// smaller pages until one item is left, which fails alone.
func TestInterleavingResponseOverItsBound(t *testing.T) {
	t.Parallel()
	for _, kind := range []store.Kind{store.KindBatch, store.KindExtract} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{client: maxResponse(512 << 10), pipeline: func(c *pipeline.Config) { c.URLsPerJob = 100 }})
			big := "https://shop.sandbox.test/huge/1mb"
			urls := sandbox.MadeURLs(60, 18)
			if kind == store.KindExtract {
				urls = urls[:3]
			}
			urls[2] = big
			id := r.submit(kind, urls...)
			r.wantBatch(r.ended(id), int64(len(urls)-1), 1, 0)
			if got := r.code(id, big); got != "TOO_LARGE" {
				t.Errorf("got %q, want TOO_LARGE", got)
			}
		})
	}
}

// TestInterleaving402InTheMiddleAndResume: the balance is used up after five of
// twelve calls. Nothing fails; when a person resumes, the rest is called for,
// each once, and at once: the next probe would come in an hour.
func TestInterleaving402InTheMiddleAndResume(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.ProbeEvery = time.Hour })})
	r.sandbox.SetBalance(5)
	id := r.submit(store.KindExtract, sandbox.MadeURLs(12, 42)...)
	b := r.batch(id, func(b *store.Batch) bool { return b.Stored() == 5 })
	eventually(t, "the calls to be put off", func() bool {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'dispatch' AND state = 'scheduled'`) == 7
	})
	if b.Failed != 0 || b.Outstanding != 7 {
		t.Errorf("got %+v, want seven outstanding and none failed", b)
	}
	r.sandbox.SetBalance(-1)
	if err := r.pipe.ResumeDispatch(t.Context()); err != nil {
		t.Fatal(err)
	}
	b = r.ended(id)
	r.wantBatch(b, 12, 0, 0)
	if n := len(r.sandbox.Books().Jobs); n != 12 || b.Charged != 12 {
		t.Errorf("the vendor made %d jobs and charged %d, want 12", n, b.Charged)
	}
	r.wantTrue(id)
}

// TestInterleavingAPIKeyChanged: with the key of another account the vendor
// knows none of the jobs under way. They are not failed for that, what is
// submitted now works, and with the old key they come home.
func TestInterleavingAPIKeyChanged(t *testing.T) {
	t.Parallel()
	const other = "other-key"
	patient := func(c *pipeline.Config) { c.Mode, c.ForgottenAfter = pipeline.ModePoll, 200*time.Millisecond }
	r := newRig(t, setup{
		noWebhooks: true, pipeline: silent(patient),
		sandbox: func(c *sandbox.Config) {
			c.APIKeys = map[string]string{sandbox.DefaultAPIKey: sandbox.DefaultAccount, other: "another account"}
		},
	})
	finish := r.unfinished()
	old := r.submit(store.KindExtract, sandbox.MadeURLs(3, 43)...)
	eventually(t, "the vendor's ids", func() bool { return r.number(`SELECT count(*) FROM jobs WHERE state = 'accepted'`) == 3 })
	become := func(s setup) {
		if err := r.pipe.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.pipe = r.newPipeline(s)
		r.start(s)
	}
	second := r.newClient(func(c *geonode.Config) { c.APIKey = other })
	t.Cleanup(second.Close)
	become(setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) {
		patient(c)
		c.Vendor, c.Account = second, "another"
	})})
	finish()
	fresh := r.submit(store.KindExtract, sandbox.MadeURLs(3, 44)...)
	r.wantBatch(r.ended(fresh), 3, 0, 0)
	eventually(t, "404s over the window for every old job", func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND not_found >= 5 AND not_found_at < $2`, old, time.Now().Add(-time.Second)) == 3
	})
	if b, err := r.store.Batch(t.Context(), old); err != nil || b.Outstanding != 3 {
		t.Errorf("got %+v, %v, want nothing failed", b, err)
	}
	become(setup{noWebhooks: true, pipeline: silent(patient)})
	r.wantBatch(r.ended(old), 3, 0, 0)
	r.wantTrue(old, fresh)
}
