package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"rollcall/internal/geonode"
	"rollcall/store"
)

const (
	// reconcileOverlap widens the window, for the vendor's clock and for jobs
	// made while a pass is under way.
	reconcileOverlap = 5 * time.Minute
	// reconcilePasses bounds how often a list is read until nothing is new:
	// its pages shift while jobs are added.
	reconcilePasses = 3
	// reconcileSingly bounds the older jobs asked about one by one in a run.
	reconcileSingly = 200
	// listTime bounds the reading of one list, so that a long one, or a gate
	// that stays closed, leaves time for the rest of the run.
	listTime = reconcileTimeout / 4
	// strandedGroup bounds the jobs without a task that one run helps.
	strandedGroup = 1000
	// listTries is how often one page of a list is asked for.
	listTries = 5
)

type reconcileWorker struct {
	river.WorkerDefaults[reconcileArgs]
	p *Pipeline
}

// Timeout implements river.Worker: a run reads whole lists.
func (w *reconcileWorker) Timeout(*river.Job[reconcileArgs]) time.Duration { return reconcileTimeout }

// Work implements river.Worker.
func (w *reconcileWorker) Work(ctx context.Context, task *river.Job[reconcileArgs]) error {
	_, err := w.p.Reconcile(ctx, task.Args.Trigger)
	return err
}

// ReconcileNow asks for a run at a person's word; it joins one under way.
func (p *Pipeline) ReconcileNow(ctx context.Context) error {
	if err := p.queue.reconcile(ctx, "person"); err != nil {
		return fmt.Errorf("ask for a reconcile run: %w", err)
	}
	return nil
}

// listed is a row of one of the vendor's job lists.
type listed struct {
	id     string
	status geonode.Status
}

// Reconcile compares the vendor's lists with the jobs here and wakes what has
// ended there and not here. It asks whether a job is settled, never whether a
// delivery was seen. Errors are counted in the run, which goes on: what one
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
	if err := p.dispatchStranded(ctx); err != nil {
		p.runError(ctx, run, "jobs without a task", err)
	}
	seen := map[string]bool{}
	for _, kind := range []store.Kind{store.KindExtract, store.KindBatch, store.KindCrawl} {
		if err := p.reconcileList(ctx, run, kind, seen); err != nil {
			p.runError(ctx, run, fmt.Sprintf("%s list", kind), err)
		}
	}
	if err := p.reconcileSingly(ctx, run, seen); err != nil {
		p.runError(ctx, run, "open jobs", err)
	}
	if err := p.CheckWebhooks(ctx); err != nil {
		p.runError(ctx, run, "webhook list", err)
	}
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

// dispatchStranded adds a task for each intended job that has none: nothing
// else would ever call for it. A task is lost when River gives it up, or when
// somebody deletes it.
func (p *Pipeline) dispatchStranded(ctx context.Context) error {
	ids, err := p.queue.stranded(ctx, p.now().Add(-p.cfg.ReconcileOlderThan), strandedGroup)
	if err != nil || len(ids) == 0 {
		return err
	}
	p.log.WarnContext(ctx, "jobs that wait for a call had no task", slog.Int("jobs", len(ids)))
	jobs := make([]*store.Job, len(ids))
	for i, id := range ids {
		jobs[i] = &store.Job{ID: id}
	}
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		return p.queue.dispatch(ctx, tx, jobs, time.Time{})
	})
}

func (p *Pipeline) runError(ctx context.Context, run *store.ReconcileRun, what string, err error) {
	run.Errors++
	run.Note = clip(store.CleanText(run.Note+what+": "+err.Error()+"\n"), 1000)
	p.log.WarnContext(ctx, "reconcile could not read all", slog.Int64("run_id", run.ID), slog.String("what", what), slog.Any("error", err))
}

// reconcileList reads one list whole, again until a pass adds nothing.
func (p *Pipeline) reconcileList(ctx context.Context, run *store.ReconcileRun, kind store.Kind, seen map[string]bool) error {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	params := geonode.ListParams{Start: p.clock.vendorTime(run.WindowStart), End: p.clock.vendorTime(run.WindowEnd).Add(reconcileOverlap)}
	for range reconcilePasses {
		added := 0
		for page := 1; page <= listPages*10; page++ {
			params.Page = page
			rows, meta, err := p.listPage(ctx, kind, params)
			if err != nil {
				return err
			}
			run.Pages++
			fresh := rows[:0:0]
			for _, r := range rows {
				if !seen[r.id] {
					seen[r.id] = true
					fresh = append(fresh, r)
				}
			}
			added += len(fresh)
			if err := p.compare(ctx, run, fresh); err != nil {
				return err
			}
			if lastPage(meta, page, len(rows)) {
				// One page cannot shift: there is nothing to read again.
				if page == 1 {
					return nil
				}
				break
			}
		}
		if added == 0 {
			return nil
		}
	}
	return nil
}

// listPage reads one page, and tries again a few times when the vendor is
// busy: a run would otherwise end at the first 429.
func (p *Pipeline) listPage(ctx context.Context, kind store.Kind, params geonode.ListParams) ([]listed, geonode.ListPage, error) {
	var last error
	for range listTries {
		if err := p.readTurn(ctx); err != nil {
			return nil, geonode.ListPage{}, err
		}
		rows, meta, reply, err := p.list(ctx, kind, params)
		if err == nil {
			return rows, meta, p.heard(ctx, reply)
		}
		last = err
		var e *geonode.Error
		if !errors.As(err, &e) || !e.Retryable() && !errors.Is(err, geonode.ErrThrottled) {
			return nil, meta, err
		}
		if _, _, err := p.gates.failed(ctx, store.GateRead, err); err != nil {
			return nil, meta, err
		}
		if err := sleep(ctx, time.Second/4+jitter(time.Second)); err != nil {
			return nil, meta, err
		}
	}
	return nil, geonode.ListPage{}, last
}

// readTurn waits at the read gate.
func (p *Pipeline) readTurn(ctx context.Context) error {
	for {
		wait, err := p.gates.wait(ctx, store.GateRead)
		if err != nil || wait == 0 {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (p *Pipeline) list(ctx context.Context, kind store.Kind, params geonode.ListParams) ([]listed, geonode.ListPage, geonode.Reply, error) {
	var rows []listed
	switch kind {
	case store.KindExtract:
		got, err := p.vendor.ListExtracts(ctx, geonode.ExtractListParams{ListParams: params})
		if err != nil {
			return nil, geonode.ListPage{}, geonode.Reply{}, err
		}
		for _, j := range got.Jobs {
			rows = append(rows, listed{j.JobID, j.Status})
		}
		return rows, got.ListPage, got.Reply, nil
	case store.KindCrawl:
		got, err := p.vendor.ListCrawls(ctx, params)
		if err != nil {
			return nil, geonode.ListPage{}, geonode.Reply{}, err
		}
		for i := range got.Jobs {
			rows = append(rows, listed{got.Jobs[i].JobID, got.Jobs[i].Status})
		}
		return rows, got.ListPage, got.Reply, nil
	case store.KindBatch, store.KindMixed, store.KindSync:
	}
	got, err := p.vendor.ListBatches(ctx, params)
	if err != nil {
		return nil, geonode.ListPage{}, geonode.Reply{}, err
	}
	for i := range got.Jobs {
		rows = append(rows, listed{got.Jobs[i].JobID, got.Jobs[i].Status})
	}
	return rows, got.ListPage, got.Reply, nil
}

// compare wakes the listed jobs that ended there and are open here.
func (p *Pipeline) compare(ctx context.Context, run *store.ReconcileRun, rows []listed) error {
	if len(rows) == 0 {
		return nil
	}
	run.Listed += len(rows)
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.id
	}
	known, err := p.store.KnownVendorIDs(ctx, ids)
	if err != nil {
		return err
	}
	young := p.now().Add(-p.cfg.ReconcileOlderThan)
	var wake []int64
	for _, r := range rows {
		job, ok := known[r.id]
		if !ok {
			run.ForeignJobs++
			continue
		}
		open := job.State == store.JobAccepted || job.State == store.JobGivenUp
		if open && r.status.Terminal() && job.AcceptedAt != nil && !job.AcceptedAt.After(young) {
			wake = append(wake, job.ID)
		}
	}
	run.Missing += len(wake)
	return p.wakeFor(ctx, run, wake, "the vendor's list shows it ended")
}

func (p *Pipeline) wakeFor(ctx context.Context, run *store.ReconcileRun, ids []int64, why string) error {
	if len(ids) == 0 {
		return nil
	}
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		return p.wake(ctx, tx, ids, store.NetReconcile, why)
	})
	if err == nil {
		run.Woken += len(ids)
	}
	return err
}

// reconcileSingly wakes open jobs that the lists did not show: those made
// before the window, and those the lists lost.
func (p *Pipeline) reconcileSingly(ctx context.Context, run *store.ReconcileRun, seen map[string]bool) error {
	open, err := p.store.OpenJobs(ctx, p.now().Add(-p.cfg.ReconcileOlderThan), reconcileSingly*10)
	if err != nil {
		return err
	}
	var wake []int64
	for _, j := range open {
		if !seen[j.VendorJobID] && len(wake) < reconcileSingly {
			wake = append(wake, j.ID)
		}
	}
	run.Singly = len(wake)
	return p.wakeFor(ctx, run, wake, "open here and not in the vendor's lists")
}
