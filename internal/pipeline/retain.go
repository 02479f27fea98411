package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"rollcall/store"
)

const (
	// retainGroup is how many rows one statement looks at.
	retainGroup = 500
	// retainTime bounds one run; the next goes on where it ended.
	retainTime = 5 * time.Minute
	// emptiedUpTo is the setting that says up to where bodies are removed.
	emptiedUpTo = "deliveries_emptied"
)

// Kept is what a run of Retain removed.
type Kept struct {
	Emptied, Deliveries, Log, Preflights int
	Events, Runs, Stats, Audit           int // Rows of each.
	Items, Jobs, Batches                 int // Batches that were removed to the last item.
}

// Retain removes what is older than it is to be kept: headers and bodies of
// deliveries, the deliveries, and rows of the vendor's delivery log, each in
// small groups with a transaction of its own, preflights whose time is over,
// what is noted of our own work, and in the end the parts of batches. What is
// about a job that has not settled stays, however old it is. It stops when ctx
// ends; what it left the next run finds.
func (p *Pipeline) Retain(ctx context.Context) (Kept, error) {
	var k Kept
	now := p.now()
	for _, part := range []struct {
		what string
		do   func(context.Context, time.Time, *Kept) error
	}{
		{"deliveries", p.retainDeliveries},
		{"preflights", func(ctx context.Context, _ time.Time, k *Kept) error {
			var err error
			k.Preflights, err = p.sweepPreflights(ctx)
			return err
		}},
		{"what is noted of old work", p.forget},
		{"batches", p.prune},
	} {
		if err := part.do(ctx, now, &k); err != nil {
			return k, fmt.Errorf("remove %s: %w", part.what, err)
		}
	}
	return k, nil
}

// retainDeliveries removes what is old of deliveries.
func (p *Pipeline) retainDeliveries(ctx context.Context, now time.Time, k *Kept) error {
	var err error
	if before, ends := since(now, p.cfg.KeepBodies); ends {
		if k.Emptied, err = p.emptyBodies(ctx, before); err != nil {
			return fmt.Errorf("their bodies: %w", err)
		}
	}
	if before, ends := since(now, p.cfg.KeepDeliveries); ends {
		if k.Deliveries, _, err = walkOld(ctx, store.Key{}, before, p.store.DeleteDeliveries); err != nil {
			return err
		}
	}
	if before, ends := since(now, p.cfg.KeepLog); ends {
		if k.Log, _, err = walkOld(ctx, store.Key{}, p.clock.vendorTime(before), p.store.DeleteLog); err != nil {
			return fmt.Errorf("the vendor's log of them: %w", err)
		}
	}
	return nil
}

// since is from when on something is kept that is kept so long; false when that
// is for ever.
func since(now time.Time, keep time.Duration) (time.Time, bool) {
	return now.Add(-keep), keep > 0
}

// emptyBodies walks from where the last run ended: emptied deliveries are kept
// for long, and are not gone through again. It goes back to the first that
// could not be emptied.
func (p *Pipeline) emptyBodies(ctx context.Context, before time.Time) (int, error) {
	text, err := p.store.Setting(ctx, emptiedUpTo)
	if err != nil {
		return 0, err
	}
	n, to, err := walkOld(ctx, parsePlace(text), before, p.store.EmptyDeliveries)
	if to == (store.Key{}) {
		return n, err
	}
	// How far it came is written down even when its time is up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return n, errors.Join(err, p.store.SetSetting(ctx, emptiedUpTo, formatPlace(to), p.now()))
}

type retainStep func(context.Context, time.Time, store.Key, int) (store.Retained, error)

// walkOld goes through what is older than a time, from after a key on. It
// returns how many rows went and where the next walk may begin: just before the
// first that had to stay.
func walkOld(ctx context.Context, from store.Key, before time.Time, step retainStep) (int, store.Key, error) {
	gone, next, stuck := 0, store.Key{}, false
	for {
		r, err := step(ctx, before, from, retainGroup)
		if err != nil {
			return gone, next, err
		}
		gone += r.Gone
		if !stuck && r.Kept != (store.Key{}) {
			stuck, next = true, store.Key{At: r.Kept.At, ID: r.Kept.ID - 1}
		}
		if !stuck && r.Seen > 0 {
			next = r.Last
		}
		if r.Seen < retainGroup {
			return gone, next, nil
		}
		from = r.Last
	}
}

// retainArgs asks that what is too old be removed. Running twice is harmless:
// what is gone is not found again.
type retainArgs struct{}

// Kind implements river.JobArgs.
func (retainArgs) Kind() string { return "retain" }

type retainWorker struct {
	river.WorkerDefaults[retainArgs]
	p *Pipeline
}

// Timeout implements river.Worker.
func (w *retainWorker) Timeout(*river.Job[retainArgs]) time.Duration { return retainTime }

// Work implements river.Worker. What fails is done by the next run.
func (w *retainWorker) Work(ctx context.Context, _ *river.Job[retainArgs]) error {
	k, err := w.p.Retain(ctx)
	if k != (Kept{}) {
		w.p.log.InfoContext(ctx, "what was old is removed", slog.Int("bodies", k.Emptied), slog.Int("deliveries", k.Deliveries), slog.Int("log_rows", k.Log),
			slog.Int("preflight_steps", k.Preflights), slog.Int("events", k.Events), slog.Int("runs", k.Runs), slog.Int("stats", k.Stats),
			slog.Int("audit_rows", k.Audit), slog.Int("items", k.Items), slog.Int("jobs", k.Jobs), slog.Int("batches", k.Batches))
	}
	return err
}

// retainOften is the periodic task.
func (p *Pipeline) retainOften() *river.PeriodicJob {
	return river.NewPeriodicJob(everyFull(p.cfg.RetainEvery), func() (river.JobArgs, *river.InsertOpts) {
		return retainArgs{}, &river.InsertOpts{Queue: queueUpkeep, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByState: active()}}
	}, &river.PeriodicJobOpts{ID: "retain"})
}
