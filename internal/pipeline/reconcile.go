package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"rollcall/store"
)

const (
	// reconcileOverlap widens the window backwards, for the vendor's clock.
	reconcileOverlap = 5 * time.Minute
	// heldGroup bounds the held events that one run claims.
	heldGroup = 1000
	// listTime bounds the reading of one list, so that a long one, or a gate
	// that stays closed, leaves time for the rest of the run.
	listTime = reconcileTimeout / 4
	// strandedGroup bounds the jobs without a task that one run helps.
	strandedGroup = 1000
)

type reconcileWorker struct {
	river.WorkerDefaults[reconcileArgs]
	p *Pipeline
}

// Timeout implements river.Worker: a run reads whole lists.
func (w *reconcileWorker) Timeout(*river.Job[reconcileArgs]) time.Duration { return reconcileTimeout }

// Work implements river.Worker.
func (w *reconcileWorker) Work(ctx context.Context, task *river.Job[reconcileArgs]) error {
	return w.p.reconcileHeld(ctx, task)
}

// ReconcileNow asks for a run at a person's word; it joins one under way.
func (p *Pipeline) ReconcileNow(ctx context.Context) error {
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := p.queue.reconcile(ctx, tx, byPerson); err != nil {
			return err
		}
		return tx.Audit(ctx, p.now(), store.Change{What: "reconcile.run", Kind: "reconcile"})
	})
	if err != nil {
		return fmt.Errorf("ask for a reconcile run: %w", err)
	}
	return nil
}

// reconciling is one run. What it remembers grows with the jobs that are open
// here, never with what the vendor lists.
type reconciling struct {
	*Pipeline
	run *store.ReconcileRun
	// young is when a job must have been accepted to be old enough: for later
	// ones the other nets still have time.
	young time.Time
	// open are the jobs open here that the lists showed, and whether this run
	// woke them.
	open map[int64]bool
	// unread are the kinds whose list could not be read whole.
	unread map[store.Kind]bool
}

// Reconcile compares what the vendor knows with the jobs here and wakes what
// has ended there and not here. It asks whether a job is settled, never whether
// a delivery was seen. Errors are counted in the run, which goes on: what one
// run misses the next finds.
func (p *Pipeline) Reconcile(ctx context.Context, trigger string) (*store.ReconcileRun, error) {
	now := p.now()
	run := &store.ReconcileRun{
		Trigger: trigger, StartedAt: now,
		WindowStart: now.Add(-p.cfg.ReconcileWindow - reconcileOverlap), WindowEnd: now,
	}
	if err := p.store.StartRun(ctx, run); err != nil {
		return nil, fmt.Errorf("start a reconcile run: %w", err)
	}
	r := &reconciling{
		Pipeline: p, run: run, young: now.Add(-p.cfg.ReconcileOlderThan), open: map[int64]bool{}, unread: map[store.Kind]bool{},
	}
	r.all(ctx)
	end := p.now()
	run.FinishedAt = &end
	// The run is written down even when its own time is up.
	writeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := p.store.FinishRun(writeCtx, run); err != nil {
		return run, fmt.Errorf("finish reconcile run %d: %w", run.ID, err)
	}
	return run, nil
}

// all looks everywhere that a lost end can be found.
func (r *reconciling) all(ctx context.Context) {
	for _, part := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"jobs without a task", r.dispatchStranded},
		{"sync calls without a task", r.syncStranded},
		{"held events", r.held},
		{"extract list", func(ctx context.Context) error { return r.list(ctx, store.KindExtract) }},
		{"batch list", func(ctx context.Context) error { return r.list(ctx, store.KindBatch) }},
		{"crawl list", func(ctx context.Context) error { return r.list(ctx, store.KindCrawl) }},
		{"webhook list", r.CheckWebhooks},
		{"delivery log", r.refusals},
		{"open jobs", r.singly},
	} {
		if err := part.do(ctx); err != nil {
			r.failed(ctx, part.what, err)
		}
	}
}

// failed notes what could not be read; the run goes on.
func (r *reconciling) failed(ctx context.Context, what string, err error) {
	r.run.Errors++
	r.run.Note = clip(store.CleanText(r.run.Note+what+": "+err.Error()+"\n"), 1000)
	r.log.WarnContext(ctx, "reconcile could not read all", slog.Int64("run_id", r.run.ID), slog.String("what", what), slog.Any("error", err))
}

// dispatchStranded adds a task for each intended job that has none: nothing
// else would ever call for it. A task is lost when River gives it up, or when
// somebody deletes it.
func (r *reconciling) dispatchStranded(ctx context.Context) error {
	ids, err := r.queue.stranded(ctx, r.young, strandedGroup)
	if err != nil || len(ids) == 0 {
		return err
	}
	r.log.WarnContext(ctx, "jobs that wait for a call had no task", slog.Int("jobs", len(ids)))
	jobs := make([]*store.Job, len(ids))
	for i, id := range ids {
		jobs[i] = &store.Job{ID: id}
	}
	return r.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		return r.queue.dispatch(ctx, tx, jobs, time.Time{})
	})
}

// syncStranded is dispatchStranded for sync calls.
func (r *reconciling) syncStranded(ctx context.Context) error {
	ids, err := r.queue.strandedSync(ctx, r.young, strandedGroup)
	if err != nil || len(ids) == 0 {
		return err
	}
	r.log.WarnContext(ctx, "sync calls had no task", slog.Int("calls", len(ids)))
	return r.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error { return r.queue.sync(ctx, tx, ids) })
}

// held claims held events whose job is known by now. The sweep does the same
// more often; a run that a person asks for does not wait for it.
func (r *reconciling) held(ctx context.Context) error {
	ids, err := r.store.HeldKnown(ctx, heldGroup)
	if err != nil {
		return err
	}
	if err := r.claimHeld(ctx, ids); err != nil {
		return err
	}
	r.run.Held = len(ids)
	return nil
}

// wakeFor wakes jobs for the reconcile net, each once a run.
func (r *reconciling) wakeFor(ctx context.Context, ids []int64, why string) error {
	if len(ids) == 0 {
		return nil
	}
	err := r.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		return r.wake(ctx, tx, ids, store.NetReconcile, why)
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		r.open[id] = true
	}
	r.run.Woken += len(ids)
	return nil
}
