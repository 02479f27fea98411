package pipeline_test

import (
	"fmt"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// asleep is a pipeline in which nothing but a replay looks at a job.
func asleep(c *pipeline.Config) {
	c.NoPoll, c.NoReconcile, c.ReplayRPS = true, true, 500
}

// openJobs submits n URLs, a job each, and waits until the vendor has them all.
// Nothing looks at them by itself.
func (r *rig) openJobs(n int) []int64 {
	r.t.Helper()
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("https://shop.sandbox.test/item/%s-%d", r.t.Name(), i)
	}
	batch := r.submit(store.KindExtract, urls...)
	eventually(r.t, "the jobs to be accepted", func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND state = 'accepted'`, batch) == int64(n)
	})
	eventually(r.t, "the sandbox to be done with them", func() bool { return r.vendorDone() >= n })
	r.exec(`UPDATE jobs SET next_poll_at = NULL WHERE batch_id = $1`, batch)
	return r.jobsOf(batch)
}

// vendorDone is how many jobs the sandbox has ended.
func (r *rig) vendorDone() int {
	n := 0
	books := r.sandbox.Books()
	for i := range books.Jobs {
		if len(books.Jobs[i].Outcomes) > 0 && books.Jobs[i].Outcomes[0].Status == "completed" {
			n++
		}
	}
	return n
}

func (r *rig) jobsOf(batch int64) []int64 {
	r.t.Helper()
	rows, err := r.eyes.QueryContext(r.t.Context(), `SELECT id FROM jobs WHERE batch_id = $1 ORDER BY id`, batch)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			r.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return ids
}

// vendorID is the vendor's id of a job.
func (r *rig) vendorID(job int64) string {
	r.t.Helper()
	return r.text(`SELECT vendor_job_id FROM jobs WHERE id = $1`, job)
}

// logged writes a failed line of the vendor's log for each job there is.
func (r *rig) logged() int64 {
	r.t.Helper()
	hook := r.number(`INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
		VALUES ('0123456789abcdef', 'extract_completed', 'https://a.example/', 'live', now(), now()) RETURNING id`)
	r.exec(`INSERT INTO delivery_log (webhook_id, vendor_id, attempt, vendor_job_id, status, created_at, seen_at)
		SELECT $1, 'd' || id, 1, vendor_job_id, 'failed', now(), now() FROM jobs WHERE vendor_job_id IS NOT NULL`, hook)
	return hook
}

// plan plans a replay of all failed lines of the webhook.
func (r *rig) plan(hook int64) *store.Replay {
	r.t.Helper()
	return r.planOf(store.ReplayPicks{Log: &store.LogFilter{Webhook: hook, Status: "failed"}})
}

func (r *rig) planOf(picks store.ReplayPicks) *store.Replay {
	r.t.Helper()
	plan, err := r.pipe.PlanReplay(r.t.Context(), pipeline.ReplayRequest{Picks: picks, Picked: "what a test wants"})
	if err != nil {
		r.t.Fatal(err)
	}
	return plan
}

func (r *rig) run(id int64, refetch bool) {
	r.t.Helper()
	if ok, err := r.pipe.RunReplay(r.t.Context(), id, refetch); err != nil || !ok {
		r.t.Fatalf("run: got %v, %v", ok, err)
	}
}

// replayed waits until the replay is over and returns it.
func (r *rig) replayed(id int64) *store.Replay {
	r.t.Helper()
	var got *store.Replay
	eventually(r.t, "the replay to end", func() bool {
		var err error
		if got, err = r.store.Replay(r.t.Context(), id); err != nil {
			r.t.Fatal(err)
		}
		return got.Over()
	})
	return got
}

// outcome is what a replay came to for a job.
func (r *rig) outcome(replay, job int64) string {
	r.t.Helper()
	return r.text(`SELECT outcome FROM replay_jobs WHERE replay_id = $1 AND job_id = $2`, replay, job)
}
