package main

import (
	"log/slog"
	"maps"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
	"rollcall/store/storetest"
)

// desk is a database and a vendor for processes under test, and a stack of this process's own that submits and looks.
type desk struct {
	*demo
	t    *testing.T
	vars map[string]string // The settings of the processes.
}

const testVendorKey = "test-vendor-key"

// newDesk sets up a database and a vendor that needs some time for each page. The server's address is fixed, so that
// webhooks find it again after a restart.
func newDesk(t *testing.T, faults sandbox.Faults) *desk {
	t.Helper()
	return newDeskWith(t, faults, soonGaps(), map[string]string{"DATABASE_URL": storetest.DSN(t)})
}

// soonGaps are between the tries of a vendor that gives a delivery up soon.
func soonGaps() []time.Duration { return []time.Duration{200 * time.Millisecond, time.Second} }

// newDeskWith is newDesk with the vendor's gaps between tries of a delivery, and with settings of its own, the database
// among them.
func newDeskWith(t *testing.T, faults sandbox.Faults, gaps []time.Duration, vars map[string]string) *desk {
	t.Helper()
	box, err := sandbox.New(sandbox.Config{
		Seed: 7, Faults: faults, RunTime: 100 * time.Millisecond,
		RetryGaps: gaps,
		// A balancer keeps deliveries waiting until the test has brought about what they are to meet.
		DeliveryTimeout: time.Minute,
		APIKeys:         map[string]string{testVendorKey: sandbox.DefaultAccount},
	})
	if err != nil {
		t.Fatal(err)
	}
	vendor := httptest.NewServer(box.Handler())
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
		vendor.Close()
	})
	listen := freeAddress(t)
	d := &desk{t: t, vars: map[string]string{
		"ROLLCALL_DATA_DIR": t.TempDir(), "ROLLCALL_DATABASE_CONNECTIONS": "6",
		"GEONODE_SCRAPER_API_KEY": testVendorKey, "SCRAPER_API_BASE_URL": vendor.URL,
		"ROLLCALL_LISTEN": listen, "ROLLCALL_PUBLIC_URL": "http://" + listen, "ROLLCALL_SHUTDOWN_GRACE": "20s",
		"ROLLCALL_SECRET_KEY": strings.Repeat("ab", 32), "ROLLCALL_POLL_FIRST": "200ms", "ROLLCALL_POLL_CAP": "1s",
		"ROLLCALL_WEBHOOK_FALLBACK": "2s", "ROLLCALL_RECONCILE_EVERY": "5s", "ROLLCALL_RECONCILE_OLDER_THAN": "3s",
		"ROLLCALL_VENDOR_RPS": "30", "ROLLCALL_VENDOR_CONCURRENCY": strconv.Itoa(callsAtOnce), "ROLLCALL_VENDOR_TIMEOUT": "10s", "ROLLCALL_CLAIM_LEASE": "12s",
	}}
	maps.Copy(d.vars, vars)
	d.demo = &demo{stack: newStack(readConfig(t, d.vars), slog.New(slog.DiscardHandler), time.Now), sandbox: box}
	d.open()
	return d
}

// open builds the test's own stack, which runs no workers.
func (d *desk) open() {
	d.t.Helper()
	d.t.Cleanup(func() {
		if err := d.close(d.t.Context()); err != nil {
			d.t.Error(err)
		}
	})
	ctx := d.t.Context()
	if err := d.ownDatabase(ctx); err != nil {
		d.t.Fatal(err)
	}
	if err := d.openStore(ctx); err != nil {
		d.t.Fatal(err)
	}
	if err := d.openVendor(); err != nil {
		d.t.Fatal(err)
	}
	if err := d.openPipeline(ctx, func(c *pipeline.Config) { c.OnlySubmit = true }); err != nil {
		d.t.Fatal(err)
	}
}

// submit submits made pages and returns the batch's id.
func (d *desk) submit(kind store.Kind, urls int) int64 {
	d.t.Helper()
	got, err := d.pipeline.Submit(d.t.Context(), pipeline.Submission{
		Name: "test", Kind: kind, Text: strings.Join(sandbox.MadeURLs(urls, 7), "\n"),
		Options: pipeline.Options{Formats: []string{"markdown", "html"}},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return got.BatchID
}

// until waits for the batch's counters.
func (d *desk) until(id int64, within time.Duration, done func(*store.Batch) bool) *store.Batch {
	d.t.Helper()
	limit := time.After(within)
	for {
		b, err := d.store.Batch(d.t.Context(), id)
		if err != nil {
			d.t.Fatal(err)
		}
		if done(b) {
			return b
		}
		select {
		case <-limit:
			d.t.Fatalf("batch %d did not get there within %s: %d stored, %d failed, %d outstanding\n%s",
				id, within, b.Stored(), b.Failed, b.Outstanding, d.describe(id))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// eventually waits until done holds.
func eventually(t *testing.T, what string, within time.Duration, done func() bool) {
	t.Helper()
	limit, tick := time.NewTimer(within), time.NewTicker(50*time.Millisecond)
	defer limit.Stop()
	defer tick.Stop()
	for !done() {
		select {
		case <-limit.C:
			t.Fatalf("waited in vain for %s for %s", what, within)
		case <-tick.C:
		}
	}
}

// home waits until every URL of the batch is answered for and holds the answers against the vendor's books.
func (d *desk) home(id int64, within time.Duration) *store.Batch {
	d.t.Helper()
	b := d.until(id, within, func(b *store.Batch) bool { return b.Outstanding == 0 })
	problems, err := d.verify(d.t.Context(), []int64{id}, b, d.sandbox.Books())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, problem := range problems {
		d.t.Error(problem)
	}
	return b
}

// underWay says that a batch has begun to come home and is far from done.
func underWay(b *store.Batch) bool { return b.Stored() > 5 && b.Outstanding > b.Accepted/3 }

// describe is what a failed test shows of a batch's open jobs: where each stands, what happened to it, and its tasks.
func (d *desk) describe(id int64) string {
	d.t.Helper()
	rows, err := d.store.SQL().QueryContext(d.t.Context(), `SELECT concat_ws(' ', 'job', j.id, j.kind, j.state, 'call', j.call_no, 'wake', j.wake_seq,
			'called', j.called_at::time, 'lease', j.lease_until::time, 'poll', j.next_poll_at::time, E'\n   ',
			(SELECT string_agg(concat_ws(' ', e.at::time, e.kind, e.net, e.detail), ' | ' ORDER BY e.id) FROM job_events e WHERE e.job_id = j.id), E'\n   ',
			(SELECT string_agg(concat_ws(' ', q.kind, q.state, q.attempt, q.scheduled_at::time, q.errors[array_upper(q.errors, 1)]->>'error'), ' | ')
				FROM river_job q WHERE (q.args->>'job_id')::bigint = j.id))
		FROM jobs j WHERE j.batch_id = $1 AND j.state NOT IN ('settled', 'split') ORDER BY j.id LIMIT 5`, id)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	var out strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			d.t.Fatal(err)
		}
		out.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	return out.String()
}
