package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// front stands between one process and the vendor. It lets every call through but those that a test has it hold.
type front struct {
	vendor http.Handler
	url    string

	mu    sync.Mutex
	holds []*hold
}

// callsAtOnce is how many submit calls a process makes at a time: when so many are held, it has begun no other.
const callsAtOnce = 8

// hold is a kind of call that is held open until release, or until its caller is gone.
type hold struct {
	match    func(*http.Request) bool
	answered bool // Only the answer is held: the vendor has had the call by then.
	arrived  chan struct{}
	free     chan struct{}
	once     sync.Once
}

// newFront opens a front before the desk's vendor.
func newFront(t *testing.T, d *desk) *front {
	t.Helper()
	f := &front{vendor: d.sandbox.Handler()}
	server := httptest.NewServer(f)
	f.url = server.URL
	t.Cleanup(func() {
		f.mu.Lock()
		holds := f.holds
		f.mu.Unlock()
		for _, h := range holds {
			h.release()
		}
		server.Close()
	})
	return f
}

// holding makes the front hold calls from now on: before the vendor has them or, with answered, its answers.
func (f *front) holding(answered bool, match func(*http.Request) bool) *hold {
	h := &hold{match: match, answered: answered, arrived: make(chan struct{}, 10_000), free: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holds = append(f.holds, h)
	return h
}

// release lets go of what is held, and of all that comes.
func (h *hold) release() { h.once.Do(func() { close(h.free) }) }

// wait waits until n calls are held.
func (h *hold) wait(t *testing.T, n int) {
	t.Helper()
	limit := time.After(patience)
	for got := range n {
		select {
		case <-h.arrived:
		case <-limit:
			t.Fatalf("%d calls are held, want %d", got, n)
		}
	}
}

// stay holds a call; it reports false when its caller is gone.
func (h *hold) stay(r *http.Request) bool {
	h.arrived <- struct{}{}
	select {
	case <-h.free:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (f *front) find(r *http.Request) *hold {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.holds {
		if h.match(r) {
			return h
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := f.find(r)
	if h == nil {
		f.vendor.ServeHTTP(w, r)
		return
	}
	// The end of the caller is noticed only once its body is read.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !h.answered {
		if !h.stay(r) {
			panic(http.ErrAbortHandler)
		}
		f.vendor.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	f.vendor.ServeHTTP(answer, r)
	if !h.stay(r) {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // The caller may have gone.
}

// submits matches calls that make a job.
func submits(r *http.Request) bool { return r.Method == http.MethodPost }

// after matches like match, but for the first n.
func after(n int32, match func(*http.Request) bool) func(*http.Request) bool {
	var seen atomic.Int32
	return func(r *http.Request) bool { return match(r) && seen.Add(1) > n }
}

// reads matches calls that ask for one job.
func reads(r *http.Request) bool {
	return r.Method == http.MethodGet && (strings.HasPrefix(r.URL.Path, "/v1/extract/") || strings.HasPrefix(r.URL.Path, "/v1/batch/")) &&
		!strings.HasSuffix(r.URL.Path, "/jobs")
}

// balancer gives the vendor's deliveries to the processes in turn, as a load balancer does that knows nothing of their
// health, and notes each answer.
type balancer struct {
	url string

	mu       sync.Mutex
	backends []string
	next     int
	answers  []answered
	changed  chan struct{} // Closed with each answer.
	closed   chan struct{} // Deliveries wait for it; nil when they don't.
	waiting  int
}

// answered is a delivery and what the sender was told; no status means that nobody answered.
type answered struct {
	delivery, job string
	status        int
	took          time.Duration // From when a process was asked.
}

// vendorWaits is how long the vendor waits for the answer to a delivery.
const vendorWaits = 10 * time.Second

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	b := &balancer{changed: make(chan struct{})}
	server := httptest.NewServer(b)
	b.url = server.URL
	t.Cleanup(func() {
		b.open()
		server.Close()
	})
	return b
}

// to sets the processes.
func (b *balancer) to(addresses ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = addresses
}

// close keeps deliveries waiting until open.
func (b *balancer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = make(chan struct{})
}

func (b *balancer) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed != nil {
		close(b.closed)
		b.closed = nil
	}
}

// turn is the next process, and what to wait for before.
func (b *balancer) turn() (string, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed != nil {
		b.waiting++
		close(b.changed)
		b.changed = make(chan struct{})
	}
	b.next++
	return b.backends[b.next%len(b.backends)], b.closed
}

// ServeHTTP implements http.Handler.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var envelope struct {
		Data struct {
			JobID string `json:"job_id"`
		} `json:"data"`
	}
	_ = json.Unmarshal(body, &envelope) // What isn't one has no job.
	backend, wait := b.turn()
	if wait != nil {
		select {
		case <-wait:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // No process was asked, so there is no answer to note.
		}
	}
	target, err := url.Parse(backend)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	a := answered{delivery: r.Header.Get("X-Webhook-Delivery-Id"), job: envelope.Data.JobID}
	asked := time.Now()
	defer func() {
		a.took = time.Since(asked)
		b.note(a)
	}()
	(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) },
		ModifyResponse: func(res *http.Response) error {
			a.status = res.StatusCode
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}).ServeHTTP(w, r)
}

func (b *balancer) note(a answered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = append(b.answers, a)
	close(b.changed)
	b.changed = make(chan struct{})
}

// all is what was answered so far, and how many deliveries were kept waiting.
func (b *balancer) all() ([]answered, int, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clip(b.answers), b.waiting, b.changed
}

// until waits for deliveries.
func (b *balancer) until(t *testing.T, what string, done func(answers []answered, waiting int) bool) {
	t.Helper()
	limit := time.After(patience)
	for {
		answers, waiting, changed := b.all()
		if done(answers, waiting) {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%s: not within a minute; %d answers, %d waited", what, len(answers), waiting)
		}
	}
}
