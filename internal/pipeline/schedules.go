package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"rollcall/store"
)

// ScheduleForm is a schedule as a person asks for it.
type ScheduleForm struct {
	Name      string // "" takes the batch's.
	BatchID   int64  // The batch that is run again; a change leaves it.
	Cron      string
	Zone      string
	CreatedBy *int64
	Token     string // The form's own, as of a Submission.
}

// check reads the times and names each field that cannot be right.
func (f ScheduleForm) check() (Times, error) {
	times, err := ReadTimes(f.Cron, f.Zone)
	invalid, ok := errors.AsType[*InvalidSubmission](err)
	if err != nil && !ok {
		return times, err
	}
	if utf8.RuneCountInString(f.Name) > maxName {
		if !ok {
			invalid = &InvalidSubmission{}
		}
		invalid.Fields = append(invalid.Fields, FieldError{"name", fmt.Sprintf("the name is over %d characters", maxName)})
	}
	if invalid != nil {
		return times, invalid
	}
	return times, nil
}

// scheduleFacts is what the audit log tells of a schedule.
type scheduleFacts struct {
	Name     string     `json:"name"`
	Batch    int64      `json:"batch"`
	Cron     string     `json:"cron"`
	Zone     string     `json:"zone"`
	PausedBy string     `json:"paused_by,omitempty"`
	NextAt   *time.Time `json:"next_at,omitempty"`
}

func factsOf(s *store.Schedule) scheduleFacts {
	return scheduleFacts{Name: s.Name, Batch: s.TemplateBatchID, Cron: s.Cron, Zone: s.Zone, PausedBy: s.PausedBy, NextAt: s.NextAt}
}

func (p *Pipeline) auditSchedule(ctx context.Context, tx store.Tx, what string, id int64, before, after any) error {
	return tx.Audit(ctx, p.now(), store.Change{
		What: "schedule." + what, Kind: "schedule", ID: strconv.FormatInt(id, 10), Before: before, After: after,
	})
}

// AddSchedule makes a schedule that runs a batch again, for the first time at
// the next of its times. It returns *InvalidSubmission, having written nothing,
// when a field is wrong; the same form sent twice makes one.
func (p *Pipeline) AddSchedule(ctx context.Context, f ScheduleForm) (*store.Schedule, error) {
	times, err := f.check()
	if err != nil {
		return nil, err
	}
	b, err := p.store.Batch(ctx, f.BatchID)
	if err != nil {
		return nil, err
	}
	now := p.now()
	s := &store.Schedule{
		Name: scheduleName(f.Name, b.Name), TemplateBatchID: b.ID, Cron: CleanCron(f.Cron), Zone: f.Zone,
		CreatedBy: f.CreatedBy, CreatedAt: now, NextAt: nextOf(times, now),
	}
	s.SubmitToken = formToken(f.Token, f.CreatedBy, strconv.FormatInt(b.ID, 10), f.Name, s.Cron, s.Zone)
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := holdWhole(ctx, tx, b.ID, "batch"); err != nil {
			return err
		}
		if err := tx.InsertSchedule(ctx, s); err != nil {
			return err
		}
		return p.auditSchedule(ctx, tx, "make", s.ID, nil, factsOf(s))
	})
	if errors.Is(err, store.ErrTaken) && s.SubmitToken != nil {
		return p.store.ScheduleOfToken(ctx, *s.SubmitToken)
	}
	if err != nil {
		return nil, fmt.Errorf("write the schedule: %w", err)
	}
	return s, nil
}

func scheduleName(typed, batch string) string {
	if typed = strings.TrimSpace(store.CleanText(typed)); typed != "" {
		return typed
	}
	// Batches that were named by earlier releases may have a longer name.
	return clipRunes(batch, maxName)
}

// nextAfterRuns is the next time after now, and after what the clock has run: it
// may have been a clock ahead of this one, and no time runs twice.
func nextAfterRuns(ctx context.Context, tx store.Tx, id int64, t Times, now time.Time) (*time.Time, error) {
	last, err := tx.LastDue(ctx, id)
	if err != nil {
		return nil, err
	}
	if last.After(now) {
		now = last
	}
	return nextOf(t, now), nil
}

// nextOf is the next time after a moment; nil when none follows.
func nextOf(t Times, after time.Time) *time.Time {
	next := t.Next(after)
	if next.IsZero() {
		return nil
	}
	return &next
}

// ChangeSchedule gives a schedule another name and other times. It reports false
// when it was removed.
func (p *Pipeline) ChangeSchedule(ctx context.Context, id int64, f ScheduleForm) (bool, error) {
	times, err := f.check()
	if err != nil {
		return false, err
	}
	return p.moveSchedule(ctx, id, "change", func(ctx context.Context, tx store.Tx, s *store.Schedule) (bool, error) {
		s.Name, s.Cron, s.Zone = scheduleName(f.Name, s.Name), CleanCron(f.Cron), f.Zone
		if s.PausedAt == nil {
			if s.NextAt, err = nextAfterRuns(ctx, tx, id, times, p.now()); err != nil {
				return false, err
			}
		}
		return tx.ChangeSchedule(ctx, s)
	})
}

// PauseSchedule keeps a schedule from starting anything by the clock. It reports
// false when it was paused or removed before.
func (p *Pipeline) PauseSchedule(ctx context.Context, id int64) (bool, error) {
	return p.moveSchedule(ctx, id, "pause", func(ctx context.Context, tx store.Tx, s *store.Schedule) (bool, error) {
		s.PausedBy, s.NextAt = store.ActorOf(ctx).Name, nil
		return tx.PauseSchedule(ctx, id, s.PausedBy, p.now())
	})
}

// ResumeSchedule lets a paused schedule go on with the next of its times: those
// of the pause are not made up for. It reports false when it wasn't paused.
func (p *Pipeline) ResumeSchedule(ctx context.Context, id int64) (bool, error) {
	return p.moveSchedule(ctx, id, "resume", func(ctx context.Context, tx store.Tx, s *store.Schedule) (bool, error) {
		times, err := ReadTimes(s.Cron, s.Zone)
		if err != nil {
			return false, err
		}
		s.PausedBy = ""
		if s.NextAt, err = nextAfterRuns(ctx, tx, id, times, p.now()); err != nil {
			return false, err
		}
		return tx.ResumeSchedule(ctx, id, s.NextAt)
	})
}

// RemoveSchedule ends a schedule for good; the batches it made stay. It reports
// false when it was removed before.
func (p *Pipeline) RemoveSchedule(ctx context.Context, id int64) (bool, error) {
	return p.moveSchedule(ctx, id, "remove", func(ctx context.Context, tx store.Tx, s *store.Schedule) (bool, error) {
		s.NextAt = nil
		return tx.RemoveSchedule(ctx, id, p.now())
	})
}

// moveSchedule makes one change under the schedule's lock, and writes it down
// when it was one. The change leaves the schedule in s as it is then.
func (p *Pipeline) moveSchedule(
	ctx context.Context, id int64, what string, move func(context.Context, store.Tx, *store.Schedule) (bool, error),
) (bool, error) {
	moved := false
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		s, err := tx.LockSchedule(ctx, id)
		if err != nil {
			return err
		}
		before := factsOf(s)
		if moved, err = move(ctx, tx, s); err != nil || !moved {
			return err
		}
		return p.auditSchedule(ctx, tx, what, id, before, factsOf(s))
	})
	if err != nil {
		return false, fmt.Errorf("%s schedule %d: %w", what, id, err)
	}
	return moved, nil
}

// RunScheduleNow runs a schedule's batch again for a person who pressed, unless
// the last one is still going: then the run says so. A schedule that was removed
// is ErrNotFound.
func (p *Pipeline) RunScheduleNow(ctx context.Context, id int64) (*store.ScheduleRun, error) {
	var run *store.ScheduleRun
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		s, err := tx.LockSchedule(ctx, id)
		if err != nil {
			return err
		}
		if s.RemovedAt != nil {
			return store.ErrNotFound
		}
		// The database keeps microseconds.
		now := p.now().Truncate(time.Microsecond)
		run = &store.ScheduleRun{ScheduleID: id, DueAt: now, At: now, Times: 1, PressedBy: store.ActorOf(ctx).Name}
		if err := p.carryOut(ctx, tx, s, run); err != nil {
			return err
		}
		return p.auditSchedule(ctx, tx, "run", id, nil, runFacts{Outcome: run.Outcome, Reason: run.Reason, Batch: run.BatchID})
	})
	if err != nil {
		return nil, fmt.Errorf("run schedule %d: %w", id, err)
	}
	return run, nil
}

// runFacts is what came of a press.
type runFacts struct {
	Outcome store.RunOutcome `json:"outcome"`
	Reason  string           `json:"reason,omitempty"`
	Batch   *int64           `json:"batch,omitempty"`
}

// carryOut starts the run of a locked schedule, or notes why it is skipped.
func (p *Pipeline) carryOut(ctx context.Context, tx store.Tx, s *store.Schedule, run *store.ScheduleRun) error {
	going, err := tx.Batch(ctx, idOr(s.LastBatchID, s.TemplateBatchID))
	if err != nil {
		return err
	}
	run.Outcome = store.RunSkipped
	if going.Outstanding > 0 {
		run.Reason = fmt.Sprintf("batch %d was still going: %d of its %d URLs had no answer yet", going.ID, going.Outstanding, going.Accepted)
		return tx.InsertScheduleRun(ctx, run)
	}
	r := rerunning{by: s.CreatedBy, how: store.RerunSchedule, name: runName(s, run.DueAt)}
	if r.parent, err = tx.Batch(ctx, s.TemplateBatchID); err != nil {
		return err
	}
	err = p.writeRerun(ctx, tx, &r)
	if errors.Is(err, ErrSealed) {
		// Found before anything was written, and no better at the next try.
		run.Reason = fmt.Sprintf("the headers of batch %d do not open with today's secret key", r.parent.ID)
		return tx.InsertScheduleRun(ctx, run)
	}
	if err != nil {
		return err
	}
	run.Outcome, run.BatchID = store.RunStarted, &r.made.ID
	if err := tx.InsertScheduleRun(ctx, run); err != nil {
		return err
	}
	p.log.InfoContext(ctx, "schedule run", slog.Int64("schedule_id", s.ID), slog.Int64("batch_id", r.made.ID))
	return tx.SetLastBatch(ctx, s.ID, r.made.ID)
}

func idOr(id *int64, otherwise int64) int64 {
	if id == nil {
		return otherwise
	}
	return *id
}

// runName names a run's batch after the schedule and the time that was due, on
// the schedule's clock: which that is it says when it isn't UTC, as pages tell
// the time by the reader's.
func runName(s *store.Schedule, due time.Time) string {
	zone, err := readZone(s.Zone)
	if err != nil {
		zone = time.UTC
	}
	at := due.In(zone)
	mark := at.Format(" 2006-01-02 15:04")
	if name, _ := at.Zone(); name != "UTC" {
		mark += " " + name
	}
	return clipRunes(s.Name, maxName-len(mark)) + mark
}
