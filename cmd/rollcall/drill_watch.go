package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	watchEvery = 100 * time.Millisecond
	sayEvery   = 5 * time.Second
)

// watch looks at the batches all the time until what it returns is called: when did which number of URLs come home.
func (d *drill) watch(ctx context.Context) func() {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		said := d.now()
		for pauseFor(ctx, watchEvery) {
			if err := d.look(ctx); err != nil {
				continue // The database is away; when it is back shows.
			}
			if d.now().Sub(said) >= sayEvery {
				said = d.now()
				d.tellWaiting(ctx)
				d.sayProgress()
			}
		}
	})
	return func() {
		stop()
		watching.Wait()
	}
}

// look takes a sample, and keeps it when something moved.
func (d *drill) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var s sample
	err := d.store.SQL().QueryRowContext(ctx, "SELECT coalesce(sum(accepted - outstanding), 0), coalesce(sum(outstanding), 0) FROM batches").
		Scan(&s.answered, &s.outstanding)
	if err != nil {
		return fmt.Errorf("look at the batches: %w", err)
	}
	s.at = d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.samples); n == 0 || d.samples[n-1].answered != s.answered || d.samples[n-1].outstanding != s.outstanding {
		d.samples = append(d.samples, s)
	}
	return nil
}

// sayProgress tells how far the drill is.
func (d *drill) sayProgress() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.samples) == 0 {
		return
	}
	s := d.samples[len(d.samples)-1]
	line := fmt.Sprintf("%4.0f s  %d batches  %d answered  %d outstanding  %d kills", d.now().Sub(d.began).Seconds(), len(d.batches), s.answered, s.outstanding, len(d.kills))
	if d.waiting != "" {
		line += "  " + d.waiting
	}
	d.say("%s", line)
}

// say tells a person; where nobody listens nothing is lost.
func (d *drill) say(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format+"\n", args...) }

// tellWaiting finds out what the open jobs wait for.
func (d *drill) tellWaiting(ctx context.Context) {
	lines, err := d.lines(ctx, `SELECT concat_ws(' ', count(*), CASE state WHEN 'intended' THEN 'to be called' WHEN 'calling' THEN 'being called'
			WHEN 'uncertain' THEN 'looked for after a lost answer' ELSE 'at the vendor' END)
			|| coalesce(' (next look in ' || greatest(0, round(extract(epoch FROM min(next_poll_at) - $1)))::text || ' s)', '')
		FROM jobs WHERE state IN ('intended', 'calling', 'uncertain', 'accepted') GROUP BY state ORDER BY state`, d.now())
	if err != nil {
		return // The database is away.
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = ""
	if len(lines) > 0 {
		d.waiting = "jobs: " + strings.Join(lines, ", ")
	}
}
