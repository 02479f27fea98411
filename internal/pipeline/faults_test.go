package pipeline_test

import (
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestEachFaultAlone: under each of the sandbox's faults every kind of batch is
// answered for, and as the vendor's books say. `make faults` does the same on a
// larger scale.
func TestEachFaultAlone(t *testing.T) {
	t.Parallel()
	for _, fault := range sandbox.FaultNames() {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			hopeless := fault == sandbox.FaultNever || fault == sandbox.FaultForget
			r := newRig(t, faulty(hopeless))
			// The webhooks are there before the fault is.
			if err := r.sandbox.SetFaults(sandbox.Faults{fault: rateOf(fault)}); err != nil {
				t.Fatal(err)
			}
			urls := sandbox.MadeURLs(24, 1)
			ids := []int64{
				r.submit(store.KindExtract, urls[:8]...), r.submit(store.KindBatch, urls[8:]...),
				r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 3, Limit: 10, SameDomainOnly: true}),
			}
			for _, id := range ids {
				r.crawled(id)
			}
			r.balanced()
			if !hopeless {
				r.wantTrue(ids...)
				return
			}
			if n := r.number(`SELECT count(*) FROM items WHERE state <> 'stored' AND error_code NOT IN ('GAVE_UP', 'VENDOR_FORGOT')`); n != 0 {
				t.Errorf("%d items ended otherwise than by being given up", n)
			}
		})
	}
}

// rateOf is 0.3, and less of refusals that keep everybody waiting for seconds.
func rateOf(fault string) float64 {
	if strings.HasPrefix(fault, sandbox.FaultRateLimit) {
		return 0.12
	}
	return 0.3
}

// faulty is a rig in which what a fault delays comes soon.
func faulty(hopeless bool) setup {
	return setup{
		sandbox: func(c *sandbox.Config) { c.LateFor, c.SpellLength = 200*time.Millisecond, 200*time.Millisecond },
		pipeline: silent(func(c *pipeline.Config) {
			c.MissingGap, c.ForgottenAfter, c.ReconcileEvery = 400*time.Millisecond, 200*time.Millisecond, 3*time.Second
			if hopeless {
				c.GiveUpAfter = 5 * time.Second
			}
		}),
	}
}
