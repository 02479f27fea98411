package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"rollcall/store"
)

const (
	// scheduleTick is how often is looked at least for what is due: times have
	// minutes.
	scheduleTick = time.Second
	// dueSchedules is how many schedules one look takes up.
	dueSchedules = 20
	// mostMissed bounds the missed times that are counted one by one.
	mostMissed = 100_000
	// giveUp is how long a run that can't be started is tried, from its time on.
	giveUp = 10 * time.Minute
)

// scheduleLoop takes up what is due until ctx ends.
func (p *Pipeline) scheduleLoop(ctx context.Context) {
	p.every(ctx, max(2*p.cfg.PollTick, scheduleTick), p.RunDue)
}

// RunDue takes up the schedules whose time has come. Every process may do it at
// any time: a time that was due is moved on from once only, in the transaction
// that writes what came of it. What fails is still due, and the next look tries
// again, for as long as giveUp says; it keeps no other schedule waiting.
func (p *Pipeline) RunDue(ctx context.Context) error {
	var failed []error
	var after *store.Schedule
	for now := p.now(); ; {
		due, err := p.store.DueSchedules(ctx, now, after, dueSchedules)
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("look for schedules that are due: %w", err))...)
		}
		for i := range due {
			if err := p.runDue(ctx, &due[i]); err != nil {
				failed = append(failed, fmt.Errorf("schedule %d: %w", due[i].ID, err))
			}
		}
		if len(due) < dueSchedules || ctx.Err() != nil {
			return errors.Join(failed...)
		}
		after = &due[len(due)-1]
	}
}

// errTaken reports a time that somebody else has moved on from.
var errTaken = errors.New("the schedule was moved on meanwhile")

// runDue takes up one schedule: the last time that was due runs, those before it
// were missed.
func (p *Pipeline) runDue(ctx context.Context, s *store.Schedule) error {
	times, err := ReadTimes(s.Cron, s.Zone)
	if err != nil {
		return p.pauseUnreadable(ctx, s, err)
	}
	now := p.now()
	turn := times.overdue(*s.NextAt, now)
	err = p.takeTurn(ctx, s, times, turn, now, p.carryOut)
	reason := hopeless(err, now.Sub(turn.due))
	if err == nil || reason == "" {
		return err
	}
	skipped := p.takeTurn(ctx, s, times, turn, now, func(ctx context.Context, tx store.Tx, _ *store.Schedule, run *store.ScheduleRun) error {
		run.Outcome, run.Reason = store.RunSkipped, reason
		return tx.InsertScheduleRun(ctx, run)
	})
	if skipped != nil {
		return errors.Join(err, skipped)
	}
	p.log.ErrorContext(ctx, "schedule skipped: its batch can't be made", slog.Int64("schedule_id", s.ID), slog.Any("error", err))
	return nil
}

// hopeless says why a run is not tried again that failed so long after its time;
// "" when it is.
func hopeless(err error, late time.Duration) string {
	if invalid, ok := errors.AsType[*InvalidSubmission](err); ok {
		return "its batch can't be submitted again: " + invalid.Error()
	}
	if late < giveUp {
		return ""
	}
	return fmt.Sprintf("it could not be started for %d minutes; Rollcall's log says why", int(giveUp.Minutes()))
}

// takeTurn moves a schedule on from the time that was due and writes what came
// of it: what was missed, and the run that begin makes. What is noted already,
// such as of a press at the same moment, is not done again.
func (p *Pipeline) takeTurn(
	ctx context.Context, s *store.Schedule, times Times, turn overdue, now time.Time,
	begin func(context.Context, store.Tx, *store.Schedule, *store.ScheduleRun) error,
) error {
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		claimed, err := tx.ClaimDue(ctx, s.ID, *s.NextAt, turn.next)
		if errors.Is(err, store.ErrNotFound) {
			return errTaken
		}
		if err != nil {
			return err
		}
		if err := noteMissed(ctx, tx, s.ID, times, turn, now); err != nil {
			return err
		}
		done, err := tx.HasScheduleRun(ctx, s.ID, turn.due)
		if err != nil || done {
			return err
		}
		return begin(ctx, tx, claimed, &store.ScheduleRun{ScheduleID: s.ID, DueAt: turn.due, At: now, Times: 1})
	})
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}

// noteMissed writes the row of the times that were missed, from the first that
// is not noted yet.
func noteMissed(ctx context.Context, tx store.Tx, id int64, times Times, turn overdue, now time.Time) error {
	for ; turn.missed > 0; turn.missed, turn.from = turn.missed-1, times.Next(turn.from) {
		noted, err := tx.HasScheduleRun(ctx, id, turn.from)
		if err != nil {
			return err
		}
		if !noted {
			return tx.InsertScheduleRun(ctx, turn.missedRun(id, now))
		}
	}
	return nil
}

// pauseUnreadable rests a schedule whose times can no longer be read, such as
// when its zone has left the tz database: until a person changes it there is
// nothing to wait for.
func (p *Pipeline) pauseUnreadable(ctx context.Context, s *store.Schedule, why error) error {
	p.log.WarnContext(ctx, "schedule paused: its times can't be read", slog.Int64("schedule_id", s.ID), slog.Any("error", why))
	_, err := p.moveSchedule(ctx, s.ID, "pause", func(ctx context.Context, tx store.Tx, s *store.Schedule) (bool, error) {
		s.PausedBy, s.NextAt = "Rollcall, since its times can't be read: "+why.Error(), nil
		return tx.PauseSchedule(ctx, s.ID, s.PausedBy, p.now())
	})
	return err
}

// overdue is what has become due of a schedule since it was last looked at.
type overdue struct {
	due    time.Time  // The last of the times that have come.
	next   *time.Time // The first to come; nil when none follows.
	missed int        // Times before due that nobody was there for.
	from   time.Time  // The first of those.
	until  time.Time  // The last.
}

// overdue goes from a time that was due to the last one that has come.
func (t Times) overdue(due, now time.Time) overdue {
	out := overdue{due: due, from: due}
	for {
		next := t.Next(out.due)
		if next.IsZero() {
			return out
		}
		if next.After(now) || out.missed == mostMissed {
			out.next = &next
			return out
		}
		out.missed, out.until, out.due = out.missed+1, out.due, next
	}
}

// missedRun is the row of the times that were missed together.
func (t overdue) missedRun(id int64, now time.Time) *store.ScheduleRun {
	return &store.ScheduleRun{
		ScheduleID: id, DueAt: t.from, UntilAt: &t.until, Times: t.missed, At: now, Outcome: store.RunMissed,
		Reason: "no process of Rollcall took them up in time",
	}
}
