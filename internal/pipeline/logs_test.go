package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// logged keeps what a pipeline writes to its log.
type logged struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(line)
}

// into is a setup that logs there.
func (l *logged) into(c *pipeline.Config) { c.Logger = slog.New(slog.NewTextHandler(l, nil)) }

// lines are the lines that hold all the words.
func (l *logged) lines(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
lines:
	for line := range strings.Lines(l.out.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		out = append(out, line)
	}
	return out
}

// TestLogSaysWhenCallsResume: each pause has its end, by a probe or a person,
// and each batch.
func TestLogSaysWhenCallsResume(t *testing.T) {
	t.Parallel()
	log := new(logged)
	r := newRig(t, setup{noWebhooks: true, pipeline: log.into})
	var refusals atomic.Int64
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSubmit(req) && refusals.Add(-1) >= 0 {
			answerJSON(w, http.StatusPaymentRequired, refusal("NO_BALANCE", false), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	for n, by := range []string{"probe", "person"} {
		refusals.Store(1)
		id := r.submit(store.KindExtract, fmt.Sprintf("https://shop.sandbox.test/item/%d", n))
		if by == "person" {
			eventually(t, "the pause", func() bool { return len(log.lines("calls paused", "gate=submit")) == n+1 })
			r.exec(`UPDATE gates SET probe_at = $1 WHERE name = 'submit'`, time.Now().Add(time.Hour))
			if err := r.pipe.ResumeDispatch(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r.ended(id)
		want := []string{fmt.Sprintf(`msg="batch ended" batch_id=%d stored=1 failed=0 cancelled=0`, id)}
		eventually(t, "the line of the batch's end", func() bool { return len(log.lines(want...)) == 1 })
	}
	paused, resumed := log.lines("calls paused"), log.lines("calls resumed", "gate=submit", "paused_for=")
	if len(paused) != 2 || len(resumed) != 2 {
		t.Errorf("got %q and %q, want two of each", paused, resumed)
	}
}

// TestLogTellsEndedBatchesOnce: however they end, and only then.
func TestLogTellsEndedBatchesOnce(t *testing.T) {
	t.Parallel()
	log := new(logged)
	r := newRig(t, setup{pipeline: log.into})
	got, err := r.pipe.Submit(t.Context(), pipeline.Submission{
		Kind: store.KindCrawl, Text: "https://shop.sandbox.test/item/1",
		Options: pipeline.Options{Formats: []string{"markdown"}, Crawl: &pipeline.CrawlOptions{Depth: 2, Limit: 4, SameDomainOnly: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ids := []int64{
		got.BatchID, r.submit(store.KindBatch, sandbox.MadeURLs(30, 35)...),
		r.submit(store.KindExtract, "https://shop.sandbox.test/fail/NOT_FOUND", "https://shop.sandbox.test/item/2"),
	}
	for _, id := range ids {
		b := r.batch(id, func(b *store.Batch) bool { return b.EndedAt != nil })
		line := fmt.Sprintf("batch_id=%d stored=%d failed=%d cancelled=%d", id, b.Stored(), b.Failed, b.Cancelled)
		eventually(t, "the line of the batch's end", func() bool { return len(log.lines("batch ended", line)) == 1 })
	}
	if err := r.pipe.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := log.lines("batch ended"); len(got) != len(ids) {
		t.Errorf("got %q, want one line for each batch", got)
	}
}

// TestLogTellsOfABatchGivenUp: its last item ends with its job.
func TestLogTellsOfABatchGivenUp(t *testing.T) {
	t.Parallel()
	log := new(logged)
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) {
		log.into(c)
		c.GiveUpAfter = 300 * time.Millisecond
	}})
	r.unfinished()
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	r.wantBatch(r.ended(id), 0, 1, 0)
	line := fmt.Sprintf("batch_id=%d stored=0 failed=1 cancelled=0", id)
	eventually(t, "the line of the batch's end", func() bool { return len(log.lines("batch ended", line)) == 1 })
}

// TestLogNamesTheWebhooksEvent when a webhook is gone, and when another stands
// in for it.
func TestLogNamesTheWebhooksEvent(t *testing.T) {
	t.Parallel()
	log := new(logged)
	r := newRig(t, setup{pipeline: log.into})
	id := r.text(`SELECT vendor_webhook_id FROM webhooks WHERE event_type = 'batch_completed'`)
	req := httptest.NewRequestWithContext(context.Background(), http.MethodDelete, "/v1/webhooks/"+id, http.NoBody)
	req.Header.Set("X-Api-Key", sandbox.DefaultAPIKey)
	r.sandbox.Handler().ServeHTTP(httptest.NewRecorder(), req)
	for range 2 {
		if err := r.pipe.CheckWebhooks(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := r.pipe.RegisterWebhooks(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, words := range [][]string{
		{"webhook changed at the vendor", "event=batch_completed", "was=live", "is=gone"},
		{"webhook replaced", "event=batch_completed", "was=gone"},
	} {
		if n := len(log.lines(words...)); n != 1 {
			t.Errorf("%q: got %d lines, want one", words, n)
		}
	}
	if got := log.lines("webhook replaced"); len(got) != 1 {
		t.Errorf("got %q, want one line", got)
	}
}

// TestWhatTheVendorSaysKeepsOurEndpoints: an address of ours ends in a part that
// is half a secret, and the vendor may repeat it.
func TestWhatTheVendorSaysKeepsOurEndpoints(t *testing.T) {
	t.Parallel()
	said := "https://desk.test/webhooks/geonode/abcdefghijklmnop answers 404, https://other.test/webhooks/x does not"
	want := "https://desk.test/webhooks/geonode/... answers 404, https://other.test/webhooks/x does not"
	if got := pipeline.MaskEndpoints(said); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
