package pipeline_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestChargeBeyondReason: a charge that no counter could hold keeps neither
// its page nor its batch from being stored.
func TestChargeBeyondReason(t *testing.T) {
	t.Parallel()
	for _, kind := range []store.Kind{store.KindExtract, store.KindBatch} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.Mode = pipeline.ModePoll }})
			huge := json.Number("9000000000000")
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if !isJob(req) {
					next.ServeHTTP(w, req)
					return
				}
				rewrite(w, req, next, "", func(_ int, body map[string]any) {
					if body["tokens_charged"] != nil {
						body["tokens_charged"] = huge
					}
					results, _ := body["results"].([]any)
					for _, row := range results {
						if meta, ok := row.(map[string]any)["metadata"].(map[string]any); ok {
							meta["tokens_charged"] = huge
						}
					}
				})
			})
			id := r.submit(kind, "https://shop.sandbox.test/item/1", "https://shop.sandbox.test/item/2")
			b := r.ended(id)
			r.wantBatch(b, 2, 0, 0)
			if b.Charged != 2 {
				t.Errorf("got %d charged, want one for each page", b.Charged)
			}
			r.balanced(id)
		})
	}
}

// TestLateLookAtAClosedGate: the deadline passed while nobody could ask, and
// the gate is closed for a moment. The vendor is asked before the job is
// given up: its result is there.
func TestLateLookAtAClosedGate(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) {
		c.Mode, c.NoPoll, c.Now = pipeline.ModePoll, true, clock.now
	})})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	job := r.accepted(id)
	clock.forward(80 * time.Hour)
	r.exec(`UPDATE gates SET closed_until = $1, closings = 1 WHERE name = 'read'`, clock.now().Add(2*time.Second))
	if err := r.pipe.SettleNow(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	r.wantBatch(r.ended(id), 1, 0, 0)
}
