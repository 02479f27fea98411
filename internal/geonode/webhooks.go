package geonode

import (
	"context"
	"net/http"
)

// EventType is what a webhook tells of.
type EventType string

// The published events. None tells of a failure or a cancellation.
const (
	EventExtractCompleted EventType = "extract_completed"
	EventBatchCompleted   EventType = "batch_completed"
	EventCrawlCompleted   EventType = "crawl_completed"
)

// MaxWebhooks is how many subscriptions an account can have.
const MaxWebhooks = 10

// Webhook is one subscription: one URL, one event type.
type Webhook struct {
	Reply       Reply  `json:"-"`
	ID          string `json:"id"`
	URL         string `json:"url"`
	Description string `json:"description"`
	// IsActive is nil when the vendor didn't say.
	IsActive  *bool     `json:"is_active"`
	EventType EventType `json:"event_type"`
	CreatedAt Timestamp `json:"created_at"`
	UpdatedAt Timestamp `json:"updated_at"`
	// Secret is sent when the webhook is created, and never again.
	Secret Secret `json:"secret"`
}

// Inactive is true when the vendor said that the webhook is paused.
func (w *Webhook) Inactive() bool { return w.IsActive != nil && !*w.IsActive }

// WebhookCreate asks for a subscription.
type WebhookCreate struct {
	URL       string    `json:"url"`
	EventType EventType `json:"event_type"`
	// Description is left out when empty.
	Description string `json:"description,omitempty"`
}

// WebhookUpdate changes a subscription; nil members stay as they are.
type WebhookUpdate struct {
	URL         *string    `json:"url,omitempty"`
	Description *string    `json:"description,omitempty"`
	IsActive    *bool      `json:"is_active,omitempty"`
	EventType   *EventType `json:"event_type,omitempty"`
}

// WebhookList is a page of the subscriptions; it never holds a secret.
type WebhookList struct {
	Reply Reply
	ListPage
	Items []Webhook
}

// CreateWebhook subscribes. The answer holds the secret: store it before anything else.
// A 2xx without a usable id or secret is ErrMalformed, and the webhook exists all the
// same: find it by URL and rotate.
func (c *Client) CreateWebhook(ctx context.Context, r WebhookCreate) (*Webhook, error) {
	var bad error
	if r.URL == "" || r.EventType == "" {
		bad = wrongParam("url and event type are needed")
	}
	out, err := c.webhook(ctx, call{
		op: "create webhook", method: http.MethodPost, path: []string{"v1", "webhooks"},
		body: r, check: bad, timeout: c.cfg.Timeouts.Submit, secret: true,
	}, "")
	if err == nil && out.Secret == "" {
		return nil, &Error{Op: "create webhook", Status: out.Reply.Status, Date: out.Reply.Date, err: malformed("no secret")}
	}
	return out, err
}

// GetWebhook reads one subscription.
func (c *Client) GetWebhook(ctx context.Context, id string) (*Webhook, error) {
	return c.webhook(ctx, call{
		op: "get webhook", method: http.MethodGet, path: []string{"v1", "webhooks", id},
		check: pathID(id), timeout: c.cfg.Timeouts.List, secret: true,
	}, id)
}

// UpdateWebhook changes one subscription and gives it as it is now.
func (c *Client) UpdateWebhook(ctx context.Context, id string, u WebhookUpdate) (*Webhook, error) {
	return c.webhook(ctx, call{
		op: "update webhook", method: http.MethodPatch, path: []string{"v1", "webhooks", id},
		body: u, check: pathID(id), timeout: c.cfg.Timeouts.Submit, secret: true,
	}, id)
}

// webhook makes a call that answers with one subscription, whose id must be asked if
// that isn't empty.
func (c *Client) webhook(ctx context.Context, in call, asked string) (*Webhook, error) {
	out := new(Webhook)
	reply, err := c.do(ctx, in, func(b []byte) error {
		if _, err := decodeObject(b, out); err != nil {
			return err
		}
		if asked == "" {
			return checkAccepted(out.ID)
		}
		return checkID(asked, out.ID)
	})
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}

// DeleteWebhook removes a subscription.
func (c *Client) DeleteWebhook(ctx context.Context, id string) (Reply, error) {
	return c.do(ctx, call{
		op: "delete webhook", method: http.MethodDelete, path: []string{"v1", "webhooks", id},
		check: pathID(id), timeout: c.cfg.Timeouts.Submit,
	}, nil)
}

// RotateSecret replaces a webhook's secret. The old one is dead before the answer
// arrives; when the answer is lost, rotate again.
func (c *Client) RotateSecret(ctx context.Context, id string) (Secret, Reply, error) {
	var out struct {
		Secret Secret `json:"secret"`
	}
	reply, err := c.do(ctx, call{
		op: "rotate secret", method: http.MethodPost, path: []string{"v1", "webhooks", id, "rotate-secret"},
		check: pathID(id), timeout: c.cfg.Timeouts.Submit, secret: true,
	}, func(b []byte) error {
		_, err := decodeObject(b, &out)
		if err == nil && out.Secret == "" {
			err = malformed("no secret")
		}
		return err
	})
	if err != nil {
		return "", reply, err
	}
	return out.Secret, reply, nil
}

// ListWebhooks reads a page of the subscriptions; of the parameters only Page and
// PageSize mean something.
func (c *Client) ListWebhooks(ctx context.Context, p ListParams) (*WebhookList, error) {
	q, err := pageQuery(p.Page, p.PageSize, MaxListPage)
	out := new(WebhookList)
	reply, err := c.do(ctx, call{
		op: "list webhooks", method: http.MethodGet, path: []string{"v1", "webhooks"},
		query: q, check: err, timeout: c.cfg.Timeouts.List, secret: true,
	}, func(b []byte) error {
		page, items, err := decodeItems(b, func(w Webhook) string { return w.ID })
		out.ListPage, out.Items = page, items
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}

// decodeItems reads a list of webhooks or deliveries.
func decodeItems[T any](b []byte, id func(T) string) (ListPage, []T, error) {
	var wire struct {
		ListPage
		Items Rows[row[T]] `json:"items"`
	}
	if _, err := decodeObject(b, &wire); err != nil {
		return ListPage{}, nil, err
	}
	if err := needRows("items", wire.Items); err != nil {
		return ListPage{}, nil, err
	}
	items, bad := keepRows(wire.Items, id)
	wire.Unreadable = bad
	return wire.ListPage, items, nil
}
