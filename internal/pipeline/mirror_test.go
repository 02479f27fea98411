package pipeline_test

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestMirrorEndsAfterTwoPagesOfNothingNew, of a log whose newest rows come
// first: what is old has been read, but for what changed there; a full reading
// finds that, and one is due once a day.
func TestMirrorEndsAfterTwoPagesOfNothingNew(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: func(c *pipeline.Config) { c.Now = clock.now }})
	log := newLog(700, newestFirst)
	r.front.set(log.serve)
	w := r.hooked("log")
	if got := r.mirror(w, false); got != (pipeline.Mirrored{Pages: 7, Added: 700, NewestFirst: true, Whole: true}) {
		t.Errorf("the first time: got %+v", got)
	}
	wantPages(t, log, 1, 7)
	if got := r.mirror(w, false); got != (pipeline.Mirrored{Pages: 2, NewestFirst: true}) {
		t.Errorf("with nothing new: got %+v", got)
	}
	log.add(150)
	log.change(690, "status", "failed")
	log.pages()
	if got := r.mirror(w, false); got != (pipeline.Mirrored{Pages: 4, Added: 150, Changed: 1, NewestFirst: true}) {
		t.Errorf("with 150 new ones: got %+v", got)
	}
	wantPages(t, log, 1, 4)
	log.change(100, "status", "abandoned")
	if got := r.mirror(w, false); got.Changed != 0 {
		t.Errorf("a change far down: got %+v, want it not read", got)
	}
	if got := r.mirror(w, true); got != (pipeline.Mirrored{Pages: 9, Changed: 1, NewestFirst: true, Whole: true}) {
		t.Errorf("in full: got %+v", got)
	}
	log.change(100, "http_status", 500)
	clock.forward(25 * time.Hour)
	if got := r.mirror(w, false); !got.Whole || got.Changed != 1 {
		t.Errorf("a day later: got %+v, want all read", got)
	}
	if got := r.text(`SELECT status || ' ' || http_status FROM delivery_log WHERE vendor_id = 'log-00100'`); got != "abandoned 500" {
		t.Errorf("got %q", got)
	}
}

// TestMirrorReadsAllOfALogInAnotherOrder, and of one whose rows show none:
// that the newest come first is seen, never taken for granted.
func TestMirrorReadsAllOfALogInAnotherOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true})
	oneTime := func(rows []map[string]any) []map[string]any {
		out := make([]map[string]any, len(rows))
		for i, row := range rows {
			out[i] = maps.Clone(row)
			out[i]["created_at"] = "2026-11-29T12:00:00Z"
		}
		return newestFirst(out)
	}
	for name, order := range map[string]func([]map[string]any) []map[string]any{"oldest": oldestFirst, "scattered": scattered, "one time": oneTime} {
		log := newLog(450, order)
		r.front.set(log.serve)
		w := r.hooked(strings.ReplaceAll(name, " ", "-"))
		if got := r.mirror(w, false); got.Added != 450 {
			t.Errorf("%s: got %+v, want 450 rows", name, got)
		}
		log.add(30)
		log.pages()
		if got := r.mirror(w, false); got != (pipeline.Mirrored{Pages: 5, Added: 30, Whole: true}) {
			t.Errorf("%s: got %+v, want all five pages read", name, got)
		}
	}
}

// TestMirrorOfOddRows: an attempt without a job, of a status that nobody has
// published, without a time or a number, or listed twice is kept all the same.
func TestMirrorOfOddRows(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true})
	log := newLog(7, newestFirst)
	for i, set := range []map[string]any{
		{"job_id": nil},
		{"status": "parked", "http_status": nil},
		{"created_at": nil},
		{"attempt_number": nil},
		{"id": "log-00000", "attempt_number": 2, "job_id": nil},
		{"id": "log-00001"},
		{"http_status": 70000, "status": nil},
	} {
		for name, value := range set {
			log.change(i, name, value)
		}
	}
	r.front.set(log.serve)
	w := r.hooked("odd")
	if got := r.mirror(w, false); got.Added != 6 || !got.Whole {
		t.Errorf("got %+v, want six attempts: one is listed twice", got)
	}
	for query, want := range map[string]int64{
		`SELECT count(*) FROM delivery_log WHERE vendor_job_id = ''`:                               2,
		`SELECT count(*) FROM delivery_log WHERE vendor_id = 'log-00000'`:                          2,
		`SELECT count(*) FROM delivery_log WHERE attempt = 0`:                                      1,
		`SELECT count(*) FROM delivery_log WHERE created_at = seen_at`:                             1,
		`SELECT count(*) FROM delivery_log WHERE http_status IS NULL AND status IN ('parked', '')`: 1,
	} {
		if got := r.number(query); got != want {
			t.Errorf("%s: got %d, want %d", query, got, want)
		}
	}
	// Rows without a time are no news each time, and a job named later is kept.
	if got := r.mirror(w, true); got.Added != 0 || got.Changed > 1 {
		t.Errorf("read again: got %+v", got)
	}
	log.change(0, "job_id", "job-0")
	r.mirror(w, true)
	log.change(0, "job_id", nil)
	r.mirror(w, true)
	if got := r.text(`SELECT vendor_job_id FROM delivery_log WHERE vendor_id = 'log-00000' AND attempt = 1`); got != "job-0" {
		t.Errorf("got %q, want the job that was named once", got)
	}
}

// TestMirrorDoesNotKeepWhatIsTooOld, and ends where a log has nothing else.
func TestMirrorDoesNotKeepWhatIsTooOld(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: func(c *pipeline.Config) { c.KeepLog = 12*time.Hour - 400*time.Second }})
	log := newLog(700, newestFirst)
	r.front.set(log.serve)
	w := r.hooked("old")
	// A row is a second and a half: those of the last 650 s are within.
	got := r.mirror(w, false)
	if got.Added < 400 || got.Added > 440 || got.Pages != 6 || !got.Whole {
		t.Errorf("got %+v, want some 430 rows kept, and a page beyond them read", got)
	}
}

// TestMirrorGoesOnWhereItWasCut: by its bounds, by an error. What came in the
// meantime is read first.
func TestMirrorGoesOnWhereItWasCut(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: func(c *pipeline.Config) { c.MirrorPages = 4 }})
	log := newLog(1000, newestFirst)
	r.front.set(log.serve)
	w := r.hooked("cut")
	if got := r.mirror(w, false); got.Added != 400 || !got.Cut || got.Whole {
		t.Errorf("got %+v, want four pages and more to come", got)
	}
	wantPages(t, log, 1, 4)
	if got := r.mirror(w, false); got.Added != 200 || !got.Cut {
		t.Errorf("got %+v, want two quiet pages and two new ones", got)
	}
	if got := log.pages(); !slices.Equal(got, []int{1, 2, 5, 6}) {
		t.Errorf("got pages %v, want the beginning and then where it was cut", got)
	}
	log.fail = 8
	if _, err := r.pipe.MirrorLog(t.Context(), w, false); err == nil {
		t.Error("got no error of a page that can't be read")
	}
	log.fail = 0
	for range 3 {
		r.mirror(w, false)
	}
	if got := r.number(`SELECT count(*) FROM delivery_log`); got != 1000 {
		t.Errorf("got %d rows, want 1,000", got)
	}
	if got := r.number(`SELECT count(*) FROM delivery_log_reads WHERE next_page = 0 AND whole_at IS NOT NULL AND note = ''`); got != 1 {
		t.Error("the reading that was cut did not come to its end")
	}
}

// TestMirrorMissesNothing: however rows come, change and readings are cut, a
// reading that comes to its end leaves no gap above what was there before.
func TestMirrorMissesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: func(c *pipeline.Config) { c.MirrorPages = 5 }})
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		log := newLog(rapid.IntRange(0, 900).Draw(rt, "rows"), newestFirst)
		r.front.set(log.serve)
		w := r.hooked("any-" + strconv.Itoa(n))
		for range rapid.IntRange(1, 8).Draw(rt, "readings") {
			log.add(rapid.IntRange(0, 450).Draw(rt, "new"))
			log.mu.Lock()
			log.fail = rapid.IntRange(0, 9).Draw(rt, "fail")
			log.mu.Unlock()
			if _, err := r.pipe.MirrorLog(t.Context(), w, false); err != nil && log.fail == 0 {
				rt.Fatal(err)
			}
		}
		log.mu.Lock()
		log.fail = 0
		log.mu.Unlock()
		for tries := 0; ; tries++ {
			got, err := r.pipe.MirrorLog(t.Context(), w, false)
			if err != nil || tries > 50 {
				rt.Fatalf("%d tries: %v", tries, err)
			}
			if !got.Cut {
				break
			}
		}
		if got := r.number(`SELECT count(*) FROM delivery_log WHERE webhook_id = $1`, w.ID); got != int64(len(log.rows)) {
			rt.Fatalf("got %d rows, want %d", got, len(log.rows))
		}
	})
}

// TestMirrorGoesOnBehindWhatMoved: rows that came after a reading was cut short
// have moved what it had not read behind pages that bring nothing new.
func TestMirrorGoesOnBehindWhatMoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: func(c *pipeline.Config) { c.MirrorPages = 5 }})
	log := newLog(0, newestFirst)
	r.front.set(log.serve)
	w := r.hooked("moved")
	r.mirror(w, false)
	log.add(425)
	log.fail = 4
	if _, err := r.pipe.MirrorLog(t.Context(), w, false); err == nil {
		t.Fatal("a reading that fails at its fourth page has no error")
	}
	log.add(221)
	log.fail = 0
	for r.mirror(w, false).Cut {
		log.pages()
	}
	if got := r.number(`SELECT count(*) FROM delivery_log`); got != 646 {
		t.Errorf("got %d rows, want all 646", got)
	}
}

// TestMirrorOfTheSandbox in each order that its lists may have: what is
// mirrored is what its books say, and attempts are told from deliveries here.
func TestMirrorOfTheSandbox(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{
		sandbox:  func(c *sandbox.Config) { c.RunTime, c.Parallelism = time.Microsecond, 64 },
		pipeline: func(c *pipeline.Config) { c.NoPoll = true },
	})
	refused := map[string]bool{}
	var mu sync.Mutex
	r.receiver.swallow(func(req *http.Request, _ []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		id := req.Header.Get("X-Webhook-Delivery-Id")
		if _, seen := refused[id]; !seen {
			refused[id] = len(refused)%3 == 0
		} else {
			refused[id] = false
		}
		if refused[id] {
			req.Header.Set("X-Webhook-Signature", strings.Repeat("0", 64))
		}
		return true
	})
	id := r.submit(store.KindExtract, sandbox.MadeURLs(60, 5)...)
	r.ended(id)
	eventually(t, "the vendor to be done delivering", func() bool { return r.sandbox.Books().Deliveries.Accepted >= 60 })
	var total int64
	for _, order := range []string{"newest", "oldest", "shuffled"} {
		if err := r.sandbox.SetSwitches(sandbox.Switches{ListOrder: order, LogWithoutJob: order == "shuffled"}); err != nil {
			t.Fatal(err)
		}
		hooks, err := r.store.Webhooks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range hooks {
			r.mirror(w, true)
		}
		total = r.number(`SELECT count(*) FROM delivery_log`)
		if want := int64(r.sandbox.Books().Deliveries.Attempts); total != want {
			t.Errorf("%s: got %d attempts, want the %d of the books", order, total, want)
		}
	}
	if got := r.number(`SELECT count(*) FROM delivery_log WHERE status = 'success' AND delivery_id IN (SELECT id FROM deliveries WHERE verdict = 'accepted')`); got != 60 {
		t.Errorf("got %d attempts delivered and received, want 60", got)
	}
	if got := r.number(`SELECT count(*) FROM delivery_log WHERE status = 'failed' AND delivery_id IN (SELECT id FROM deliveries WHERE verdict = 'refused')`); got != total-60 || got == 0 {
		t.Errorf("got %d attempts refused here, want %d", got, total-60)
	}
	if got := r.number(`SELECT count(*) FROM delivery_log WHERE vendor_job_id = ''`); got != 0 {
		t.Errorf("%d jobs that were named before are lost", got)
	}
}

// TestReadLogNow reads every webhook's log by a task, for whoever asks, and
// says in the audit log who that was.
func TestReadLogNow(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	r.ended(id)
	eventually(t, "the delivery", func() bool { return r.sandbox.Books().Deliveries.Accepted >= 1 })
	ctx := store.WithActor(t.Context(), store.Actor{Name: "olga"})
	n, err := r.pipe.ReadLogNow(ctx)
	if err != nil || n != 3 {
		t.Fatalf("got %d, %v, want three logs", n, err)
	}
	eventually(t, "the logs to be read", func() bool {
		return r.number(`SELECT count(*) FROM delivery_log_reads WHERE whole_at IS NOT NULL AND asked_at IS NULL`) == 3
	})
	if got := r.number(`SELECT count(*) FROM delivery_log WHERE status = 'success' AND delivery_id IS NOT NULL`); got != 1 {
		t.Errorf("got %d attempts, want the one", got)
	}
	if got := r.text(`SELECT who FROM audit_log WHERE what = 'delivery_log.read'`); got != "olga" {
		t.Errorf("the audit log says %q", got)
	}
}
