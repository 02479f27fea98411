package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// settleAll waits until nothing is open. What was given up is woken by the
// reconciler when the vendor has it.
func (l *life) settleAll(rt *rapid.T) {
	deadline, tick := time.NewTimer(patienceOfTests), time.NewTicker(100*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for turn := 1; l.open(); turn++ {
		select {
		case <-deadline.C:
			rt.Fatalf("still open:\n%s\nafter %s", l.describe(), strings.Join(l.steps, "; "))
		case <-tick.C:
		}
		if turn%15 == 0 {
			if err := l.proc.pipe.ReconcileNow(context.Background()); err != nil {
				rt.Fatal(err)
			}
		}
		// A task that put itself off may come early, and then does so again.
		l.r.exec(`UPDATE river_job SET state = 'available', scheduled_at = created_at
			WHERE state IN ('scheduled', 'retryable') OR (state = 'available' AND scheduled_at > $1)`, time.Now())
	}
}

// open reports whether something can still change.
func (l *life) open() bool {
	return l.r.number(`SELECT count(*) FROM jobs WHERE state NOT IN ('settled', 'refused', 'withdrawn', 'split')`)+
		l.r.number(`SELECT count(*) FROM batches WHERE outstanding > 0`) > 0
}

// describe shows the jobs of the run that are not settled.
func (l *life) describe() string {
	var out []string
	for _, id := range l.batches {
		out = append(out, l.r.describe(id))
	}
	return strings.Join(out, "")
}

// wrong lists every difference from the reference model: the vendor's set of
// jobs, and the multiset of items.
func (l *life) wrong() []string {
	truth := l.r.truth()
	truth.hasty = true
	wrong := l.r.falseBy(truth, l.batches...)
	for _, id := range l.batches {
		wrong = append(wrong, l.items(truth, id)...)
	}
	for url, t := range l.tries {
		wrong = append(wrong, l.tried(truth.tried[url], url, t)...)
	}
	return append(wrong, l.r.mischarged(truth)...)
}

// crawls are the vendor's crawls of a batch.
func (r *rig) crawls(batch int64) []string {
	return strings.Fields(r.text(`SELECT string_agg(vendor_job_id, ' ') FROM jobs WHERE batch_id = $1 AND kind = 'crawl'`, batch))
}

// items compares a batch's URLs with what was submitted; a crawl's also with
// what the vendor says it found.
func (l *life) items(t truth, id int64) []string {
	want, may := map[string]bool{}, map[string]bool{}
	for _, u := range l.expected[id] {
		want[u], may[u] = true, true
	}
	for _, vendor := range l.r.crawls(id) {
		for u, found := range t.outcomes[vendor] {
			may[u] = true
			if !t.stopped[vendor] && found[0].Status != "cancelled" {
				want[u] = true
			}
		}
	}
	var wrong []string
	for _, o := range l.r.told(id) {
		if !may[o.url] {
			wrong = append(wrong, fmt.Sprintf("batch %d holds %s, once more than it should", id, o.url))
		}
		may[o.url], want[o.url] = false, false
	}
	for u, missing := range want {
		if missing {
			wrong = append(wrong, fmt.Sprintf("batch %d lacks %s", id, u))
		}
	}
	return wrong
}
