package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// charges are the URLs that the vendor charged more often than Rollcall wanted them.
type charges struct {
	// Twice counts each further charge of a URL, whatever brought it about.
	Twice int
	// LostAnswer is how many of them only a lost answer can have brought about: the vendor made a job whose id never
	// came while a clock had jumped, showed it at another time than it was looked for, and was called again. Nothing
	// else excuses a charge.
	LostAnswer int
	// GivenUp is how many URLs were charged once, by a job that was given up before it was found after a lost answer.
	GivenUp int
	// Counted is what Rollcall itself counts: charges of the jobs that it knows, beyond the first of each URL.
	Counted int64
	// miscounted is how many batches count something else than the vendor's books.
	miscounted int
	told       []string
}

func (c *charges) tell(format string, args ...any) {
	c.told = append(c.told, fmt.Sprintf(format, args...))
}

// known counts what jobs that Rollcall knows were charged for a page that it had, and holds the batch's own count
// against that.
func (c *charges) known(t truth, b *store.Batch, answers []answer) {
	twice := int64(0)
	for _, a := range answers {
		if again := t.charged(a) - 1; again > 0 {
			twice += int64(again)
			c.tell("%s: was charged %d times, by jobs that are all known here: %v", a.url, again+1, a.jobs)
		}
	}
	c.Twice += int(twice)
	c.Counted += b.ChargedTwice
	if b.ChargedTwice != twice {
		c.miscounted++
		c.tell("batch %d counts %d URLs charged twice, the vendor's books have %d", b.ID, b.ChargedTwice, twice)
	}
}

// unknown counts what was charged by jobs that Rollcall doesn't know. unpaid is how many items of each URL were charged by
// no other job; again how often each was called for once more because a lost call was looked for in vain; wrong tells of
// a job's time whether a clock had jumped when it was made.
func (c *charges) unknown(jobs []*sandbox.JobRecord, unpaid, again map[string]int, wrong func(made time.Time) bool) {
	left := make(map[string]int, len(again))
	for _, job := range jobs {
		paid, excused, givenUp, jumped := 0, 0, 0, wrong(job.AcceptedAt)
		for i := range job.Outcomes {
			o := &job.Outcomes[i]
			if o.Charged == 0 {
				continue
			}
			if unpaid[o.URL] > 0 {
				unpaid[o.URL]--
				givenUp++
				continue
			}
			paid += o.Charged
			key := excuseKey(job, o)
			if _, ok := left[key]; !ok {
				left[key] = again[key]
			}
			if left[key] > 0 && jumped {
				left[key]--
				excused += o.Charged
			}
		}
		c.Twice += paid
		c.LostAnswer += excused
		c.GivenUp += givenUp
		if givenUp > 0 {
			c.tell("vendor job %s (%s of %d, made %s by its clock) is not known here: %d URLs were charged, and given up", job.ID, job.Kind,
				len(job.Submitted), job.AcceptedAt.Format("15:04:05.000"), givenUp)
		}
		if paid > 0 {
			c.tell("vendor job %s (%s of %d, made %s by its clock) is not known here: %d URLs were charged twice, %d of them called for again after an answer that was lost while a clock had jumped",
				job.ID, job.Kind, len(job.Submitted), job.AcceptedAt.Format("15:04:05.000"), paid, excused)
		}
	}
}

// excuseKey is the URL by which a call for an outcome is known: a crawl is called for by its seed, once for all pages.
func excuseKey(job *sandbox.JobRecord, o *sandbox.Outcome) string {
	if job.Kind == string(store.KindCrawl) {
		return o.URL + " of " + job.Submitted[0]
	}
	return o.URL
}

// calledAgain is how often each URL was called for once more, by the events of the jobs that carry it. A crawl's pages
// count with their seed.
func (d *drill) calledAgain(ctx context.Context, jobs []*sandbox.JobRecord) (map[string]int, error) {
	rows, err := d.store.SQL().QueryContext(ctx, `SELECT i.url, j.kind, count(*)
		FROM job_events e JOIN jobs j ON j.id = e.job_id JOIN job_items ji ON ji.job_id = j.id JOIN items i ON i.id = ji.item_id
		WHERE e.kind = 'not_found_at_vendor' GROUP BY 1, 2`)
	if err != nil {
		return nil, fmt.Errorf("look for calls made again: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	again, seeds := map[string]int{}, map[string]int{}
	for rows.Next() {
		var url, kind string
		var n int
		if err := rows.Scan(&url, &kind, &n); err != nil {
			return nil, fmt.Errorf("look for calls made again: %w", err)
		}
		if kind == string(store.KindCrawl) {
			seeds[url] += n
			continue
		}
		again[url] += n
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look for calls made again: %w", err)
	}
	for _, job := range jobs {
		if job.Kind != string(store.KindCrawl) || seeds[job.Submitted[0]] == 0 {
			continue
		}
		for i := range job.Outcomes {
			again[excuseKey(job, &job.Outcomes[i])] = seeds[job.Submitted[0]]
		}
	}
	return again, nil
}

// clockJumped tells whether a clock was wrong when the vendor made a job: its own, by which the time is told, or that of
// the server which may have called it.
func (d *drill) clockJumped(made time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.timeline, func(h happening) bool { return h.clockJumped(made) })
}

const (
	// vendorSkew is how far the vendor's clock is ahead at rate 1 of the fault. leastSkew is how far a clock, the vendor's
	// or a server's, must be off to matter: what is looked for is looked for half a minute around its time.
	vendorSkew, leastSkew = 10 * time.Minute, 20 * time.Second
	// callLength is how long before a job was made its call may have begun, and the other way round.
	callLength = drillVendorTimeout + 2*time.Second
)

func (h happening) clockJumped(made time.Time) bool {
	switch h.Kind {
	case actVendor:
		faults, err := sandbox.ParseFaults(h.Detail)
		ahead := time.Duration(faults[sandbox.FaultClockSkew] * float64(vendorSkew))
		made = made.Add(-ahead)
		return err == nil && ahead >= leastSkew && !made.Before(h.From.Add(-2*time.Second)) && !made.After(h.ended().Add(2*time.Second))
	case actClock:
		_, text, _ := strings.Cut(h.Detail, " ") // After the server's name.
		step, err := time.ParseDuration(text)
		return err == nil && step.Abs() >= leastSkew && !made.Before(h.From.Add(-callLength)) && !made.After(h.ended().Add(callLength))
	}
	return false
}

// charged is how many jobs of the answer's lineage were charged for its page.
func (t truth) charged(a answer) int {
	n := 0
	for _, job := range a.jobs {
		n += t[job][a.url].Charged
	}
	return n
}

// checkCharges looks for URLs that were charged twice. What a lost answer excuses is told, with the story of its job.
func (d *drill) checkCharges(ctx context.Context, f *findings, books sandbox.Books, answers []answer) error {
	jobs, err := unknownJobs(ctx, d.store, books, answers)
	if err != nil || len(jobs) == 0 {
		return err
	}
	again, err := d.calledAgain(ctx, jobs)
	if err != nil {
		return err
	}
	truth, unpaid := newTruth(books), map[string]int{}
	for _, a := range answers {
		if truth.charged(a) == 0 {
			unpaid[a.url]++
		}
	}
	f.charges.unknown(jobs, unpaid, again, d.clockJumped)
	var urls []string
	for _, job := range jobs {
		urls = append(urls, job.Submitted[0])
	}
	lines, err := d.describeCalledAgain(ctx, slices.Compact(urls))
	f.charges.told = append(f.charges.told, lines...)
	return err
}
