package pipeline_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestReconcileAsksSinglyForWhatTheListsLost: at most 200 jobs a run, none that
// the lists show to be running, and each in its turn.
func TestReconcileAsksSinglyForWhatTheListsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true})
	id := r.submit(store.KindExtract, sandbox.MadeURLs(1, 32)...)
	open := func(prefix string, n int) {
		r.exec(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id, account, accepted_at)
			SELECT $1, 'extract', 'accepted', 'submit', '\x00', 1, $2, $3::text || g, 'test', $2 FROM generate_series(1, $4::int) g`,
			id, time.Now().Add(-time.Hour), prefix, n)
	}
	open("shown-", 600)
	open("lost-", 250)
	r.front.set(listOf(600, nil, func(i int) map[string]any { return listedJob("shown-"+strconv.Itoa(i+1), "processing") }))
	run := r.reconcile()
	if run.Singly != 200 || run.Missing != 0 || run.Woken != 200 {
		t.Errorf("got %+v, want 200 asked singly", run)
	}
	for run, want := range []string{"0 50, 1 200", "1 100, 2 150", "2 150, 3 100", "3 200, 4 50"} {
		if run > 0 {
			r.reconcile()
		}
		if got := r.text(turns); got != want {
			t.Errorf("after %d runs: %s, want %s jobs (times asked, jobs)", run+1, got, want)
		}
	}
	if got := r.number(`SELECT count(*) FROM jobs WHERE wake_net = 'reconcile' AND vendor_job_id LIKE 'shown%'`); got != 0 {
		t.Errorf("%d jobs that the list shows running were woken", got)
	}
}

// turns counts the lost jobs by how often they were woken.
const turns = `SELECT string_agg(wake_seq || ' ' || n, ', ' ORDER BY wake_seq) FROM (
	SELECT wake_seq, count(*) AS n FROM jobs WHERE vendor_job_id LIKE 'lost%' GROUP BY wake_seq) t`

// TestReconcileWhenAListCannotBeRead: the jobs of that kind are asked about one
// by one, and it is not said of them that the vendor does not list them.
func TestReconcileWhenAListCannotBeRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: reconcileAlone})
	extract := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	batch := r.submit(store.KindBatch, "https://shop.sandbox.test/item/2")
	r.endedThere(2)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.URL.Path == "/v1/extract/jobs" {
			answerJSON(w, http.StatusForbidden, refusal("FORBIDDEN", false), "a list that may not be read")
			return
		}
		hideJobs(w, req, next)
	})
	run, err := r.pipe.Reconcile(t.Context(), "person")
	if err != nil {
		t.Fatal(err)
	}
	if run.Errors != 1 || run.Singly != 2 || run.Woken != 2 {
		t.Errorf("got %+v, want one error and two asked singly", run)
	}
	for id, want := range map[int64]string{
		extract: "open here, and the vendor's list could not be read", batch: "open here and not in the vendor's lists",
	} {
		if got := r.text(`SELECT e.detail FROM job_events e JOIN jobs j ON j.id = e.job_id WHERE j.batch_id = $1 AND e.net = 'reconcile'
			ORDER BY e.id LIMIT 1`, id); got != want {
			t.Errorf("batch %d was woken with %q, want %q", id, got, want)
		}
		r.wantBatch(r.ended(id), 1, 0, 0)
	}
}
