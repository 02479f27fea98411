package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// Bounds of a change at the vendor.
const (
	changeTime  = 60 * time.Second
	changeTries = 4
	changeGap   = 500 * time.Millisecond
	changeLimit = 4 * time.Second
)

// WebhookError says why a webhook was not changed, in words for people. Field
// names what they typed, when that is the reason.
type WebhookError struct {
	Field, Text string
	cause       error
}

// Error implements error.
func (e *WebhookError) Error() string {
	if e.cause == nil {
		return e.Text
	}
	return e.Text + " (" + e.cause.Error() + ")"
}

// Unwrap gives the cause, which may be nil.
func (e *WebhookError) Unwrap() error { return e.cause }

// vendorSaid is what became of a call, for people.
func vendorSaid(cause error) string {
	e, ok := errors.AsType[*geonode.Error](cause)
	switch {
	case !ok || e.Status == 0:
		return "the vendor did not answer"
	case e.Status < 300:
		return "the vendor's answer can't be read"
	case e.Message != "":
		return fmt.Sprintf("the vendor answered %d: %s", e.Status, quotedIn(e.Message))
	case len(e.Fields) > 0:
		return fmt.Sprintf("the vendor answered %d: %s", e.Status, quotedIn(e.Fields[0].Msg))
	}
	return fmt.Sprintf("the vendor answered %d", e.Status)
}

// quotedIn is the vendor's sentence as a part of ours.
func quotedIn(said string) string {
	return strings.TrimRight(clip(maskEndpoints(store.CleanText(said)), keptText), ". ")
}

// ourEndpoint is an address of ours in what the vendor says: its last part is
// half a secret.
var ourEndpoint = regexp.MustCompile(regexp.QuoteMeta(webhookPath) + `[A-Za-z0-9]+`)

func maskEndpoints(text string) string { return ourEndpoint.ReplaceAllString(text, webhookPath+"...") }

// errMeanwhile is the answer to who was overtaken.
func errMeanwhile() error {
	return &WebhookError{Text: "Somebody else changed this webhook at the same moment, or its secret. Look at how it stands now, and try again."}
}

// notNow says why a webhook can't be changed in the state it is in.
func notNow(w *store.Webhook) error {
	text := "It can't be changed as it stands now (" + string(w.State) + ")."
	switch w.State {
	case store.WebhookRotating:
		text = "Its secret is being changed. Wait until that has ended."
	case store.WebhookSecretUnknown:
		text = "Its secret isn't known at the moment and is being changed again. Wait until that has ended."
	case store.WebhookRegistering:
		text = "It isn't registered yet. Register again, which carries on with it."
	case store.WebhookGone:
		text = "The vendor doesn't know it any more. Repair it first, which registers it anew."
	case store.WebhookMoved:
		text = "At the vendor its address or event was changed. Repair it first."
	case store.WebhookPaused:
		text = "It is paused. Resume it first."
	case store.WebhookInactive:
		text = "The vendor has switched it off. Repair it first."
	case store.WebhookLive, store.WebhookRemoved:
	}
	return &WebhookError{Text: text}
}

// audited is a webhook as the audit log shows it: without its address, of
// which the last part is secret.
type audited struct {
	Event       string             `json:"event_type,omitempty"`
	VendorID    string             `json:"vendor_webhook_id,omitempty"`
	State       store.WebhookState `json:"state,omitempty"`
	Description *string            `json:"description,omitempty"`
	Form        string             `json:"signature_form,omitempty"`
}

func webhookChange(verb string, w *store.Webhook, before, after any) store.Change {
	return store.Change{What: "webhook." + verb, Kind: "webhook", ID: strconv.FormatInt(w.ID, 10), Before: before, After: after}
}

// changeWebhook has do change one webhook while nobody else does. The caller
// may go away meanwhile: half a change would be worse.
func (p *Pipeline) changeWebhook(ctx context.Context, id int64, do func(context.Context, *store.Webhook) error) error {
	release, err := p.store.HoldWebhooks(ctx)
	if err != nil {
		return err
	}
	defer release()
	defer p.mode.forget()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTime)
	defer cancel()
	w, err := p.webhook(ctx, id)
	if err != nil {
		return err
	}
	return do(ctx, w)
}

// webhook is one that was not removed.
func (p *Pipeline) webhook(ctx context.Context, id int64) (*store.Webhook, error) {
	w, err := p.store.Webhook(ctx, id)
	if err == nil && w.State == store.WebhookRemoved {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("webhook %d: %w", id, err)
	}
	return w, nil
}

// PauseWebhook has the vendor send nothing to a webhook for now. What it would
// have told comes home by polling.
func (p *Pipeline) PauseWebhook(ctx context.Context, id int64) error {
	return p.changeWebhook(ctx, id, func(ctx context.Context, w *store.Webhook) error {
		if w.State == store.WebhookPaused {
			return nil
		}
		if w.State != store.WebhookLive && w.State != store.WebhookInactive {
			return notNow(w)
		}
		return p.switchWebhook(ctx, w, "pause", false, store.WebhookPaused)
	})
}

// ResumeWebhook has the vendor deliver to a paused webhook again.
func (p *Pipeline) ResumeWebhook(ctx context.Context, id int64) error {
	return p.changeWebhook(ctx, id, func(ctx context.Context, w *store.Webhook) error {
		if w.State == store.WebhookLive {
			return nil
		}
		if w.State != store.WebhookPaused && w.State != store.WebhookInactive {
			return notNow(w)
		}
		return p.switchWebhook(ctx, w, "resume", true, store.WebhookLive)
	})
}

// switchWebhook switches a webhook on or off at the vendor and writes it down.
// When a rotation has begun meanwhile, which remembers how the webhook was, it
// is switched back.
func (p *Pipeline) switchWebhook(ctx context.Context, w *store.Webhook, verb string, on bool, to store.WebhookState) error {
	v, err := p.updateThere(ctx, w, geonode.WebhookUpdate{IsActive: &on}, func(v *geonode.Webhook) bool { return v.Inactive() != on })
	if err != nil {
		return err
	}
	if on && !as(w, v) {
		to = store.WebhookMoved
	}
	err = p.moveAudited(ctx, w, verb, to)
	if err == nil {
		return nil
	}
	back := !on
	if _, undoErr := p.vendor.UpdateWebhook(ctx, *w.VendorWebhookID, geonode.WebhookUpdate{IsActive: &back}); undoErr != nil {
		// The next check tells people how it stands.
		p.log.WarnContext(ctx, "webhook not switched back", slog.Int64("webhook_id", w.ID), slog.Any("error", undoErr))
	}
	return err
}

// moveAudited writes down what the vendor did, with who asked for it.
func (p *Pipeline) moveAudited(ctx context.Context, w *store.Webhook, verb string, to store.WebhookState) error {
	took := false
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		if took, err = tx.MoveWebhook(ctx, w.ID, w.State, to, p.now()); err != nil || !took {
			return err
		}
		return tx.Audit(ctx, p.now(), webhookChange(verb, w, audited{State: w.State}, audited{State: to}))
	})
	if err != nil {
		return fmt.Errorf("%s webhook %d: %w", verb, w.ID, err)
	}
	if !took {
		return errMeanwhile()
	}
	p.log.InfoContext(ctx, "webhook changed", slog.String("change", verb), slog.Int64("webhook_id", w.ID),
		slog.String("was", string(w.State)), slog.String("is", string(to)))
	return nil
}

// updateThere changes a webhook at the vendor. An answer that was lost is not
// believed either way: the vendor's list says whether it was done. One that
// the vendor doesn't know is marked gone.
func (p *Pipeline) updateThere(
	ctx context.Context, w *store.Webhook, u geonode.WebhookUpdate, done func(*geonode.Webhook) bool,
) (*geonode.Webhook, error) {
	if w.VendorWebhookID == nil {
		return nil, notNow(w)
	}
	var last error
	for try := range changeTries {
		v, err := p.vendor.UpdateWebhook(ctx, *w.VendorWebhookID, u)
		if err == nil && done(v) {
			return v, nil
		}
		// A 404 may be about all webhooks, or about this one.
		if err == nil || errors.Is(err, geonode.ErrNotFound) || geonode.CertaintyOf(err) == geonode.Unknown {
			there, lookErr := p.lookUp(ctx, *w.VendorWebhookID)
			switch {
			case lookErr == nil && there == nil:
				return nil, p.lostAt(ctx, w)
			case lookErr == nil && done(there):
				return there, nil
			}
		}
		last = err
		if !worthAnother(ctx, err, try) {
			break
		}
	}
	if last == nil {
		return nil, &WebhookError{Text: "The vendor said that it changed the webhook, and its list says that it didn't. Try again."}
	}
	return nil, &WebhookError{Text: "Nothing was changed here: " + vendorSaid(last) + ". Try again.", cause: last}
}

// worthAnother waits before a further try at the vendor, and reports whether there is
// to be one.
func worthAnother(ctx context.Context, cause error, try int) bool {
	e, ok := errors.AsType[*geonode.Error](cause)
	worth := cause == nil || ok && (e.Retryable() || e.Certainty() == geonode.Unknown)
	return worth && try+1 < changeTries && sleep(ctx, jitter(doubling(changeGap, changeLimit, try))) == nil
}

// lostAt marks a webhook that the vendor doesn't know any more.
func (p *Pipeline) lostAt(ctx context.Context, w *store.Webhook) error {
	if _, err := p.store.MoveWebhook(ctx, w.ID, w.State, store.WebhookGone, p.now()); err != nil {
		return fmt.Errorf("mark webhook %d gone: %w", w.ID, err)
	}
	return &WebhookError{Text: "The vendor doesn't know this webhook any more. Repair it, which registers it anew."}
}

// lookUp finds a webhook in the vendor's list; nil when it is not there.
func (p *Pipeline) lookUp(ctx context.Context, vendorID string) (*geonode.Webhook, error) {
	list, err := p.allWebhooks(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].ID == vendorID {
			return &list[i], nil
		}
	}
	return nil, nil //nolint:nilnil // The list was read, and it is not there.
}

// maxDescription bounds a webhook's description, in characters.
const maxDescription = 200

// DescribeWebhook gives a webhook another description at the vendor.
func (p *Pipeline) DescribeWebhook(ctx context.Context, id int64, description string) error {
	if err := checkDescription(description); err != nil {
		return err
	}
	return p.changeWebhook(ctx, id, func(ctx context.Context, w *store.Webhook) error {
		if w.Description == description {
			return nil
		}
		if w.State == store.WebhookGone || w.State == store.WebhookRegistering {
			return notNow(w)
		}
		_, err := p.updateThere(ctx, w, geonode.WebhookUpdate{Description: &description},
			func(v *geonode.Webhook) bool { return v.Description == description })
		if err != nil {
			return err
		}
		err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
			if err := tx.SetWebhookDescription(ctx, w.ID, description); err != nil {
				return err
			}
			return tx.Audit(ctx, p.now(), webhookChange("describe", w, audited{Description: &w.Description}, audited{Description: &description}))
		})
		if err != nil {
			return fmt.Errorf("describe webhook %d: %w", id, err)
		}
		return nil
	})
}

func checkDescription(text string) error {
	if len([]rune(text)) > maxDescription || store.CleanText(text) != text {
		return &WebhookError{Field: "description", Text: fmt.Sprintf("Use at most %d characters that can be shown.", maxDescription)}
	}
	return nil
}
