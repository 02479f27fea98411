package sandbox

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rollcall/internal/geonode/contracttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(contracttest.Main(m)) }

// rig is a sandbox behind a real server, and a client of it.
type rig struct {
	*Sandbox
	t      *testing.T
	url    string
	client *http.Client
	mark   string // Why the next calls break the contract; empty when they don't.
}

// quick are settings under which nothing waits for long.
func quick() Config {
	return Config{
		RunTime: time.Millisecond, RetryGaps: []time.Duration{time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond},
		DelayUnit: 2 * time.Millisecond, ReorderHold: 200 * time.Millisecond, SlowMax: 40 * time.Millisecond,
		EarlyWait: 10 * time.Second, EarlyLag: 60 * time.Millisecond, Seed: 7,
	}
}

// setup starts a sandbox that ends with the test.
func setup(t *testing.T, cfg Config) *rig {
	t.Helper()
	box, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(contracttest.Handler(t, box.Handler(), "/_sandbox/"))
	client := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := box.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		server.Close()
	})
	return &rig{Sandbox: box, t: t, url: server.URL, client: client}
}

// bad sends a call that breaks the contract on purpose, which must be refused in the shape of a validation error.
func (r *rig) bad(method, path string, body any) doc {
	r.t.Helper()
	old := r.mark
	r.mark = "a bad request"
	a := r.call(method, path, body)
	r.mark = old
	if err := contracttest.ValidateBody("ValidationErrorBody", a.raw); err != nil {
		r.t.Errorf("%s %s: %v", method, path, err)
	}
	return a.want(422)
}

// answer is an HTTP answer, read to its end.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	raw    []byte
}

// try sends a call; body is JSON text or a value to encode.
func (r *rig) try(method, path string, body any) (answer, error) {
	r.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			r.t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, reader)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", DefaultAPIKey)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.mark != "" {
		req.Header.Set(contracttest.DeliberateHeader, r.mark)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return answer{r.t, resp.StatusCode, resp.Header, raw}, err
}

// call is try that must succeed as far as HTTP goes.
func (r *rig) call(method, path string, body any) answer {
	r.t.Helper()
	a, err := r.try(method, path, body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	if a.header.Get("X-Rollcall-Sandbox") != "1" {
		r.t.Errorf("%s %s: no sandbox header", method, path)
	}
	return a
}

// want checks the status and decodes the body.
func (a answer) want(status int) doc {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("got status %d, want %d: %s", a.status, status, a.raw)
	}
	return a.doc()
}

func (a answer) doc() doc {
	a.t.Helper()
	if len(a.raw) == 0 {
		return doc{a.t, nil}
	}
	var v any
	if err := json.Unmarshal(a.raw, &v); err != nil {
		a.t.Fatalf("body %q: %v", a.raw, err)
	}
	return doc{a.t, v}
}

// doc is decoded JSON, looked into by path.
type doc struct {
	t *testing.T
	v any
}

// at goes along keys (string) and positions (int).
func (d doc) at(path ...any) doc {
	d.t.Helper()
	v := d.v
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				d.t.Fatalf("%v: not an object at %q: %v", path, s, v)
			}
			if v, ok = m[s]; !ok {
				d.t.Fatalf("%v: no member %q in %v", path, s, m)
			}
		case int:
			l, ok := v.([]any)
			if !ok || s >= len(l) {
				d.t.Fatalf("%v: no element %d in %v", path, s, v)
			}
			v = l[s]
		}
	}
	return doc{d.t, v}
}

func (d doc) str(path ...any) string {
	d.t.Helper()
	s, ok := d.at(path...).v.(string)
	if !ok {
		d.t.Fatalf("%v is no string: %v", path, d.at(path...).v)
	}
	return s
}

func (d doc) num(path ...any) int {
	d.t.Helper()
	n, ok := d.at(path...).v.(float64)
	if !ok {
		d.t.Fatalf("%v is no number: %v", path, d.at(path...).v)
	}
	return int(n)
}

func (d doc) list(path ...any) []any {
	d.t.Helper()
	l, ok := d.at(path...).v.([]any)
	if !ok {
		d.t.Fatalf("%v is no list: %v", path, d.at(path...).v)
	}
	return l
}

func (d doc) isNull(path ...any) bool { d.t.Helper(); return d.at(path...).v == nil }

// finish reads a job until it has ended.
func (r *rig) finish(path string) doc {
	r.t.Helper()
	for {
		d := r.call("GET", path, nil).want(200)
		switch d.str("status") {
		case "completed", "failed", "cancelled":
			return d
		}
		if !sleep(r.t.Context(), 2*time.Millisecond) {
			r.t.Fatal("the test ended first")
		}
	}
}

// extract runs one URL as an async job to its end.
func (r *rig) extract(url string, formats ...string) doc {
	r.t.Helper()
	if len(formats) == 0 {
		formats = []string{"markdown", "html"}
	}
	body := map[string]any{"url": url, "formats": formats, "processing_mode": "async", "extract_links": true}
	return r.finish(r.call("POST", "/v1/extract", body).want(202).str("status_url"))
}

// batch submits URLs and returns the path of the job.
func (r *rig) batch(urls ...string) string {
	r.t.Helper()
	body := map[string]any{"urls": urls, "formats": []string{"markdown"}}
	return r.call("POST", "/v1/batch", body).want(202).str("status_url")
}

// received is one delivery that reached the receiver.
type received struct {
	header http.Header
	body   []byte
	status int // The answer it got.
}

// receiver is a webhook endpoint.
type receiver struct {
	url  string
	got  chan received
	mu   sync.Mutex
	next func(n int) int // The answer to the nth delivery.
	n    int
}

func newReceiver(t *testing.T, next func(n int) int) *receiver {
	t.Helper()
	rec := &receiver{got: make(chan received, 1000), next: next}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if err := contracttest.CheckDelivery(r.Header, body); err != nil {
			t.Errorf("delivery: %v", err)
		}
		rec.mu.Lock()
		rec.n++
		status := 200
		if rec.next != nil {
			status = rec.next(rec.n)
		}
		rec.mu.Unlock()
		rec.got <- received{r.Header.Clone(), body, status}
		w.WriteHeader(status)
	}))
	rec.url = server.URL
	t.Cleanup(server.Close)
	return rec
}

// take waits for the next delivery.
func (rec *receiver) take(t *testing.T) received {
	t.Helper()
	select {
	case d := <-rec.got:
		return d
	case <-time.After(time.Minute):
		t.Fatal("no delivery came")
		return received{}
	}
}

func (d received) doc(t *testing.T) doc {
	t.Helper()
	return answer{t: t, raw: d.body}.doc()
}

// hook subscribes and returns id and secret.
func (r *rig) hook(rec *receiver, event string) (string, string) {
	r.t.Helper()
	d := r.call("POST", "/v1/webhooks", map[string]any{"url": rec.url, "event_type": event}).want(201)
	return d.str("id"), d.str("secret")
}

// watch is Books, and a channel that is closed when they may have changed.
func (r *rig) watch() (Books, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Mutex.Unlock() // Or it would tell itself.
	return r.books(), r.mu.next()
}

// until waits for a condition on the books.
func (r *rig) until(what string, ok func(Books) bool) Books {
	r.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for {
		b, changed := r.watch()
		if ok(b) {
			return b
		}
		select {
		case <-changed:
		case <-deadline.C:
			r.t.Fatalf("never came true: %s", what)
		}
	}
}
