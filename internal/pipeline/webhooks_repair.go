package pipeline

import (
	"context"
	"errors"
	"fmt"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// RepairWebhook puts right what happened to a webhook at the vendor without us,
// after looking how it stands there now: one that was switched off is switched
// on, one that was changed gets its address and event back, one that is gone is
// registered anew. One that works but has an address from before the present
// PublicURL gets the present one.
func (p *Pipeline) RepairWebhook(ctx context.Context, id int64) error {
	if err := p.needAddress(); err != nil {
		return err
	}
	return p.changeWebhook(ctx, id, func(ctx context.Context, _ *store.Webhook) error {
		if err := p.checkHeld(ctx); err != nil {
			return &WebhookError{Text: "Nothing was repaired, as the vendor's list could not be read: " + vendorSaid(err) + ".", cause: err}
		}
		none, err := p.WebhooksUnavailable(ctx)
		if err != nil {
			return err
		}
		if none != nil {
			return &WebhookError{Text: none.Text()}
		}
		w, err := p.webhook(ctx, id)
		if err != nil {
			return err
		}
		return p.repair(ctx, w)
	})
}

func (p *Pipeline) repair(ctx context.Context, w *store.Webhook) error {
	switch w.State {
	case store.WebhookGone:
		return p.registerAnew(ctx, w)
	case store.WebhookRegistering:
		if w.VendorWebhookID == nil {
			return p.register(ctx, w, true, store.WebhookRemoved)
		}
		return notNow(w)
	case store.WebhookLive:
		if w.URL == p.addressOf(w) {
			return nil
		}
	case store.WebhookInactive, store.WebhookMoved:
	case store.WebhookPaused, store.WebhookRotating, store.WebhookSecretUnknown, store.WebhookRemoved:
		return notNow(w)
	}
	return p.restore(ctx, w)
}

// restore makes a webhook at the vendor what it is here.
func (p *Pipeline) restore(ctx context.Context, w *store.Webhook) error {
	url, event, on := p.addressOf(w), geonode.EventType(w.EventType), true
	update := geonode.WebhookUpdate{URL: &url, IsActive: &on, EventType: &event}
	_, err := p.updateThere(ctx, w, update, func(v *geonode.Webhook) bool {
		return v.URL == url && !v.Inactive() && (v.EventType == "" || v.EventType == event)
	})
	if err != nil {
		return err
	}
	// The address first: without it the next check would call the webhook moved.
	if err := p.store.SetWebhookURL(ctx, w.ID, url); err != nil {
		return fmt.Errorf("write down the address of webhook %d: %w", w.ID, err)
	}
	return p.moveAudited(ctx, w, "repair", store.WebhookLive)
}

// RemoveWebhook deletes a webhook at the vendor and here. From then on its
// endpoint answers 404, to late retries too: nothing is lost by that, as the
// jobs they tell of are asked about like all others. What it delivered stays.
func (p *Pipeline) RemoveWebhook(ctx context.Context, id int64) error {
	return p.changeWebhook(ctx, id, func(ctx context.Context, w *store.Webhook) error {
		open, err := p.rotating(ctx, w)
		if err != nil {
			return err
		}
		if open {
			return notNow(w)
		}
		if err := p.deleteThere(ctx, w); err != nil {
			return err
		}
		return p.removed(ctx, w)
	})
}

// rotating reports whether a webhook's secret is being changed. One whose
// secret is unknown and that nobody rotates may be removed.
func (p *Pipeline) rotating(ctx context.Context, w *store.Webhook) (bool, error) {
	_, err := p.store.OpenRotation(ctx, w.ID)
	if errors.Is(err, store.ErrNotFound) {
		return w.State == store.WebhookRotating, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for a rotation of webhook %d: %w", w.ID, err)
	}
	return w.State == store.WebhookRotating || w.State == store.WebhookSecretUnknown, nil
}

// deleteThere deletes a webhook at the vendor and returns once it certainly is
// not there any more. One that may have been registered without our knowing
// its id is looked for by its address.
func (p *Pipeline) deleteThere(ctx context.Context, w *store.Webhook) error {
	var last error
	for try := range changeTries {
		v, err := p.there(ctx, w)
		if err == nil && v == nil {
			return nil
		}
		if err == nil {
			_, err = p.vendor.DeleteWebhook(ctx, v.ID)
		}
		if err == nil {
			return nil
		}
		last = err
		// Whether it was done after all, the list says.
		if !errors.Is(err, geonode.ErrNotFound) && !worthAnother(ctx, err, try) {
			break
		}
	}
	return &WebhookError{Text: "The webhook was not removed: " + vendorSaid(last) + ". Try again.", cause: last}
}

// there finds a webhook of ours in the vendor's list; nil when it is not there.
func (p *Pipeline) there(ctx context.Context, w *store.Webhook) (*geonode.Webhook, error) {
	list, err := p.allWebhooks(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		v := &list[i]
		if w.VendorWebhookID != nil && v.ID == *w.VendorWebhookID || w.VendorWebhookID == nil && v.URL == w.URL {
			return v, nil
		}
	}
	return nil, nil //nolint:nilnil // The list was read, and it is not there.
}

func (p *Pipeline) removed(ctx context.Context, w *store.Webhook) error {
	took := false
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		if took, err = tx.MoveWebhook(ctx, w.ID, w.State, store.WebhookRemoved, p.now()); err != nil || !took {
			return err
		}
		if err := tx.EndAllSecrets(ctx, w.ID, p.now()); err != nil {
			return err
		}
		return tx.Audit(ctx, p.now(), webhookChange("remove", w, audited{Event: w.EventType, State: w.State}, audited{State: store.WebhookRemoved}))
	})
	if err != nil {
		return fmt.Errorf("remove webhook %d: %w", w.ID, err)
	}
	if !took {
		// A rotation began: it finds the webhook gone, and says so.
		return errMeanwhile()
	}
	p.secrets.forget(w.Endpoint)
	return nil
}
