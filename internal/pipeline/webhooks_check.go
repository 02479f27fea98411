package pipeline

import (
	"context"
	"log/slog"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// allWebhooks reads the vendor's list; ten is the most an account may have.
func (p *Pipeline) allWebhooks(ctx context.Context) ([]geonode.Webhook, error) {
	var out []geonode.Webhook
	for page := 1; page <= 10; page++ {
		got, err := p.vendor.ListWebhooks(ctx, geonode.ListParams{Page: page})
		if err != nil {
			return nil, err
		}
		// What can't be read may be ours, and must not be taken for gone.
		if err := whole(got.ListPage); err != nil {
			return nil, err
		}
		out = append(out, got.Items...)
		if lastPage(got.ListPage, page, len(got.Items)) {
			break
		}
	}
	return out, nil
}

// CheckWebhooks compares our subscriptions with the vendor's list: one that
// went inactive, moved or vanished without us is marked so, and one that came
// back is live again. A vendor that said that it has no webhooks is asked
// again. It waits for a change of webhooks under way.
func (p *Pipeline) CheckWebhooks(ctx context.Context) error {
	mine, err := p.store.Webhooks(ctx)
	if err != nil {
		return err
	}
	if len(mine) == 0 {
		none, err := p.WebhooksUnavailable(ctx)
		if err != nil || none == nil {
			return err
		}
	}
	release, err := p.store.HoldWebhooks(ctx)
	if err != nil {
		return err
	}
	defer release()
	defer p.mode.forget()
	return p.checkHeld(ctx)
}

// checkHeld is CheckWebhooks for those who keep others from changing them.
func (p *Pipeline) checkHeld(ctx context.Context) error {
	mine, err := p.store.Webhooks(ctx)
	if err != nil {
		return err
	}
	list, err := p.allWebhooks(ctx)
	if err != nil {
		none, noteErr := p.noteUnavailable(ctx, err, askedToList)
		if none != nil || noteErr != nil {
			return noteErr
		}
		return err
	}
	if err := p.noteAvailable(ctx, ""); err != nil {
		return err
	}
	byID := map[string]*geonode.Webhook{}
	for i := range list {
		byID[list[i].ID] = &list[i]
	}
	for _, w := range mine {
		if w.VendorWebhookID == nil {
			continue
		}
		is := standing(w, byID)
		if is == w.State && w.CheckedAt != nil && p.now().Sub(*w.CheckedAt) < time.Minute {
			continue
		}
		// Another state by now is somebody else's, such as a rotation's: it stands.
		moved, err := p.store.MoveWebhook(ctx, w.ID, w.State, is, p.now())
		if err != nil {
			return err
		}
		if moved && is != w.State {
			p.log.WarnContext(ctx, "webhook changed at the vendor", slog.String("event", w.EventType), slog.Int64("webhook_id", w.ID),
				slog.String("was", string(w.State)), slog.String("is", string(is)))
		}
	}
	return nil
}

// standing is the state that the vendor's list gives a webhook of ours. One
// whose secret is being changed keeps its state: rotation decides it.
func standing(w *store.Webhook, byID map[string]*geonode.Webhook) store.WebhookState {
	v, there := byID[*w.VendorWebhookID]
	switch {
	case w.State == store.WebhookRotating || w.State == store.WebhookSecretUnknown:
		return w.State
	case !there:
		return store.WebhookGone
	case v.Inactive() && w.State == store.WebhookPaused:
		return store.WebhookPaused
	case v.Inactive():
		return store.WebhookInactive
	case !as(w, v):
		return store.WebhookMoved
	}
	return store.WebhookLive
}

// as reports whether the vendor has a webhook as we made it: at its address,
// and for its event.
func as(w *store.Webhook, v *geonode.Webhook) bool {
	return v.URL == w.URL && (v.EventType == "" || string(v.EventType) == w.EventType)
}
