package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// mildFaults are some of everything that passes.
func mildFaults() sandbox.Faults {
	return sandbox.Faults{
		sandbox.FaultDrop: 0.1, sandbox.FaultDup: 0.1, sandbox.FaultDelay: 0.1, sandbox.FaultReorder: 0.05, sandbox.FaultEarly: 0.1,
		sandbox.FaultWrongSig: 0.1, sandbox.FaultAlter: 0.05, sandbox.FaultRateLimitBare: 0.02, sandbox.FaultErr5xx: 0.03,
		sandbox.FaultResetAfterAccept: 0.1, sandbox.FaultTruncate: 0.03, sandbox.FaultLateRows: 0.1, sandbox.FaultItemFail: 0.1,
	}
}

// TestEveryPairOfSwitches: however the contract's open points are settled, and
// any two of them together, the roll call balances and is the vendor's truth,
// URL by URL.
func TestEveryPairOfSwitches(t *testing.T) {
	t.Parallel()
	for i, switches := range sandbox.SwitchPairs() {
		t.Run(fmt.Sprintf("setting %02d", i), func(t *testing.T) {
			t.Parallel()
			defer func() {
				if t.Failed() {
					t.Logf("switches: %+v", switches)
				}
			}()
			underSwitches(t, uint64(i), switches)
		})
	}
}

// underSwitches lives through one setting.
func underSwitches(t *testing.T, seed uint64, switches sandbox.Switches) {
	t.Helper()
	r := newRig(t, setup{
		sandbox: func(c *sandbox.Config) {
			c.Seed, c.Switches, c.LateFor, c.EarlyLag = seed, switches, 200*time.Millisecond, 100*time.Millisecond
			c.MaxURLsPerBatch = 8
			c.Parallelism = 12 // So that a cancelled job has pages that run and pages that don't.
		},
		pipeline: silent(func(c *pipeline.Config) {
			c.WebhookFallback, c.MissingGap = 300*time.Millisecond, 250*time.Millisecond
			// Two looks are to be further apart than the vendor may take over a call on a busy machine.
			c.AdoptGap, c.CancelGrace = time.Second, 1500*time.Millisecond
			c.RetryGaps = []time.Duration{0} // Another waits for the queue's scheduler, which comes every 5 s.
		}),
	})
	r.front.set(aside)
	faults := mildFaults()
	if switches.ChildrenListed {
		// A crawl's page that is sent again by itself and the vendor's own job for
		// that page are alike: when the answer is lost, either may be adopted.
		faults[sandbox.FaultItemFail] = 0
	}
	if err := r.sandbox.SetFaults(faults); err != nil {
		t.Fatal(err)
	}
	resume := r.pauseWebhook("extract_completed")
	page := fmt.Sprintf("https://shop.sandbox.test/item/%d?crawl-", seed+1)
	crawl := pipeline.CrawlOptions{Depth: 2, Limit: 12, SameDomainOnly: true}
	batches := []int64{r.submitMany(seed), r.submitSingles(seed), r.startCrawl(page+"whole", crawl)}
	cancelled := []int64{r.submitSlow(seed), r.startCrawl(page+"cancelled", crawl)}
	r.foreignSync()
	for _, id := range cancelled {
		r.cancelAtTheVendor(id)
	}
	if err := r.pipe.ReconcileNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	resume()
	batches = append(batches, cancelled...)
	for _, id := range batches {
		r.crawled(id)
	}
	r.wantTrue(batches...)
	r.wantVerified(switches)
}

// wantVerified wants every delivery to have been taken whose signature was not
// spoilt on purpose.
func (r *rig) wantVerified(switches sandbox.Switches) {
	r.t.Helper()
	sent := r.sandbox.Books().Deliveries
	spoilt := int64(sent.WrongSignature + sent.Altered)
	refused := r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'refused'`)
	if refused > 2*spoilt { // One that was sent twice is refused twice.
		r.t.Errorf("%d deliveries were refused, and %d spoilt", refused, spoilt)
	}
	if taken := r.number(`SELECT count(*) FROM deliveries WHERE verdict <> 'refused'`); taken == 0 && switches.DisableAfter == 0 {
		r.t.Errorf("no delivery was taken of %d", sent.Attempts)
	}
}

// submitMany submits a batch with everything that a list of URLs may hold.
func (r *rig) submitMany(seed uint64) int64 {
	r.t.Helper()
	page := func(path string) string { return fmt.Sprintf("https://shop.sandbox.test/%s?many-%d", path, seed) }
	lines := []string{
		page("item/1"), asideHere + "/one", page("item/2"), "no url at all", page("fail/NOT_FOUND"), page("fail-retryable/1"),
		page("item/1"), page("nul"), page("story/3"), page("empty"), page("topic/4"), page("fail/TARGET_HTTP_503"),
	}
	got, err := r.pipe.Submit(r.t.Context(), pipeline.Submission{
		Kind: store.KindBatch, Text: strings.Join(lines, "\n"), LeaveOutBad: true, Options: pipeline.Options{Formats: []string{"markdown", "html"}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if got.Submitted != 12 || got.Invalid != 1 || got.Duplicate != 1 || got.Accepted != 10 {
		r.t.Errorf("got %+v, want 12 lines, one invalid, one a duplicate", got)
	}
	return got.BatchID
}

// submitSingles submits some extract jobs.
func (r *rig) submitSingles(seed uint64) int64 {
	r.t.Helper()
	var urls []string
	for _, path := range []string{"item/5", "fail/NOT_FOUND", "fail-retryable/1", "plain/x"} {
		urls = append(urls, fmt.Sprintf("https://news.sandbox.test/%s?single-%d", path, seed))
	}
	return r.submit(store.KindExtract, urls...)
}

// submitSlow submits a batch of pages that take their time.
func (r *rig) submitSlow(seed uint64) int64 {
	r.t.Helper()
	var urls []string
	for i := range 10 {
		urls = append(urls, fmt.Sprintf("https://shop.sandbox.test/slow/300ms?slow-%d-%d", seed, i))
	}
	return r.submit(store.KindBatch, urls...)
}

// cancelAtTheVendor cancels a batch once the vendor has it, or may have it.
func (r *rig) cancelAtTheVendor(batch int64) {
	r.t.Helper()
	eventually(r.t, "the call", func() bool {
		return r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND state IN ('intended', 'calling')`, batch) == 0
	})
	if _, err := r.pipe.CancelBatch(r.t.Context(), batch); err != nil {
		r.t.Fatal(err)
	}
}

// pauseWebhook switches a webhook of ours off at the vendor until the returned
// function is called.
func (r *rig) pauseWebhook(event string) func() {
	r.t.Helper()
	id := r.text(`SELECT vendor_webhook_id FROM webhooks WHERE event_type = $1`, event)
	set := func(active bool) {
		eventually(r.t, "the vendor to change the webhook", func() bool {
			_, err := r.client.UpdateWebhook(r.t.Context(), id, geonode.WebhookUpdate{IsActive: &active})
			return err == nil
		})
	}
	set(false)
	return func() { set(true) }
}

// foreignSync fetches a page by a sync call that is none of Rollcall's; it may
// stand in the vendor's lists, and fire.
func (r *rig) foreignSync() {
	r.t.Helper()
	eventually(r.t, "a sync call", func() bool {
		_, err := r.client.ExtractSync(r.t.Context(), geonode.ExtractRequest{
			URL: "https://forum.sandbox.test/plain/foreign", Options: geonode.Options{Formats: []geonode.Format{geonode.FormatMarkdown}},
		})
		return err == nil
	})
}
