package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// Bounds of list polling.
const (
	// listLeast is how many due extract jobs are worth a list: fewer are asked
	// about one by one.
	listLeast = 3
	// sweepMost bounds the jobs of one sweep, and wakeMost those it wakes: settle
	// takes longer over more than the next sweep is away.
	sweepMost, wakeMost = 20_000, 500
	// doubtMost bounds what a sweep wakes for being absent from a list that had
	// rows nobody could read: the job may be one of these.
	doubtMost = 50
	// unsureFew is how many jobs that may be queued are asked about singly rather
	// than by a list of their own.
	unsureFew = 2
	// sweepLease outlives one call; it is made longer before each.
	sweepLease = 15 * time.Second
	sweepCall  = 10 * time.Second
	sweepTime  = 30 * time.Second // Of a whole sweep: a vendor that takes longer is asked singly.
	// uselessFor is how long a list that is of no use isn't tried again.
	uselessFor = time.Minute
	// failuresSingly is how many sweeps in a row must fail for jobs to be asked
	// about singly until the next.
	failuresSingly = 2
)

// The ages at which the looks at a job grow rarer.
const (
	youngAge = 45 * time.Second
	grownAge = 2 * time.Minute
	oldAge   = 10 * time.Minute
)

// looksPerRead is how many looks by list at an old job come before one at the
// job itself: a list that is wrong about it must not be believed for ever.
const looksPerRead = 20

// errUseless reports a list that saves no calls: it is longer than asking
// singly takes, or does not tell who runs.
var errUseless = errors.New("the vendor's list is of no use for polling")

// errTurnLost reports a sweep that took so long that its turn has passed on.
var errTurnLost = errors.New("the turn to sweep has passed on")

// listLoop sweeps until ctx ends. It is a loop of its own: a slow list must not
// keep due jobs of other kinds waiting.
func (p *Pipeline) listLoop(ctx context.Context) {
	p.every(ctx, p.cfg.PollTick, func(ctx context.Context) error {
		if p.cfg.NoPoll {
			return nil
		}
		_, err := p.ListPoll(ctx)
		return err
	})
}

// ListPoll answers for many due extract jobs at once by the vendor's list of
// those that run: it wakes the jobs that seem to have ended and returns how
// many. Of all replicas one at a time does so, not before the next sweep is
// due. A wrong guess costs a call and nothing else: settle asks the vendor.
func (p *Pipeline) ListPoll(ctx context.Context) (int, error) {
	now := p.now()
	singly, err := p.store.PollSingly(ctx, now, listLeast)
	if err != nil || singly {
		return 0, err
	}
	row, err := p.store.TakeSweep(ctx, store.KindExtract, now, now.Add(sweepLease))
	if err != nil || row == nil {
		return 0, err
	}
	s := &listSweep{Pipeline: p, row: row, began: now}
	err = s.end(ctx, s.run(ctx))
	if errors.Is(err, errTurnLost) {
		err = nil // Whoever has it now looks at the same jobs.
	}
	if err != nil {
		err = fmt.Errorf("sweep the extract list: %w", err)
	}
	return row.Woken, err
}

// listSweep is one turn.
type listSweep struct {
	*Pipeline
	row    *store.ListSweep
	began  time.Time
	putOff time.Duration // Asked for by the read gate.
	due    []store.DueJob
	list   *listRead
}

// run reads the lists and carries what they show into the jobs. When the
// answers correct the vendor's clock, the window was wrong and all is read
// again.
func (s *listSweep) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	var err error
	if s.due, err = s.store.DueExtracts(ctx, s.began, sweepMost); err != nil || len(s.due) == 0 {
		return err
	}
	s.row.Due = len(s.due)
	for range clockTries {
		ahead := s.clock.ahead()
		s.list = newListRead(s)
		if err := s.read(ctx); err != nil {
			return err
		}
		if (s.clock.ahead() - ahead).Abs() < adoptSlack/2 {
			return s.decide(ctx)
		}
	}
	return errClock
}

// read reads the list of what runs, and that of what is queued when there are
// jobs that may be in it.
func (s *listSweep) read(ctx context.Context) error {
	if err := s.list.read(ctx, geonode.StatusProcessing, s.due); err != nil {
		return err
	}
	if s.list.unfiltered {
		return nil
	}
	var unsure []store.DueJob
	for i := range s.due {
		if d := &s.due[i]; !s.list.has(d) && !ran(d) {
			unsure = append(unsure, *d)
		}
	}
	if len(unsure) <= unsureFew {
		return nil
	}
	return s.list.read(ctx, geonode.StatusQueued, unsure)
}

// ran reports whether the job was seen running: then it is not queued again.
func ran(d *store.DueJob) bool {
	return d.VendorStatus != "" && geonode.Status(d.VendorStatus) != geonode.StatusQueued
}

// decide sorts the due jobs into those to wake and those that still run.
func (s *listSweep) decide(ctx context.Context) error {
	hooks, err := s.mode.webhooks(ctx)
	if err != nil {
		return err
	}
	v := newVerdicts(s, hooks)
	for i := range s.due {
		v.sort(&s.due[i])
	}
	if v.misled*2 > len(s.due) {
		return fmt.Errorf("%w: most of the jobs that it lacks still run", errUseless)
	}
	if s.row.Woken, err = s.wakeEnded(ctx, v.wake()); err != nil {
		return err
	}
	return v.write(ctx)
}

// wakeEnded wakes jobs, a group in a transaction.
func (s *listSweep) wakeEnded(ctx context.Context, ids []int64) (int, error) {
	total := 0
	for len(ids) > 0 {
		group := ids[:min(len(ids), pollGroup)]
		ids = ids[len(group):]
		err := s.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
			woken, err := tx.WakeListed(ctx, group, s.began, s.now().Add(pollLease))
			if err != nil {
				return err
			}
			total += len(woken)
			return s.queue.settle(ctx, tx, woken)
		})
		if err != nil {
			return total, fmt.Errorf("wake jobs that seem to have ended: %w", err)
		}
	}
	return total, nil
}

// end gives the turn back, whatever became of it, with the time of the next.
func (s *listSweep) end(ctx context.Context, cause error) error {
	if errors.Is(cause, errTurnLost) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	now := s.now()
	s.row.EndedAt = &now
	if s.list != nil {
		s.row.Pages = s.list.pages
	}
	next := now.Add(max(s.cfg.ListEvery/4, s.began.Add(s.cfg.ListEvery).Sub(now)))
	switch {
	case s.putOff > 0:
		next, cause = now.Add(s.putOff), nil
		s.row.Note = "the read gate is closed"
	case errors.Is(cause, errUseless):
		next = now.Add(uselessFor)
		s.log.DebugContext(ctx, "jobs are polled one by one", slog.Any("error", cause))
		s.row.Note, cause, s.row.SinglyUntil, s.row.Failures = cause.Error(), nil, &next, 0
	case cause != nil && !errors.Is(cause, context.Canceled):
		gap := doubling(s.cfg.ListEvery, s.cfg.PollCap, s.row.Failures)
		next = now.Add(gap/2 + jitter(gap/2))
		s.row.Note = clip(cause.Error(), 300)
		if s.row.Failures++; s.row.Failures >= failuresSingly {
			s.row.SinglyUntil = &next
		}
	case cause == nil:
		s.row.Failures = 0
	}
	s.row.NextAt = &next
	if _, err := s.store.EndSweep(ctx, s.row); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}
