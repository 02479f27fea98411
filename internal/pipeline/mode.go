package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"rollcall/store"
)

// Auto mode's rule, and what follows from a change of it.
const (
	recordLength = 50 // Jobs whose webhooks decide.
	recordWithin = 60 * time.Second
	recordCache  = 5 * time.Second
	recordLeast  = 10 // Fewer jobs than this decide nothing.
	soonSpread   = 5 * time.Second
	soonMost     = 10_000
)

// modeWatch knows whether webhooks can be relied on, seconds old at most.
type modeWatch struct {
	p     *Pipeline
	mu    sync.Mutex
	at    time.Time
	hooks bool
}

func newModeWatch(p *Pipeline) *modeWatch { return &modeWatch{p: p} }

// WebhooksTrusted reports whether ends are expected by webhook at present.
func (p *Pipeline) WebhooksTrusted(ctx context.Context) (bool, error) { return p.mode.webhooks(ctx) }

// webhooks reports whether ends are expected to be told by webhook. Where auto
// mode has come to mean something else, that is written down first.
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
	hooks, reason, err := m.judge(ctx, now)
	if err != nil {
		return false, err
	}
	if err := m.note(ctx, hooks, reason, now); err != nil {
		return false, err
	}
	m.hooks, m.at = hooks, now
	return hooks, nil
}

// forget has the next who asks judge anew: something about the webhooks may
// have changed.
func (m *modeWatch) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = time.Time{}
}

// judge is auto mode's rule: live webhooks, and four in five of the last jobs
// told of in time. With too few jobs to judge by, live webhooks are trusted.
// It returns the reason for people beside the verdict.
func (m *modeWatch) judge(ctx context.Context, now time.Time) (bool, string, error) {
	hooks, err := m.p.store.Webhooks(ctx)
	if err != nil {
		return false, "", fmt.Errorf("look at the webhooks: %w", err)
	}
	if reason := notLive(hooks); reason != "" {
		return false, reason, nil
	}
	none, err := m.p.WebhooksUnavailable(ctx)
	if err != nil {
		return false, "", fmt.Errorf("look whether the vendor has webhooks: %w", err)
	}
	if none != nil && none.Asked == askedToList {
		return false, "the vendor says that webhooks are not available", nil
	}
	rec, err := m.p.store.WebhookRecord(ctx, recordLength, recordWithin, now)
	if err != nil {
		return false, "", fmt.Errorf("look at the webhooks' record: %w", err)
	}
	if rec.Jobs < recordLeast {
		return true, "every webhook is active, and too few jobs have completed to judge them by", nil
	}
	reason := fmt.Sprintf("%d of the last %d completed jobs had their webhook within %.0f s",
		rec.InTime, rec.Jobs, recordWithin.Seconds())
	return rec.InTime*5 >= rec.Jobs*4, reason, nil
}

// notLive says of the first event type that has a webhook but no live one what
// became of it: one that the vendor switched off, moved or lost brings nothing
// any more. It is "" when all are live.
func notLive(hooks []*store.Webhook) string {
	if len(hooks) == 0 {
		return "no webhook is registered"
	}
	live := map[string]bool{}
	for _, w := range hooks {
		is := w.State == store.WebhookLive || w.State == store.WebhookRotating
		live[w.EventType] = live[w.EventType] || is
	}
	for _, w := range hooks {
		if !live[w.EventType] {
			return fmt.Sprintf("the webhook for %s %s", w.EventType, fate(w.State))
		}
	}
	return ""
}

// fate is what became of a webhook, in words.
func fate(state store.WebhookState) string {
	switch state {
	case store.WebhookInactive:
		return "was switched off"
	case store.WebhookMoved:
		return "was moved to another address"
	case store.WebhookGone:
		return "is gone at the vendor"
	case store.WebhookSecretUnknown:
		return "has a secret that is not known here"
	case store.WebhookRemoved:
		return "was removed"
	case store.WebhookPaused:
		return "is paused"
	case store.WebhookRegistering:
		return "is not registered yet"
	case store.WebhookLive, store.WebhookRotating:
	}
	return "is not active"
}

// note writes what auto mode means when that is news. Jobs that wait for the
// far first poll of webhook mode are polled soon when it is polling now; that
// belongs to the one change and so to its transaction.
func (m *modeWatch) note(ctx context.Context, hooks bool, reason string, now time.Time) error {
	mode := ModePoll
	if hooks {
		mode = ModeWebhook
	}
	last, err := m.p.store.LastModeChange(ctx)
	if err != nil {
		return fmt.Errorf("look what auto mode meant: %w", err)
	}
	if last != nil && last.Mode == string(mode) {
		return nil
	}
	changed := false
	err = m.p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		changed, err = tx.ChangeMode(ctx, store.ModeChange{At: now, Mode: string(mode), Reason: reason})
		if err != nil || !changed || hooks {
			return err
		}
		// What polling itself puts off is off by this much at most.
		_, err = tx.PollSoon(ctx, now, now.Add(m.p.cfg.PollCap+m.p.cfg.PollCap/10), soonSpread, soonMost)
		return err
	})
	if err != nil {
		return fmt.Errorf("change auto mode: %w", err)
	}
	if changed {
		m.p.log.InfoContext(ctx, "auto mode", slog.String("mode", string(mode)), slog.String("reason", reason))
	}
	return nil
}
