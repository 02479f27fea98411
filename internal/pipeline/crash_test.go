package pipeline_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// patient makes the vendor deliver again and again, as a killed process needs.
func patient(c *sandbox.Config) {
	c.RetryGaps = slices.Repeat([]time.Duration{300 * time.Millisecond}, 40)
}

// onlyJob is the job of a batch that has one.
func (r *rig) onlyJob(batch int64) int64 {
	r.t.Helper()
	return r.number(`SELECT min(id) FROM jobs WHERE batch_id = $1`, batch)
}

// takeOver kills the worker and lets the rig's own pipeline carry on.
func (r *rig) takeOver(w *worker, b *barrier) {
	r.t.Helper()
	w.kill()
	b.lift()
	// The killed process's statements end once they notice; only then is the
	// database as the crash left it.
	eventually(r.t, "the dead worker's connections to go", func() bool {
		return r.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND state IN ('active', 'idle in transaction') AND pid <> pg_backend_pid()`) == 0 && b.waiting() == 0
	})
	r.age()
	r.receiver.worker.Store(nil)
	if err := r.pipe.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// TestCrashAroundEachCommitOfReceiveAndDispatch kills a process with -9 while
// one job stands before and one after each commit of dispatch and receive.
func TestCrashAroundEachCommitOfReceiveAndDispatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, sandbox: patient})
	if _, err := r.pipe.RegisterWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := func(name string) string { return "https://shop.sandbox.test/item/" + name }
	names := []string{"claiming", "never-sent", "answer-lost", "recording", "recorded", "unanswered"}
	batches, jobs := map[string]int64{}, map[string]int64{}
	for _, n := range names {
		batches[n] = r.submit(store.KindExtract, url(n))
		jobs[n] = r.onlyJob(batches[n])
	}
	batches["receiving"] = r.submit(store.KindBatch, url("receiving"), url("receiving-2"))
	b := r.newBarrier(map[string]string{
		"claiming":   fmt.Sprintf(`BEFORE UPDATE ON jobs FOR EACH ROW WHEN (NEW.id = %d AND NEW.state = 'calling')`, jobs["claiming"]),
		"recording":  fmt.Sprintf(`BEFORE UPDATE ON jobs FOR EACH ROW WHEN (NEW.id = %d AND NEW.state = 'accepted')`, jobs["recording"]),
		"recorded":   fmt.Sprintf(`BEFORE UPDATE ON river_job FOR EACH ROW WHEN (NEW.kind = 'dispatch' AND NEW.state = 'completed' AND (NEW.args->>'job_id')::bigint = %d)`, jobs["recorded"]),
		"receiving":  `BEFORE INSERT ON deliveries FOR EACH ROW WHEN (NEW.event_type = 'batch_completed')`,
		"unanswered": `BEFORE UPDATE ON webhooks FOR EACH ROW WHEN (NEW.event_type = 'extract_completed')`,
	})
	sent, answered := newOnce(), newOnce()
	t.Cleanup(sent.release)
	t.Cleanup(answered.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		body := peek(req)
		switch {
		case isSubmit(req) && strings.Contains(body, "never-sent") && sent.hold():
			panic(http.ErrAbortHandler)
		case isSubmit(req) && strings.Contains(body, "answer-lost") && !answered.taken.Load():
			next.ServeHTTP(httptest.NewRecorder(), req)
			answered.hold()
			panic(http.ErrAbortHandler)
		default:
			next.ServeHTTP(w, req)
		}
	})
	w := r.startWorker()
	r.receiver.worker.Store(w)
	await(t, "the call that is never sent", sent.began)
	await(t, "the call whose answer is lost", answered.began)
	eventually(t, "five statements at the barrier", func() bool { return b.waiting() == 5 })
	// Answers that share a commit with the one at the barrier are recorded alone after a moment.
	eventually(t, "the other answers to be recorded", func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE state IN ('accepted', 'settled') AND (id IN ($1, $2) OR kind = 'batch')`,
			jobs["recorded"], jobs["unanswered"]) == 3
	})
	r.takeOver(w, b)
	sent.release()
	answered.release()
	for name, id := range batches {
		if got := r.ended(id); got.Stored() != got.Accepted {
			t.Errorf("%s: got %d of %d stored\n%s", name, got.Stored(), got.Accepted, r.describe(id))
		}
		r.balanced(id)
	}
	for _, n := range append(names, "receiving") {
		if got := r.vendorJobs(url(n)); got != 1 {
			t.Errorf("%s: the vendor made %d jobs for it, want 1", n, got)
		}
	}
	if got := r.number(`SELECT count(*) FROM jobs WHERE adopted`); got != 2 {
		t.Errorf("got %d adopted jobs, want 2: the lost answer and the one not recorded", got)
	}
	// Its statement may outlive the process and commit; the vendor sends it again either way.
	eventually(t, "the delivery whose commit hung to be taken up once", func() bool {
		return r.number(`SELECT count(*) FROM deliveries WHERE event_type = 'batch_completed' AND verdict = 'accepted'`) == 1
	})
	eventually(t, "the delivery that was not answered to come again", func() bool {
		return r.number(`SELECT count(*) FROM deliveries WHERE event_type = 'extract_completed' AND verdict = 'duplicate'`) > 0
	})
}

// TestCrashAroundEachCommitOfSettle kills a process with -9 before and after
// the commits that settle makes: a page of results, and the close.
func TestCrashAroundEachCommitOfSettle(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, sandbox: patient, pipeline: func(c *pipeline.Config) { c.URLsPerJob = 100 }})
	if _, err := r.pipe.RegisterWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	urls := func(seed uint64) []string { return sandbox.MadeURLs(60, seed) }
	flaky := "https://shop.sandbox.test/fail-retryable/1?closed"
	batches := map[string]int64{
		"page written": r.submit(store.KindBatch, urls(11)...), "page committed": r.submit(store.KindBatch, urls(22)...),
		"closing": r.submit(store.KindBatch, urls(33)...), "closed": r.submit(store.KindBatch, append(urls(44)[:5], flaky)...),
	}
	b := r.newBarrier(map[string]string{
		"page":    fmt.Sprintf(`BEFORE INSERT ON results FOR EACH ROW WHEN (NEW.job_id = %d)`, r.onlyJob(batches["page written"])),
		"closing": fmt.Sprintf(`BEFORE UPDATE ON jobs FOR EACH ROW WHEN (NEW.id = %d AND NEW.state = 'settled')`, r.onlyJob(batches["closing"])),
		"retry":   `BEFORE UPDATE ON jobs FOR EACH ROW WHEN (NEW.state = 'calling' AND NEW.origin = 'retry')`,
	})
	second := newOnce()
	t.Cleanup(second.release)
	target := r.onlyJob(batches["page committed"])
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isJob(req) && req.URL.Query().Get("page") == "2" && strings.HasSuffix(req.URL.Path, "/"+r.text(`SELECT vendor_job_id FROM jobs WHERE id = $1`, target)) {
			second.hold()
		}
		next.ServeHTTP(w, req)
	})
	w := r.startWorker()
	r.receiver.worker.Store(w)
	await(t, "the second page to be asked for", second.began)
	eventually(t, "the closed job", func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND state = 'settled'`, batches["closed"]) == 1
	})
	eventually(t, "two statements at the barrier", func() bool { return b.waiting() >= 2 })
	if got := r.number(`SELECT count(*) FROM results r JOIN items i ON i.id = r.item_id WHERE i.batch_id = $1`, batches["page committed"]); got != 50 {
		t.Errorf("got %d results of the committed page, want 50", got)
	}
	r.takeOver(w, b)
	second.release()
	for name, id := range batches {
		if got := r.ended(id); got.Stored() != got.Accepted {
			t.Errorf("%s: got %d of %d stored\n%s", name, got.Stored(), got.Accepted, r.describe(id))
		}
		r.balanced(id)
		eventually(t, "every job of "+name+" to be settled", func() bool {
			return r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND state <> 'settled'`, id) == 0
		})
	}
	if got := r.vendorJobs(flaky); got != 2 {
		t.Errorf("the vendor made %d jobs for the URL that fails once, want 2", got)
	}
}
