package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/riverqueue/river"

	"rollcall/store"
)

// mirrorArgs asks that a webhook's delivery log be read. Running twice is
// harmless: rows are written by what they are.
type mirrorArgs struct {
	WebhookID int64 `json:"webhook_id" river:"unique"`
}

// Kind implements river.JobArgs.
func (mirrorArgs) Kind() string { return "mirror" }

type mirrorWorker struct {
	river.WorkerDefaults[mirrorArgs]
	p *Pipeline
}

// Timeout implements river.Worker: a reading writes down how far it came
// before that.
func (w *mirrorWorker) Timeout(*river.Job[mirrorArgs]) time.Duration { return mirrorTime + taskTimeout }

// Work implements river.Worker. What the vendor didn't answer is noted for the
// page that asked; the next reading goes on there.
func (w *mirrorWorker) Work(ctx context.Context, task *river.Job[mirrorArgs]) error {
	hook, err := w.p.store.Webhook(ctx, task.Args.WebhookID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return ofTask(err, "webhook", task.Args.WebhookID)
	}
	if !logged(hook) {
		return ofTask(w.p.store.AnswerLogRead(ctx, hook.ID), "webhook", hook.ID)
	}
	readCtx, cancel := context.WithTimeout(ctx, mirrorTime)
	defer cancel()
	if _, err := w.p.MirrorLog(readCtx, hook, false); err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // The process ends: another goes on.
		}
		w.p.log.WarnContext(ctx, "delivery log not read", slog.Int64("webhook_id", hook.ID), slog.Any("error", err))
	}
	return ofTask(w.p.store.AnswerLogRead(ctx, hook.ID), "webhook", hook.ID)
}

// logged reports a webhook whose log the vendor has.
func logged(w *store.Webhook) bool {
	return w.VendorWebhookID != nil && !slices.Contains([]store.WebhookState{store.WebhookGone, store.WebhookRemoved}, w.State)
}

// ReadLogNow asks at a person's word that the delivery log of each webhook be
// read; it joins readings under way. It returns how many logs there are.
func (p *Pipeline) ReadLogNow(ctx context.Context) (int, error) {
	mine, err := p.store.Webhooks(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the delivery log: %w", err)
	}
	ids := make([]int64, 0, len(mine))
	for _, w := range mine {
		if logged(w) {
			ids = append(ids, w.ID)
		}
	}
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.Audit(ctx, p.now(), store.Change{What: "delivery_log.read", Kind: "delivery_log", After: map[string]int{"webhooks": len(ids)}}); err != nil {
			return err
		}
		if err := tx.AskLogRead(ctx, ids, p.now()); err != nil {
			return err
		}
		return p.queue.insert(ctx, tx, forEach(ids, queueUpkeep, unended(), func(id int64) river.JobArgs { return mirrorArgs{WebhookID: id} }))
	})
	if err != nil {
		return 0, fmt.Errorf("read the delivery log: %w", err)
	}
	return len(ids), nil
}
