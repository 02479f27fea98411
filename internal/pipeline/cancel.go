package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/riverqueue/river"

	"rollcall/internal/geonode"
	"rollcall/store"
)

const (
	// cancelledCode is how an item ends whose job a person withdrew.
	cancelledCode    = "CANCELLED"
	cancelledMessage = "cancelled by a person before the vendor was asked for it"
	// withdrawGroup bounds the jobs of one transaction.
	withdrawGroup = 1000
	// cancelRounds bounds how often a cancel looks for jobs that came up while it
	// ran; what comes later, dispatch withdraws.
	cancelRounds = 3
	// cancelTries bounds how often the vendor is asked to cancel one job.
	cancelTries = 20
)

// CancelPlan is what a cancel stops and what it can't, or what it did.
type CancelPlan struct {
	// BatchID is the batch, or zero when jobs were named.
	BatchID int64
	// Jobs is how many the plan is about.
	Jobs int
	// Unsent jobs were never called for: they are withdrawn, free of charge.
	Unsent, UnsentURLs int
	// Calling jobs are under way or in doubt: a batch or crawl that the vendor
	// made of them is cancelled as soon as it is known, an extract job runs out,
	// and what it did not take is withdrawn.
	Calling int
	// Stoppable are batch and crawl jobs at the vendor, which is asked to stop
	// them; pages that run already may still come in and are charged. Their
	// outstanding URLs only a plan tells, and of a crawl only its seed is known.
	Stoppable, StoppableURLs int
	// RunsOut are extract jobs at the vendor, which cannot stop them: they are
	// charged and their results are stored.
	RunsOut int
	// Ended jobs have nothing left to stop.
	Ended int
}

// PlanCancelBatch says what a cancel of the batch would do.
func (p *Pipeline) PlanCancelBatch(ctx context.Context, batchID int64) (CancelPlan, error) {
	return p.planCancel(ctx, store.Scope{BatchID: batchID})
}

// PlanCancelJobs says what a cancel of the jobs would do.
func (p *Pipeline) PlanCancelJobs(ctx context.Context, jobIDs []int64) (CancelPlan, error) {
	return p.planCancel(ctx, store.Scope{JobIDs: jobIDs})
}

func (p *Pipeline) planCancel(ctx context.Context, s store.Scope) (CancelPlan, error) {
	counts, err := p.store.CountScope(ctx, s)
	if err != nil {
		return CancelPlan{}, fmt.Errorf("count what a cancel would stop: %w", err)
	}
	plan := CancelPlan{BatchID: s.BatchID}
	for _, c := range counts {
		plan.Jobs += c.Jobs
		switch c.State {
		case store.JobIntended:
			plan.Unsent += c.Jobs
			plan.UnsentURLs += c.URLs
		case store.JobCalling, store.JobUncertain:
			plan.Calling += c.Jobs
		case store.JobAccepted:
			plan.accepted(c)
		case store.JobSettled, store.JobGivenUp, store.JobRefused, store.JobWithdrawn, store.JobSplit:
			plan.Ended += c.Jobs
		}
	}
	return plan, nil
}

func (c *CancelPlan) accepted(n store.OpenCount) {
	if n.Kind == store.KindExtract {
		c.RunsOut += n.Jobs
		return
	}
	c.Stoppable += n.Jobs
	c.StoppableURLs += n.URLs
}

// CancelBatch stops what can be stopped of a batch and says what that was.
// Twice does no more than once.
func (p *Pipeline) CancelBatch(ctx context.Context, batchID int64) (CancelPlan, error) {
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		now := p.now()
		if err := tx.FlagBatch(ctx, batchID, now); err != nil {
			return err
		}
		return tx.Audit(ctx, now, store.Change{What: "batch.cancel", Kind: "batch", ID: strconv.FormatInt(batchID, 10)})
	})
	if err != nil {
		return CancelPlan{}, fmt.Errorf("mark batch %d: %w", batchID, err)
	}
	return p.cancel(ctx, store.Scope{BatchID: batchID})
}

// CancelJobs is CancelBatch for the jobs named.
func (p *Pipeline) CancelJobs(ctx context.Context, jobIDs []int64) (CancelPlan, error) {
	if err := p.auditCancelJobs(ctx, jobIDs); err != nil {
		return CancelPlan{}, fmt.Errorf("cancel jobs: %w", err)
	}
	return p.cancel(ctx, store.Scope{JobIDs: jobIDs})
}

func (p *Pipeline) cancel(ctx context.Context, s store.Scope) (CancelPlan, error) {
	done := CancelPlan{BatchID: s.BatchID}
	for range cancelRounds {
		n, err := p.withdrawAll(ctx, s, &done)
		if err != nil {
			return done, err
		}
		flagged, err := p.flag(ctx, s)
		if err != nil {
			return done, err
		}
		done.Calling, done.Stoppable, done.RunsOut = 0, 0, 0
		for _, j := range flagged {
			done.count(j)
		}
		if n == 0 {
			break
		}
	}
	done.Jobs = done.Unsent + done.Calling + done.Stoppable + done.RunsOut
	p.log.InfoContext(ctx, "cancelled at a person's word", slog.Int64("batch_id", s.BatchID), slog.Int("withdrawn", done.Unsent),
		slog.Int("asked", done.Stoppable), slog.Int("running_out", done.RunsOut))
	return done, nil
}

func (c *CancelPlan) count(j store.FlaggedJob) {
	switch {
	case j.State != store.JobAccepted:
		c.Calling++
	case j.Kind == store.KindExtract:
		c.RunsOut++
	default:
		c.Stoppable++
	}
}

// withdrawAll withdraws the scope's intended jobs, some a transaction.
func (p *Pipeline) withdrawAll(ctx context.Context, s store.Scope, done *CancelPlan) (int, error) {
	total := 0
	for {
		jobs, items, err := p.withdraw(ctx, s, "withdrawn", cancelledMessage)
		if err != nil {
			return total, err
		}
		total += jobs
		done.Unsent += jobs
		done.UnsentURLs += items
		if jobs < withdrawGroup {
			return total, nil
		}
	}
}

// withdraw ends intended jobs that are not to be called for, and their items.
func (p *Pipeline) withdraw(ctx context.Context, s store.Scope, kind, why string) (int, int, error) {
	now, n, items := p.now(), 0, int64(0)
	err := p.inTx(ctx, func(ctx context.Context, tx store.Tx) error {
		jobs, err := tx.WithdrawJobs(ctx, s, why, withdrawGroup, now)
		if err != nil || len(jobs) == 0 {
			return err
		}
		n = len(jobs)
		ids, batches := make([]int64, n), map[int64]bool{}
		events := make([]store.JobEvent, n)
		for i, j := range jobs {
			ids[i], batches[j.BatchID] = j.ID, true
			events[i] = store.JobEvent{JobID: j.ID, At: now, Kind: kind, Detail: why}
		}
		ended, err := tx.CancelItemsOf(ctx, ids, cancelledCode, cancelledMessage, now)
		if err != nil {
			return err
		}
		if err := tx.InsertEvents(ctx, events); err != nil {
			return err
		}
		// In one order, so that two cancels do not wait for each other.
		for _, id := range slices.Sorted(maps.Keys(batches)) {
			items += ended[id]
			if err := tx.CountLast(ctx, id, store.Counts{Net: store.NetPoll, Cancelled: ended[id]}, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("withdraw jobs: %w", err)
	}
	return n, int(items), nil
}

// flag marks the open jobs and, where the vendor can be asked to stop, adds the
// task that does. A job that is being called for gets it once the answer is
// known. Not all at once: whoever settles one of them waits meanwhile.
func (p *Pipeline) flag(ctx context.Context, s store.Scope) ([]store.FlaggedJob, error) {
	var all []store.FlaggedJob
	after := int64(0)
	for {
		flagged, err := p.flagGroup(ctx, s, after)
		if err != nil {
			return nil, fmt.Errorf("mark jobs to be cancelled: %w", err)
		}
		all = append(all, flagged...)
		if len(flagged) < withdrawGroup {
			return all, nil
		}
		after = flagged[len(flagged)-1].ID
	}
}

func (p *Pipeline) flagGroup(ctx context.Context, s store.Scope, after int64) ([]store.FlaggedJob, error) {
	now := p.now()
	var flagged []store.FlaggedJob
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		if flagged, err = tx.FlagJobs(ctx, s, after, withdrawGroup, now); err != nil {
			return err
		}
		var ask []int64
		events := make([]store.JobEvent, len(flagged))
		for i, j := range flagged {
			events[i] = store.JobEvent{JobID: j.ID, At: now, Kind: "cancel_asked", Detail: "by a person"}
			if j.State == store.JobAccepted && j.Kind != store.KindExtract {
				ask = append(ask, j.ID)
			}
		}
		if err := tx.InsertEvents(ctx, events); err != nil {
			return err
		}
		return p.queue.cancel(ctx, tx, ask)
	})
	return flagged, err
}

// cancelArgs asks that the vendor be told to stop a job. Running twice is
// harmless: a cancelled job is cancelled.
type cancelArgs struct {
	JobID int64 `json:"job_id" river:"unique"`
}

// Kind implements river.JobArgs.
func (cancelArgs) Kind() string { return "cancel" }

type cancelWorker struct {
	river.WorkerDefaults[cancelArgs]
	p *Pipeline
}

// Work implements river.Worker.
func (w *cancelWorker) Work(ctx context.Context, task *river.Job[cancelArgs]) error {
	return ofTask(w.p.cancelCall(ctx, task.Args.JobID, tries(task.JobRow)), "cancel job", task.Args.JobID)
}

// cancelCall tells the vendor to stop a batch or crawl. What becomes of its
// pages only settle decides: some may still come in. It goes through the read
// gate: an account without balance must be able to cancel.
func (p *Pipeline) cancelCall(ctx context.Context, id int64, tries int) error {
	job, err := p.store.Job(ctx, id)
	if err != nil {
		return err
	}
	if job.State != store.JobAccepted || job.CancelRequestedAt == nil || job.Kind == store.KindExtract {
		return nil
	}
	wait, err := p.gates.wait(ctx, store.GateRead)
	if err != nil {
		return err
	}
	if wait > 0 {
		return river.JobSnooze(wait)
	}
	ask := p.vendor.CancelBatch
	if job.Kind == store.KindCrawl {
		ask = p.vendor.CancelCrawl
	}
	said, err := ask(ctx, job.VendorID())
	if err != nil {
		return p.cancelDeclined(ctx, job, tries, err)
	}
	return p.cancelNoted(ctx, job, "cancel_called", fmt.Sprintf("the vendor stops it; %d pages were running", said.InFlight.Or(0)))
}

// cancelDeclined ends a call that did not cancel. A job that cannot be
// cancelled has ended, or is about to: it is looked at.
func (p *Pipeline) cancelDeclined(ctx context.Context, job *store.Job, tries int, cause error) error {
	if errors.Is(cause, geonode.ErrConflict) || errors.Is(cause, geonode.ErrNotFound) {
		return p.cancelNoted(ctx, job, "cancel_declined", "the vendor cannot cancel it now: "+cause.Error())
	}
	wait, account, err := p.gates.failed(ctx, store.GateRead, cause)
	if err != nil {
		return err
	}
	if account {
		return river.JobSnooze(wait)
	}
	e, ok := errors.AsType[*geonode.Error](cause)
	if !ok {
		return cause
	}
	if tries < cancelTries && (e.Retryable() || notTheVendor(e) || e.Certainty() == geonode.Unknown) {
		return river.JobSnooze(jitter(doubling(time.Second, maxRetryGap, tries)) + time.Second/4)
	}
	return p.cancelNoted(ctx, job, "cancel_declined", "the vendor did not cancel it: "+vendorCode(e))
}

// cancelNoted writes down what the vendor said and has the job looked at.
func (p *Pipeline) cancelNoted(ctx context.Context, job *store.Job, kind, detail string) error {
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		event := store.JobEvent{JobID: job.ID, At: p.now(), Kind: kind, Detail: store.CleanText(clip(detail, 300))}
		if err := tx.InsertEvents(ctx, []store.JobEvent{event}); err != nil {
			return err
		}
		return p.wake(ctx, tx, []int64{job.ID}, store.NetPoll, "asked to be cancelled")
	})
}
