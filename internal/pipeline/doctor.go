package pipeline

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
)

// keyCheck is the setting that holds a known text, sealed by the first process
// that ran on the database.
const keyCheck = "secret_key_check"

// CheckKey reports ErrSealed when the secret key is not the one that this
// database's secrets and headers were sealed with. The first process that asks
// decides which one that is.
func (p *Pipeline) CheckKey(ctx context.Context) error {
	sealed := base64.StdEncoding.EncodeToString(p.sealer.seal(keyCheck, []byte(keyCheck)))
	kept, err := p.store.InitSetting(ctx, keyCheck, sealed, p.now())
	if err != nil {
		return fmt.Errorf("check the secret key: %w", err)
	}
	raw, err := base64.StdEncoding.DecodeString(kept)
	if err != nil {
		return fmt.Errorf("check the secret key: %w", err)
	}
	_, err = p.sealer.open(keyCheck, raw)
	return err
}

// CheckSecrets opens every webhook secret that is still good with the secret
// key, and returns an error for each that does not open: ErrSealed when the
// key is not the one it was sealed with.
func (p *Pipeline) CheckSecrets(ctx context.Context) error {
	hooks, err := p.store.Webhooks(ctx)
	if err != nil {
		return fmt.Errorf("look at the webhooks: %w", err)
	}
	var errs []error
	for _, w := range hooks {
		rows, err := p.store.Secrets(ctx, w.ID, p.now())
		if err != nil {
			return fmt.Errorf("secrets of webhook %d: %w", w.ID, err)
		}
		for _, r := range rows {
			if _, err := p.sealer.open(secretPlace(w.ID, r.Version), r.Sealed); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
