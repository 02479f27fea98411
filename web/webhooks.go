package web

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/views"
)

// webhooks is GET /webhooks.
func (s *Server) webhooks(c echo.Context) error {
	hooks, err := s.store.PageWebhooks(c.Request().Context())
	if err != nil {
		return fmt.Errorf("list webhooks: %w", err)
	}
	props := views.WebhooksProps{}
	if s.cfg.PublicURL != "" {
		props.Address = strings.TrimSuffix(s.cfg.PublicURL, "/") + webhookPrefix
	}
	for i := range hooks {
		h := &hooks[i]
		props.Webhooks = append(props.Webhooks, views.WebhookRow{
			ID: orZero(h.VendorWebhookID), Event: h.EventType, Address: maskedAddress(h.URL), State: hookState(h.State),
			CreatedAt: h.CreatedAt, LastDelivery: orZero(h.LastDeliveryAt),
		})
	}
	if props.Layout, err = s.layout(c, "Webhooks", views.SectionWebhooks); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Webhooks(props))
}

// maskedAddress hides most of the endpoint, as the log does.
func maskedAddress(address string) string {
	at := strings.Index(address, webhookPrefix)
	if at < 0 {
		return address
	}
	return address[:at] + maskedPath(address[at:])
}
