package pipeline

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// EventTypes are the events a full set of webhooks subscribes to, one each.
func EventTypes() []string {
	return []string{string(geonode.EventExtractCompleted), string(geonode.EventBatchCompleted), string(geonode.EventCrawlCompleted)}
}

// webhookPath is where the vendor posts, before the endpoint's own name.
const webhookPath = "/webhooks/geonode/"

// RegisterWebhooks makes sure there is a live subscription of ours for each
// event type at PublicURL. Event types that have one are left as they are.
func (p *Pipeline) RegisterWebhooks(ctx context.Context) ([]*store.Webhook, error) {
	defer p.mode.forget()
	if p.cfg.PublicURL == "" {
		return nil, errors.New("webhooks need ROLLCALL_PUBLIC_URL: the address under which the vendor reaches this server")
	}
	have, err := p.store.Webhooks(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the webhooks: %w", err)
	}
	mine := map[string]*store.Webhook{}
	for _, w := range have {
		begun := w.State == store.WebhookRegistering && mine[w.EventType] == nil
		if (begun || w.State == store.WebhookLive) && strings.HasPrefix(w.URL, p.cfg.PublicURL+"/") {
			mine[w.EventType] = w
		}
	}
	for _, event := range EventTypes() {
		if err := p.register(ctx, event, mine[event]); err != nil {
			return nil, fmt.Errorf("register %s: %w", event, err)
		}
		if mine[event] == nil {
			p.sayReplaced(ctx, event, have)
		}
	}
	return p.store.Webhooks(ctx)
}

// sayReplaced says which earlier webhooks a new one stands in for.
func (p *Pipeline) sayReplaced(ctx context.Context, event string, have []*store.Webhook) {
	for _, w := range have {
		if w.EventType == event && w.State != store.WebhookRemoved {
			p.log.WarnContext(ctx, "webhook replaced", slog.String("event", event), slog.Int64("webhook_id", w.ID), slog.String("was", string(w.State)))
		}
	}
}

// register makes one subscription, or carries on with one that was begun and
// not ended. The row comes before the call, so that an answer that is lost can
// be found again by its address, which is like no other; the secret is stored
// before anything else is done with the answer.
func (p *Pipeline) register(ctx context.Context, event string, w *store.Webhook) error {
	if w != nil && w.State == store.WebhookLive {
		return nil
	}
	begun := w != nil
	if !begun {
		w = p.newWebhook(event)
		if err := p.store.InsertWebhook(ctx, w); err != nil {
			return err
		}
	}
	made, doubt, err := p.createOrFind(ctx, w, begun)
	if err != nil && doubt {
		return fmt.Errorf("the vendor may have made it, which the next registration looks at: %w", err)
	}
	if err != nil {
		_, moveErr := p.store.MoveWebhook(context.WithoutCancel(ctx), w.ID, w.State, store.WebhookRemoved, p.now())
		return errors.Join(err, moveErr)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := p.registered(ctx, w, made); err != nil {
		return err
	}
	p.log.InfoContext(ctx, "webhook registered", slog.String("event", event), slog.Int64("webhook_id", w.ID))
	return nil
}

func (p *Pipeline) newWebhook(event string) *store.Webhook {
	now := p.now()
	w := &store.Webhook{
		Endpoint: newEndpoint(), EventType: event, Description: "Rollcall", State: store.WebhookRegistering,
		CreatedAt: now, StateAt: now,
	}
	w.URL = p.cfg.PublicURL + webhookPath + w.Endpoint
	return w
}

// registered writes down what the vendor made, the secret first.
func (p *Pipeline) registered(ctx context.Context, w *store.Webhook, made madeWebhook) error {
	now := p.now()
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		version, err := tx.NextSecretVersion(ctx, w.ID)
		if err != nil {
			return err
		}
		sealed := p.sealer.seal(secretPlace(w.ID, version), []byte(made.secret.Reveal()))
		if err := tx.AddSecret(ctx, w.ID, version, sealed, now, now.Add(p.cfg.GraceTime)); err != nil {
			return err
		}
		if err := tx.SetWebhookVendorID(ctx, w.ID, made.id); err != nil {
			return err
		}
		_, err = tx.MoveWebhook(ctx, w.ID, w.State, store.WebhookLive, now)
		return err
	})
}

// registerTries bounds the tries of a registration against a busy vendor.
const registerTries = 8

// madeWebhook is a subscription as the vendor made it.
type madeWebhook struct {
	id     string
	secret geonode.Secret
}

// createOrFind registers. While the vendor may have made the webhook already,
// it is looked for by its address and the secret that nobody saw rotated; only
// a whole list without it allows another call. With an error it reports
// whether that doubt remains.
func (p *Pipeline) createOrFind(ctx context.Context, w *store.Webhook, doubt bool) (madeWebhook, bool, error) {
	var last error
	for try := range registerTries {
		made, err := p.registerOnce(ctx, w, doubt)
		if err == nil && made.id != "" {
			return made, false, nil
		}
		if err == nil { // It is certain by now that there is none.
			doubt = false
			continue
		}
		last = err
		unknown := geonode.CertaintyOf(err) == geonode.Unknown
		doubt = doubt || unknown
		if e, ok := errors.AsType[*geonode.Error](err); !ok || !e.Retryable() && !unknown {
			break
		}
		if err := sleep(ctx, jitter(doubling(time.Second, maxRetryGap, try))); err != nil {
			break
		}
	}
	return madeWebhook{}, doubt, last
}

func (p *Pipeline) registerOnce(ctx context.Context, w *store.Webhook, doubt bool) (madeWebhook, error) {
	if doubt {
		return p.findAndRotate(ctx, w.URL)
	}
	got, err := p.vendor.CreateWebhook(ctx, geonode.WebhookCreate{
		URL: w.URL, EventType: geonode.EventType(w.EventType), Description: w.Description,
	})
	if err != nil {
		return madeWebhook{}, err
	}
	return madeWebhook{got.ID, got.Secret}, nil
}

func (p *Pipeline) findAndRotate(ctx context.Context, url string) (madeWebhook, error) {
	list, err := p.allWebhooks(ctx)
	if err != nil {
		return madeWebhook{}, err
	}
	for i := range list {
		if list[i].URL == url {
			secret, _, err := p.vendor.RotateSecret(ctx, list[i].ID)
			return madeWebhook{list[i].ID, secret}, err
		}
	}
	return madeWebhook{}, nil
}

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
// back is live again.
func (p *Pipeline) CheckWebhooks(ctx context.Context) error {
	defer p.mode.forget()
	mine, err := p.store.Webhooks(ctx)
	if err != nil || len(mine) == 0 {
		return err
	}
	list, err := p.allWebhooks(ctx)
	if err != nil {
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
	case v.URL != w.URL:
		return store.WebhookMoved
	}
	return store.WebhookLive
}

// newEndpoint is a name nobody can guess: 160 random bits.
func newEndpoint() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // It never fails: crypto/rand ends the program instead.
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}
