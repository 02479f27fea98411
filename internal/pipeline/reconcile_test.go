package pipeline_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// reconcileAlone leaves the reconciler as the only net.
func reconcileAlone(c *pipeline.Config) { c.NoPoll, c.VendorConcurrency = true, 16 }

// reconcile runs the reconciler once and wants no error counted.
func (r *rig) reconcile() *store.ReconcileRun {
	r.t.Helper()
	run, err := r.pipe.Reconcile(r.t.Context(), "person")
	if err != nil {
		r.t.Fatal(err)
	}
	if run.Errors != 0 {
		r.t.Errorf("the run counted errors: %s", run.Note)
	}
	return run
}

// endedThere waits until the vendor has ended n jobs and all their ids are
// recorded here.
func (r *rig) endedThere(n int) {
	r.t.Helper()
	eventually(r.t, "the vendor to end the jobs", func() bool {
		books, ended := r.sandbox.Books(), 0
		for i := range books.Jobs {
			if !books.Jobs[i].EndedAt.IsZero() {
				ended++
			}
		}
		return ended >= n && r.number(`SELECT count(*) FROM jobs WHERE state IN ('intended', 'calling', 'uncertain')`) == 0
	})
}

// settledElsewhere makes n jobs that ended at the vendor and are settled here.
func (r *rig) settledElsewhere(n int) {
	r.t.Helper()
	for i := range n {
		body := fmt.Sprintf(`{"url":"https://shop.sandbox.test/plain/%d","processing_mode":"async","formats":["markdown"]}`, i)
		req := httptest.NewRequest(http.MethodPost, "/v1/extract", strings.NewReader(body))
		req.Header.Set("X-Api-Key", sandbox.DefaultAPIKey)
		rec := httptest.NewRecorder()
		r.sandbox.Handler().ServeHTTP(rec, req)
		if rec.Code != http.StatusAccepted {
			r.t.Fatalf("got %d: %s", rec.Code, rec.Body)
		}
	}
	books := r.sandbox.Books()
	ids := make([]string, len(books.Jobs))
	for i := range books.Jobs {
		ids[i] = books.Jobs[i].ID
	}
	batch := r.number(`INSERT INTO batches (name, kind, options, created_at) VALUES ('past', 'extract', '{}', $1) RETURNING id`, time.Now())
	r.exec(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id, account, accepted_at, ended_at)
		SELECT $1, 'extract', 'settled', 'submit', '\x00', 1, $2, id, 'test', $2, $2 FROM unnest($3::text[]) AS id`, batch, time.Now(), ids)
}

// calls is how many calls the vendor got, of all kinds but one: what is left of
// the account is asked for at each full quarter of an hour.
func (r *rig) calls() int {
	n := 0
	for kind, c := range r.sandbox.Books().Calls {
		if kind != "usage" {
			n += c.Total
		}
	}
	return n
}

// TestReconcileAmongThousands: 100 jobs whose ends nobody told of are found
// among 2,000 settled ones in two readings of the list and one call each.
// `rollcall bench reconcile` has 20,000, and says how long it took.
func TestReconcileAmongThousands(t *testing.T) {
	t.Parallel()
	newRig(t, setup{noWebhooks: true, pipeline: reconcileAlone, sandbox: atOnce}).finds(2000, 100, 0)
}

// TestReconcileReadsWebhooksToo: with three webhooks, whose events were all
// lost, a run also reads their list and, of each, the delivery log, once; one
// that holds more than a page takes more.
func TestReconcileReadsWebhooksToo(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: reconcileAlone, sandbox: atOnce})
	r.finds(300, 50, 1+3)
	if got := r.number(`SELECT count(*) FROM webhooks WHERE state = 'live' AND checked_at IS NOT NULL`); got != 3 {
		t.Errorf("%d webhooks were looked at, want 3", got)
	}
}

// atOnce is a vendor that needs no time for a page, and loses every delivery.
func atOnce(c *sandbox.Config) {
	c.RunTime, c.Parallelism, c.Faults = time.Microsecond, 64, sandbox.Faults{sandbox.FaultDrop: 1}
}

// finds wants a run to find the missing jobs among those settled, in no more
// calls than two readings of the lists, one for each of them, and those beside;
// with any of those there are webhooks, made after what is settled.
func (r *rig) finds(settled, missing, beside int) {
	r.t.Helper()
	r.settledElsewhere(settled)
	if beside > 0 {
		if _, err := r.pipe.RegisterWebhooks(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
	id := r.submit(store.KindExtract, sandbox.MadeURLs(missing, 31)...)
	r.endedThere(settled + missing)
	before, began, heap := r.calls(), time.Now(), heapInUse()
	run := r.reconcile()
	r.t.Logf("run: %s, %d pages, heap in use %+d KiB", time.Since(began).Round(time.Millisecond), run.Pages, (heapInUse()-heap)/1024)
	if run.Missing != missing || run.Woken != missing || run.Singly != 0 || run.Listed != settled+missing || run.ForeignJobs != 0 {
		r.t.Errorf("got %+v, want %d missing and woken among %d listed", run, missing, settled+missing)
	}
	b := r.ended(id)
	if b.StoredReconcile != int64(missing) {
		r.t.Errorf("got %+v, want %d stored by reconcile", b, missing)
	}
	r.t.Logf("all stored after %s", time.Since(began).Round(time.Millisecond))
	// The lists: one of extract jobs, and a page each of batches and crawls.
	pages := (settled+missing+99)/100 + 2
	if got := r.calls() - before; got > 2*pages+missing+beside {
		r.t.Errorf("got %d calls, want at most 2 x %d + %d + %d", got, pages, missing, beside)
	}
	r.balanced(id)
}

// heapInUse is the heap after a collection, in bytes.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// hideJobs takes every job out of the vendor's lists.
func hideJobs(w http.ResponseWriter, req *http.Request, next http.Handler) {
	if !strings.HasSuffix(req.URL.Path, "/jobs") {
		next.ServeHTTP(w, req)
		return
	}
	rewrite(w, req, next, "", func(_ int, body map[string]any) { body["jobs"], body["page_count"] = []any{}, 0 })
}

// TestReconcileFindsRefusals: the vendor's delivery log shows that nobody took
// an event, whatever the lists show. Rows without a job, of a status that
// nobody has published or of other people's jobs are no harm.
func TestReconcileFindsRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) {
		reconcileAlone(c)
		c.ReconcileOlderThan = time.Millisecond
	}})
	r.receiver.swallow(func(*http.Request, []byte) bool { return false })
	ids := []int64{
		r.submit(store.KindExtract, "https://shop.sandbox.test/item/1"), r.submit(store.KindBatch, "https://shop.sandbox.test/item/2"),
	}
	r.endedThere(2)
	eventually(t, "the vendor to give up", func() bool { return r.sandbox.Books().Deliveries.Abandoned == 2 })
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !strings.HasSuffix(req.URL.Path, "/deliveries") {
			hideJobs(w, req, next)
			return
		}
		rewrite(w, req, next, "a status that nobody has published", func(_ int, body map[string]any) {
			rows, _ := body["items"].([]any)
			body["items"] = append([]any{oddDelivery("failed", nil), oddDelivery("parked", "theirs")}, rows...)
		})
	})
	// A run that looks at jobs singly too would find them in any case.
	r.exec(`UPDATE jobs SET accepted_at = accepted_at + interval '1 hour'`)
	run := r.reconcile()
	if run.Refused != 2 || run.Woken != 2 || run.Missing != 0 || run.Singly != 0 {
		t.Errorf("got %+v, want two refusals woken and nothing else", run)
	}
	for _, id := range ids {
		if b := r.ended(id); b.StoredReconcile != 1 {
			t.Errorf("got %+v, want one stored by reconcile", b)
		}
	}
	// Settled jobs are not asked about again, however long the log holds them.
	if run := r.reconcile(); run.Refused != 0 || run.Woken != 0 {
		t.Errorf("got %+v, want nothing woken the second time", run)
	}
	r.balanced(ids...)
}

// oddDelivery is a row of the delivery log.
func oddDelivery(status string, job any) map[string]any {
	return map[string]any{
		"id": "7f1c0f0e-0000-4000-8000-000000000001", "event_type": "extract_completed", "job_id": job, "attempt_number": 1,
		"status": status, "http_status": nil, "delivered_at": nil, "created_at": time.Now().UTC().Format(time.RFC3339),
	}
}

// TestReconcileTakesAnOverduePendingDeliveryForLost: a delivery that is still
// pending after the time in which jobs are left to the other nets.
func TestReconcileTakesAnOverduePendingDeliveryForLost(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{
		sandbox:  func(c *sandbox.Config) { c.DeliveryTimeout = time.Minute },
		pipeline: func(c *pipeline.Config) { reconcileAlone(c); c.Now, c.ReconcileOlderThan = clock.now, 2*time.Minute },
	})
	r.holdDeliveries()
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	r.endedThere(1)
	r.front.set(hideJobs)
	if run := r.reconcile(); run.Refused != 0 || run.Woken != 0 {
		t.Errorf("got %+v, want the young one left alone", run)
	}
	// Both clocks are ahead now: the vendor's is taken from its answers.
	clock.forward(10 * time.Minute)
	r.exec(`UPDATE jobs SET accepted_at = accepted_at + interval '1 hour'`)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		w.Header().Set("Date", clock.now().UTC().Format(http.TimeFormat))
		hideJobs(dated{w, clock}, req, next)
	})
	if run := r.reconcile(); run.Refused != 1 || run.Woken != 1 {
		t.Errorf("got %+v, want the overdue one woken", run)
	}
	r.wantBatch(r.ended(id), 1, 0, 0)
}

// dated answers with a clock's date, whatever the sandbox wrote.
type dated struct {
	http.ResponseWriter
	clock *shifted
}

func (d dated) WriteHeader(status int) {
	d.Header().Set("Date", d.clock.now().UTC().Format(http.TimeFormat))
	d.ResponseWriter.WriteHeader(status)
}

// TestReconcileClaimsHeldEvents: an event was held, its job is known by now,
// and no sweep has come.
func TestReconcileClaimsHeldEvents(t *testing.T) {
	t.Parallel()
	s := setup{noWebhooks: true, pipeline: reconcileAlone}
	r := newRig(t, s)
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	r.endedThere(1)
	if err := r.pipe.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.exec(`INSERT INTO processed_events (vendor_job_id, event_type, received_at, state)
		SELECT vendor_job_id, 'extract_completed', $1, 'held' FROM jobs`, time.Now())
	r.front.set(hideJobs)
	r.pipe = r.newPipeline(s)
	if run := r.reconcile(); run.Held != 1 {
		t.Errorf("got %+v, want one held event claimed", run)
	}
	r.start(s)
	r.wantBatch(r.ended(id), 1, 0, 0)
	if got := r.text(`SELECT state FROM processed_events`); got != "claimed" {
		t.Errorf("the event is %s, want claimed", got)
	}
}

// listOf serves a generated extract list of n rows, a hundred a page; grow, if
// any, is added to the rows, before the others, by each call.
func listOf(n int, grow func(i int) map[string]any, row func(i int) map[string]any) intercept {
	var calls atomic.Int64
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.URL.Path != "/v1/extract/jobs" {
			next.ServeHTTP(w, req)
			return
		}
		added := 0
		if grow != nil {
			added = int(calls.Add(1))
		}
		page, _ := strconv.Atoi(req.URL.Query().Get("page"))
		rows := []any{}
		for i := (page - 1) * 100; i < min(page*100, n+added); i++ {
			if i < added {
				rows = append(rows, grow(added-i))
			} else {
				rows = append(rows, row(i-added))
			}
		}
		answerJSON(w, http.StatusOK, map[string]any{
			"jobs": rows, "page": page, "page_size": 100, "page_count": (n + added + 99) / 100,
		}, "")
	}
}

// listedJob is a row of the extract list.
func listedJob(id, status string) map[string]any {
	return map[string]any{
		"job_id": id, "status": status, "url": "https://shop.sandbox.test/item/1",
		"created_at": time.Now().UTC().Format(time.RFC3339), "execution_time": nil, "output": []string{"markdown"},
	}
}

// TestReconcileOfAListThatShifts: rows come in at the front with every page
// that is read, so that the pages never agree. The run ends all the same and
// counts each job once.
func TestReconcileOfAListThatShifts(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true})
	id := r.submit(store.KindExtract, sandbox.MadeURLs(1, 33)...)
	r.exec(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id, account, accepted_at)
		SELECT $1, 'extract', 'accepted', 'submit', '\x00', 1, $2, 'ours-' || g, 'test', $2 FROM generate_series(0, 499) g`,
		id, time.Now().Add(-time.Hour))
	r.front.set(listOf(500,
		func(i int) map[string]any { return listedJob("theirs-"+strconv.Itoa(i), "completed") },
		func(i int) map[string]any { return listedJob("ours-"+strconv.Itoa(i), "completed") }))
	run := r.reconcile()
	if run.Missing != 500 || run.Woken != 500 || run.Singly != 0 {
		t.Errorf("got %+v, want 500 missing and woken", run)
	}
	if run.Pages > 3*6+2 {
		t.Errorf("got %d pages, want three readings of 6 and one page each of the other lists at most", run.Pages)
	}
	if got := r.number(`SELECT max(wake_seq) FROM jobs`); got != 1 {
		t.Errorf("a job was woken %d times, want once", got)
	}
}

// TestReconcileThoughTheClocksDiffer: the list is the first thing that a
// process asks the vendor, whose clock is ten minutes ahead.
func TestReconcileThoughTheClocksDiffer(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: reconcileAlone, sandbox: func(c *sandbox.Config) {
		c.Faults = sandbox.Faults{sandbox.FaultClockSkew: 1}
	}})
	id := r.submit(store.KindExtract, sandbox.MadeURLs(3, 34)...)
	r.endedThere(3)
	run, err := r.newPipeline(setup{}).Reconcile(t.Context(), "command")
	if err != nil {
		t.Fatal(err)
	}
	if run.Missing != 3 || run.Singly != 0 || run.Listed != 3 {
		t.Errorf("got %+v, want three found in the list", run)
	}
	r.wantBatch(r.ended(id), 3, 0, 0)
}
