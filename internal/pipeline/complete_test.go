package pipeline_test

import (
	"errors"
	"log/slog"
	"testing"

	"rollcall/internal/pipeline"
)

// completedRig holds n jobs of one batch that completed at the vendor and that
// nobody looks at by itself.
func completedRig(t *testing.T, n int) (*rig, []int64) {
	t.Helper()
	r := newRig(t, setup{noWebhooks: true, pipeline: asleep})
	jobs := r.openJobs(n)
	return r, jobs
}

// together is another process that looks at jobs at once and commits what they
// come to in one group.
func (r *rig) together(jobs ...int64) []error {
	r.t.Helper()
	return r.newPipeline(setup{pipeline: func(c *pipeline.Config) { c.Logger = slog.New(slog.DiscardHandler) }}).SettleTogether(r.t.Context(), jobs...)
}

// TestCompletedJobsShareACommit: all are written in one transaction, each as if
// it had come alone, and one that is looked at twice counts once.
func TestCompletedJobsShareACommit(t *testing.T) {
	t.Parallel()
	r, jobs := completedRig(t, 8)
	if err := errors.Join(r.together(append(jobs, jobs[3])...)...); err != nil {
		t.Fatal(err)
	}
	id := r.number(`SELECT max(id) FROM batches`)
	b := r.ended(id)
	r.wantBatch(b, 8, 0, 0)
	if b.StoredPoll != 8 || b.Charged != 8 || b.ChargedTwice != 0 {
		t.Errorf("got %d by poll, charged %d and twice %d, want 8, 8 and 0", b.StoredPoll, b.Charged, b.ChargedTwice)
	}
	for what, query := range map[string]string{
		"transactions": `SELECT count(DISTINCT xmin::text) FROM results`,
		"lines that differ from 'vendor says completed: 1 stored, ...'": `SELECT 1 + count(*) FROM job_events WHERE kind = 'settled'
			AND detail <> 'vendor says completed: 1 stored, 0 failed, 0 cancelled, 0 to retry, 0 superseded'`,
		"kinds of settled job": `SELECT count(DISTINCT (state, settle_net, vendor_status, charged, next_poll_at IS NULL,
			ended_at, vendor_ended_at IS NOT NULL, superseded)) FROM jobs`,
	} {
		if n := r.number(query); n != 1 {
			t.Errorf("got %d %s, want 1", n, what)
		}
	}
	if n := r.number(`SELECT count(*) FROM job_events WHERE kind = 'settled' AND net = 'poll'`); n != 8 {
		t.Errorf("got %d lines of jobs that settled, want 8", n)
	}
	r.balanced(id)
}

// TestOneBadRowAmongCompletedJobs: what the database refuses keeps only its own
// job open, and that goes on once it can.
func TestOneBadRowAmongCompletedJobs(t *testing.T) {
	t.Parallel()
	r, jobs := completedRig(t, 6)
	r.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$`)
	r.exec(`CREATE TRIGGER refuse BEFORE INSERT ON results FOR EACH ROW
		WHEN (NEW.job_id = ` + r.text(`SELECT $1::bigint::text`, jobs[2]) + `) EXECUTE FUNCTION refuse()`)
	for i, err := range r.together(jobs...) {
		if (err != nil) != (i == 2) {
			t.Errorf("job %d: got %v", i, err)
		}
	}
	id := r.number(`SELECT max(id) FROM batches`)
	if got := r.number(`SELECT outstanding FROM batches WHERE id = $1`, id); got != 1 {
		t.Errorf("got %d outstanding, want the refused one", got)
	}
	if got := r.number(`SELECT count(*) FROM job_items WHERE outcome = 'stored'`); got != 5 {
		t.Errorf("got %d reported as stored, want 5", got)
	}
	r.exec(`DROP TRIGGER refuse ON results`)
	if err := errors.Join(r.together(jobs[2])...); err != nil {
		t.Fatal(err)
	}
	r.wantBatch(r.ended(id), 6, 0, 0)
	r.balanced(id)
}

// TestTwoJobsOfOneURLCompleteTogether: one result is stored, and the other
// job's is counted as charged twice, as when it had come later.
func TestTwoJobsOfOneURLCompleteTogether(t *testing.T) {
	t.Parallel()
	r, jobs := completedRig(t, 3)
	// The second job carries the first one's URL, which was sent again.
	id := r.number(`SELECT max(id) FROM batches`)
	r.exec(`DELETE FROM items WHERE current_job_id = $1`, jobs[1])
	r.exec(`INSERT INTO job_items (job_id, input_index, item_id) SELECT $2, 0, id FROM items WHERE current_job_id = $1`, jobs[0], jobs[1])
	r.exec(`UPDATE batches SET submitted = 2, accepted = 2 WHERE id = $1`, id)
	if err := errors.Join(r.together(jobs...)...); err != nil {
		t.Fatal(err)
	}
	b := r.ended(id)
	r.wantBatch(b, 2, 0, 0)
	if b.Charged != 3 || b.ChargedTwice != 1 {
		t.Errorf("got charged %d and twice %d, want 3 and 1", b.Charged, b.ChargedTwice)
	}
	if got := r.text(`SELECT string_agg(outcome || superseded::text, ' ' ORDER BY j.id) FROM jobs j JOIN job_items ON job_id = j.id`); got != "storedfalse supersededtrue storedfalse" {
		t.Errorf("got %q", got)
	}
}
