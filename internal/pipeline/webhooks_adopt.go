package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// secretChars bounds a webhook's secret, in characters.
const secretChars = 500

// AdoptWebhook takes over a webhook that was registered elsewhere, with its
// secret. Its address becomes one of ours unless it is: the endpoint and the
// secret are stored before the vendor is asked to change it, so the first
// delivery that comes here is verified. What is wrong is a *WebhookError.
func (p *Pipeline) AdoptWebhook(ctx context.Context, vendorID, secret string) (*store.Webhook, error) {
	secret, err := checkSecret(secret)
	if err != nil {
		return nil, err
	}
	if err := p.needAddress(); err != nil {
		return nil, err
	}
	release, err := p.store.HoldWebhooks(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	defer p.mode.forget()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTime)
	defer cancel()
	v, err := p.adoptable(ctx, vendorID)
	if err != nil {
		return nil, err
	}
	w, err := p.beginAdopting(ctx, v, secret)
	if err != nil {
		return nil, err
	}
	if err := p.finishAdopting(ctx, w, v); err != nil {
		return nil, err
	}
	return p.store.Webhook(ctx, w.ID)
}

// checkSecret takes a secret as it was pasted: blanks around it are not part
// of it, and within it there are none.
func checkSecret(secret string) (string, error) {
	secret = strings.TrimSpace(secret)
	bad := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	switch {
	case secret == "":
		return "", &WebhookError{Field: "secret", Text: "Paste the secret that the vendor gave when this webhook was registered, or last rotated."}
	case len(secret) < leastKey:
		return "", &WebhookError{Field: "secret", Text: fmt.Sprintf("That is too short: a secret has at least %d characters.", leastKey)}
	case len(secret) > secretChars || strings.ContainsFunc(secret, bad):
		return "", &WebhookError{Field: "secret", Text: "That is no secret: it is too long, or holds blanks or signs that can't be shown."}
	}
	return secret, nil
}

// adoptable finds the webhook at the vendor and refuses one that is ours.
func (p *Pipeline) adoptable(ctx context.Context, vendorID string) (*geonode.Webhook, error) {
	list, err := p.allWebhooks(ctx)
	if err != nil {
		return nil, &WebhookError{Text: "Nothing was adopted, as the vendor's list could not be read: " + vendorSaid(err) + ".", cause: err}
	}
	mine, err := p.store.Webhooks(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the webhooks: %w", err)
	}
	for i := range list {
		v := &list[i]
		if v.ID != vendorID {
			continue
		}
		if isOurs(v, mine) {
			return nil, &WebhookError{Field: "webhook", Text: "This webhook is one of ours already."}
		}
		return v, nil
	}
	return nil, &WebhookError{Field: "webhook", Text: "The vendor lists no such webhook. It may have been removed meanwhile."}
}

// isOurs reports whether a webhook at the vendor is one of these, or in the
// making: one whose registration has not ended is known by its address.
func isOurs(v *geonode.Webhook, mine []*store.Webhook) bool {
	for _, w := range mine {
		if w.VendorWebhookID != nil && *w.VendorWebhookID == v.ID || w.State == store.WebhookRegistering && w.URL == v.URL {
			return true
		}
	}
	return false
}

// beginAdopting writes the endpoint and the secret down. The endpoint is the
// one that the webhook points to already, when that was ours and is free. Its
// secret may well be one that is known from before: no rotation made another.
func (p *Pipeline) beginAdopting(ctx context.Context, v *geonode.Webhook, secret string) (*store.Webhook, error) {
	w, was, err := p.endpointFor(ctx, v)
	if err != nil {
		return nil, err
	}
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		now := p.now()
		if err := tx.ForgetVendorID(ctx, v.ID); err != nil {
			return err
		}
		if was == "" {
			if err := tx.InsertWebhook(ctx, w); err != nil {
				return err
			}
		} else if begun, err := tx.BeginAgain(ctx, w, was, now); err != nil || !begun {
			return errors.Join(err, errMeanwhile())
		}
		return p.addSecret(ctx, tx, w.ID, secret, now)
	})
	if err != nil {
		return nil, fmt.Errorf("write down the webhook to adopt: %w", err)
	}
	w.State = store.WebhookRegistering
	return w, nil
}

// endpointFor is the row to adopt into, and the state it is in when it exists.
func (p *Pipeline) endpointFor(ctx context.Context, v *geonode.Webhook) (*store.Webhook, store.WebhookState, error) {
	w, err := p.store.WebhookByURL(ctx, v.URL)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, "", fmt.Errorf("look for the endpoint: %w", err)
	}
	var was store.WebhookState
	if err == nil && (w.State == store.WebhookGone || w.State == store.WebhookRemoved) {
		was = w.State
	} else {
		w = p.newWebhook(string(v.EventType))
	}
	w.EventType, w.Description = clip(store.CleanText(string(v.EventType)), keptText), store.CleanText(v.Description)
	w.VendorWebhookID, w.Adopted = &v.ID, true
	return w, was, nil
}

// finishAdopting has the vendor deliver here. A webhook that was switched off
// stays so, as a paused one.
func (p *Pipeline) finishAdopting(ctx context.Context, w *store.Webhook, v *geonode.Webhook) error {
	if v.URL != w.URL {
		var err error
		v, err = p.updateThere(ctx, w, geonode.WebhookUpdate{URL: &w.URL}, func(v *geonode.Webhook) bool { return v.URL == w.URL })
		if err != nil {
			return p.notAdopted(ctx, w, err)
		}
	}
	to := store.WebhookLive
	if v.Inactive() {
		to = store.WebhookPaused
	}
	took := false
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		if took, err = tx.MoveWebhook(ctx, w.ID, w.State, to, p.now()); err != nil || !took {
			return err
		}
		return tx.Audit(ctx, p.now(), webhookChange("adopt", w, nil, audited{Event: w.EventType, VendorID: *w.VendorWebhookID, State: to}))
	})
	if err != nil {
		return fmt.Errorf("adopt webhook %d: %w", w.ID, err)
	}
	if !took {
		return errMeanwhile()
	}
	p.log.InfoContext(ctx, "webhook adopted", slog.String("event", w.EventType), slog.Int64("webhook_id", w.ID))
	return nil
}

// notAdopted takes an adoption back when the webhook at the vendor certainly
// still points elsewhere. Else its row stays, and the next check finds out
// whether it moved here.
func (p *Pipeline) notAdopted(ctx context.Context, w *store.Webhook, cause error) error {
	v, err := p.lookUp(ctx, *w.VendorWebhookID)
	if err != nil || v != nil && v.URL == w.URL {
		return cause
	}
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.MoveWebhook(ctx, w.ID, w.State, store.WebhookRemoved, p.now()); err != nil {
			return err
		}
		if err := tx.EndAllSecrets(ctx, w.ID, p.now()); err != nil {
			return err
		}
		return tx.ForgetVendorID(ctx, *w.VendorWebhookID)
	})
	return errors.Join(cause, err)
}
