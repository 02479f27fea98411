package main

import (
	"net/http"
	"os"
	"testing"
	"time"

	"rollcall/store"
)

// resumed is within which another process has taken up what a killed one left.
const resumed = 90 * time.Second

// TestKilledInTheMiddle kills a worker that holds calls to the vendor open, submits that the vendor has taken and reads,
// and then the server that the deliveries go to. The worker leads the queue, so that its successor must be elected
// first. The process that is left, which began with nothing to do, answers for every URL, and no URL is charged twice.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	lb, ofWorker := newBalancer(t), newFront(t, d)
	d.vars["ROLLCALL_PUBLIC_URL"] = lb.url
	worker, pages := start(t, d.as("worker", ofWorker), "serve"), start(t, d.as("web", nil), "serve")
	worker.address()
	lb.to(pages.address())
	mustRun(t, d.vars, "webhook", "register")
	read := ofWorker.holding(false, reads)
	early := d.submit(store.KindExtract, 12)
	read.wait(t, 4)
	called := ofWorker.holding(true, submits)
	late := d.submit(store.KindMixed, 100)
	called.wait(t, callsAtOnce)

	worker.signal(os.Kill)
	died := time.Now()
	worker.exit(10 * time.Second)
	d.quietDown()
	reading := d.number("SELECT count(*) FROM river_job WHERE kind = 'settle' AND state = 'running'")
	calling := d.number("SELECT count(*) FROM jobs WHERE state = 'calling'")
	if reading == 0 || calling != callsAtOnce {
		t.Fatalf("the killed process left %d reads and %d calls under way, want some and %d", reading, calling, callsAtOnce)
	}
	left := start(t, d.as("all", nil), "serve")
	lb.to(pages.address(), left.address())
	lb.until(t, "deliveries to the server", func(answers []answered, _ int) bool { return len(answers) > 20 })
	pages.signal(os.Kill)
	pages.exit(10 * time.Second)
	lb.to(left.address())
	d.takenUp(died)
	// Both have the same URLs: the books are looked at when no call is under way any more.
	for _, id := range []int64{early, late} {
		d.until(id, patience, func(b *store.Batch) bool { return b.Outstanding == 0 })
	}
	for _, id := range []int64{early, late} {
		d.home(id, time.Second)
	}
	t.Logf("all of %d reads and %d calls under way was made up for %s after the kill", reading, calling, time.Since(died).Round(time.Second))
}

// TestKilledInReconcile kills a worker whose reconcile run reads a list: another process runs anew, and doesn't wait until
// the dead run's time would have been up.
func TestKilledInReconcile(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	ofWorker := newFront(t, d)
	listed := ofWorker.holding(false, func(r *http.Request) bool { return r.URL.Path == "/v1/extract/jobs" })
	vars := d.as("worker", ofWorker)
	vars["ROLLCALL_RECONCILE_EVERY"] = "1s"
	worker := start(t, vars, "serve")
	listed.wait(t, 1)
	left := start(t, d.as("worker", nil), "serve")
	left.address()
	worker.signal(os.Kill)
	died := time.Now()
	worker.exit(10 * time.Second)
	const finished = "SELECT count(*) FROM reconcile_runs WHERE finished_at IS NOT NULL"
	eventually(t, "a reconcile run after the kill", resumed, func() bool { return d.number(finished) > 0 })
	t.Logf("reconciled %s after the kill", time.Since(died).Round(time.Second))
}

// takenUp waits until others have begun anew what a process had under way when it died, which they have within 90 s. How
// long they then take for it is up to the machine.
func (d *desk) takenUp(died time.Time) {
	d.t.Helper()
	const left = "SELECT count(*) FROM river_job WHERE state IN ('running', 'available', 'retryable') AND attempted_at < $1"
	eventually(d.t, "what the killed process left to be begun anew", resumed-time.Since(died), func() bool { return d.number(left, died) == 0 })
}

// quietDown waits for the last statements of a killed process, which the database goes on with.
func (d *desk) quietDown() {
	d.t.Helper()
	const active = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()"
	eventually(d.t, "the killed process's statements to end", patience, func() bool { return d.number(active) == 0 })
}

// TestKilledProcessIsMadeUpFor kills a server in the middle of a batch: started again, it takes up what was under way
// within 90 s and brings everything home. A call that was cut off before the vendor answered takes longest: it isn't made
// again before two looks through the vendor's lists, two minutes apart, have found nothing of it.
func TestKilledProcessIsMadeUpFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	first := start(t, d.vars, "serve")
	first.address()
	mustRun(t, d.vars, "webhook", "register")
	id := d.submit(store.KindMixed, 160)
	d.until(id, patience, underWay)
	first.signal(os.Kill)
	died := time.Now()
	if code := first.exit(10 * time.Second); code != -1 {
		t.Errorf("exit %d, want a death by signal", code)
	}
	t.Logf("%d calls were cut off", d.calling(id))
	second := start(t, d.vars, "serve")
	second.address()
	d.takenUp(died)
	d.home(id, 2*patience)
}

// calling counts the jobs whose call was under way.
func (d *desk) calling(id int64) int {
	d.t.Helper()
	var n int
	err := d.store.SQL().QueryRowContext(d.t.Context(), "SELECT count(*) FROM jobs WHERE batch_id = $1 AND state = 'calling'", id).Scan(&n)
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}
