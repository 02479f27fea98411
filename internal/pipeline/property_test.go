package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// life is one run of the property: some batches and what happened to them.
type life struct {
	r       *rig
	setup   setup
	steps   []string
	batches []int64
	urls    map[string]int64 // By URL, the batch.
	mu      sync.Mutex
	seen    []*http.Request // Deliveries that came, to be sent again.
}

// capture keeps deliveries as they come.
func (l *life) capture(req *http.Request, body []byte) bool {
	again := req.Clone(context.Background())
	again.Body = io.NopCloser(bytes.NewReader(body))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, again)
	return true
}

// submit submits a batch of pages that are like no other's.
func (l *life) submit(rt *rapid.T, run string) {
	kind := rapid.SampledFrom([]store.Kind{store.KindExtract, store.KindBatch, store.KindMixed}).Draw(rt, "kind")
	paths := rapid.SliceOfN(rapid.SampledFrom([]string{
		"item/1", "story/2", "topic/3", "fail/NOT_FOUND", "fail-retryable/1", "fail/SOMETHING", "slow/200ms", "nul",
	}), 1, 12).Draw(rt, "paths")
	var urls []string
	for i, p := range paths {
		urls = append(urls, fmt.Sprintf("https://shop.sandbox.test/%s?%s-%d-%d", p, run, len(l.batches), i))
	}
	id := l.r.submit(kind, urls...)
	l.batches = append(l.batches, id)
	for _, u := range urls {
		l.urls[u] = id
	}
}

// mix draws what goes wrong from now on.
func mix(rt *rapid.T) sandbox.Faults {
	faults := sandbox.Faults{}
	for _, name := range []string{
		sandbox.FaultDrop, sandbox.FaultDup, sandbox.FaultDelay, sandbox.FaultReorder, sandbox.FaultEarly, sandbox.FaultWrongSig,
		sandbox.FaultAlter, sandbox.FaultErr5xx, sandbox.FaultSlow, sandbox.FaultResetAfterAccept, sandbox.FaultTruncate, sandbox.FaultItemFail,
	} {
		faults[name] = rapid.SampledFrom([]float64{0, 0, 0, 0.1, 0.5}).Draw(rt, name)
	}
	return faults
}

// step does one thing that may happen at any time.
func (l *life) step(rt *rapid.T, run string) error {
	ctx := context.Background()
	what := rapid.SampledFrom([]string{"submit", "again", "poll", "reconcile", "settle", "sweep", "restart", "faults", "replica"}).Draw(rt, "step")
	l.steps = append(l.steps, what)
	switch what {
	case "submit":
		l.submit(rt, run)
	case "again":
		return l.again(rt)
	case "poll":
		_, err := l.r.pipe.Poll(ctx)
		return err
	case "reconcile":
		return l.r.pipe.ReconcileNow(ctx)
	case "settle":
		jobs := l.r.number(`SELECT coalesce(max(id), 1) FROM jobs`)
		return l.r.pipe.SettleNow(ctx, rapid.Int64Range(1, jobs).Draw(rt, "job"))
	case "sweep":
		return l.r.pipe.Sweep(ctx)
	case "restart", "replica":
		return l.restart(what == "replica")
	case "faults":
		return l.r.sandbox.SetFaults(mix(rt))
	}
	return nil
}

// again sends an earlier delivery once more.
func (l *life) again(rt *rapid.T) error {
	l.mu.Lock()
	if len(l.seen) == 0 {
		l.mu.Unlock()
		return nil
	}
	old := l.seen[rapid.IntRange(0, len(l.seen)-1).Draw(rt, "delivery")]
	body := peek(old)
	l.mu.Unlock()
	a := l.r.pipe.Receive(context.Background(), pipeline.Incoming{
		Endpoint: old.URL.Path[strings.LastIndex(old.URL.Path, "/")+1:], Header: old.Header, Body: []byte(body), Source: "127.0.0.1", ReceivedAt: time.Now(),
	})
	if a.Status != http.StatusOK && a.Status != http.StatusUnauthorized {
		return fmt.Errorf("redelivery: got %+v", a)
	}
	return nil
}

// restart replaces the process: first the new one, as replicas overlap, or
// first the end of the old one.
func (l *life) restart(overlap bool) error {
	old := l.r.pipe
	fresh := l.r.newPipeline(l.setup)
	stop := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		return old.Stop(ctx)
	}
	if !overlap {
		if err := stop(); err != nil {
			return err
		}
	}
	if err := fresh.Start(context.Background()); err != nil {
		return err
	}
	l.r.pipe = fresh
	l.r.receiver.pipe.Store(fresh)
	if overlap {
		return stop()
	}
	return nil
}

// TestAnyOrderEndsInTheVendorsTruth: whatever comes in whatever order, once the
// faults stop every URL is answered for as the vendor's books have it, and the
// vendor made no job that Rollcall doesn't know.
func TestAnyOrderEndsInTheVendorsTruth(t *testing.T) {
	t.Parallel()
	s := setup{pipeline: silent(func(c *pipeline.Config) {
		c.AdoptGap, c.URLsPerJob, c.WebhookFallback = 100*time.Millisecond, 5, 300*time.Millisecond
	})}
	r := newRig(t, s)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		l := &life{r: r, setup: s, urls: map[string]int64{}}
		r.receiver.swallow(l.capture)
		run := fmt.Sprintf("run%d", runs)
		l.submit(rt, run)
		for range rapid.IntRange(3, 12).Draw(rt, "steps") {
			if err := l.step(rt, run); err != nil {
				rt.Fatalf("after %v: %v", l.steps, err)
			}
		}
		if err := r.sandbox.SetFaults(nil); err != nil {
			rt.Fatal(err)
		}
		for _, id := range l.batches {
			r.ended(id)
		}
		r.balanced(l.batches...)
		l.wantNoUnknownJobs(rt)
		if r.t.Failed() {
			rt.Fatalf("after %v", l.steps)
		}
	})
}

// wantNoUnknownJobs compares the vendor's jobs with ours, by id.
func (l *life) wantNoUnknownJobs(rt *rapid.T) {
	books := l.r.sandbox.Books()
	for i := range books.Jobs {
		j := &books.Jobs[i]
		for _, u := range j.Submitted {
			if _, mine := l.urls[u]; mine && l.r.number(`SELECT count(*) FROM jobs WHERE vendor_job_id = $1`, j.ID) != 1 {
				rt.Errorf("the vendor's job %s for %s is not known here", j.ID, u)
			}
		}
	}
}
