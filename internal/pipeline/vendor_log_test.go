package pipeline_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// vendorLog is the delivery log of one webhook, as a vendor would list it.
type vendorLog struct {
	mu    sync.Mutex
	rows  []map[string]any // Oldest first.
	order func([]map[string]any) []map[string]any
	asked []int // The pages.
	// fail refuses the page from now on; zero refuses none.
	fail int
}

func newestFirst(rows []map[string]any) []map[string]any {
	slices.Reverse(rows)
	return rows
}

func oldestFirst(rows []map[string]any) []map[string]any { return rows }

// scattered puts newer rows among older ones.
func scattered(rows []map[string]any) []map[string]any {
	var even, odd []map[string]any
	for i, row := range rows {
		if i%2 == 0 {
			even = append(even, row)
		} else {
			odd = append(odd, row)
		}
	}
	return append(even, odd...)
}

// logBegan is when the first row of a vendorLog was made.
func logBegan() time.Time { return time.Now().Add(-12 * time.Hour) }

// attemptRow is the nth row of a log, a second and a half after the one before.
func attemptRow(n int) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("log-%05d", n), "event_type": "extract_completed", "job_id": fmt.Sprintf("job-%d", n), "attempt_number": 1,
		"status": "success", "http_status": 200, "delivered_at": nil,
		"created_at": logBegan().Add(time.Duration(n) * 1500 * time.Millisecond).UTC().Format(time.RFC3339Nano),
	}
}

func newLog(n int, order func([]map[string]any) []map[string]any) *vendorLog {
	l := &vendorLog{order: order}
	l.add(n)
	return l
}

func (l *vendorLog) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		l.rows = append(l.rows, attemptRow(len(l.rows)))
	}
}

func (l *vendorLog) change(n int, name string, value any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows[n][name] = value
}

// pages returns the pages asked for since the last time.
func (l *vendorLog) pages() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.asked
	l.asked = nil
	return asked
}

func (l *vendorLog) serve(w http.ResponseWriter, req *http.Request, next http.Handler) {
	if !strings.HasSuffix(req.URL.Path, "/deliveries") {
		next.ServeHTTP(w, req)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	page, _ := strconv.Atoi(req.URL.Query().Get("page"))
	l.asked = append(l.asked, page)
	if l.fail > 0 && page >= l.fail {
		answerJSON(w, http.StatusNotFound, map[string]any{"detail": "no such webhook"}, "a log that ends in an error")
		return
	}
	rows := l.order(slices.Clone(l.rows))
	from, to := min((page-1)*100, len(rows)), min(page*100, len(rows))
	answerJSON(w, http.StatusOK, map[string]any{
		"items": rows[from:to], "page": page, "page_size": 100, "page_count": (len(rows) + 99) / 100,
	}, "rows as no sandbox makes them")
}

// hooked makes a webhook that the vendor knows; no two have one name.
func (r *rig) hooked(name string) *store.Webhook {
	r.t.Helper()
	sum := sha256.Sum256([]byte(name))
	vendorID := fmt.Sprintf("%x-0000-4000-8000-%x", sum[:4], sum[4:10])
	w := &store.Webhook{
		Endpoint: fmt.Sprintf("%032x", name), EventType: "extract_completed", URL: r.hooks.URL + "/" + name, State: store.WebhookLive,
		CreatedAt: time.Now(), StateAt: time.Now(),
	}
	if err := r.store.InsertWebhook(r.t.Context(), w); err != nil {
		r.t.Fatal(err)
	}
	if err := r.store.SetWebhookVendorID(r.t.Context(), w.ID, vendorID); err != nil {
		r.t.Fatal(err)
	}
	w.VendorWebhookID = &vendorID
	return w
}

// mirror reads the webhook's log.
func (r *rig) mirror(w *store.Webhook, full bool) pipeline.Mirrored {
	r.t.Helper()
	got, err := r.pipe.MirrorLog(r.t.Context(), w, full)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

func wantPages(t *testing.T, l *vendorLog, from, to int) {
	t.Helper()
	var want []int
	for page := from; page <= to; page++ {
		want = append(want, page)
	}
	if got := l.pages(); !slices.Equal(got, want) {
		t.Errorf("got pages %v, want %d to %d", got, from, to)
	}
}
