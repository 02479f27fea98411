package pipeline

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"time"

	"rollcall/store"
)

// Disowned counts what went with a key that is lost.
type Disowned struct {
	Secrets  int     `json:"secrets"`  // Versions of webhook secrets.
	Webhooks []int64 `json:"webhooks"` // Those whose secret must be rotated.
	Headers  int     `json:"headers"`  // Batches' and checks' custom headers.
}

// ErrKeyFits reports that nothing is lost: the key opens what is stored.
var ErrKeyFits = errors.New("this key opens what is stored, so nothing is lost and nothing was changed")

// errHeadersLost reports custom headers that went with the key they were sealed with.
var errHeadersLost error = headersLostError{}

// headersLostError is an ErrSealed that says it in a person's words.
type headersLostError struct{}

func (headersLostError) Error() string {
	return "its custom headers were sealed with a key that is lost, and it isn't sent without them"
}

// Is implements what errors.Is asks for.
func (headersLostError) Is(target error) bool { return target == ErrSealed }

// Disown begins anew with another key where the one that sealed the database is lost. Webhook secrets end, and their
// webhooks are marked as those whose secret nobody knows: what arrives is answered 503 and kept until the secret is
// rotated. A batch whose custom headers are lost is never sent without them. It is one transaction; the store must have
// one connection only.
func Disown(ctx context.Context, s *store.Store, newKey []byte, now time.Time) (Disowned, error) {
	done := Disowned{Webhooks: []int64{}}
	key, err := newSealer(newKey)
	if err != nil {
		return done, err
	}
	r := rekeying{after: key, now: now}
	err = s.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := holdSealed(ctx, tx); err != nil {
			return err
		}
		if err := r.beginAnew(ctx, tx); err != nil {
			return err
		}
		if done.Secrets, err = r.secrets(ctx, tx); err != nil {
			return err
		}
		if done.Headers, err = r.headers(ctx, tx); err != nil {
			return err
		}
		if done.Webhooks, err = r.endSecrets(ctx, tx); err != nil {
			return err
		}
		return tx.Audit(ctx, now, store.Change{What: "secrets.begin_anew", Kind: "secrets", After: done})
	})
	if err != nil {
		return Disowned{}, fmt.Errorf("begin anew with another key: %w", err)
	}
	return done, nil
}

// beginAnew has servers know the new key as the database's.
func (r rekeying) beginAnew(ctx context.Context, tx store.Tx) error {
	fits, err := r.fits(ctx, tx)
	if err != nil {
		return err
	}
	if fits {
		return ErrKeyFits
	}
	sealed := r.after.seal(keyCheck, []byte(keyCheck))
	_, err = tx.ReplaceSetting(ctx, keyCheck, base64.StdEncoding.EncodeToString(sealed), r.now)
	return err
}

// fits reports whether the new key opens what is stored. The text that a server keeps for that tells it at once; a
// database that no server ran on has none, and there every value is tried.
func (r rekeying) fits(ctx context.Context, tx store.Tx) (bool, error) {
	kept, err := tx.Setting(ctx, keyCheck)
	if err != nil {
		return false, err
	}
	if kept != "" {
		raw, err := base64.StdEncoding.DecodeString(kept)
		if err != nil {
			return false, err
		}
		_, err = r.after.open(keyCheck, raw)
		return err == nil, nil // That it does not open is the answer.
	}
	try := rekeying{before: r.after, after: r.after, now: r.now}
	_, err = try.secrets(ctx, tx)
	if err == nil {
		_, err = try.headers(ctx, tx)
	}
	if errors.Is(err, ErrSealed) {
		return false, nil
	}
	return err == nil, err
}

// endSecrets ends every version, and returns the webhooks that have to be rotated.
func (r rekeying) endSecrets(ctx context.Context, tx store.Tx) ([]int64, error) {
	left := []int64{}
	hooks, err := tx.Webhooks(ctx)
	if err != nil {
		return left, err
	}
	for _, w := range hooks {
		ended, err := tx.EndSecrets(ctx, w.ID, math.MaxInt32, r.now)
		if err != nil {
			return left, err
		}
		if ended == 0 || w.State == store.WebhookRegistering || w.State == store.WebhookGone || w.State == store.WebhookRemoved {
			continue
		}
		left = append(left, w.ID)
		if w.State == store.WebhookRotating || w.State == store.WebhookSecretUnknown {
			continue // A change is under way, or has come to nothing before.
		}
		if _, err := tx.MoveWebhook(ctx, w.ID, w.State, store.WebhookSecretUnknown, r.now); err != nil {
			return left, err
		}
	}
	return left, nil
}
