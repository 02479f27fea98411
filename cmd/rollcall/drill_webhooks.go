package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// setSwitches makes the vendor another vendor. No delivery is on its way meanwhile, and no form of signatures stays
// pinned: the new form is for the servers to find out.
func (d *drill) setSwitches(ctx context.Context, set sandbox.Switches) error {
	text, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("switches: %w", err)
	}
	open := d.balancing.shut()
	defer open()
	defer d.note(ctx, actSwitches, string(text))()
	if err := d.admin(ctx, http.MethodPut, "/_sandbox/switches", string(text), nil); err != nil {
		return err
	}
	return d.insist(ctx, "unpin the forms of signatures", d.unpin)
}

func (d *drill) unpin(ctx context.Context) error {
	hooks, err := d.store.Webhooks(ctx)
	if err != nil {
		return fmt.Errorf("look at the webhooks: %w", err)
	}
	for _, w := range hooks {
		if err := d.pipeline.SetSignatureForm(ctx, w.ID, ""); err != nil {
			return err
		}
	}
	return nil
}

// repair does what an operator does about a webhook that the vendor switched off or changed. What it can't do now it
// can the next time: a webhook that nobody could repair keeps the drill from ending. An error says that it could look at
// none.
func (d *drill) repair(ctx context.Context) error {
	hooks, err := d.store.Webhooks(ctx)
	if err != nil {
		return err
	}
	for _, w := range hooks {
		if w.State != store.WebhookInactive && w.State != store.WebhookMoved && w.State != store.WebhookGone {
			continue
		}
		if err := d.pipeline.RepairWebhook(ctx, w.ID); err != nil {
			d.log.InfoContext(ctx, "webhook not repaired", slog.Int64("webhook_id", w.ID), slog.Any("error", err))
			continue
		}
		d.note(ctx, actRepair, fmt.Sprintf("webhook %d was %s", w.ID, w.State))()
	}
	return nil
}
