package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rollcall/store"
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
		return nil, fmt.Errorf("the drill was cut short: %w", context.Cause(ctx))
	}
	if err != nil && limited.Err() == nil {
		return nil, err
	}
	if err != nil {
		d.problem("cut short by --deadline=%s: %v", d.cmd.Deadline, err)
	}
	took := d.now().Sub(d.began)
	leaking, err := d.readPages(ctx)
	if err != nil {
		return nil, err
	}
	d.dismiss(ctx)
	return d.report(ctx, took, leaking)
}

// cutError reports that the time was up, and how far the drill was.
type cutError string

// Error says how far the drill was.
func (e cutError) Error() string { return string(e) }

// play does each act at its time. Acts that last go on beside the next ones.
func (d *drill) play(ctx context.Context) error {
	load := d.cmd.load()
	acts := d.cmd.script(len(load))
	d.say("The script has %d acts in %s: %d batches, %d kills, new secrets every %s; then all must come home.",
		len(acts), d.cmd.length().Round(time.Second), len(load), d.cmd.Kills, d.cmd.Rotate)
	limited := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var going sync.WaitGroup
	var done atomic.Int64
	began := d.now()
	for _, a := range acts {
		if !pauseFor(ctx, max(0, a.at-d.now().Sub(began))) {
			break
		}
		going.Go(func() {
			err := d.act(ctx, a, load)
			if err == nil {
				done.Add(1)
			} else if ctx.Err() == nil {
				stop(fmt.Errorf("%s: %w", a.kind, err))
			}
		})
	}
	going.Wait()
	switch {
	case limited.Err() != nil && done.Load() < int64(len(acts)):
		return cutError(fmt.Sprintf("%d of %d acts of the script were done", done.Load(), len(acts)))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// act does one act in its turn, and counts it, or why it was left out.
func (d *drill) act(ctx context.Context, a act, load []drillBatch) error {
	err := error(errJoined)
	if unlock, free := d.turn(a); free {
		defer unlock()
		err = d.carryOut(ctx, a, load)
	}
	why, left := errors.AsType[leftOutError](err)
	if err != nil && !left {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.acts.count(a.kind, why)
	return nil
}

// turn keeps apart acts that would undo each other: those on one server, on Postgres, and on the webhooks. What it
// returns ends the turn. A rotation doesn't wait for another, which it would only join: the script asks for them faster
// than a vendor full of faults lets them end, and a queue of them would outlast it.
func (d *drill) turn(a act) (func(), bool) {
	var of *sync.Mutex
	switch a.kind {
	case actKill, actTerm, actStep:
		of = &d.killing[a.server]
	case actDisk, actClock:
		of = &d.hooking[a.server]
	case actRestart, actPGKill:
		of = &d.postgres
	case actRotate:
		if !d.rotating.CompareAndSwap(false, true) {
			return nil, false
		}
		d.webhooks.Lock()
		return func() {
			d.webhooks.Unlock()
			d.rotating.Store(false)
		}, true
	case actSwitches, actRepair:
		of = &d.webhooks
	default:
		return func() {}, true
	}
	of.Lock()
	return of.Unlock, true
}

// settleDown ends the vendor's faults and waits until every batch and rotation has ended.
func (d *drill) settleDown(ctx context.Context) error {
	if d.cmd.Faults == "" {
		if err := d.setFaults(ctx, nil); err != nil {
			return err
		}
	}
	d.say("The script is over. Waiting until every URL is answered for.")
	told, repaired := d.now(), d.now()
	for {
		open, err := d.unended(ctx)
		if err == nil && open == 0 {
			return nil
		}
		if now := d.now(); now.Sub(repaired) > repairGap {
			repaired = now
			if err := d.repair(ctx); err != nil {
				d.log.InfoContext(ctx, "webhooks not looked at", slog.Any("error", err))
			}
		}
		if now := d.now(); now.Sub(d.quietSince()) > quietFor && now.Sub(told) > quietFor {
			told = now
			d.tellOpen(ctx)
		}
		if !pauseFor(ctx, watchEvery) {
			return errors.Join(cutError("not everything has ended"), err)
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

// unended counts the batches and the rotations that have not ended, and the webhooks that nobody has repaired.
func (d *drill) unended(ctx context.Context) (int64, error) {
	var n int64
	err := d.store.SQL().QueryRowContext(ctx, `SELECT (SELECT count(*) FROM batches WHERE ended_at IS NULL)
		+ (SELECT count(*) FROM rotations WHERE ended_at IS NULL)
		+ (SELECT count(*) FROM webhooks WHERE state IN ('inactive', 'moved', 'gone'))`).Scan(&n)
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
