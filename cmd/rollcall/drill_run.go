package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"syscall"
	"time"

	"rollcall/store"
)

const (
	watchEvery = 100 * time.Millisecond
	sayEvery   = 5 * time.Second
)

// run carries the script out under load, waits until all has come home, and makes the report.
func (d *drill) run(ctx context.Context) (*drillReport, error) {
	limited, cancel := context.WithTimeout(ctx, d.cmd.Deadline)
	defer cancel()
	watching := d.watch(limited)
	err := d.play(limited)
	if err == nil {
		err = d.settleDown(limited)
	}
	watching()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the drill was cut short: %w", ctx.Err())
	}
	if err != nil && limited.Err() == nil {
		return nil, err
	}
	took := d.now().Sub(d.began)
	d.dismiss(ctx)
	return d.report(ctx, took)
}

// play does each act at its time. Acts that last go on beside the next ones.
func (d *drill) play(ctx context.Context) error {
	load := d.cmd.load()
	acts := d.cmd.script(len(load))
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var going sync.WaitGroup
	began := d.now()
	for _, a := range acts {
		if !pauseFor(ctx, max(0, a.at-d.now().Sub(began))) {
			break
		}
		going.Go(func() {
			unlock := d.turn(a)
			defer unlock()
			if err := d.carryOut(ctx, a, load); err != nil && ctx.Err() == nil {
				stop(fmt.Errorf("%s: %w", a.kind, err))
			}
		})
	}
	going.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// turn keeps apart acts that would undo each other: those on one server, and those on Postgres.
func (d *drill) turn(a act) func() {
	var of *sync.Mutex
	switch a.kind {
	case actKill, actTerm, actStep:
		of = &d.killing[a.server]
	case actDisk, actClock:
		of = &d.hooking[a.server]
	case actRestart, actPGKill:
		of = &d.postgres
	case actRotate, actSwitches, actRepair:
		of = &d.webhooks
	default:
		return func() {}
	}
	of.Lock()
	return of.Unlock
}

// settleDown ends the vendor's faults and waits until every batch and rotation has ended.
func (d *drill) settleDown(ctx context.Context) error {
	if d.cmd.Faults == "" {
		if err := d.setFaults(ctx, d.cmd.skew()); err != nil {
			return err
		}
	}
	d.say("The script is over. Waiting until every URL is answered for.")
	told := d.now()
	for {
		open, err := d.unended(ctx)
		if err == nil && open == 0 {
			return nil
		}
		if now := d.now(); now.Sub(d.quietSince()) > quietFor && now.Sub(told) > quietFor {
			told = now
			d.tellOpen(ctx)
		}
		if !pauseFor(ctx, watchEvery) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// tellOpen writes down what is open, for whoever looks for why.
func (d *drill) tellOpen(ctx context.Context) {
	lines, err := d.describeOpen(ctx)
	if err != nil {
		d.log.InfoContext(ctx, "open jobs not looked at", slog.Any("error", err))
	}
	for _, line := range lines {
		d.log.InfoContext(ctx, "still open", slog.String("what", line))
	}
}

// unended counts the batches and the rotations that have not ended.
func (d *drill) unended(ctx context.Context) (int64, error) {
	var n int64
	err := d.store.SQL().QueryRowContext(ctx, `SELECT (SELECT count(*) FROM batches WHERE ended_at IS NULL)
		+ (SELECT count(*) FROM rotations WHERE ended_at IS NULL)`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for what has not ended: %w", err)
	}
	return n, nil
}

// dismiss ends the servers in order.
func (d *drill) dismiss(ctx context.Context) {
	defer d.note(ctx, actEnd, "all servers")()
	var ending sync.WaitGroup
	for _, server := range d.servers {
		ending.Go(func() {
			if err := server.halt(ctx, syscall.SIGTERM); err != nil {
				d.problem("%v", err)
			}
		})
	}
	ending.Wait()
}

// noteDeath notes how a process ended. One that ended by itself, or not in order when it was told to end, is a problem.
func (d *drill) noteDeath(c *child, how death) {
	d.log.Info("ended", slog.String("process", c.name), slog.String("doom", how.doom), slog.String("step", how.step), slog.String("status", how.status))
	switch {
	case how.step != "":
		d.mu.Lock()
		d.kills = append(d.kills, &kill{at: how.at, child: c.name, how: actStep, step: how.step})
		d.timeline = append(d.timeline, happening{From: how.at, To: how.at, Kind: actStep, Detail: c.name + " at " + how.step})
		d.mu.Unlock()
	case how.doom == actKill, how.doom == actTerm:
		if how.doom == actTerm && !how.clean {
			d.problem("%s ended with %s after SIGTERM", c.name, how.status)
		}
		d.mu.Lock()
		d.kills = append(d.kills, &kill{at: how.at, child: c.name, how: how.doom})
		d.mu.Unlock()
	case how.doom == "":
		text := fallen + how.status
		if !how.ready {
			text = stillborn + how.status
		}
		d.mu.Lock()
		d.falls = append(d.falls, logError{at: how.at, process: c.name, text: text})
		d.mu.Unlock()
	case c != d.vendor && !how.clean:
		d.problem("%s ended with %s when it was told to end at last", c.name, how.status)
	}
}

// noteReady notes when a process that was killed is ready again.
func (d *drill) noteReady(c *child, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range slices.Backward(d.kills) {
		if k.child == c.name {
			if k.ready.IsZero() {
				k.ready = at
			}
			return
		}
	}
}

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

func (d *drill) sayProgress() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.samples) == 0 {
		return
	}
	s := d.samples[len(d.samples)-1]
	d.say(fmt.Sprintf("%4.0f s  %d batches  %d answered  %d outstanding  %d kills", d.now().Sub(d.began).Seconds(), len(d.batches), s.answered, s.outstanding, len(d.kills)))
}

// say tells a person; where nobody listens nothing is lost.
func (d *drill) say(line string) { _, _ = fmt.Fprintln(d.out, line) }

// total adds the batches up.
func (d *drill) total(ctx context.Context) (*store.Batch, []int64, error) {
	d.mu.Lock()
	var ids []int64
	for _, b := range d.batches {
		ids = append(ids, b.id)
	}
	d.mu.Unlock()
	sum, err := d.together(ctx, ids)
	return sum, ids, err
}
