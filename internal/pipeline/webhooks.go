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

// RegisterWebhooks makes sure there is a subscription of ours for each event
// type at PublicURL. Event types that have one are left as they are, also when
// it is paused, or needs a repair; one that the vendor lost is made anew. What
// keeps it from that is a *WebhookError.
func (p *Pipeline) RegisterWebhooks(ctx context.Context) ([]*store.Webhook, error) {
	if err := p.needAddress(); err != nil {
		return nil, err
	}
	release, err := p.store.HoldWebhooks(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	defer p.mode.forget()
	have, err := p.store.Webhooks(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the webhooks: %w", err)
	}
	for _, event := range EventTypes() {
		mine := p.best(event, have)
		if err := p.registerBest(ctx, event, mine); err != nil {
			return nil, err
		}
		if mine == nil {
			p.sayReplaced(ctx, event, have)
		}
	}
	return p.store.Webhooks(ctx)
}

// needAddress refuses where the vendor can't reach us.
func (p *Pipeline) needAddress() error {
	if p.cfg.PublicURL != "" {
		return nil
	}
	return &WebhookError{Text: "Webhooks need ROLLCALL_PUBLIC_URL: the address under which the vendor reaches this server."}
}

// best is the webhook that an event type has, or nil: one that works before
// one that could, one that could before one that was lost. Those of another
// address don't count.
func (p *Pipeline) best(event string, have []*store.Webhook) *store.Webhook {
	var best *store.Webhook
	for _, w := range have {
		counts := w.EventType == event && (strings.HasPrefix(w.URL, p.cfg.PublicURL+"/") || w.State == store.WebhookGone)
		if counts && (best == nil || rank(w) < rank(best)) {
			best = w
		}
	}
	return best
}

func rank(w *store.Webhook) int {
	switch w.State {
	case store.WebhookLive, store.WebhookRotating:
		return 0
	case store.WebhookPaused, store.WebhookInactive, store.WebhookMoved, store.WebhookSecretUnknown:
		return 1
	case store.WebhookRegistering:
		return 2
	case store.WebhookGone, store.WebhookRemoved:
	}
	return 3
}

// registerBest registers an event type that has no webhook, or carries on with
// what was begun and not ended, or was lost.
func (p *Pipeline) registerBest(ctx context.Context, event string, w *store.Webhook) error {
	switch {
	case w == nil:
		w = p.newWebhook(event)
		if err := p.store.InsertWebhook(ctx, w); err != nil {
			return fmt.Errorf("write the webhook for %s: %w", event, err)
		}
		return p.register(ctx, w, false, store.WebhookRemoved)
	case w.State == store.WebhookGone:
		return p.registerAnew(ctx, w)
	case w.State == store.WebhookRegistering && w.VendorWebhookID == nil:
		return p.register(ctx, w, true, store.WebhookRemoved)
	}
	return nil
}

// registerAnew makes a webhook that the vendor lost once more, at our present
// address. Its endpoint stays, so late retries of the lost one still find it,
// and the old secret is good for them until its end.
func (p *Pipeline) registerAnew(ctx context.Context, w *store.Webhook) error {
	w.URL, w.VendorWebhookID, w.Adopted = p.addressOf(w), nil, false
	begun, err := p.store.BeginAgain(ctx, w, store.WebhookGone, p.now())
	if err != nil {
		return fmt.Errorf("begin webhook %d anew: %w", w.ID, err)
	}
	if !begun {
		return errMeanwhile()
	}
	w.State = store.WebhookRegistering
	// Whether the vendor has it under that address again is anybody's guess.
	if err := p.register(ctx, w, true, store.WebhookGone); err != nil {
		return err
	}
	p.log.WarnContext(ctx, "webhook replaced", slog.String("event", w.EventType), slog.Int64("webhook_id", w.ID), slog.String("was", string(store.WebhookGone)))
	return nil
}

// sayReplaced says which earlier webhooks a new one stands in for.
func (p *Pipeline) sayReplaced(ctx context.Context, event string, have []*store.Webhook) {
	for _, w := range have {
		if w.EventType == event && w.State != store.WebhookRemoved {
			p.log.WarnContext(ctx, "webhook replaced", slog.String("event", event), slog.Int64("webhook_id", w.ID), slog.String("was", string(w.State)))
		}
	}
}

// register makes one subscription whose row is registering; when it may have
// been made already, it is looked for first. The row comes before the call, so
// that an answer that is lost can be found again by its address, which is like
// no other; the secret is stored before anything else is done with the answer.
// When there certainly is none, the webhook goes to the state given.
func (p *Pipeline) register(ctx context.Context, w *store.Webhook, doubt bool, none store.WebhookState) error {
	made, doubt, err := p.createOrFind(ctx, w, doubt)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err != nil && doubt {
		return &WebhookError{Text: "The webhook for " + w.EventType + " may have been made, and its answer is lost: " + vendorSaid(err) +
			". Register again: it is looked for by its address first, and never made twice.", cause: err}
	}
	if err != nil {
		_, moveErr := p.store.MoveWebhook(ctx, w.ID, w.State, none, p.now())
		return errors.Join(p.notRegistered(ctx, w, err), moveErr)
	}
	if err := p.registered(ctx, w, made); err != nil {
		return fmt.Errorf("write down the webhook for %s: %w", w.EventType, err)
	}
	p.log.InfoContext(ctx, "webhook registered", slog.String("event", w.EventType), slog.Int64("webhook_id", w.ID))
	return nil
}

// notRegistered says why the vendor made no webhook.
func (p *Pipeline) notRegistered(ctx context.Context, w *store.Webhook, cause error) error {
	full, err := p.accountFull(ctx, cause)
	if err != nil {
		return err
	}
	if full {
		return &WebhookError{Text: fmt.Sprintf("The webhook for %s is not registered: the account has all the %d webhooks it may have. "+
			"Remove one that isn't needed, here or at the vendor.", w.EventType, geonode.MaxWebhooks), cause: cause}
	}
	none, err := p.noteUnavailable(ctx, cause, askedToRegister)
	if err != nil {
		return err
	}
	if none != nil {
		return &WebhookError{Text: none.Text(), cause: cause}
	}
	return &WebhookError{Text: "The webhook for " + w.EventType + " is not registered: " + vendorSaid(cause) + ".", cause: cause}
}

// accountFull reports that a refusal came because the account has as many
// webhooks as it may: which status that has is not published.
func (p *Pipeline) accountFull(ctx context.Context, cause error) (bool, error) {
	e, ok := errors.AsType[*geonode.Error](cause)
	if !ok || e.Status < 400 || e.Status >= 500 {
		return false, nil
	}
	list, err := p.allWebhooks(ctx)
	if ctx.Err() != nil {
		return false, err
	}
	return err == nil && len(list) >= geonode.MaxWebhooks, nil
}

func (p *Pipeline) newWebhook(event string) *store.Webhook {
	now := p.now()
	w := &store.Webhook{
		Endpoint: newEndpoint(), EventType: event, Description: "Rollcall", State: store.WebhookRegistering,
		CreatedAt: now, StateAt: now,
	}
	w.URL = p.addressOf(w)
	return w
}

// addressOf is the address that a webhook of ours has at present.
func (p *Pipeline) addressOf(w *store.Webhook) string {
	return p.cfg.PublicURL + webhookPath + w.Endpoint
}

// registered writes down what the vendor made, the secret first.
func (p *Pipeline) registered(ctx context.Context, w *store.Webhook, made madeWebhook) error {
	now := p.now()
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := p.addSecret(ctx, tx, w.ID, made.secret.Reveal(), now); err != nil {
			return err
		}
		if err := tx.SetWebhookVendorID(ctx, w.ID, made.id); err != nil {
			return err
		}
		if _, err := tx.MoveWebhook(ctx, w.ID, w.State, store.WebhookLive, now); err != nil {
			return err
		}
		return tx.Audit(ctx, now, webhookChange("register", w, nil, audited{Event: w.EventType, VendorID: made.id, State: store.WebhookLive}))
	})
}

// addSecret stores a webhook's next secret version, sealed, and has what was
// quarantined verified with it.
func (p *Pipeline) addSecret(ctx context.Context, tx store.Tx, webhookID int64, secret string, now time.Time) error {
	version, err := tx.NextSecretVersion(ctx, webhookID)
	if err != nil {
		return err
	}
	sealed := p.sealer.seal(secretPlace(webhookID, version), []byte(secret))
	if err := tx.AddSecret(ctx, webhookID, version, sealed, now, now.Add(p.cfg.GraceTime)); err != nil {
		return err
	}
	return p.queue.reverify(ctx, tx, webhookID)
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

// newEndpoint is a name nobody can guess: 160 random bits.
func newEndpoint() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // It never fails: crypto/rand ends the program instead.
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}
