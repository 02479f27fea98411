package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"rollcall/store"
)

// endpoint is a webhook with its opened secrets, as a delivery is checked
// against it.
type endpoint struct {
	webhook  *store.Webhook
	versions []openSecret
	readAt   time.Time
}

type openSecret struct {
	version int
	secret  string
	until   time.Time // Zero: no end.
}

// Bounds of the cache.
const (
	secretsFresh  = 500 * time.Millisecond // A new secret is in use everywhere within a second.
	maxEndpoints  = 64                     // The vendor allows 10 subscriptions an account.
	endpointChars = 64
)

// secretCache keeps endpoints for a moment. A cached secret may accept; only a
// fresh read may refuse.
type secretCache struct {
	p     *Pipeline
	mu    sync.Mutex
	by    map[string]*endpoint
	noted map[int64]time.Time // When each webhook's use was last written down.
}

func newSecretCache(p *Pipeline) *secretCache {
	return &secretCache{p: p, by: map[string]*endpoint{}, noted: map[int64]time.Time{}}
}

// dueNote reports, once a second for each webhook, that its use is to be
// written down: a busy one would otherwise pay a statement for each delivery.
func (c *secretCache) dueNote(webhook int64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.noted[webhook]; ok && now.Sub(last) < time.Second {
		return false
	}
	if len(c.noted) >= maxEndpoints {
		clear(c.noted)
	}
	c.noted[webhook] = now
	return true
}

// get returns the endpoint, cached or fresh; store.ErrNotFound when there is
// none of that name.
func (c *secretCache) get(ctx context.Context, name string) (*endpoint, error) {
	c.mu.Lock()
	e := c.by[name]
	c.mu.Unlock()
	if e != nil && c.p.now().Sub(e.readAt) < secretsFresh {
		return e, nil
	}
	return c.fresh(ctx, name)
}

// fresh reads the endpoint now.
func (c *secretCache) fresh(ctx context.Context, name string) (*endpoint, error) {
	if name == "" || len(name) > endpointChars {
		return nil, store.ErrNotFound
	}
	w, err := c.p.store.WebhookByEndpoint(ctx, name)
	if err != nil {
		if errors.Is(err, store.ErrNotFound) {
			c.forget(name)
		}
		return nil, err
	}
	e, err := c.open(ctx, w)
	if err != nil {
		return nil, err
	}
	c.keep(name, e)
	return e, nil
}

// open reads the secrets of a webhook that are good now.
func (c *secretCache) open(ctx context.Context, w *store.Webhook) (*endpoint, error) {
	now := c.p.now()
	rows, err := c.p.store.Secrets(ctx, w.ID, now)
	if err != nil {
		return nil, fmt.Errorf("secrets of webhook %d: %w", w.ID, err)
	}
	e := &endpoint{webhook: w, readAt: now}
	for _, r := range rows {
		plain, err := c.p.sealer.open(secretPlace(w.ID, r.Version), r.Sealed)
		if err != nil {
			return nil, err
		}
		one := openSecret{version: r.Version, secret: string(plain)}
		if r.ValidUntil != nil {
			one.until = *r.ValidUntil
		}
		e.versions = append(e.versions, one)
	}
	return e, nil
}

func (c *secretCache) keep(name string, e *endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.by) >= maxEndpoints {
		clear(c.by)
	}
	c.by[name] = e
}

func (c *secretCache) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, name)
}

// verify finds the secret version and form that made the signature.
func (e *endpoint) verify(r signedRequest, s SignatureSettings, now time.Time) (int, form, bool) {
	choices := s.choices(e.webhook.SignatureForm)
	for _, v := range e.versions {
		if !v.until.IsZero() && !v.until.After(now) {
			continue
		}
		if f, ok := verify(r, v.secret, choices); ok {
			return v.version, f, true
		}
	}
	return 0, form{}, false
}
