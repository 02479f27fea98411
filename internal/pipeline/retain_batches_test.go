package pipeline_test

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// pruning keeps batches for a hundred days.
func pruning(c *pipeline.Config) {
	c.KeepBatches, c.HeldFor = 100*24*time.Hour, time.Millisecond
}

// endedDaysAgo moves the end of a batch, as if it had been that many days ago.
func (r *rig) endedDaysAgo(batch int64, days int) {
	r.t.Helper()
	r.exec(`UPDATE batches SET ended_at = ended_at - make_interval(days => $2) WHERE id = $1`, batch, days)
}

// retain runs the task that removes what is old.
func (r *rig) retain() pipeline.Kept {
	r.t.Helper()
	kept, err := r.pipe.Retain(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return kept
}

// rowsOf counts the rows of a batch in the tables that grow with it.
func (r *rig) rowsOf(batch int64) string {
	r.t.Helper()
	var out strings.Builder
	for _, query := range []string{
		`SELECT count(*) FROM items WHERE batch_id = $1`, `SELECT count(*) FROM jobs WHERE batch_id = $1`,
		`SELECT count(*) FROM rejected_lines WHERE batch_id = $1`, `SELECT count(*) FROM batch_pace WHERE batch_id = $1`,
	} {
		fmt.Fprint(&out, r.number(query, batch), " ")
	}
	return out.String()
}

// orphans counts rows that belong to no item or job that is left.
func (r *rig) orphans() int64 {
	r.t.Helper()
	return r.number(`SELECT (SELECT count(*) FROM results WHERE item_id NOT IN (SELECT id FROM items))
		+ (SELECT count(*) FROM job_items WHERE job_id NOT IN (SELECT id FROM jobs))
		+ (SELECT count(*) FROM job_events WHERE job_id NOT IN (SELECT id FROM jobs))
		+ (SELECT count(*) FROM processed_events WHERE state = 'claimed' AND job_id NOT IN (SELECT id FROM jobs))`)
}

// TestPrunedBatchesAreStillCounted: of a batch whose time is over only its row
// stays, and the roll call of the installation sums as before. Its jobs stay
// known for a time: a delivery that comes late is a duplicate, and neither it
// nor the vendor's list makes them foreign. Then they are forgotten too.
func TestPrunedBatchesAreStillCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: pruning})
	old, young := r.submitMany(1), r.submitSingles(2)
	r.ended(old)
	r.ended(young)
	vendorID := r.text(`SELECT vendor_job_id FROM jobs WHERE batch_id = $1 AND state = 'settled' ORDER BY id LIMIT 1`, old)
	late := signedDelivery(r.newWebhook("batch_completed"), "batch_completed", testSecret, envelopeFor("batch_completed", vendorID))
	failed := r.number(`SELECT id FROM items WHERE batch_id = $1 AND state = 'failed' LIMIT 1`, old)
	sums := `SELECT string_agg(concat_ws(' ', id, submitted, invalid, duplicate, accepted, stored_poll, failed, cancelled), ',' ORDER BY id) FROM batches`
	before, rows := r.text(sums), r.rowsOf(young)

	r.endedDaysAgo(old, 99)
	if kept := r.retain(); kept != (pipeline.Kept{}) {
		t.Fatalf("removed before its time: %+v", kept)
	}
	r.endedDaysAgo(old, 2)
	jobs := r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1`, old)
	if kept := r.retain(); kept != (pipeline.Kept{Items: 10, Jobs: int(jobs), Batches: 1}) {
		t.Errorf("removed %+v, want one batch of 10 items and %d jobs", kept, jobs)
	}
	if got := r.rowsOf(old); got != "0 0 0 0 " || r.orphans() != 0 {
		t.Errorf("left of it: %s, orphans %d", got, r.orphans())
	}
	if got := r.rowsOf(young); got != rows {
		t.Errorf("of the other batch %s is left of %s", got, rows)
	}
	if after := r.text(sums); after != before {
		t.Errorf("the roll call was %s, is %s", before, after)
	}
	r.balanced(young)
	differences, _, err := r.store.RecountBatches(t.Context(), 0, 100)
	if err != nil || len(differences) != 0 {
		t.Errorf("the doctor finds %v (%v)", differences, err)
	}
	if done, err := r.pipe.Resubmit(t.Context(), []int64{failed}, store.AsPlanned{}); err != nil || done.Items != 0 {
		t.Errorf("resubmitted %+v (%v)", done, err)
	}

	var asked atomic.Int64
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if path.Base(req.URL.Path) == vendorID {
			asked.Add(1)
		}
		next.ServeHTTP(w, req)
	})
	if got := r.pipe.Receive(t.Context(), late); got.Status != 200 || got.Verdict != store.VerdictDuplicate {
		t.Errorf("a late delivery: got %+v, want a duplicate", got)
	}
	if err := r.pipe.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if run := r.reconcile(); run.ForeignJobs != 0 || run.Woken != 0 || run.Listed < int(jobs) {
		t.Errorf("the reconciler: %+v", run)
	}
	if n := r.number(`SELECT count(*) FROM processed_events WHERE state <> 'pruned'`); n != 0 {
		t.Errorf("%d events are held or foreign", n)
	}
	if got := r.text(`SELECT string_agg(id, ',') FROM (SELECT vendor_job_id AS id FROM jobs) j WHERE id = $1`, vendorID); got != "" {
		t.Errorf("the job is back: %q", got)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the vendor was asked about the job %d times since it was removed", n)
	}

	r.exec(`UPDATE processed_events SET received_at = received_at - interval '91 days'`)
	events := r.number(`SELECT count(*) FROM processed_events`)
	if kept := r.retain(); kept.Events != int(events) || events != jobs || r.number(`SELECT count(*) FROM processed_events`) != 0 {
		t.Errorf("forgot %+v of %d events", kept, events)
	}
	late.ReceivedAt = time.Now()
	if got := r.pipe.Receive(t.Context(), late); got.Status != 200 {
		t.Errorf("a delivery of a forgotten job: got %+v", got)
	}
	eventually(t, "it to be foreign", func() bool {
		if err := r.pipe.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r.number(`SELECT count(*) FROM processed_events WHERE vendor_job_id = $1 AND state = 'foreign'`, vendorID) == 1
	})
}
