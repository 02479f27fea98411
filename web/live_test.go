package web

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/views"
)

// stream is an open live page. Its events come out of a channel that is closed
// when the stream ends.
type stream struct {
	resp   *http.Response
	events chan string
}

// watch opens a live page.
func (v *visitor) watch(path string) *stream {
	v.t.Helper()
	ctx, cancel := context.WithCancel(v.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.bench.url+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	//nolint:bodyclose // The cleanup closes it.
	resp, err := (&http.Client{Jar: v.client.Jar, Transport: v.client.Transport}).Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	s := &stream{resp: resp, events: make(chan string, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.events)
		lines, event := bufio.NewScanner(resp.Body), ""
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if lines.Text() != "" {
				event += lines.Text() + "\n"
				continue
			}
			s.events <- event
			event = ""
		}
	}()
	v.t.Cleanup(func() {
		cancel()
		resp.Body.Close()
		<-done
	})
	return s
}

// until reads events up to one with the text in it.
func (s *stream) until(t *testing.T, text string) string {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case event, ok := <-s.events:
			if !ok {
				t.Fatalf("the stream ended before %q", text)
			}
			if strings.Contains(event, text) {
				return event
			}
		case <-timeout:
			t.Fatalf("no event with %q", text)
		}
	}
}

// ended waits for the stream's end.
func (s *stream) ended(t *testing.T) {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case _, ok := <-s.events:
			if !ok {
				return
			}
		case <-timeout:
			t.Fatal("the stream goes on")
		}
	}
}

func TestLiveBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	other := b.seed(t, "another", 4)
	watched := v.watch(fmt.Sprintf("/batches/%d/live", s.batch))
	if got := watched.resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("got %d as %q", watched.resp.StatusCode, got)
	}
	first := watched.until(t, `hx-target="#roll-call"`)
	for _, want := range []string{`data-term="outstanding"`, fmt.Sprintf(`id="job-%d"`, s.job), `hx-target="#count-stored"`, `data-label="Failures"><strong>2</strong>`} {
		if !strings.Contains(first, want) {
			t.Errorf("first event: want %s in it", want)
		}
	}
	for line := range strings.Lines(first) {
		if !strings.HasPrefix(line, "data: ") {
			t.Fatalf("line %q: want only data", line)
		}
	}
	if strings.Contains(first, fmt.Sprintf(`id="job-%d"`, other.job)) {
		t.Error("the stream shows another batch's job")
	}
	b.exec(t, `UPDATE batches SET stored_poll = stored_poll + 2 WHERE id = $1`, s.batch)
	b.exec(t, `SELECT pg_notify('rollcall_batch', $1)`, strconv.FormatInt(s.batch, 10))
	if moved := watched.until(t, `data-net="poll"`); !strings.Contains(moved, "Finished.") {
		t.Errorf("after the last item: got %q", moved)
	}
	watched.until(t, "event: items")
	b.exec(t, `UPDATE items SET state = 'failed', error_code = 'NOT_FOUND', error_message = 'gone <b>', ended_at = now() WHERE id = $1`, s.items[2])
	b.exec(t, `UPDATE batches SET failed = failed + 1, stored_poll = stored_poll - 1 WHERE id = $1`, s.batch)
	b.exec(t, `SELECT pg_notify('rollcall_batch', $1)`, strconv.FormatInt(s.batch, 10))
	// Whoever reads the items meanwhile, the failures follow the sums.
	watched.until(t, `data-label="Failures"><strong>3</strong>`)
	b.exec(t, `UPDATE batches SET ended_at = now() WHERE id = $1`, s.batch)
	b.exec(t, `SELECT pg_notify('rollcall_batch', $1)`, strconv.FormatInt(s.batch, 10))
	b.exec(t, `UPDATE jobs SET state = 'settled', settle_net = 'poll', ended_at = now() WHERE batch_id = $1`, s.batch)
	b.exec(t, `SELECT pg_notify('rollcall_batch', $1)`, strconv.FormatInt(s.batch, 10))
	// The job settles after the batch has ended, and the page is told so before the stream is done.
	watched.until(t, "<span>Settled</span>")
	watched.until(t, "event: done")
	watched.ended(t)
	// Opened again, it says so at once.
	again := v.watch(fmt.Sprintf("/batches/%d/live", s.batch))
	again.until(t, "event: done")
	again.ended(t)
}

func TestLiveOverview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	watched := v.watch("/live")
	watched.until(t, `hx-target="#overview-running"`)
	s := b.seed(t, "fresh batch", 4)
	if err := b.store.Notify(t.Context(), s.batch); err != nil {
		t.Fatal(err)
	}
	watched.until(t, "fresh batch")
}

func TestLiveNamesStayText(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	b.seed(t, "one\revent: done\r\ndata: two\r\rdata: three", 4)
	sent := v.watch("/live").until(t, "three")
	for line := range strings.FieldsFuncSeq(sent, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if !strings.HasPrefix(line, "data: ") {
			t.Errorf("a name speaks as a line of the stream: %q", line)
		}
	}
}

func TestLiveAfterTheListenerWasLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 8)
	watched := v.watch(fmt.Sprintf("/batches/%d/live", s.batch))
	watched.until(t, "roll-call")
	// Every other connection to this database goes; what happens meanwhile must
	// show without another notification.
	b.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
	b.exec(t, `UPDATE batches SET stored_reconcile = stored_reconcile + 1 WHERE id = $1`, s.batch)
	watched.until(t, `data-net="reconcile"`)
}

func TestLiveEndsWithItsSession(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{beat: 20 * time.Millisecond})
	s := b.seed(t, "november", 8)
	path := fmt.Sprintf("/batches/%d/live", s.batch)
	signedOut, disabled := b.as(t, store.RoleAnalyst), b.as(t, store.RoleAnalyst)
	first, second := signedOut.watch(path), disabled.watch(path)
	first.until(t, "event: ping")
	second.until(t, "event: ping")
	signedOut.submit("/sign-out", nil)
	first.ended(t)
	b.exec(t, `UPDATE users SET disabled_at = now()`)
	second.ended(t)
	if got := disabled.watch(path); got.resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("afterwards: got %d, want 401", got.resp.StatusCode)
	}
}

func TestLiveEndsAtShutdown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.seed(t, "november", 8)
	v := b.as(t, store.RoleAnalyst)
	path := fmt.Sprintf("/batches/%d/live", s.batch)
	watched := v.watch(path)
	watched.until(t, "roll-call")
	b.server.Close()
	watched.ended(t)
	if got := v.watch(path); got.resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a new stream: got %d, want 503", got.resp.StatusCode)
	}
}

func TestLiveStreamsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := b.server.live
	h.mu.Lock()
	h.streams = maxStreams
	h.mu.Unlock()
	got := b.as(t, store.RoleAnalyst).watch("/live")
	if got.resp.StatusCode != http.StatusServiceUnavailable || got.resp.Header.Get("Retry-After") == "" {
		t.Errorf("got %d, want 503 with Retry-After", got.resp.StatusCode)
	}
	h.mu.Lock()
	h.streams = 0
	h.mu.Unlock()
}

// TestLiveNeverWaitsForAReader: a reader that takes nothing gets the newest
// message when it does, and holds nobody up.
func TestLiveNeverWaitsForAReader(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.seed(t, "november", 8)
	h := b.server.live
	key := topicKey{id: s.batch, lang: views.English}
	news, err := h.join(key)
	if err != nil {
		t.Fatal(err)
	}
	defer h.leave(key, news)
	h.mu.Lock()
	topic := h.topics[key]
	h.mu.Unlock()
	for i := range 5 {
		h.publish(topic, fmt.Sprintf("event: test\ndata: %d\n\n", i))
	}
	// The pump may have put a message of its own behind the last.
	if got := string((<-news).data); strings.Contains(got, "data: 3\n") {
		t.Errorf("got a stale message: %q", got)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.topics) != 1 {
		t.Errorf("topics: got %d, want 1", len(h.topics))
	}
}
