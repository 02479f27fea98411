package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// What a vendor was asked for that answered that it has no webhooks.
const (
	askedToList     = "list"
	askedToRegister = "register"
)

// unavailableKey is the setting under which such an answer is kept.
const unavailableKey = "webhooks_unavailable"

// Unavailable is a vendor's answer that webhooks are not to be had on this
// account: plans and times differ in that. Everything works without them.
type Unavailable struct {
	At     time.Time `json:"at"`
	Asked  string    `json:"asked"`
	Status int       `json:"status"`
	Said   string    `json:"said"`
}

// Text says it in words for people.
func (u *Unavailable) Text() string {
	text := fmt.Sprintf("The vendor says that webhooks aren't available on this account (it answered %d", u.Status)
	if u.Said != "" {
		text += ": " + u.Said
	}
	return text + "). Nothing is lost by that: jobs come home by polling. The vendor is asked again with every reconcile run."
}

// WebhooksUnavailable is the answer that there are no webhooks, as long as it
// stands; nil when there is none.
func (p *Pipeline) WebhooksUnavailable(ctx context.Context) (*Unavailable, error) {
	text, err := p.store.Setting(ctx, unavailableKey)
	if err != nil || text == "" {
		return nil, err
	}
	u := new(Unavailable)
	if err := json.Unmarshal([]byte(text), u); err != nil {
		return nil, fmt.Errorf("read what the vendor said of webhooks: %w", err)
	}
	return u, nil
}

// saysUnavailable reports an answer that means that there are no webhooks. A
// key or a balance that is refused, and a busy vendor, say nothing of that.
func saysUnavailable(cause error) (*geonode.Error, bool) {
	e, ok := errors.AsType[*geonode.Error](cause)
	if !ok {
		return nil, false
	}
	switch e.Status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusNotImplemented:
		return e, true
	}
	return nil, false
}

// noteUnavailable keeps the answer when it says that there are no webhooks, and
// returns it; nil when it says something else.
func (p *Pipeline) noteUnavailable(ctx context.Context, cause error, asked string) (*Unavailable, error) {
	e, ok := saysUnavailable(cause)
	if !ok {
		return nil, nil //nolint:nilnil // It says something else.
	}
	u := &Unavailable{At: p.now(), Asked: asked, Status: e.Status, Said: clip(store.CleanText(e.Message), keptText)}
	text, err := json.Marshal(u)
	if err != nil {
		return nil, fmt.Errorf("keep what the vendor said of webhooks: %w", err)
	}
	before, err := p.WebhooksUnavailable(ctx)
	if err != nil {
		return nil, err
	}
	if before == nil {
		p.log.WarnContext(ctx, "vendor has no webhooks for this account", slog.String("asked", asked), slog.Int("status", e.Status))
	}
	if err := p.store.SetSetting(ctx, unavailableKey, string(text), u.At); err != nil {
		return nil, fmt.Errorf("keep what the vendor said of webhooks: %w", err)
	}
	p.mode.forget()
	return u, nil
}

// noteAvailable takes the answer back once the vendor lists its webhooks; with
// only, when it was the answer to that.
func (p *Pipeline) noteAvailable(ctx context.Context, only string) error {
	u, err := p.WebhooksUnavailable(ctx)
	if err != nil || u == nil || only != "" && u.Asked != only {
		return err
	}
	defer p.mode.forget()
	if err := p.store.SetSetting(ctx, unavailableKey, "", p.now()); err != nil {
		return fmt.Errorf("take back what the vendor said of webhooks: %w", err)
	}
	p.log.InfoContext(ctx, "webhooks are available", slog.Time("were_not_since", u.At))
	return nil
}
