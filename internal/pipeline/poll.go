package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"rollcall/store"
)

const (
	pollGroup  = 200              // Jobs woken by one statement.
	pollLease  = 90 * time.Second // Until a woken job is due again should nobody settle it.
	sweepGroup = 200
)

// Poll wakes every job whose next poll is due and returns how many, except the
// extract jobs that ListPoll answers for. It calls nobody: settle does.
func (p *Pipeline) Poll(ctx context.Context) (int, error) {
	if _, err := p.mode.webhooks(ctx); err != nil {
		return 0, err
	}
	wake := store.Tx.WakeDueOthers
	singly, err := p.store.PollSingly(ctx, p.now(), listLeast)
	if err != nil {
		return 0, fmt.Errorf("look for due jobs: %w", err)
	}
	if singly {
		wake = store.Tx.WakeDue
	}
	total := 0
	for {
		n, err := p.wakeGroup(ctx, wake)
		total += n
		if err != nil || n < pollGroup {
			return total, err
		}
	}
}

// wakeGroup wakes some due jobs by one statement.
func (p *Pipeline) wakeGroup(ctx context.Context,
	wake func(store.Tx, context.Context, time.Time, time.Time, int) ([]int64, error),
) (int, error) {
	now, n := p.now(), 0
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		woken, err := wake(tx, ctx, now, now.Add(pollLease), pollGroup)
		if err != nil {
			return err
		}
		n = len(woken)
		return p.queue.settle(ctx, tx, woken)
	})
	if err != nil {
		return 0, fmt.Errorf("wake due jobs: %w", err)
	}
	return n, nil
}

// Sweep looks after claims without a holder, reconcile runs and replays whose
// process died, held events and the foreign.
func (p *Pipeline) Sweep(ctx context.Context) error {
	now := p.now()
	expired, err := p.store.ExpiredClaims(ctx, now, sweepGroup)
	if err != nil {
		return fmt.Errorf("look for expired claims: %w", err)
	}
	for _, id := range expired {
		if _, err := p.store.ExpireClaim(ctx, id, now); err != nil {
			return fmt.Errorf("expire the claim of job %d: %w", id, err)
		}
	}
	if err := p.queue.adopt(ctx, expired); err != nil {
		return fmt.Errorf("ask for adoption: %w", err)
	}
	if err := p.sweepRuns(ctx, now); err != nil {
		return err
	}
	if err := p.sweepUndiagnosed(ctx); err != nil {
		return fmt.Errorf("look for refused deliveries: %w", err)
	}
	if err := p.sweepUnread(ctx); err != nil {
		return fmt.Errorf("look for results to make findable: %w", err)
	}
	if err := p.sweepReplays(ctx, now); err != nil {
		return err
	}
	if err := p.sweepExports(ctx, now); err != nil {
		return err
	}
	held, err := p.store.HeldKnown(ctx, sweepGroup)
	if err != nil {
		return fmt.Errorf("look for held events: %w", err)
	}
	if err := p.claimHeld(ctx, held); err != nil {
		return err
	}
	return p.sweepForeign(ctx, now)
}

// sweepForeign gives up on events that nobody claimed in time. While some job
// of ours is uncertain it may yet be theirs, so nothing is decided.
func (p *Pipeline) sweepForeign(ctx context.Context, now time.Time) error {
	old, err := p.store.HeldSince(ctx, now.Add(-p.cfg.HeldFor), sweepGroup)
	if err != nil || len(old) == 0 {
		return err
	}
	doubt, err := p.store.AnyUncertain(ctx)
	if err != nil || doubt {
		return err
	}
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		n, err := tx.MarkForeign(ctx, old)
		if n > 0 {
			p.log.InfoContext(ctx, "deliveries for jobs that are not ours", slog.Int64("events", n))
		}
		return err
	})
}

// claimHeld gives held events to the jobs that turned out to be theirs.
func (p *Pipeline) claimHeld(ctx context.Context, vendorJobIDs []string) error {
	if len(vendorJobIDs) == 0 {
		return nil
	}
	now := p.now()
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		ids, err := tx.ClaimHeld(ctx, vendorJobIDs)
		if err != nil || len(ids) == 0 {
			return err
		}
		woken, err := tx.WakeByWebhook(ctx, ids, now)
		if err != nil {
			return err
		}
		return p.woken(ctx, tx, woken, store.NetWebhook, "a webhook that came before the job's id was known")
	})
	if err != nil {
		return fmt.Errorf("claim held events: %w", err)
	}
	return nil
}

// wake is the one way to ask that jobs be settled: the wake and the settle
// task are one transaction.
func (p *Pipeline) wake(ctx context.Context, tx store.Tx, ids []int64, net store.Net, why string) error {
	woken, err := tx.WakeJobs(ctx, ids, net)
	if err != nil {
		return err
	}
	return p.woken(ctx, tx, woken, net, why)
}

// woken adds what belongs to a wake: its line in the timeline and the task.
func (p *Pipeline) woken(ctx context.Context, tx store.Tx, woken []int64, net store.Net, why string) error {
	if err := p.noteWoken(ctx, tx, woken, net, why); err != nil {
		return err
	}
	return p.queue.settle(ctx, tx, woken)
}

// noteWoken adds the lines in the timeline that belong to wakes.
func (p *Pipeline) noteWoken(ctx context.Context, tx store.Tx, woken []int64, net store.Net, why string) error {
	now := p.now()
	events := make([]store.JobEvent, len(woken))
	for i, id := range woken {
		events[i] = store.JobEvent{JobID: id, At: now, Kind: "woken", Net: net, Detail: why}
	}
	return tx.InsertEvents(ctx, events)
}

// SettleNow wakes a job at a person's word.
func (p *Pipeline) SettleNow(ctx context.Context, jobID int64) error {
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := p.wake(ctx, tx, []int64{jobID}, store.NetReplay, "asked for by a person"); err != nil {
			return err
		}
		return tx.Audit(ctx, p.now(), store.Change{What: "job.settle", Kind: "job", ID: strconv.FormatInt(jobID, 10)})
	})
	if err != nil {
		return fmt.Errorf("wake job %d: %w", jobID, err)
	}
	return nil
}

// firstPoll is when a job just accepted is asked about if no webhook comes.
func (p *Pipeline) firstPoll(ctx context.Context, now time.Time) time.Time {
	hooks, err := p.mode.webhooks(ctx)
	if err != nil {
		// Not knowing is no reason to wait: asking early only costs a call.
		p.log.WarnContext(ctx, "mode unknown, polling", slog.Any("error", err))
	}
	if hooks {
		return now.Add(p.cfg.WebhookFallback + jitter(p.cfg.WebhookFallback/2))
	}
	return now.Add(p.cfg.PollFirst/4 + jitter(p.cfg.PollFirst))
}

// nextPoll is when to ask again: full jitter under a doubling cap.
func (p *Pipeline) nextPoll(ctx context.Context, job *store.Job, now time.Time) time.Time {
	hooks, err := p.mode.webhooks(ctx)
	if err == nil && hooks && !p.overdue(job, now) {
		return now.Add(p.cfg.WebhookFallback/2 + jitter(p.cfg.WebhookFallback/2))
	}
	limit := doubling(p.cfg.PollFirst, p.cfg.PollCap, job.Polls)
	return now.Add(limit/10 + jitter(limit))
}

// overdue reports whether the job has been running for longer than jobs are
// expected to.
func (p *Pipeline) overdue(job *store.Job, now time.Time) bool {
	return job.AcceptedAt != nil && now.Sub(*job.AcceptedAt) > p.cfg.PollMaxWait
}
