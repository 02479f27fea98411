package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"rollcall/store"
)

const (
	// rollUpEvery is how old the overview's figures get.
	rollUpEvery = time.Minute
	// rollUpBudget is for how long one run goes back over hours that were never
	// counted, such as those from before an upgrade; the next goes on.
	rollUpBudget = 5 * time.Second
	// rollUpTime bounds one run whatever is in an hour.
	rollUpTime = 5 * time.Minute
	// rollUpMost bounds the same in hours.
	rollUpMost = 500
	// hourGrace is how long after an hour's end something may still be committed
	// that belongs to it: longer than any transaction lasts, and than the clocks of
	// replicas are apart.
	hourGrace = store.ClocksApart
)

// RollUp counts the hours that are still open, the present one first, and
// returns how many it counted. An hour is counted from its rows, not added to:
// what a crash or a second replica does twice comes to the same, and an hour
// whose grace is over when it is counted is closed for good, unless whoever
// closed it had a clock far ahead of the next who looks. A result is counted in
// the hour it was stored in, however late that is.
func (p *Pipeline) RollUp(ctx context.Context) (int, error) {
	since, err := p.countingSince(ctx)
	if err != nil {
		return 0, err
	}
	began := p.now()
	hours, err := p.store.OpenHours(ctx, began, p.closed.since(began, p.statsSince(began)), rollUpMost)
	if err != nil {
		return 0, fmt.Errorf("look for hours to count: %w", err)
	}
	p.closed.found(began, hours)
	for i, hour := range hours {
		if err := p.rollUpHour(ctx, hour, since); err != nil {
			return i, fmt.Errorf("count the hour of %s: %w", hour.Format(time.RFC3339), err)
		}
		if p.now().Sub(began) > rollUpBudget {
			return i + 1, nil
		}
	}
	return len(hours), nil
}

// closedHours is up to where this process has found all hours closed: they stay so, and a year of them isn't looked
// through each minute.
type closedHours struct {
	mu     sync.Mutex
	before time.Time
	at     time.Time // When it was last asked.
}

// closedLater is within which hours are always looked at: one that is left alone for a while isn't closed yet.
const closedLater = 24 * time.Hour

// since is from where on to look, which is never before first.
func (c *closedHours) since(now, first time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.at) {
		c.before = time.Time{} // The clock was set back, and what it closed meanwhile is open.
	}
	c.at = now
	if c.before.After(first) {
		return c.before
	}
	return first
}

// found notes what a look found open.
func (c *closedHours) found(now time.Time, open []time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(open) >= rollUpMost || now.Before(c.at) {
		return // There may be older ones, or the look was by a clock that was set back since.
	}
	c.before = now.Add(-closedLater).Truncate(time.Hour)
	for _, hour := range open {
		if hour.Before(c.before) {
			c.before = hour
		}
	}
}

// rollUpHour counts one hour. The time is taken before the counting: what it is
// compared with may be counted on another replica at the same time.
func (p *Pipeline) rollUpHour(ctx context.Context, hour, since time.Time) error {
	now := p.now()
	h, err := p.store.CountHour(ctx, hour, since)
	if err != nil {
		return err
	}
	h.RolledAt, h.TookMS, h.Closed = now, p.now().Sub(now).Milliseconds(), !now.Before(hour.Add(time.Hour+hourGrace))
	return p.store.SaveHour(ctx, h)
}

// countingSince is from when on calls are counted: from the first who asks.
func (p *Pipeline) countingSince(ctx context.Context) (time.Time, error) {
	at, err := p.store.CountCallsFrom(ctx, p.now())
	if err != nil {
		return time.Time{}, fmt.Errorf("look since when calls are counted: %w", err)
	}
	return at, nil
}

// rollUpArgs asks that the open hours be counted. Running twice is harmless:
// both count the same rows, and the later count stands.
type rollUpArgs struct{}

// Kind implements river.JobArgs.
func (rollUpArgs) Kind() string { return "roll_up" }

type rollUpWorker struct {
	river.WorkerDefaults[rollUpArgs]
	p *Pipeline
}

// Timeout implements river.Worker.
func (w *rollUpWorker) Timeout(*river.Job[rollUpArgs]) time.Duration { return rollUpTime }

// Work implements river.Worker. What fails is done by the next run.
func (w *rollUpWorker) Work(ctx context.Context, _ *river.Job[rollUpArgs]) error {
	_, err := w.p.RollUp(ctx)
	return err
}

// rollUpOften is the periodic task. It runs at the start too, so that an
// installation shows its first figures at once.
func rollUpOften() *river.PeriodicJob {
	return river.NewPeriodicJob(everyFull(rollUpEvery), func() (river.JobArgs, *river.InsertOpts) {
		return rollUpArgs{}, &river.InsertOpts{Queue: queueMaintenance, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByState: active()}}
	}, &river.PeriodicJobOpts{ID: "roll_up", RunOnStart: true})
}
