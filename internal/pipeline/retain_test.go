package pipeline_test

import (
	"fmt"
	"testing"
	"time"

	"rollcall/internal/pipeline"
)

// aged makes n deliveries and as many rows of the vendor's log, received so
// long ago, about the vendor's job.
func (r *rig) aged(webhook int64, job string, n int, age time.Duration) {
	r.t.Helper()
	r.exec(`INSERT INTO deliveries (webhook_id, received_at, verdict, status, vendor_job_id, vendor_delivery_id, headers, body, body_size)
		SELECT $1, $2, 'accepted', 200, $3, $3 || '-' || g || $5, 'headers', 'body', 4 FROM generate_series(1, $4::int) g`,
		webhook, time.Now().Add(-age), job, n, age.String())
	r.exec(`INSERT INTO delivery_log (webhook_id, vendor_id, attempt, vendor_job_id, status, created_at, seen_at)
		SELECT webhook_id, vendor_delivery_id, 1, vendor_job_id, 'success', received_at, received_at FROM deliveries WHERE vendor_job_id = $1
		ON CONFLICT DO NOTHING`, job)
}

// left says what is left of what is about a job: deliveries, of them with a
// body, and rows of the log.
func (r *rig) left(job string) string {
	r.t.Helper()
	return fmt.Sprint(r.number(`SELECT count(*) FROM deliveries WHERE vendor_job_id = $1`, job), " ",
		r.number(`SELECT count(*) FROM deliveries WHERE vendor_job_id = $1 AND body <> '' AND headers <> ''`, job), " ",
		r.number(`SELECT count(*) FROM delivery_log WHERE vendor_job_id = $1`, job))
}

// TestRetain: bodies go first, then rows, of settled jobs and of jobs that are
// nobody's here. What is about a job that has not settled stays, and goes when
// it has, however often the run went past it.
func TestRetain(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: func(c *pipeline.Config) {
		c.KeepBodies, c.KeepDeliveries, c.KeepLog = 24*time.Hour, 72*time.Hour, 48*time.Hour
	}})
	w := r.hooked("retain")
	r.exec(`INSERT INTO batches (name, kind, options, created_at) VALUES ('b', 'extract', '{}', now())`)
	for _, state := range []string{"settled", "accepted", "given_up"} {
		r.exec(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id, accepted_at)
			SELECT id, 'extract', $1, 'submit', '\x00', 1, now(), $1, now() FROM batches`, state)
	}
	r.exec(`INSERT INTO processed_events (vendor_job_id, event_type, received_at, state) VALUES ('held', 'x', now(), 'held')`)
	for _, job := range []string{"accepted", "settled", "given_up", "nobody's", "held"} {
		r.aged(w.ID, job, 300, 96*time.Hour)
		r.aged(w.ID, job, 10, 60*time.Hour)
		r.aged(w.ID, job, 10, 36*time.Hour)
		r.aged(w.ID, job, 10, time.Hour)
	}
	retain := func(want pipeline.Kept) {
		t.Helper()
		if got, err := r.pipe.Retain(t.Context()); got != want || err != nil {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	retain(pipeline.Kept{Emptied: 640, Deliveries: 600, Log: 620})
	for job, want := range map[string]string{
		"settled": "30 10 20", "nobody's": "30 10 20", "accepted": "330 330 330", "given_up": "330 330 330", "held": "330 330 330",
	} {
		if got := r.left(job); got != want {
			t.Errorf("%s: left %s, want %s", job, got, want)
		}
	}
	retain(pipeline.Kept{})
	r.exec(`UPDATE jobs SET state = 'settled' WHERE state = 'given_up'`)
	retain(pipeline.Kept{Emptied: 320, Deliveries: 300, Log: 310})
	if got := r.left("given_up"); got != "30 10 20" {
		t.Errorf("settled at last: left %s", got)
	}
	r.exec(`UPDATE jobs SET state = 'settled'`)
	r.exec(`DELETE FROM processed_events`)
	retain(pipeline.Kept{Emptied: 640, Deliveries: 600, Log: 620})
	retain(pipeline.Kept{})
	// What has been emptied is not gone through again.
	if got := r.text(`SELECT value FROM settings WHERE key = 'deliveries_emptied'`); got == "" {
		t.Error("how far the run came is not written down")
	}
}

// TestRetainByItself: one task for all replicas, on the timer.
func TestRetainByItself(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.RetainEvery = time.Second }})
	w := r.hooked("timer")
	r.aged(w.ID, "old", 3, 100*24*time.Hour)
	eventually(t, "what is old to go", func() bool { return r.left("old") == "0 0 0" })
}
