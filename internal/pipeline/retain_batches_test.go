package pipeline_test

import (
	"context"
	"fmt"
	"strings"
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

	calls := r.calls()
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
	if got := r.text(`SELECT string_agg(id, ',') FROM (SELECT vendor_job_id AS id FROM jobs) j WHERE id = $1`, vendorID); got != "" || r.calls() < calls {
		t.Errorf("the job is back: %q", got)
	}

	r.exec(`UPDATE processed_events SET received_at = received_at - interval '91 days'`)
	if kept := r.retain(); kept.Events != int(r.number(`SELECT count(*) FROM processed_events`))+kept.Events || kept.Events == 0 {
		t.Errorf("forgot %+v", kept)
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

// TestWhatIsStillNeededIsNotPruned: a batch stays, however old, while something
// of it is outstanding or at the vendor, a schedule runs it again, a replay has
// its jobs before it, a file is being made, or a call is in doubt that was made
// before its end. What began to go ends, also after an interruption, and
// nothing of it is outstanding again.
func TestWhatIsStillNeededIsNotPruned(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: pruning})
	long := time.Now().Add(-200 * 24 * time.Hour)
	made := func(name, jobState string, items int) int64 {
		id := r.number(`INSERT INTO batches (name, kind, options, created_at, ended_at, submitted, accepted, stored_poll)
			VALUES ($1, 'batch', '{}', $2, $2, $3, $3, $3) RETURNING id`, name, long, items)
		job := r.number(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, called_at, vendor_job_id)
			VALUES ($1, 'batch', $2, 'submit', '\x00', $4, $3, $3, $5) RETURNING id`, id, jobState, long, items, "v-"+name)
		r.exec(`WITH i AS (INSERT INTO items (batch_id, position, url, url_hash, state, net, current_job_id, created_at, ended_at)
				SELECT $1, g, 'https://a.example/' || g, '\x00', 'stored', 'poll', $2, $3, $3 FROM generate_series(1, $4::int) g RETURNING id, position)
			INSERT INTO job_items (job_id, input_index, item_id, outcome) SELECT $2, position - 1, id, 'stored' FROM i`, id, job, long, items)
		return id
	}
	free := made("free", "settled", 1203)
	givenUp := made("given up", "given_up", 1)
	template := made("template", "settled", 1)
	r.exec(`INSERT INTO schedules (name, template_batch_id, cron, zone, created_at) VALUES ('s', $1, '0 0 1 1 *', 'UTC', $2)`, template, long)
	replayed := made("replayed", "settled", 1)
	r.exec(`WITH p AS (INSERT INTO replays (state, picked, planned_by, planned_at, started_at, beat_at) VALUES ('paused', 'x', 'x', $2, $2, $2) RETURNING id)
		INSERT INTO replay_jobs (replay_id, job_id, calls) SELECT p.id, j.id, 1 FROM p, jobs j WHERE j.batch_id = $1`, replayed, long)
	open := made("open", "accepted", 1)
	kept := []int64{template, replayed, open}

	claimed := made("claimed", "uncertain", 1) // In doubt since before all of them ended.
	if got := r.retain(); got.Batches != 0 {
		t.Fatalf("with a call in doubt: %+v", got)
	}
	r.exec(`UPDATE jobs SET called_at = now() WHERE batch_id = $1`, claimed)
	kept = append(kept, claimed)
	r.exec(`INSERT INTO exports (made_by, created_at, state, name, picked, filter, choices, expires_at, held)
		VALUES ('x', now(), 'running', 'x', 'x', '{}', '{}', now(), true)`)
	if got := r.retain(); got.Batches != 0 {
		t.Fatalf("with a file being made: %+v", got)
	}
	r.exec(`DELETE FROM exports`)

	// Somebody began, and was stopped after a group.
	if n, err := r.store.BeginPruning(t.Context(), time.Now().Add(-100*24*time.Hour), time.Now(), 1); n != 1 || err != nil {
		t.Fatalf("began %d (%v)", n, err)
	}
	err := r.store.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
		_, err := tx.PruneItems(ctx, free, 500)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = r.store.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.AddCounts(ctx, free, store.Counts{Accepted: 1}, time.Now())
	})
	if err == nil {
		t.Error("something of a batch that is going became outstanding")
	}
	if got := r.retain(); got != (pipeline.Kept{Items: 704, Jobs: 2, Batches: 2}) {
		t.Errorf("the next run: %+v", got)
	}
	for _, id := range []int64{free, givenUp} {
		if r.rowsOf(id) != "0 0 0 0 " || r.number(`SELECT count(*) FROM batches WHERE id = $1 AND prune_ended_at IS NOT NULL`, id) != 1 {
			t.Errorf("batch %d: %s left", id, r.rowsOf(id))
		}
	}
	for _, id := range kept {
		if got := r.rowsOf(id); got != "1 1 0 0 " {
			t.Errorf("batch %d: %s left", id, got)
		}
	}
	if got := r.retain(); got != (pipeline.Kept{}) {
		t.Errorf("again: %+v", got)
	}
}
