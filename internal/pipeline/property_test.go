package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// world is what the runs of the property share.
type world struct {
	r     *rig
	proc  *process
	clock *shifted
	stuck atomic.Bool  // Reads show every job running.
	calls sync.RWMutex // Held for reading by calls that submit, else by the time.
	runs  int
	mu    sync.Mutex
	seen  []*http.Request   // Deliveries that came, to be sent again.
	said  map[string][]said // By URL, what was answered to sync calls.
}

// life is one run of the property: some submissions and what happened to them.
type life struct {
	*world
	name     string
	steps    []string
	batches  []int64
	expected map[int64][]string // The URLs of each batch, as submitted.
	tries    map[string]try     // By URL, the sync calls.
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{clock: &shifted{}, said: map[string][]said{}}
	w.r = newRig(t, setup{stopped: true, noWebhooks: true, sandbox: func(c *sandbox.Config) {
		c.Now, c.LateFor, c.EarlyWait = w.clock.now, 300*time.Millisecond, 300*time.Millisecond
	}, pipeline: w.config})
	w.r.front.set(func(rw http.ResponseWriter, req *http.Request, next http.Handler) {
		if w.stuck.Load() && isJob(req) {
			answerProcessing(rw, req)
			return
		}
		if req.Method == http.MethodPost {
			w.calls.RLock()
			defer w.calls.RUnlock()
			w.overhear(rw, req, next)
			return
		}
		next.ServeHTTP(rw, req)
	})
	w.r.receiver.swallow(w.capture)
	if err := w.begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.proc.pipe.RegisterWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.proc.stop(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// config is a process's, with everything that waits waiting for less.
func (w *world) config(c *pipeline.Config) {
	silent(nil)(c)
	c.Now, c.AdoptGap, c.URLsPerJob, c.WebhookFallback = w.clock.now, 300*time.Millisecond, 5, 300*time.Millisecond
	c.GiveUpAfter, c.CancelGrace, c.MissingGap = time.Hour, 700*time.Millisecond, 400*time.Millisecond
}

// begin starts another process in place of the one that is gone.
func (w *world) begin() error {
	p, err := w.r.newProcess(w.config)
	if err == nil {
		w.proc = p
	}
	return err
}

// capture keeps deliveries as they come.
func (w *world) capture(req *http.Request, body []byte) bool {
	again := req.Clone(context.Background())
	again.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, again)
	return true
}

// page is a URL that is like no other.
func (l *life) page(path string) string {
	n := 0
	for _, urls := range l.expected {
		n += len(urls)
	}
	return fmt.Sprintf("https://shop.sandbox.test/%s?%s-%d-%d", path, l.name, n, len(l.tries))
}

// submit submits some pages or a crawl.
func (l *life) submit(rt *rapid.T) string {
	kind := rapid.SampledFrom([]store.Kind{store.KindExtract, store.KindBatch, store.KindMixed, store.KindCrawl}).Draw(rt, "kind")
	s := pipeline.Submission{Kind: kind, Options: pipeline.Options{Formats: []string{"markdown", "html"}}}
	var urls []string
	if kind == store.KindCrawl {
		s.Options.Crawl = &pipeline.CrawlOptions{Depth: 2, Limit: rapid.IntRange(1, 8).Draw(rt, "limit"), SameDomainOnly: true}
		urls = []string{l.page("item/1")}
	} else {
		for i, p := range rapid.SliceOfN(rapid.SampledFrom([]string{
			"item/1", "story/2", "topic/3", "fail/NOT_FOUND", "fail-retryable/1", "fail/SOMETHING", "slow/200ms", "nul",
		}), 1, 10).Draw(rt, "paths") {
			urls = append(urls, fmt.Sprintf("%s-%d", l.page(p), i))
		}
	}
	s.Text = strings.Join(urls, "\n")
	got, err := l.proc.pipe.Submit(context.Background(), s)
	if err != nil {
		rt.Fatal(err)
	}
	l.batches = append(l.batches, got.BatchID)
	l.expected[got.BatchID] = urls
	return fmt.Sprintf("%s of %d as %d", kind, len(urls), got.BatchID)
}

// try asks for one page at once.
func (l *life) try(rt *rapid.T) string {
	url := l.page(rapid.SampledFrom([]string{"item/1", "fail/NOT_FOUND"}).Draw(rt, "path")) + "-try"
	got, err := l.proc.pipe.TryNow(context.Background(), pipeline.Submission{Text: url, Options: pipeline.Options{Formats: []string{"markdown", "html"}}})
	if err != nil {
		rt.Fatal(err)
	}
	l.tries[url] = try{got.BatchID, len(l.steps)}
	return fmt.Sprintf("as %d", got.BatchID)
}

// mix draws what goes wrong from now on.
func mix(rt *rapid.T) sandbox.Faults {
	faults := sandbox.Faults{}
	for _, name := range []string{
		sandbox.FaultDrop, sandbox.FaultDup, sandbox.FaultDelay, sandbox.FaultReorder, sandbox.FaultEarly, sandbox.FaultWrongSig,
		sandbox.FaultAlter, sandbox.FaultErr5xx, sandbox.FaultSlow, sandbox.FaultResetAfterAccept, sandbox.FaultTruncate,
		sandbox.FaultItemFail, sandbox.FaultLateRows, sandbox.FaultVendorCancel, sandbox.FaultRateLimitBare, sandbox.FaultBalanceOut,
	} {
		faults[name] = rapid.SampledFrom([]float64{0, 0, 0, 0.1, 0.5}).Draw(rt, name)
	}
	return faults
}

// step does one thing that may happen at any time, and notes it.
func (l *life) step(rt *rapid.T) {
	what := rapid.SampledFrom([]string{
		"submit", "submit", "try", "again", "poll", "reconcile", "settle", "sweep", "restart", "replica", "crash", "faults",
		"cancel", "resubmit", "time", "stuck",
	}).Draw(rt, "step")
	at := len(l.steps)
	l.steps = append(l.steps, what)
	detail, err := l.do(rt, what)
	if detail != "" {
		l.steps[at] += " " + detail
	}
	if err != nil {
		rt.Fatalf("%v\nafter %s", err, strings.Join(l.steps, "; "))
	}
}

// do returns what it did in detail.
func (l *life) do(rt *rapid.T, what string) (string, error) {
	ctx, pipe := context.Background(), l.proc.pipe
	switch what {
	case "submit":
		return l.submit(rt), nil
	case "try":
		return l.try(rt), nil
	case "again":
		return "", l.again(rt)
	case "poll":
		_, err := pipe.Poll(ctx)
		return "", err
	case "reconcile":
		return "", pipe.ReconcileNow(ctx)
	case "settle":
		job := rapid.Int64Range(1, max(1, l.r.number(`SELECT max(id) FROM jobs`))).Draw(rt, "job")
		return strconv.FormatInt(job, 10), pipe.SettleNow(ctx, job)
	case "sweep":
		return "", pipe.Sweep(ctx)
	case "faults":
		faults := mix(rt)
		return faults.String(), l.r.sandbox.SetFaults(faults)
	case "time":
		d := rapid.SampledFrom([]time.Duration{20 * time.Second, 20 * time.Minute, 90 * time.Minute}).Draw(rt, "time")
		// A call that takes hours is none that a claim was made for.
		l.calls.Lock()
		l.clock.forward(d)
		l.calls.Unlock()
		return d.String(), nil
	case "stuck":
		l.stuck.Store(!l.stuck.Load())
		return "", nil
	}
	return l.drastic(rt, what)
}

// drastic does what a person, or a crash, does.
func (l *life) drastic(rt *rapid.T, what string) (string, error) {
	old := l.proc
	switch what {
	case "restart":
		if err := old.stop(); err != nil {
			return "", err
		}
		return "", l.begin()
	case "replica":
		if err := l.begin(); err != nil {
			return "", err
		}
		return "", old.stop()
	case "crash":
		l.r.crash(old)
		return "", l.begin()
	}
	id := rapid.SampledFrom(l.batches).Draw(rt, "batch")
	if what == "cancel" {
		_, err := old.pipe.CancelBatch(context.Background(), id)
		return strconv.FormatInt(id, 10), err
	}
	done, err := old.pipe.Resubmit(context.Background(), l.r.itemIDs(id), store.AsPlanned{})
	return fmt.Sprintf("%d: %d items", id, done.Items), err
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
	a := l.proc.pipe.Receive(context.Background(), pipeline.Incoming{
		Endpoint: old.URL.Path[strings.LastIndex(old.URL.Path, "/")+1:], Header: old.Header, Body: []byte(body), Source: "127.0.0.1", ReceivedAt: l.clock.now(),
	})
	if a.Status != http.StatusOK && a.Status != http.StatusUnauthorized {
		return fmt.Errorf("redelivery: got %+v", a)
	}
	return nil
}

// TestAnyOrderEndsInTheVendorsTruth: whatever comes in whatever order, once the
// faults stop every URL is answered for as the vendor's books have it, and the
// vendor made no job that Rollcall doesn't know.
func TestAnyOrderEndsInTheVendorsTruth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		w.runs++
		l := &life{world: w, name: fmt.Sprintf("run%d", w.runs), expected: map[int64][]string{}, tries: map[string]try{}}
		l.steps = []string{"submit " + l.submit(rt)}
		for range rapid.IntRange(3, 10).Draw(rt, "steps") {
			l.step(rt)
		}
		w.stuck.Store(false)
		if err := w.r.sandbox.SetFaults(nil); err != nil {
			rt.Fatal(err)
		}
		l.settleAll(rt)
		if wrong := l.wrong(); len(wrong) > 0 {
			rt.Fatalf("%s\nafter %s", strings.Join(wrong, "\n"), strings.Join(l.steps, "; "))
		}
	})
}
