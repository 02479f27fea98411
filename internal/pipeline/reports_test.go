package pipeline_test

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// hears counts what is told of a batch from now on.
func (r *rig) hears(batch int64) *atomic.Int64 {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	var count atomic.Int64
	listening, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		r.store.Listen(ctx, store.ChannelBatch, func(payload string) {
			switch payload {
			case "":
				close(listening)
			case strconv.FormatInt(batch, 10):
				count.Add(1)
			}
		}, func(err error) { r.t.Errorf("the listener was lost: %v", err) })
	}()
	r.t.Cleanup(func() {
		cancel()
		<-done
	})
	await(r.t, "the listener", listening)
	return &count
}

// TestReportsAreTold: as long as no item of a large job is home, the vendor's
// counters are all that pages can show to move. A reading without news is not
// told.
func TestReportsAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: deaf, sandbox: func(c *sandbox.Config) { c.RunTime = time.Hour }})
	var completed, reads atomic.Int64
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isJob(req) {
			next.ServeHTTP(w, req)
			return
		}
		rewrite(w, req, next, "", func(_ int, body map[string]any) {
			body["completed_urls"], body["pending_urls"] = completed.Load(), 10-completed.Load()
		})
		reads.Add(1)
	})
	id := r.submit(store.KindBatch, sandbox.MadeURLs(10, 3)...)
	job := r.accepted(id)
	told := r.hears(id)
	for i, step := range []struct{ completed, told int64 }{{3, 1}, {3, 1}, {7, 2}} {
		completed.Store(step.completed)
		r.settleNow(job)
		eventually(t, "a reading, told when it brought news", func() bool {
			return reads.Load() > int64(i) && told.Load() >= step.told
		})
	}
	if got := told.Load(); got != 2 {
		t.Errorf("told %d times of two changes", got)
	}
	if got := r.text(`SELECT vendor_reports->>'completed' FROM jobs WHERE id = $1`, job); got != "7" {
		t.Errorf("completed: got %s, want 7", got)
	}
}
