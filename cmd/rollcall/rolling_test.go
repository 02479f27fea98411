package main

import (
	"net/http"
	"testing"
	"time"

	"rollcall/store"
)

// TestRollingRestart restarts two servers behind a balancer, one after the other, while deliveries keep coming in.
// Every delivery that was answered 2xx is in the database, the vendor tries the others again, and in the end the roll
// call is that of the vendor's books.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	lb := newBalancer(t)
	d.vars["ROLLCALL_PUBLIC_URL"], d.vars["ROLLCALL_VENDOR_RPS"] = lb.url, "60"
	vars := []map[string]string{d.as("all", nil), d.as("all", nil)}
	servers := []*process{start(t, vars[0], "serve"), start(t, vars[1], "serve")}
	lb.to(servers[0].address(), servers[1].address())
	mustRun(t, d.vars, "webhook", "register")
	var batches []int64
	for i := range servers {
		batches = append(batches, d.submit(store.KindExtract, 90))
		lb.more(t, 30)
		servers[i].signal(terminated)
		if code := servers[i].exit(patience); code != 0 {
			t.Errorf("exit %d, want an end in order", code)
		}
		// The other one goes on meanwhile: a slow end may have outlasted all that was submitted before.
		batches = append(batches, d.submit(store.KindExtract, 40))
		lb.more(t, 30)
		servers[i] = start(t, vars[i], "serve")
		servers[i].address()
	}
	// They share URLs: the books are looked at when no call is under way any more.
	for _, id := range batches {
		d.until(id, patience, func(b *store.Batch) bool { return b.Outstanding == 0 })
	}
	for _, id := range batches {
		d.home(id, time.Second)
	}
	d.kept(lb)
}

// more waits until so many further deliveries were answered 2xx.
func (b *balancer) more(t *testing.T, n int) {
	t.Helper()
	answers, _, _ := b.all()
	from := taken(answers)
	b.until(t, "deliveries taken up", func(answers []answered, _ int) bool { return taken(answers) >= from+n })
}

// taken counts the deliveries that were answered 2xx.
func taken(answers []answered) int {
	n := 0
	for _, a := range answers {
		if a.status >= http.StatusOK && a.status < http.StatusMultipleChoices {
			n++
		}
	}
	return n
}

// kept fails for every delivery that was answered 2xx and isn't in the database, and for every one that was answered as
// if it were at fault.
func (d *desk) kept(b *balancer) {
	d.t.Helper()
	answers, _, _ := b.all()
	byStatus := map[int]int{}
	for _, a := range answers {
		byStatus[a.status]++
		switch {
		case a.status >= http.StatusOK && a.status < http.StatusMultipleChoices:
			if d.number("SELECT count(*) FROM processed_events WHERE vendor_job_id = $1", a.job) != 1 ||
				d.number("SELECT count(*) FROM deliveries WHERE vendor_delivery_id = $1 AND vendor_job_id = $2 AND verdict IN ('accepted', 'duplicate')", a.delivery, a.job) == 0 {
				d.t.Errorf("delivery %s of job %s was answered %d and is not kept", a.delivery, a.job, a.status)
			}
		case a.status != 0 && a.status != http.StatusServiceUnavailable:
			d.t.Errorf("delivery %s of job %s was answered %d", a.delivery, a.job, a.status)
		}
	}
	d.t.Logf("deliveries by answer: %v", byStatus)
}
