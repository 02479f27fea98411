package pipeline_test

import (
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
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

// together is another process that looks at jobs at once, each with its task,
// and commits what they come to in one group.
func (r *rig) together(jobs ...int64) []error {
	r.t.Helper()
	return r.togetherBy(func(*pipeline.Config) {}, jobs...)
}

// togetherBy is together with a process that is set up so.
func (r *rig) togetherBy(change func(*pipeline.Config), jobs ...int64) []error {
	r.t.Helper()
	looks := make([]pipeline.Look, len(jobs))
	for i, job := range jobs {
		task := r.number(`INSERT INTO river_job (state, kind, queue, args, attempt, max_attempts, attempted_at, scheduled_at)
			VALUES ('running', 'settle', 'settle', jsonb_build_object('job_id', $1::bigint), 1, 100, now(), now()) RETURNING id`, job)
		looks[i] = pipeline.Look{Job: job, Task: task}
	}
	return r.newPipeline(setup{pipeline: func(c *pipeline.Config) {
		c.Logger = slog.New(slog.DiscardHandler)
		change(c)
	}}).SettleTogether(r.t.Context(), looks...)
}

// wantOneCommit checks that all results, and the ends of the tasks that looked,
// were written in one transaction.
func (r *rig) wantOneCommit(tasks int64) {
	r.t.Helper()
	if n := r.number(`SELECT count(DISTINCT xmin::text) FROM results`); n != 1 {
		r.t.Errorf("got results of %d transactions, want one", n)
	}
	if n := r.number(`SELECT count(*) FROM river_job WHERE kind = 'settle' AND state = 'completed' AND attempt = 1
		AND xmin::text = (SELECT min(xmin::text) FROM results)`); n != tasks {
		r.t.Errorf("got %d tasks completed with the results, want %d", n, tasks)
	}
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
	r.wantOneCommit(9)
	r.balanced(id)
}

// TestCallsAtOnceAreBounded: jobs that wait for their commit keep no other from
// being asked about, and no more are asked about at once than the setting says.
func TestCallsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	r, jobs := completedRig(t, 8)
	var now, most atomic.Int64
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		defer now.Add(-1)
		for at := now.Add(1); ; {
			if seen := most.Load(); at <= seen || most.CompareAndSwap(seen, at) {
				break
			}
		}
		r.exec(`SELECT pg_sleep(0.02)`) // A call takes a while, or none would meet another.
		next.ServeHTTP(w, req)
	})
	if err := errors.Join(r.togetherBy(func(c *pipeline.Config) { c.VendorConcurrency = 2 }, jobs...)...); err != nil {
		t.Fatal(err)
	}
	if n := most.Load(); n < 1 || n > 2 {
		t.Errorf("got %d calls at once, want 2 at most", n)
	}
	r.wantOneCommit(8)
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

// TestCompletedJobsOfManyKinds: each batch counts its own, by the net that woke
// each job, and what had failed meanwhile is stored after all.
func TestCompletedJobsOfManyKinds(t *testing.T) {
	t.Parallel()
	r, jobs := completedRig(t, 3)
	one := r.number(`SELECT max(id) FROM batches`)
	others := r.openJobs(2)
	other := r.number(`SELECT max(id) FROM batches`)
	eventually(t, "the sandbox to be done", func() bool { return r.vendorDone() == 5 })
	r.exec(`UPDATE jobs SET wake_net = 'webhook', wake_seq = 1 WHERE id IN ($1, $2)`, jobs[1], others[0])
	r.exec(`UPDATE jobs SET state = 'given_up', ended_at = now(), error_code = 'GAVE_UP' WHERE id = $1`, jobs[2])
	r.exec(`UPDATE items SET state = 'failed', ended_at = now(), error_code = 'GAVE_UP' WHERE current_job_id = $1`, jobs[2])
	r.exec(`UPDATE batches SET failed = 1 WHERE id = $1`, one)
	if err := errors.Join(r.together(others[1], jobs[2], jobs[0], others[0], jobs[1])...); err != nil {
		t.Fatal(err)
	}
	r.wantOneCommit(5)
	for id, want := range map[int64][2]int64{one: {2, 1}, other: {1, 1}} {
		b := r.ended(id)
		r.wantBatch(b, want[0]+want[1], 0, 0)
		if got := [2]int64{b.StoredPoll, b.StoredWebhook}; got != want {
			t.Errorf("batch %d: got %v stored by poll and by webhook, want %v", id, got, want)
		}
		r.balanced(id)
	}
	if n := r.number(`SELECT count(*) FROM jobs WHERE state = 'settled' AND error_code = ''`); n != 5 {
		t.Errorf("got %d jobs settled, want 5", n)
	}
}

// TestOneLockedBatchAmongCompletedJobs: whoever holds a batch keeps only its own
// jobs waiting.
func TestOneLockedBatchAmongCompletedJobs(t *testing.T) {
	t.Parallel()
	r, jobs := completedRig(t, 2)
	held := r.number(`SELECT max(id) FROM batches`)
	others := r.openJobs(2)
	free := r.number(`SELECT max(id) FROM batches`)
	eventually(t, "the sandbox to be done", func() bool { return r.vendorDone() == 4 })
	lock, err := r.eyes.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.ExecContext(t.Context(), `SELECT FROM batches WHERE id = $1 FOR UPDATE`, held); err != nil {
		t.Fatal(err)
	}
	for i, err := range r.together(jobs[0], others[0], jobs[1], others[1]) {
		if (err != nil) != (i%2 == 0) {
			t.Errorf("job %d of the group: got %v", i, err)
		}
	}
	r.wantBatch(r.ended(free), 2, 0, 0)
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.together(jobs...)...); err != nil {
		t.Fatal(err)
	}
	r.wantBatch(r.ended(held), 2, 0, 0)
	r.balanced(held)
}

// TestStandsStill: work that is due and not done is told of, whoever should do
// it, until some of it is done.
func TestStandsStill(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	want := func(what string, still bool) {
		t.Helper()
		since, err := r.pipe.StandsStill(t.Context())
		if err != nil || since.IsZero() == still {
			t.Errorf("%s: got %v, %v", what, since, err)
		}
	}
	task := func(kind, state string, minutes int) {
		t.Helper()
		r.exec(`INSERT INTO river_job (state, kind, queue, args, max_attempts, created_at, finalized_at)
			VALUES ($1::river_job_state, $2, $2, '{}', 100, now() - make_interval(mins => $3::int), CASE WHEN $1 = 'completed' THEN now() END)`, state, kind, minutes)
	}
	want("nothing is due", false)
	task("settle", "available", 1)
	want("it has been due for a minute", false)
	task("settle", "scheduled", 60)
	want("it waits for its time", false)
	task("dispatch", "retryable", 60)
	want("it is tried again and again", true)
	task("upkeep", "completed", 60)
	want("other work is done", true)
	task("settle", "completed", 60)
	want("some of it is done", false)
}
