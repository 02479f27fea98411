package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
	"rollcall/store/storetest"
)

// setupWhole is a bench around the actual pipeline, with the sandbox as vendor
// and a webhook for each event.
func setupWhole(t *testing.T) *bench {
	t.Helper()
	b, pipe, _ := setupActual(t)
	if _, err := pipe.RegisterWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// setupActual is setupWhole without webhooks.
func setupActual(t *testing.T) (*bench, *pipeline.Pipeline, *sandbox.Sandbox) {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{Seed: 1, RunTime: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	vendor := httptest.NewServer(box.Handler())
	var handler atomic.Pointer[http.Handler]
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	b := &bench{store: storetest.New(t), clock: &clock{}, log: &lockedBuffer{}, url: front.URL}
	log := slog.New(slog.NewTextHandler(b.log, nil))
	transport := &http.Transport{}
	client, err := geonode.New(geonode.Config{BaseURL: vendor.URL, APIKey: sandbox.DefaultAPIKey, Now: time.Now, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := pipeline.New(pipeline.Config{
		Store: b.store, Vendor: client, Now: time.Now, Key: bytes.Repeat([]byte{7}, 32), Account: "test", Logger: log,
		PublicURL: front.URL, URLsPerJob: 10, VendorRPS: 500,
	})
	if err != nil {
		t.Fatal(err)
	}
	if b.server, err = New(Config{PublicURL: front.URL, Mode: "auto", Sandbox: true}, b.store, pipe, log, b.clock.now); err != nil {
		t.Fatal(err)
	}
	pages := b.server.Handler()
	handler.Store(&pages)
	t.Cleanup(func() {
		b.server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(pipe.Stop(ctx), box.Close()); err != nil {
			t.Error(err)
		}
		front.Close()
		client.Close()
		vendor.Close()
		transport.CloseIdleConnections()
		if t.Failed() {
			t.Log(b.log.String())
		}
	})
	if err := pipe.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b, pipe, box
}

// TestWhole is the way of an analyst: submit, watch, read.
func TestWhole(t *testing.T) {
	t.Parallel()
	b := setupWhole(t)
	v := b.as(t, store.RoleAnalyst)
	urls := sandbox.MadeURLs(40, 1)
	lines := strings.Join(urls, "\n") + "\n" + urls[0] + "\njavascript:alert(1)\nhttps://a\x00b.example/\n\xff\n\n"
	form := url.Values{
		csrfField: {v.token()}, "urls": {lines}, "name": {"whole"}, "kind": {"auto"}, "format": {"markdown", "html"},
		"headers": {"X-Secret: hush"},
	}
	refused := v.upload("/batches", form, nil)
	if n := refused.doc.Find("[data-testid=bad-lines] tbody tr").Length(); refused.status != http.StatusUnprocessableEntity || n != 3 {
		t.Fatalf("with bad lines: got %d naming %d, want 422 naming 3: %s", refused.status, n, refused.text("#error-summary"))
	}
	form.Set("skip_bad", "on")
	taken := v.upload("/batches", form, nil)
	if taken.status != http.StatusSeeOther {
		t.Fatalf("without them: got %d: %s", taken.status, taken.text("main"))
	}
	path := taken.header.Get("Location")
	watched := v.watch(path + "/live")
	watched.until(t, "event: done")

	got := v.get(path)
	for selector, want := range map[string]string{
		"[data-term=submitted]": "44 Submitted", "[data-balance=ok]": "The sum balances", "#count-stored": "40", "#jobs-total": "4",
		"[data-testid=options]": "Custom headers",
	} {
		if text := got.text(selector); !strings.Contains(text, want) {
			t.Errorf("%s: got %q, want %q in it", selector, text, want)
		}
	}
	if strings.Contains(got.body, "hush") {
		t.Error("a header's value is on the page")
	}
	if n := len(walk(t, v, path+"/items?state=rejected", "[data-testid=rejected] tbody th")); n != 4 {
		t.Errorf("rejected lines: got %d, want 4", n)
	}
	first, _ := got.doc.Find("[data-testid=items] tbody th a").First().Attr("href")
	if result := v.get(first); result.text("[data-testid=prose]") == "" {
		t.Errorf("%s: got %d and no content", first, result.status)
	}
	checkTrail(t, v, got)
}

// checkTrail follows a batch's page to what brought it home.
func checkTrail(t *testing.T, v *visitor, batch page) {
	t.Helper()
	job, _ := batch.doc.Find("[data-testid=jobs] tbody th a").First().Attr("href")
	if text := v.get(job).text("[data-testid=timeline]"); !strings.Contains(text, "Delivery accepted") || !strings.Contains(text, "Settled") {
		t.Errorf("timeline: got %q", text)
	}
	overview := v.get("/")
	if text := overview.text("[data-testid=mode]"); !inOrder(text, "Auto: ends are learned of by webhook", "the reason then: every webhook is active") {
		t.Errorf("mode: got %q", text)
	}
	deliveries := v.get("/deliveries")
	delivery, _ := deliveries.doc.Find("[data-testid=deliveries] tbody th a").First().Attr("href")
	if text := v.get(delivery).text("[data-testid=headers]"); !strings.Contains(text, "application/json") {
		t.Errorf("headers of %s: got %q", delivery, text)
	}
}

func TestWholePasteOf20000Lines(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes 20,000 rows")
	}
	b := setupWhole(t)
	v := b.as(t, store.RoleAnalyst)
	v.client.Timeout = 2 * time.Minute
	b.exec(t, `UPDATE gates SET paused_at = now(), paused_status = 402 WHERE name = 'submit'`)
	var lines strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&lines, "https://shop.sandbox.test/products/%d\r\n", i)
	}
	got := v.upload("/batches", url.Values{csrfField: {v.token()}, "urls": {lines.String()}, "format": {"markdown"}, "kind": {"batch"}}, nil)
	if got.status != http.StatusSeeOther {
		t.Fatalf("got %d: %s", got.status, got.text("main"))
	}
	if batch := v.get(got.header.Get("Location")); batch.text("[data-term=accepted] .term-count") != "20,000 20,000" {
		t.Errorf("accepted: got %q", batch.text("[data-term=accepted] .term-count"))
	}
}
