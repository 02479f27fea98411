package geonode

import (
	"context"
	"net/http"
)

// DeliveryStatus is the state of a delivery attempt in the vendor's log.
type DeliveryStatus string

// The published states. Failed is one attempt that didn't succeed, abandoned is given up.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliverySuccess   DeliveryStatus = "success"
	DeliveryFailed    DeliveryStatus = "failed"
	DeliveryAbandoned DeliveryStatus = "abandoned"
)

// WebhookDelivery is a row of the vendor's delivery log. It holds no payload.
type WebhookDelivery struct {
	ID        string    `json:"id"`
	EventType EventType `json:"event_type"`
	// JobID is empty when the vendor didn't name a job.
	JobID string `json:"job_id"`
	// Attempt counts from 1.
	Attempt     Count          `json:"attempt_number"`
	Status      DeliveryStatus `json:"status"`
	HTTPStatus  Count          `json:"http_status"`
	DeliveredAt Timestamp      `json:"delivered_at"`
	CreatedAt   Timestamp      `json:"created_at"`
}

// DeliveryParams pick a page of the delivery log.
type DeliveryParams struct {
	// Page counts from 1; zero is 1.
	Page int
	// PageSize is 1 to MaxListPage; zero is MaxListPage.
	PageSize int
	// Status keeps rows of one state; empty keeps all.
	Status DeliveryStatus
}

// DeliveryList is a page of the delivery log.
type DeliveryList struct {
	Reply Reply
	ListPage
	Items []WebhookDelivery
}

// ListDeliveries reads a page of a webhook's delivery log.
func (c *Client) ListDeliveries(ctx context.Context, webhookID string, p DeliveryParams) (*DeliveryList, error) {
	q, err := pageQuery(p.Page, p.PageSize, MaxListPage)
	if err == nil && p.Status != "" {
		q.Set("status", string(p.Status))
	}
	out := new(DeliveryList)
	reply, err := c.do(ctx, call{
		op: "list deliveries", method: http.MethodGet, path: []string{"v1", "webhooks", webhookID, "deliveries"},
		query: q, check: firstError(pathID(webhookID), err), timeout: c.cfg.Timeouts.List,
	}, func(b []byte) error {
		page, items, err := decodeItems(b, func(d WebhookDelivery) string { return d.ID })
		out.ListPage, out.Items = page, items
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}
