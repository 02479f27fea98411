package pipeline_test

import (
	"net/http"
	"testing"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestIdleWaitsForAllThatASubmitCaused, and no longer.
func TestIdleWaitsForAllThatASubmitCaused(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: deaf, noWebhooks: true})
	calling := newOnce()
	t.Cleanup(calling.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSubmit(req) {
			calling.hold()
		}
		next.ServeHTTP(w, req)
	})
	id := r.submit(store.KindExtract, sandbox.MadeURLs(20, 5)...)
	await(t, "a call", calling.began)
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		if err := r.pipe.Idle(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "the other calls", func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND state = 'accepted'`, id) == 19
	})
	select {
	case <-idle:
		t.Error("Idle returned while a call was under way")
	default:
	}
	calling.release()
	await(t, "Idle", idle)
	if got := r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND state = 'accepted'`, id); got != 20 {
		t.Errorf("got %d accepted jobs, want 20", got)
	}
}
