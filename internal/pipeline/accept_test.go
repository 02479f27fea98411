package pipeline_test

import (
	"fmt"
	"log/slog"
	"testing"

	"rollcall/internal/pipeline"
)

// callingRig holds n jobs whose calls are under way, and another process that
// records what comes of them.
func callingRig(t *testing.T, n int) (*rig, []int64, *pipeline.Pipeline) {
	t.Helper()
	r, jobs := completedRig(t, n)
	r.exec(`UPDATE jobs SET state = 'calling', vendor_job_id = NULL, accepted_at = NULL, lease_until = now() + interval '1 hour'`)
	r.exec(`DELETE FROM job_events`)
	other := r.newPipeline(setup{pipeline: func(c *pipeline.Config) { c.Logger = slog.New(slog.DiscardHandler) }})
	return r, jobs, other
}

func newIDs(jobs []int64) map[int64]string {
	ids := map[int64]string{}
	for _, job := range jobs {
		ids[job] = fmt.Sprint("vendor-of-", job)
	}
	return ids
}

// TestAcceptedCallsShareACommit: all are written in one transaction, each with
// its line in the timeline, and a person's wish to cancel one gets its task.
func TestAcceptedCallsShareACommit(t *testing.T) {
	t.Parallel()
	r, jobs, other := callingRig(t, 8)
	r.exec(`UPDATE jobs SET cancel_requested_at = now() WHERE id = $1`, jobs[3])
	for job, err := range other.AcceptTogether(t.Context(), newIDs(jobs)) {
		if err != nil {
			t.Errorf("job %d: got %v", job, err)
		}
	}
	for what, query := range map[string]string{
		"accepted jobs":             `SELECT count(*) FROM jobs WHERE state = 'accepted' AND vendor_job_id = 'vendor-of-' || id AND next_poll_at IS NOT NULL AND lease_until IS NULL`,
		"lines in the timeline":     `SELECT count(*) FROM job_events JOIN jobs ON jobs.id = job_id WHERE job_events.kind = 'accepted' AND detail = 'vendor job ' || vendor_job_id`,
		"lines of that transaction": `SELECT count(*) FROM job_events WHERE xmin = (SELECT min(xmin::text) FROM job_events)::xid`,
		"jobs with a line":          `SELECT count(DISTINCT job_id) FROM job_events`,
	} {
		if n := r.number(query); n != 8 {
			t.Errorf("got %d %s, want 8", n, what)
		}
	}
	if n := r.number(`SELECT count(*) FROM river_job WHERE kind = 'cancel' AND (args->>'job_id')::bigint = $1`, jobs[3]); n != 1 {
		t.Errorf("got %d tasks that cancel, want 1", n)
	}
}

// TestOneBadAnswerAmongAccepted: an id that is another job's is that one call's
// trouble, and a call that was overtaken is left alone.
func TestOneBadAnswerAmongAccepted(t *testing.T) {
	t.Parallel()
	r, jobs, other := callingRig(t, 6)
	ids := newIDs(jobs)
	r.exec(`UPDATE jobs SET state = 'accepted', vendor_job_id = 'taken' WHERE id = $1`, jobs[5])
	ids[jobs[5]] = "late" // It is known under its id by now.
	ids[jobs[2]] = "taken"
	for job, err := range other.AcceptTogether(t.Context(), ids) {
		if err != nil {
			t.Errorf("job %d: got %v", job, err)
		}
	}
	if n := r.number(`SELECT count(*) FROM jobs WHERE state = 'accepted' AND vendor_job_id = 'vendor-of-' || id`); n != 4 {
		t.Errorf("got %d accepted under their ids, want 4", n)
	}
	if got := r.text(`SELECT state || ' ' || error_code FROM jobs WHERE id = $1`, jobs[2]); got != "refused VENDOR_ID_REUSED" {
		t.Errorf("got %q", got)
	}
	if got := r.text(`SELECT state || ' ' || vendor_job_id FROM jobs WHERE id = $1`, jobs[5]); got != "accepted taken" {
		t.Errorf("got %q", got)
	}
}

// TestOneLockedJobAmongAccepted: whoever holds a job keeps only that one's
// answer waiting.
func TestOneLockedJobAmongAccepted(t *testing.T) {
	t.Parallel()
	r, jobs, other := callingRig(t, 4)
	lock, err := r.eyes.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.ExecContext(t.Context(), `SELECT FROM jobs WHERE id = $1 FOR UPDATE`, jobs[0]); err != nil {
		t.Fatal(err)
	}
	done := make(chan map[int64]error, 1)
	go func() { done <- other.AcceptTogether(t.Context(), newIDs(jobs)) }()
	eventually(t, "all but the locked job to be accepted", func() bool { return r.number(`SELECT count(*) FROM jobs WHERE state = 'accepted'`) == 3 })
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := (<-done)[jobs[0]]; err != nil {
		t.Error(err)
	}
	if n := r.number(`SELECT count(*) FROM jobs WHERE state = 'accepted'`); n != 4 {
		t.Errorf("got %d accepted, want all", n)
	}
}
