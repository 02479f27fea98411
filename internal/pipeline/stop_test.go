package pipeline_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestStopCancelsWhatTakesTooLong: a look that hangs at the vendor is cut off
// when its time is up, before the caller closes what it needs.
func TestStopCancelsWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.SoftStop = 50 * time.Millisecond }})
	hangs := make(chan struct{})
	var once sync.Once
	var cut atomic.Bool
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isJob(req) {
			next.ServeHTTP(w, req)
			return
		}
		once.Do(func() { close(hangs) })
		<-req.Context().Done()
		cut.Store(true)
	})
	r.submit(store.KindExtract, sandbox.MadeURLs(1, 3)...)
	<-hangs
	ctx, cancel := context.WithTimeout(t.Context(), patienceOfTests)
	defer cancel()
	if err := r.pipe.Stop(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("got %v, and its time was up: %v", err, ctx.Err())
	}
	eventually(t, "the look to be cut off", cut.Load)
}
