package pipeline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// knob is a switch of the sandbox, by its JSON name, with all its values.
type knob struct {
	name   string
	values []any
}

func knobs() []knob {
	all := []knob{
		{"signature.encoding", []any{"hex", "HEX", "base64", "base64url"}},
		{"signature.prefix", []any{"", "sha256=", "v1=", "v1,"}},
		{"signature.signed", []any{"body", "id.body", "timestamp.body"}},
		{"signature.key", []any{"whole", "rest", "base64"}},
		{"callback_body", []any{"summary", "full", "empty"}},
		{"list_order", []any{"newest", "oldest", "shuffled"}},
		{"error_body", []any{"standard", "empty", "html", "text", "detail"}},
		{"disable_after", []any{0, 2}},
	}
	for _, name := range []string{
		"events_for_failed", "events_for_cancelled", "delivery_id_per_attempt", "retries_keep_signature", "paused_keep",
		"index_accepted", "invalid_objects", "sync_listed", "sync_fires", "children_listed", "children_fire",
		"cancel_freezes", "cancelled_omitted", "log_without_job", "results_shuffled", "plan_detail",
	} {
		all = append(all, knob{name, []any{false, true}})
	}
	return all
}

// pair is two knobs, the lower first, with a value each; all four by number.
type pair struct{ a, av, b, bv int }

// allPairs are all there are, in order.
func allPairs(all []knob) []pair {
	var out []pair
	for a := range all {
		for b := a + 1; b < len(all); b++ {
			for av := range all[a].values {
				for bv := range all[b].values {
					out = append(out, pair{a, av, b, bv})
				}
			}
		}
	}
	return out
}

// row is a value, by number, for each knob; -1 where none is chosen yet.
type row []int

func (r row) holds(p pair) bool { return r[p.a] == p.av && r[p.b] == p.bv }

// gain is how many open pairs the knob at brings with a value.
func (r row) gain(at, value int, open map[pair]bool) int {
	n := 0
	for other, v := range r {
		switch {
		case v < 0 || other == at:
		case other < at && open[pair{other, v, at, value}], other > at && open[pair{at, value, other, v}]:
			n++
		}
	}
	return n
}

// cover finds rows that together hold every pair of values: greedily, the best
// of some candidates each time, and the same rows in every run.
func cover(all []knob) []row {
	dice := rand.New(rand.NewPCG(1, 2))
	left, open := allPairs(all), map[pair]bool{}
	for _, p := range left {
		open[p] = true
	}
	var rows []row
	for len(left) > 0 {
		var best row
		most := 0
		for range 40 {
			candidate, n := fill(all, left[dice.IntN(len(left))], open, dice)
			if n > most {
				best, most = candidate, n
			}
		}
		rows = append(rows, best)
		left = slices.DeleteFunc(left, best.holds)
		maps.DeleteFunc(open, func(p pair, _ bool) bool { return best.holds(p) })
	}
	return rows
}

// fill makes a row around one open pair, knob by knob the value that brings
// most, and tells how many open pairs it holds.
func fill(all []knob, first pair, open map[pair]bool, dice *rand.Rand) (row, int) {
	r := slices.Repeat(row{-1}, len(all))
	r[first.a], r[first.b] = first.av, first.bv
	total := 1
	for _, at := range dice.Perm(len(all)) {
		if r[at] >= 0 {
			continue
		}
		most, value := -1, 0
		for v := range all[at].values {
			if n := r.gain(at, v, open); n > most {
				most, value = n, v
			}
		}
		r[at] = value
		total += most
	}
	return r, total
}

// switches is the row in the sandbox's form; a name that the sandbox doesn't
// know is an error.
func (r row) switches(all []knob) (sandbox.Switches, error) {
	tree := map[string]any{"signature": map[string]any{}}
	for i, k := range all {
		at, name := tree, k.name
		if group, inner, nested := strings.Cut(k.name, "."); nested {
			at, name = tree[group].(map[string]any), inner
		}
		at[name] = k.values[r[i]]
	}
	var s sandbox.Switches
	text, err := json.Marshal(tree)
	if err != nil {
		return s, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err = dec.Decode(&s)
	return s, err
}

// members lists the members of JSON with the way to them.
func members(prefix string, tree map[string]any) []string {
	var out []string
	for name, v := range tree {
		if inner, ok := v.(map[string]any); ok {
			out = append(out, members(prefix+name+".", inner)...)
			continue
		}
		out = append(out, prefix+name)
	}
	return out
}

// TestEverySwitchHasItsKnob: a switch that is new in the sandbox must get its
// values here, and the rows must hold each pair of values.
func TestEverySwitchHasItsKnob(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(sandbox.Switches{})
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	all := knobs()
	var have []string
	for _, k := range all {
		have = append(have, k.name)
	}
	want := members("", tree)
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("got knobs for %q, want for %q", have, want)
	}
	rows, pairs := cover(all), allPairs(all)
	for _, p := range pairs {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.holds(p) }) {
			t.Errorf("no row holds %s %v with %s %v", all[p.a].name, all[p.a].values[p.av], all[p.b].name, all[p.b].values[p.bv])
		}
	}
	t.Logf("%d rows hold %d pairs", len(rows), len(pairs))
}

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
	all := knobs()
	for i, r := range cover(all) {
		t.Run(fmt.Sprintf("row %02d", i), func(t *testing.T) {
			t.Parallel()
			switches, err := r.switches(all)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if t.Failed() {
					t.Logf("switches: %+v", switches)
				}
			}()
			underSwitches(t, uint64(i), switches)
		})
	}
}

// underSwitches lives through one row.
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
			c.AdoptGap, c.CancelGrace = 100*time.Millisecond, 1500*time.Millisecond
			c.RetryGaps = []time.Duration{1} // Each waits for the queue's scheduler, which comes every 5 s.
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
