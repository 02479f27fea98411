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
	// dueSchedules is how many schedules one look takes up.
	dueSchedules = 20
	// mostMissed bounds the missed times that are counted one by one.
	mostMissed = 100_000
)

// scheduleLoop takes up what is due until ctx ends.
func (p *Pipeline) scheduleLoop(ctx context.Context) {
	p.every(ctx, 2*p.cfg.PollTick, p.RunDue)
}

// RunDue takes up the schedules whose time has come. Every process may do it at
// any time: a time that was due is moved on from once only, in the transaction
// that writes what came of it. What fails is still due, and the next look tries
// again.
func (p *Pipeline) RunDue(ctx context.Context) error {
	due, err := p.store.DueSchedules(ctx, p.now(), dueSchedules)
	if err != nil {
		return fmt.Errorf("look for schedules that are due: %w", err)
	}
	var failed []error
	for i := range due {
		if err := p.runDue(ctx, &due[i]); err != nil {
			failed = append(failed, fmt.Errorf("schedule %d: %w", due[i].ID, err))
		}
	}
	return errors.Join(failed...)
}

// runDue takes up one schedule: the last time that was due runs, those before it
// were missed.
func (p *Pipeline) runDue(ctx context.Context, s *store.Schedule) error {
	times, err := ReadTimes(s.Cron, s.Zone)
	if err != nil {
		return p.pauseUnreadable(ctx, s, err)
	}
	now := p.now()
	turn := times.overdue(*s.NextAt, now)
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		claimed, err := tx.ClaimDue(ctx, s.ID, *s.NextAt, turn.next)
		if err != nil {
			return err
		}
		if turn.missed > 0 {
			if err := tx.InsertScheduleRun(ctx, turn.missedRun(s.ID, now)); err != nil {
				return err
			}
		}
		return p.carryOut(ctx, tx, claimed, &store.ScheduleRun{ScheduleID: s.ID, DueAt: turn.due, At: now, Times: 1})
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil // Somebody else has it.
	}
	return err
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
