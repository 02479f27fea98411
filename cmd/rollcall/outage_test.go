package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/embedded"
	"rollcall/web"
)

// ownPostgres is a Postgres of the test's own, which it may kill.
type ownPostgres struct {
	t      *testing.T
	dir    string
	server *embedded.Server // Nil while it is away.
}

func newOwnPostgres(t *testing.T) *ownPostgres {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "rollcall-outage-") //nolint:usetesting // The server's user may not enter t.TempDir, and its path is too long for a socket.
	if err != nil {
		t.Fatal(err)
	}
	p := &ownPostgres{t: t, dir: dir}
	t.Cleanup(func() {
		if p.server != nil {
			if err := p.server.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p.start()
	return p
}

func (p *ownPostgres) start() {
	p.t.Helper()
	server, err := embedded.Start(p.t.Context(), embedded.Config{Dir: p.dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		p.t.Fatal(err)
	}
	p.server = server
}

// stop takes the server away: in order, or by killing it.
func (p *ownPostgres) stop(kill bool) {
	p.t.Helper()
	if kill {
		if err := syscall.Kill(p.server.PID(), syscall.SIGKILL); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := p.server.Stop(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.server = nil
}

// told is what /readyz answers.
type told struct {
	web.Readiness
	status int
	text   string
}

// readiness asks a server whether it is ready.
func readiness(t *testing.T, base string) told {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // It was only read.
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := told{status: res.StatusCode, text: string(body)}
	if err := json.Unmarshal(body, &got.Readiness); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return got
}

// untilReady waits for a status of /readyz and returns the answer.
func untilReady(t *testing.T, base string, status int, within time.Duration) told {
	t.Helper()
	var got told
	eventually(t, fmt.Sprintf("%s to answer %d", base, status), within, func() bool {
		got = readiness(t, base)
		return got.status == status
	})
	return got
}

// mostComplaints is how many lines of warning a process may log about each 5 s of an outage. How long the test's outages
// last is up to the machine.
const mostComplaints = 40

// complaints counts the warnings and errors in a process's log.
func (p *process) complaints() int {
	log := p.log.String()
	return strings.Count(log, "level=WARN") + strings.Count(log, "level=ERROR")
}

// TestPostgresRestarts takes the database away under two processes, once in order and once by killing it, while
// deliveries come in and a live page is open. Meanwhile the processes say that they aren't ready and why, deliveries are
// answered 503, and the log stays readable; afterwards everything goes on by itself.
func TestPostgresRestarts(t *testing.T) {
	t.Parallel()
	pg := newOwnPostgres(t)
	d := newDeskWith(t, nil, soonGaps(), map[string]string{"DATABASE_URL": pg.server.DSN()})
	lb := newBalancer(t)
	d.vars["ROLLCALL_PUBLIC_URL"] = lb.url
	pages, worker := start(t, d.as("all", nil), "serve"), start(t, d.as("worker", nil), "serve")
	lb.to(pages.address())
	mustRun(t, d.vars, "webhook", "register")
	password := "correct horse battery"
	if err := d.addUser(t.Context(), "alice", store.RoleAnalyst, password); err != nil {
		t.Fatal(err)
	}
	alice := signIn(t, pages.address(), "alice", password)
	for _, kill := range []bool{false, true} {
		// Before the door is closed: the vendor sends so many at once, and those it tries again from the last time may
		// take all of its places as soon as it is.
		_, before, _ := lb.all()
		lb.close()
		id := d.submit(store.KindExtract, 20)
		live := alice.watch(pages.address() + fmt.Sprintf("/batches/%d/live", id))
		lb.until(t, "deliveries on their way", func(_ []answered, waiting int) bool { return waiting > before+10 })
		complaints := []int{pages.complaints(), worker.complaints()}
		answers, _, _ := lb.all()
		gone := time.Now()
		pg.stop(kill)
		lb.open()
		for _, p := range []*process{pages, worker} {
			got := untilReady(t, p.address(), http.StatusServiceUnavailable, patience)
			if got.Ready || len(got.Problems) != 1 || got.Problems[0] != "the database can't be reached" {
				t.Errorf("without a database, /readyz answers %s", got.text)
			}
		}
		lb.until(t, "deliveries refused", func(now []answered, _ int) bool { return len(now) >= len(answers)+10 })
		now, _, _ := lb.all()
		for _, a := range now[len(answers):] {
			if a.status != http.StatusServiceUnavailable || a.took > vendorWaits {
				t.Errorf("without a database, a delivery was answered %d after %s", a.status, a.took)
			}
		}
		pg.start()
		back := time.Now()
		for i, p := range []*process{pages, worker} {
			untilReady(t, p.address(), http.StatusOK, patience)
			n, most := p.complaints()-complaints[i], mostComplaints*max(1, time.Since(gone)/(5*time.Second))
			if n == 0 || n > int(most) {
				t.Errorf("the log has %d lines of warning about the outage, want some and at most %d", n, most)
			}
		}
		// A task that failed meanwhile is tried again once the queue has a leader, which may take its lease.
		live.until("event: done", patience)
		t.Logf("the batch is home %s after the database is back", time.Since(back).Round(time.Millisecond))
		d.home(id, time.Second)
	}
	d.kept(lb)
}

// listens finds the connections that processes hear of news by. A queue that hears nothing for 5 s asks whether the
// server is still there, and then that is the connection's last statement.
const listens = `datname = current_database() AND state = 'idle' AND (query ILIKE 'LISTEN%' OR query = '-- ping')`

// cutListeners ends such connections until every process's log tells in its words that it lost one.
func (d *desk) cutListeners(told map[*process]string) {
	d.t.Helper()
	eventually(d.t, "every process to lose its listener", patience, func() bool {
		d.number("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE " + listens)
		for p, words := range told {
			if !strings.Contains(p.log.String(), words) {
				return false
			}
		}
		return true
	})
}

// TestListenCut ends the connections that a server and a worker hear of news by: both go on by themselves, and a page
// that was open before shows what comes after.
func TestListenCut(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	ofWorker := newFront(t, d)
	pages, worker := start(t, d.as("web", nil), "serve"), start(t, d.as("worker", ofWorker), "serve")
	password := "correct horse battery"
	pages.address()
	if err := d.addUser(t.Context(), "alice", store.RoleAnalyst, password); err != nil {
		t.Fatal(err)
	}
	called := ofWorker.holding(false, submits)
	id := d.submit(store.KindExtract, 10)
	live := signIn(t, pages.address(), "alice", password).watch(pages.address() + fmt.Sprintf("/batches/%d/live", id))
	called.wait(t, 1)
	live.until("outstanding", patience)
	d.cutListeners(map[*process]string{
		pages: "live pages lost their listener", worker: "notifier.Notifier: Error running listener",
	})
	eventually(t, "both processes to listen again", patience, func() bool {
		return d.number("SELECT count(*) FROM pg_stat_activity WHERE "+listens) >= 2
	})
	for _, p := range []*process{pages, worker} {
		untilReady(t, p.address(), http.StatusOK, patience)
	}
	called.release()
	live.until("event: done", patience)
	d.home(id, time.Second)
	if !strings.Contains(pages.log.String(), "live pages have their listener again") {
		t.Error("the server's log doesn't tell that the listener is back")
	}
}
