package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"rollcall/store"
)

const (
	pollGroup    = 200              // Jobs woken by one statement.
	pollLease    = 90 * time.Second // Until a woken job is due again should nobody settle it.
	sweepGroup   = 200
	recordLength = 50 // Jobs whose webhooks decide auto mode.
	recordWithin = 60 * time.Second
	recordCache  = 5 * time.Second
	recordLeast  = 10 // Fewer jobs than this decide nothing.
)

// Poll wakes every job whose next poll is due and returns how many. It calls
// nobody: settle does.
func (p *Pipeline) Poll(ctx context.Context) (int, error) {
	total := 0
	for {
		now, n := p.now(), 0
		err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
			woken, err := tx.WakeDue(ctx, now, now.Add(pollLease), pollGroup)
			if err != nil {
				return err
			}
			n = len(woken)
			return p.queue.settle(ctx, tx, woken)
		})
		if err != nil {
			return total, fmt.Errorf("wake due jobs: %w", err)
		}
		total += n
		if n < pollGroup {
			return total, nil
		}
	}
}

// Sweep looks after claims without a holder, held events and the foreign.
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
	now := p.now()
	events := make([]store.JobEvent, len(woken))
	for i, id := range woken {
		events[i] = store.JobEvent{JobID: id, At: now, Kind: "woken", Net: net, Detail: why}
	}
	if err := tx.InsertEvents(ctx, events); err != nil {
		return err
	}
	return p.queue.settle(ctx, tx, woken)
}

// SettleNow wakes a job at a person's word.
func (p *Pipeline) SettleNow(ctx context.Context, jobID int64) error {
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		return p.wake(ctx, tx, []int64{jobID}, store.NetReplay, "asked for by a person")
	})
	if err != nil {
		return fmt.Errorf("wake job %d: %w", jobID, err)
	}
	return nil
}

// modeWatch knows whether webhooks can be relied on, seconds old at most.
type modeWatch struct {
	p     *Pipeline
	mu    sync.Mutex
	at    time.Time
	hooks bool
}

func newModeWatch(p *Pipeline) *modeWatch { return &modeWatch{p: p} }

// webhooks reports whether ends are expected to be told by webhook.
func (m *modeWatch) webhooks(ctx context.Context) (bool, error) {
	switch m.p.cfg.Mode {
	case ModePoll:
		return false, nil
	case ModeWebhook:
		return true, nil
	case ModeAuto:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.p.now()
	if !m.at.IsZero() && now.Sub(m.at) < recordCache {
		return m.hooks, nil
	}
	hooks, err := m.judge(ctx)
	if err != nil {
		return false, err
	}
	m.hooks, m.at = hooks, now
	return hooks, nil
}

// allLive reports whether each event type that has a webhook has a live one:
// one that the vendor switched off, moved or lost brings nothing any more.
func allLive(hooks []*store.Webhook) bool {
	live := map[string]bool{}
	for _, w := range hooks {
		is := w.State == store.WebhookLive || w.State == store.WebhookRotating
		live[w.EventType] = live[w.EventType] || is
	}
	for _, is := range live {
		if !is {
			return false
		}
	}
	return len(live) > 0
}

// judge is auto mode's rule: live webhooks, and four in five of the last jobs
// told of in time. With too few jobs to judge by, live webhooks are trusted.
func (m *modeWatch) judge(ctx context.Context) (bool, error) {
	hooks, err := m.p.store.Webhooks(ctx)
	if err != nil {
		return false, fmt.Errorf("look at the webhooks: %w", err)
	}
	if !allLive(hooks) {
		return false, nil
	}
	rec, err := m.p.store.WebhookRecord(ctx, recordLength, recordWithin)
	if err != nil {
		return false, fmt.Errorf("look at the webhooks' record: %w", err)
	}
	return rec.Jobs < recordLeast || rec.InTime*5 >= rec.Jobs*4, nil
}

// WebhooksTrusted reports whether ends are expected by webhook at present.
func (p *Pipeline) WebhooksTrusted(ctx context.Context) (bool, error) { return p.mode.webhooks(ctx) }

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
