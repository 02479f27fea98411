package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// webhooksPath is the settings page of the webhooks.
const webhooksPath = "/webhooks"

// Bounds of the pages about webhooks.
const (
	// askTime is how long a page waits for the vendor's list.
	askTime = 4 * time.Second
	// countTime is how long a page waits for counts of deliveries; they are a
	// dash after that.
	countTime = 2 * time.Second
	// secretsListed and versionsShown are how many of the newest secret versions
	// the list and a webhook's own page tell of.
	secretsListed = 2
	versionsShown = 20
)

// webhookKeeper is what the pages ask of the pipeline about webhooks. What
// can't be done is a *pipeline.WebhookError, in words for people.
type webhookKeeper interface {
	// RegisterWebhooks registers the event types that have no webhook.
	RegisterWebhooks(ctx context.Context) ([]*store.Webhook, error)
	// VendorWebhooks reads the vendor's list, within ctx's time.
	VendorWebhooks(ctx context.Context) (pipeline.AtVendor, error)
	// AdoptWebhook takes over one registered elsewhere, with its secret.
	AdoptWebhook(ctx context.Context, vendorID, secret string) (*store.Webhook, error)
	PauseWebhook(ctx context.Context, id int64) error
	ResumeWebhook(ctx context.Context, id int64) error
	RepairWebhook(ctx context.Context, id int64) error
	RemoveWebhook(ctx context.Context, id int64) error
	DescribeWebhook(ctx context.Context, id int64, description string) error
	// SetSignatureForm fixes a webhook's signature form; "" leaves it open.
	SetSignatureForm(ctx context.Context, id int64, form string) error
	// FormInUse is the form that a pinned one comes to under the settings, and
	// whether these decide it.
	FormInUse(pinned string) (string, bool)
	// SendOne submits the smallest job that makes the vendor deliver.
	SendOne(ctx context.Context, webhookID int64, url string, by *int64) (pipeline.Submitted, error)
}

// webhooks is GET /webhooks.
func (s *Server) webhooks(c echo.Context) error {
	ctx := c.Request().Context()
	hooks, err := s.store.PageWebhooks(ctx)
	if err != nil {
		return fmt.Errorf("list webhooks: %w", err)
	}
	props := views.WebhooksProps{Address: s.endpointsAt(), Missing: missingEvents(hooks)}
	if props.Webhooks, err = s.webhookRows(ctx, hooks, secretsListed); err != nil {
		return err
	}
	if props.Vendor, err = s.atVendor(ctx); err != nil {
		return err
	}
	if props.Layout, err = s.layout(c, "Webhooks", views.SectionWebhooks); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Webhooks(props))
}

// endpointsAt is what the addresses of our webhooks begin with; "" without a
// public address.
func (s *Server) endpointsAt() string {
	if s.cfg.PublicURL == "" {
		return ""
	}
	return strings.TrimSuffix(s.cfg.PublicURL, "/") + webhookPrefix
}

// missingEvents are the event types that a registration would add.
func missingEvents(hooks []store.Webhook) []string {
	var missing []string
	for _, event := range pipeline.EventTypes() {
		has := slices.ContainsFunc(hooks, func(w store.Webhook) bool {
			return w.EventType == event && w.State != store.WebhookGone && w.State != store.WebhookRegistering
		})
		if !has {
			missing = append(missing, event)
		}
	}
	return missing
}

// webhookRows are webhooks as the pages show them.
func (s *Server) webhookRows(ctx context.Context, hooks []store.Webhook, versions int) ([]views.WebhookRow, error) {
	ids := make([]int64, len(hooks))
	for i := range hooks {
		ids[i] = hooks[i].ID
	}
	uses, counted, err := s.secretUses(ctx, ids, versions)
	if err != nil {
		return nil, err
	}
	rows := make([]views.WebhookRow, len(hooks))
	for i := range hooks {
		row := s.webhookRow(&hooks[i])
		for k := range uses {
			if idText(uses[k].WebhookID) == row.ID {
				row.Secrets = append(row.Secrets, secretRow(&uses[k], counted, s.now()))
			}
		}
		rows[i] = row
	}
	return rows, nil
}

// secretUses are the newest secret versions of webhooks, and whether what they
// verified could be counted in time.
func (s *Server) secretUses(ctx context.Context, ids []int64, versions int) ([]store.SecretUse, bool, error) {
	counting, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	uses, err := s.store.PageSecrets(counting, ids, versions)
	if err == nil {
		return uses, true, nil
	}
	if counting.Err() == nil || ctx.Err() != nil {
		return nil, false, fmt.Errorf("count what the secrets verified: %w", err)
	}
	if uses, err = s.store.PageVersions(ctx, ids, versions); err != nil {
		return nil, false, fmt.Errorf("list secret versions: %w", err)
	}
	return uses, false, nil
}

func (s *Server) webhookRow(h *store.Webhook) views.WebhookRow {
	form, _ := s.pipeline.FormInUse(h.SignatureForm)
	return views.WebhookRow{
		ID: idText(h.ID), VendorID: orZero(h.VendorWebhookID), Event: h.EventType, Address: maskedAddress(h.URL), State: hookState(h.State),
		Form: form, CreatedAt: h.CreatedAt, LastDelivery: orZero(h.LastDeliveryAt), Adopted: h.Adopted,
		Elsewhere: s.cfg.PublicURL != "" && !strings.HasPrefix(h.URL, s.endpointsAt()),
	}
}

func secretRow(u *store.SecretUse, counted bool, now time.Time) views.SecretRow {
	row := views.SecretRow{
		Version: u.Version, From: u.ValidFrom, Until: orZero(u.ValidUntil), Ended: u.ValidUntil != nil && !u.ValidUntil.After(now),
		LastSeen: orZero(u.LastSeen),
	}
	if counted {
		row.Verified = capped(u.Verified)
	}
	return row
}

// atVendor asks the vendor for its list, for a moment only.
func (s *Server) atVendor(ctx context.Context) (views.WebhooksAtVendor, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	at, err := s.pipeline.VendorWebhooks(ctx)
	if err != nil {
		return views.WebhooksAtVendor{}, fmt.Errorf("look at the vendor's webhooks: %w", err)
	}
	out := views.WebhooksAtVendor{
		Asked: at.Asked, Trouble: at.Trouble, Unavailable: at.Unavailable, Most: views.Known(int64(at.Most)),
	}
	if at.Asked {
		out.Used = views.Known(int64(at.Used))
	}
	for _, v := range at.Foreign {
		out.Foreign = append(out.Foreign, views.ForeignWebhook{
			VendorID: v.ID, Event: v.Event, Address: plainAddress(v.URL), Description: v.Description, Inactive: v.Inactive, Here: v.Here,
			CreatedAt: v.CreatedAt,
		})
	}
	return out, nil
}

// maskedAddress hides most of the endpoint, as the log does.
func maskedAddress(address string) string {
	at := strings.Index(address, webhookPrefix)
	if at < 0 {
		return address
	}
	return address[:at] + maskedPath(address[at:])
}

// plainAddress is somebody else's address without what may be secret in it:
// their credentials and parameters.
func plainAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return clean(address, 500)
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return maskedAddress(u.String())
}

// registerWebhooks is POST /webhooks/register. A second press finds them made.
func (s *Server) registerWebhooks(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), time.Minute)
	defer cancel()
	hooks, err := s.pipeline.RegisterWebhooks(ctx)
	if refused, ok := errors.AsType[*pipeline.WebhookError](err); ok {
		return s.leaveNote(c, "danger", refused.Text, webhooksPath)
	}
	if err != nil {
		return fmt.Errorf("register webhooks: %w", err)
	}
	level, text := "success", "The three events are registered."
	for _, w := range hooks {
		switch w.State {
		case store.WebhookPaused:
			level, text = "info", views.Textf(ctx, "Every event has a webhook. The one for %s is paused.", w.EventType)
		case store.WebhookInactive, store.WebhookMoved:
			level, text = "warning", views.Textf(ctx, "Every event has a webhook. The one for %s needs a repair.", w.EventType)
		case store.WebhookRegistering, store.WebhookLive, store.WebhookRotating, store.WebhookSecretUnknown, store.WebhookGone, store.WebhookRemoved:
		}
	}
	return s.leaveNote(c, level, text, webhooksPath)
}

// leaveNote leaves a note and goes to the page that shows it.
func (s *Server) leaveNote(c echo.Context, level, text, path string) error {
	if err := s.flash(c, level, text); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, path)
}

// adoptPage is GET /webhooks/adopt?webhook=ID.
func (s *Server) adoptPage(c echo.Context) error {
	return s.showAdopt(c, http.StatusOK, views.AdoptProps{Picked: clean(c.QueryParam("webhook"), 200)})
}

func (s *Server) showAdopt(c echo.Context, status int, props views.AdoptProps) error {
	at, err := s.atVendor(c.Request().Context())
	if err != nil {
		return err
	}
	props.Foreign, props.Address = at.Foreign, s.endpointsAt()
	if !at.Asked {
		props.Trouble = at.Trouble
	}
	if props.Layout, err = s.layout(c, "Adopt a webhook", views.SectionWebhooks); err != nil {
		return err
	}
	return render(c, status, views.WebhookAdopt(props))
}

// adoptWebhook is POST /webhooks/adopt. The secret that was pasted is never
// shown again, not even when something else was wrong.
func (s *Server) adoptWebhook(c echo.Context) error {
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	picked := field(c, "webhook", 200)
	w, err := s.pipeline.AdoptWebhook(c.Request().Context(), picked, c.Request().PostFormValue("secret"))
	if refused, ok := errors.AsType[*pipeline.WebhookError](err); ok {
		name := refused.Field
		if name == "" {
			name = "form"
		}
		return s.showAdopt(c, http.StatusUnprocessableEntity, views.AdoptProps{Picked: picked, Errors: views.Errors{name: refused.Text}})
	}
	if err != nil {
		return fmt.Errorf("adopt a webhook: %w", err)
	}
	text := "Adopted. Its deliveries come here now: send one to see that the secret is right."
	if w.State == store.WebhookPaused {
		text = "Adopted. It is switched off at the vendor, and stays so until you resume it."
	}
	return s.leaveNote(c, "success", text, webhookPage(w.ID))
}

func webhookPage(id int64) string { return webhooksPath + "/" + idText(id) }
