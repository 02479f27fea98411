package pipeline_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestCallsAreWrittenDown: what the vendor was asked over a whole batch is what
// the counts come to, the last of it written as a process stops; and each job
// knows when the vendor ended it.
func TestCallsAreWrittenDown(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	counted := func() int64 { return r.number(`SELECT coalesce(sum(n), 0) FROM call_counts`) }
	if err := r.pipe.FlushCalls(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, seen := counted(), atomic.Int64{}
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		seen.Add(1)
		next.ServeHTTP(w, req)
	})
	r.ended(r.submit(store.KindExtract, "https://shop.sandbox.test/1", "https://shop.sandbox.test/2"))
	eventually(t, "both jobs have settled", func() bool { return r.number(`SELECT count(*) FROM jobs WHERE state = 'settled'`) == 2 })
	if n := r.number(`SELECT count(*) FROM jobs WHERE vendor_ended_at BETWEEN accepted_at - interval '3 s' AND ended_at + interval '3 s'`); n != 2 {
		t.Errorf("%d of 2 jobs know when the vendor ended them", n)
	}
	other := r.newPipeline(setup{pipeline: func(c *pipeline.Config) { c.OnlySubmit = true }})
	if err := other.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.ListWebhooks(t.Context(), geonode.ListParams{}); err != nil {
		t.Fatal(err)
	}
	if err := other.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The first pipeline takes its share of the one client's calls, too, and may still be at it.
	if err := r.pipe.FlushCalls(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := counted() - before; got != seen.Load() || got < 5 {
		t.Errorf("%d calls are written down, the vendor saw %d", got, seen.Load())
	}
}
