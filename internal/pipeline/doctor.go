package pipeline

import (
	"context"
	"errors"
	"fmt"
)

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
