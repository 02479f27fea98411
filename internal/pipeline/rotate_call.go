package pipeline

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/riverqueue/river"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// callRotate asks the vendor for a new secret and stores it before anything
// else. The old one is dead at the vendor before the answer is here.
func (p *Pipeline) callRotate(ctx context.Context, id int64) error {
	wait, err := p.gates.wait(ctx, store.GateSubmit)
	if err != nil {
		return err
	}
	if wait > 0 {
		return river.JobSnooze(wait)
	}
	now := p.now()
	r, err := p.store.ClaimRotation(ctx, id, now, now.Add(rotateLease))
	if errors.Is(err, store.ErrNotFound) {
		return river.JobSnooze(rotateGap) // Somebody else calls; the lease tells when not any more.
	}
	if err != nil {
		return err
	}
	if err := p.noteUnknown(ctx, r); err != nil {
		return err
	}
	w, err := p.store.Webhook(ctx, r.WebhookID)
	if err != nil {
		return err
	}
	if w.VendorWebhookID == nil {
		return p.failRotation(ctx, r, store.WebhookGone, ErrNotRotatable) // Lost meanwhile, and being registered anew.
	}
	secret, err := p.newSecret(ctx, w)
	// What the call brought is written down though the task's time is over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err != nil {
		return p.rotateFailed(ctx, r, w, err)
	}
	return p.storeRotated(ctx, r, secret)
}

func (p *Pipeline) newSecret(ctx context.Context, w *store.Webhook) (geonode.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, rotateCall)
	defer cancel()
	secret, _, err := p.vendor.RotateSecret(ctx, *w.VendorWebhookID)
	return secret, err
}

// noteUnknown has the webhook's state say that the vendor may sign with a
// secret that nobody here has seen.
func (p *Pipeline) noteUnknown(ctx context.Context, r *store.Rotation) error {
	if r.State != store.RotationSecretUnknown {
		return nil
	}
	_, err := p.store.MoveWebhook(ctx, r.WebhookID, store.WebhookRotating, store.WebhookSecretUnknown, p.now())
	return err
}

// storeRotated puts the new secret into use. The webhook's row is locked for
// it, so that a delivery is either quarantined before, and looked through
// after, or checked against the new secret.
func (p *Pipeline) storeRotated(ctx context.Context, r *store.Rotation, secret geonode.Secret) error {
	now := p.now()
	until, late, known := now.Add(p.cfg.GraceTime), false, 0
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.LockWebhook(ctx, r.WebhookID); err != nil {
			return err
		}
		version, err := tx.NextSecretVersion(ctx, r.WebhookID)
		if err != nil {
			return err
		}
		if known, err = p.noteKnown(ctx, tx, r, version, secret); err != nil {
			return err
		}
		stored, err := tx.StoreRotation(ctx, r.ID, r.Attempt, version, known, now, until)
		if err != nil {
			return err
		}
		sealed := p.sealer.seal(secretPlace(r.WebhookID, version), []byte(secret.Reveal()))
		if late = !stored; late {
			// Another call has begun since, and its secret is the present one. What
			// this one signed may have been looked through already.
			if err := tx.AddLateSecret(ctx, r.WebhookID, version, sealed, now, until); err != nil {
				return err
			}
			return p.queue.reverify(ctx, tx, r.WebhookID)
		}
		if err := tx.AddSecret(ctx, r.WebhookID, version, sealed, now, until); err != nil {
			return err
		}
		return p.secretStored(ctx, tx, r.ID, version)
	})
	if err != nil {
		return fmt.Errorf("store the new secret of webhook %d: %w", r.WebhookID, err)
	}
	p.mode.forget()
	p.log.InfoContext(ctx, "webhook secret stored", slog.Int64("webhook_id", r.WebhookID), slog.Int64("rotation_id", r.ID), slog.Bool("late", late))
	if known > 0 {
		p.log.WarnContext(ctx, "the vendor's new webhook secret is an old one", slog.Int64("webhook_id", r.WebhookID), slog.Int("version", known))
	}
	return nil
}

// knownFacts is a new version of a secret that is the same as an older one.
type knownFacts struct {
	Version int `json:"version"`
	SameAs  int `json:"same_as"`
}

// noteKnown returns which version of the webhook's secret the vendor's new one
// is the same as, 0 when it is new, and writes that down. Such a secret is stored
// all the same, as it is what the vendor signs with; but who knew the old one
// knows this one too, which an emergency was to end.
func (p *Pipeline) noteKnown(ctx context.Context, tx store.Tx, r *store.Rotation, version int, secret geonode.Secret) (int, error) {
	rows, err := tx.Secrets(ctx, r.WebhookID, time.Time{}) // Those that have ended too.
	if err != nil {
		return 0, err
	}
	for _, old := range rows {
		if !old.ValidFrom.Before(r.StartedAt) {
			continue // A late answer to an earlier call of this rotation: new, too.
		}
		plain, err := p.sealer.open(secretPlace(r.WebhookID, old.Version), old.Sealed)
		if err != nil || subtle.ConstantTimeCompare(plain, []byte(secret.Reveal())) == 0 {
			continue // One that can't be opened must not keep the new one from being stored.
		}
		return old.Version, tx.Audit(ctx, p.now(), store.Change{
			What: "webhook.secret_repeated", Kind: "webhook", ID: strconv.FormatInt(r.WebhookID, 10),
			After: knownFacts{Version: version, SameAs: old.Version},
		})
	}
	return 0, nil
}

// secretStored is what belongs to the storing: the webhook is what it was, and
// in an emergency the older secrets end.
func (p *Pipeline) secretStored(ctx context.Context, tx store.Tx, id int64, version int) error {
	r, err := tx.Rotation(ctx, id) // A press may have made it an emergency during the call.
	if err != nil {
		return err
	}
	if _, err := tx.SettleWebhook(ctx, r.WebhookID, r.WebhookWas, p.now()); err != nil {
		return err
	}
	if !r.Emergency {
		return nil
	}
	return p.endOlder(ctx, tx, r, version)
}

// endOlder ends every secret older than the version at once.
func (p *Pipeline) endOlder(ctx context.Context, tx store.Tx, r *store.Rotation, version int) error {
	if _, err := tx.EndSecrets(ctx, r.WebhookID, version, p.now()); err != nil {
		return err
	}
	return tx.NoteOlderEnded(ctx, r.ID, p.now())
}

// rotateFailed ends a call that brought no secret. When the vendor may have
// made one all the same, the next call makes another; when it certainly has
// not, the old one is still good.
func (p *Pipeline) rotateFailed(ctx context.Context, r *store.Rotation, w *store.Webhook, cause error) error {
	wait, account, err := p.gates.failed(ctx, store.GateSubmit, cause)
	if err != nil {
		return err
	}
	if p.unknownThere(ctx, r, w, cause) {
		return p.failRotation(ctx, r, store.WebhookGone, cause)
	}
	lost := geonode.CertaintyOf(cause) == geonode.Unknown
	if !lost && !account && p.rotateHopeless(r, cause) {
		return p.failRotation(ctx, r, r.WebhookWas, cause)
	}
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.LockWebhook(ctx, r.WebhookID); err != nil { // First, as a press does.
			return err
		}
		freed, err := tx.FreeRotation(ctx, r.ID, r.Attempt, lost, said(cause))
		if err != nil || !freed || !lost {
			return err
		}
		_, err = tx.MoveWebhook(ctx, r.WebhookID, store.WebhookRotating, store.WebhookSecretUnknown, p.now())
		return err
	})
	if err != nil {
		return err
	}
	p.log.WarnContext(ctx, "webhook secret not rotated, trying again", slog.Int64("webhook_id", r.WebhookID),
		slog.Bool("answer_lost", lost), slog.Any("error", cause))
	if !account {
		gap := doubling(rotateGap, rotateGapMax, r.Attempt-1)
		wait = gap/2 + jitter(gap/2)
	}
	return river.JobSnooze(wait)
}

// unknownThere reports that the vendor does not know a webhook any more: it
// said so, and its list says the same. A 404 alone may come from anywhere on
// the way, and a secret that nobody saw must not be left in use for it.
func (p *Pipeline) unknownThere(ctx context.Context, r *store.Rotation, w *store.Webhook, cause error) bool {
	if !errors.Is(cause, geonode.ErrNotFound) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, rotateLook)
	defer cancel()
	there, err := p.lookUp(ctx, *w.VendorWebhookID)
	if err != nil {
		return r.Lost > 0 && p.now().Sub(r.StartedAt) > rotateGiveUp
	}
	return there == nil
}

// rotateHopeless reports a refusal that another try won't change, or one that
// has gone on for too long. While the vendor may sign with a secret nobody saw
// there is no giving up, unless it does not know the webhook any more.
func (p *Pipeline) rotateHopeless(r *store.Rotation, cause error) bool {
	e, ok := errors.AsType[*geonode.Error](cause)
	forGood := ok && !e.Retryable() || p.now().Sub(r.StartedAt) > rotateGiveUp
	return forGood && r.Lost == 0
}

// failRotation gives a rotation up that the vendor refused: the old secret is
// still the one it signs with, if there is a webhook.
func (p *Pipeline) failRotation(ctx context.Context, r *store.Rotation, is store.WebhookState, cause error) error {
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.LockWebhook(ctx, r.WebhookID); err != nil {
			return err
		}
		ended, err := tx.EndRotation(ctx, r.ID, store.RotationFailed, said(cause), p.now())
		if err != nil || !ended {
			return err
		}
		if _, err := tx.SettleWebhook(ctx, r.WebhookID, is, p.now()); err != nil {
			return err
		}
		// What was answered 503 meanwhile may be looked at like any other.
		return p.queue.reverify(ctx, tx, r.WebhookID)
	})
	p.mode.forget()
	p.log.WarnContext(ctx, "webhook secret not rotated", slog.Int64("webhook_id", r.WebhookID), slog.Any("error", cause))
	return err
}

// said is what the vendor said, for people; what went wrong on the way is said
// in our words.
func said(cause error) string {
	if errors.Is(cause, ErrNotRotatable) {
		return ErrNotRotatable.Error()
	}
	if e, ok := errors.AsType[*geonode.Error](cause); ok && e.Message != "" {
		return clip(maskEndpoints(store.CleanText(e.Message)), keptText)
	}
	if geonode.CertaintyOf(cause) == geonode.Unknown {
		return "the answer was lost"
	}
	return "the vendor did not do it"
}
