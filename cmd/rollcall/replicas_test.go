package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"rollcall/store"
)

// as are the settings of one of several processes: its role, an address of its own, and its own way to the vendor.
func (d *desk) as(role string, f *front) map[string]string {
	d.t.Helper()
	vars := maps.Clone(d.vars)
	vars["ROLLCALL_ROLE"] = role
	vars["ROLLCALL_LISTEN"] = freeAddress(d.t)
	if f != nil {
		vars["SCRAPER_API_BASE_URL"] = f.url
	}
	return vars
}

// liveStream is an open live page.
type liveStream struct {
	t      *testing.T
	events chan string // Closed when the stream ends.
}

// watch opens a live page, which is closed with the test.
func (b *browser) watch(address string) *liveStream {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	//nolint:bodyclose // The cleanup closes it.
	res, err := (&http.Client{Jar: b.client.Jar, Transport: b.client.Transport}).Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		b.t.Fatalf("%s answers %s", address, res.Status)
	}
	s, done := &liveStream{t: b.t, events: make(chan string, 1000)}, make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.events)
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		var event strings.Builder
		for lines.Scan() {
			if lines.Text() != "" {
				event.WriteString(lines.Text() + "\n")
				continue
			}
			s.events <- event.String()
			event.Reset()
		}
	}()
	b.t.Cleanup(func() {
		cancel()
		_ = res.Body.Close() // It was only read.
		<-done
	})
	return s
}

// until reads events up to one with the text in it.
func (s *liveStream) until(text string, within time.Duration) string {
	s.t.Helper()
	limit := time.After(within)
	last := ""
	for {
		select {
		case event, ok := <-s.events:
			if !ok {
				s.t.Fatalf("the stream ended before %q; last came\n%s", text, last)
			}
			if strings.Contains(event, text) {
				return event
			}
			last = event
		case <-limit:
			s.t.Fatalf("no event with %q within %s; last came\n%s", text, within, last)
		}
	}
}

// TestSeveralProcesses runs three processes on one database, one with the pages only, one with the work only and one
// with both: both workers settle some of a batch, pages of either server move with whoever's work, a session is good on
// both, and what is due now and then is done once and not once a process.
func TestSeveralProcesses(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	lb := newBalancer(t)
	d.vars["ROLLCALL_PUBLIC_URL"], d.vars["ROLLCALL_RECONCILE_EVERY"] = lb.url, "1s"
	ofWorker, ofBoth := newFront(t, d), newFront(t, d)
	pages, worker, both := start(t, d.as("web", nil), "serve"), start(t, d.as("worker", ofWorker), "serve"), start(t, d.as("all", ofBoth), "serve")
	lb.to(pages.address(), both.address())
	worker.address()
	mustRun(t, d.vars, "webhook", "register")
	password := "correct horse battery"
	if err := d.addUser(t.Context(), "alice", store.RoleAnalyst, password); err != nil {
		t.Fatal(err)
	}
	alice := signIn(t, pages.address(), "alice", password)
	// Neither worker gets on before the other has begun.
	held := []*hold{ofWorker.holding(false, reads), ofBoth.holding(false, reads)}
	id := d.submit(store.KindExtract, 40)
	live := fmt.Sprintf("/batches/%d/live", id)
	onPages, onBoth := alice.watch(pages.address()+live), alice.watch(both.address()+live)
	for _, h := range held {
		h.wait(t, 1)
	}
	for _, h := range held {
		h.release()
	}
	for _, s := range []*liveStream{onPages, onBoth} {
		s.until("event: done", patience)
	}
	if b := d.home(id, time.Second); b.Stored() != 40 {
		t.Errorf("got %d stored, want 40", b.Stored())
	}
	if n := d.number("SELECT count(DISTINCT who) FROM river_job, unnest(attempted_by) who WHERE kind = 'settle'"); n != 2 {
		t.Errorf("%d processes settled, want both workers", n)
	}
	d.oneRunAnInterval(time.Second, 7)
}

// oneRunAnInterval waits for more timed reconcile runs and fails when they come closer together than their interval.
func (d *desk) oneRunAnInterval(every time.Duration, runs int) {
	d.t.Helper()
	const timed = " FROM reconcile_runs WHERE trigger = 'timer'"
	from := d.number("SELECT coalesce(max(id), 0)" + timed)
	eventually(d.t, "further reconcile runs", patience, func() bool {
		return d.number(fmt.Sprintf("SELECT count(*)"+timed+" AND id > %d", from)) >= int64(runs)
	})
	took := d.number(fmt.Sprintf("SELECT (extract(epoch FROM max(started_at) - min(started_at)) * 1000)::bigint"+timed+" AND id > %d AND id <= %d", from, from+int64(runs)))
	// Seven runs of two timers would take less than four intervals, those of one take six; the first may begin late.
	if least := time.Duration(runs-1) * every * 7 / 10; time.Duration(took)*time.Millisecond < least {
		d.t.Errorf("%d reconcile runs in %d ms, want one every %s", runs, took, every)
	}
}

// number runs a query that gives one number.
func (d *desk) number(query string, args ...any) int64 {
	d.t.Helper()
	var n int64
	if err := d.store.SQL().QueryRowContext(d.t.Context(), query, args...).Scan(&n); err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	return n
}
