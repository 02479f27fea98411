package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/geonode/contracttest"
	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// patienceOfTests is how long a test waits for what must happen.
const patienceOfTests = 2 * time.Minute

// eventually waits until done holds.
func eventually(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	deadline := time.NewTimer(patienceOfTests)
	defer deadline.Stop()
	for gap := time.Millisecond; !done(); gap = min(gap*3/2, 60*time.Millisecond) { // Each look takes time from what it waits for.
		select {
		case <-deadline.C:
			tb.Fatalf("waited in vain for %s", what)
		case <-time.After(gap):
		}
	}
}

// await waits for a signal.
func await(tb testing.TB, what string, signal <-chan struct{}) {
	tb.Helper()
	select {
	case <-signal:
	case <-time.After(patienceOfTests):
		tb.Fatalf("waited in vain for %s", what)
	}
}

// number reads one number from the database; a NULL is zero.
func (r *rig) number(query string, args ...any) int64 {
	r.t.Helper()
	var n *int64
	if err := r.eyes.QueryRowContext(context.Background(), query, args...).Scan(&n); err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
	if n == nil {
		return 0
	}
	return *n
}

// text reads one text from the database; a NULL is "".
func (r *rig) text(query string, args ...any) string {
	r.t.Helper()
	var s *string
	if err := r.eyes.QueryRowContext(context.Background(), query, args...).Scan(&s); err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
	if s == nil {
		return ""
	}
	return *s
}

// exec changes the database behind the pipeline's back.
func (r *rig) exec(query string, args ...any) {
	r.t.Helper()
	if _, err := r.eyes.ExecContext(context.Background(), query, args...); err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
}

// vendorJobs is how many jobs the vendor made that carry the URL.
func (r *rig) vendorJobs(url string) int {
	n := 0
	books := r.sandbox.Books()
	for i := range books.Jobs {
		for _, u := range books.Jobs[i].Submitted {
			if u == url {
				n++
			}
		}
	}
	return n
}

// wantBatch compares the roll call of a batch.
func (r *rig) wantBatch(b *store.Batch, stored, failed, cancelled int64) {
	r.t.Helper()
	if b.Stored() != stored || b.Failed != failed || b.Cancelled != cancelled {
		r.t.Errorf("got %d stored, %d failed, %d cancelled, want %d, %d, %d\n%s",
			b.Stored(), b.Failed, b.Cancelled, stored, failed, cancelled, r.describe(b.ID))
	}
}

// code is the error code of an item.
func (r *rig) code(batch int64, url string) string {
	r.t.Helper()
	return r.text(`SELECT error_code FROM items WHERE batch_id = $1 AND url = $2`, batch, url)
}

// isJob reports whether a request reads one job, of whatever kind.
func isJob(r *http.Request) bool {
	return r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/jobs") &&
		(strings.HasPrefix(r.URL.Path, "/v1/extract/") || strings.HasPrefix(r.URL.Path, "/v1/batch/") || strings.HasPrefix(r.URL.Path, "/v1/crawl/"))
}

// isSubmit reports whether a request makes a job.
func isSubmit(r *http.Request) bool {
	return r.Method == http.MethodPost && (r.URL.Path == "/v1/extract" || r.URL.Path == "/v1/batch")
}

// breach marks an answer that is not as the contract wants it.
func breach(w http.ResponseWriter, why string) { w.Header().Set(contracttest.DeliberateHeader, why) }

// rewrite lets the sandbox answer and changes the JSON before it leaves. A
// why marks the answer as a breach of the contract.
func rewrite(w http.ResponseWriter, r *http.Request, next http.Handler, why string, change func(status int, body map[string]any)) {
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, r)
	body := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(rec.Body.Bytes()))
	dec.UseNumber()
	if err := dec.Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	change(rec.Code, body)
	answerJSON(w, rec.Code, body, why)
}

// answerProcessing answers a read of an extract job as a vendor that is not
// done with it.
func answerProcessing(w http.ResponseWriter, req *http.Request) {
	answerJSON(w, http.StatusOK, map[string]any{"job_id": path.Base(req.URL.Path), "status": "processing"}, "")
}

// unfinished makes every job look unfinished until the returned function is
// called, however fast the sandbox is.
func (r *rig) unfinished() func() {
	var done atomic.Bool
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isJob(req) || done.Load() {
			next.ServeHTTP(w, req)
			return
		}
		answerProcessing(w, req)
	})
	return func() { done.Store(true) }
}

// holdDeliveries keeps deliveries waiting at the door until the returned
// function is called.
func (r *rig) holdDeliveries() func() {
	open := make(chan struct{})
	release := sync.OnceFunc(func() { close(open) })
	r.t.Cleanup(release)
	r.receiver.swallow(func(*http.Request, []byte) bool {
		<-open
		return true
	})
	return release
}

func answerJSON(w http.ResponseWriter, status int, body any, why string) {
	encoded, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if why != "" {
		breach(w, why)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(encoded)))
	w.WriteHeader(status)
	_, _ = w.Write(encoded)
}

// refusal is the vendor's standard error.
func refusal(code string, retryable bool) map[string]any {
	return map[string]any{"code": code, "message": "said by the test", "correlation_id": "7f1c0f0e-0000-4000-8000-000000000000", "retryable": retryable}
}

// once runs a function the first time only, and tells when it began.
type once struct {
	taken atomic.Bool
	began chan struct{}
	free  chan struct{}
	open  sync.Once
}

func newOnce() *once { return &once{began: make(chan struct{}), free: make(chan struct{})} }

// hold blocks the first caller until release; the others pass. It reports
// whether the caller was the first.
func (o *once) hold() bool {
	if o.taken.Swap(true) {
		return false
	}
	close(o.began)
	<-o.free
	return true
}

func (o *once) release() { o.open.Do(func() { close(o.free) }) }

// shifted is a clock that a test can put forward.
type shifted struct{ by atomic.Int64 }

func (s *shifted) now() time.Time          { return time.Now().Add(time.Duration(s.by.Load())) }
func (s *shifted) forward(d time.Duration) { s.by.Add(int64(d)) }

// envelopeFor is the body of a delivery as the contract has it.
func envelopeFor(event, vendorJobID string) []byte {
	return fmt.Appendf(nil, `{"id":"5e0c9ad4-0000-4000-8000-000000000000","event":%q,"timestamp":"2026-11-29T12:00:00Z","data":{"job_id":%q,"status":"completed"}}`,
		event, vendorJobID)
}

// signedDelivery is a delivery to the endpoint as the vendor would send it.
func signedDelivery(endpoint, event, secret string, body []byte) pipeline.Incoming {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("X-Webhook-Event", event)
	h.Set("X-Webhook-Delivery-Id", "5e0c9ad4-0000-4000-8000-000000000000")
	h.Set("X-Webhook-Signature", sandbox.Sign(sandbox.SignatureForm{}, secret, "", "", body))
	return pipeline.Incoming{Endpoint: endpoint, Header: h, Body: body, Source: "192.0.2.1", ReceivedAt: time.Now()}
}

// testSecret is the secret of webhooks that a test makes itself.
const testSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"

// peek reads a request's body and puts it back.
func peek(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}
