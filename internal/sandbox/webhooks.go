package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// hook is one webhook subscription. It is guarded by Sandbox.mu.
type hook struct {
	id, url     string
	description *string
	active      bool
	event       string
	created     stamp
	updated     stamp
	secret      string
	oldSecret   string
	untold      map[string]bool // Secrets whose answer was broken on purpose.
	deleted     bool
	refusals    int         // In a row.
	log         []*attempt  // In the order of creation.
	kept        []*delivery // Events held while it is paused.
}

// maxLog is how many rows of the delivery log are kept per webhook; the oldest go first.
const maxLog = 20_000

// eventTypes are the events there are, one for each kind of job.
func eventTypes() []string {
	return []string{"extract_completed", "batch_completed", "crawl_completed"}
}

// webhookRequest is WebhookCreateRequest and WebhookUpdateRequest.
type webhookRequest struct {
	URL         *string `json:"url"`
	EventType   *string `json:"event_type"`
	Description *string `json:"description"`
	IsActive    *bool   `json:"is_active"`
}

// check looks at the members that are there.
func (r webhookRequest) check() error {
	if r.URL != nil {
		if err := checkURL(*r.URL); err != nil {
			return invalid("url_parsing", "Input should be a valid URL: "+err.Error(), "body", "url")
		}
	}
	if r.EventType != nil && !slices.Contains(eventTypes(), *r.EventType) {
		return invalid("enum", "Input should be one of: "+strings.Join(eventTypes(), ", "), "body", "event_type")
	}
	return nil
}

// createWebhook is POST /v1/webhooks.
func (s *Sandbox) createWebhook(c *call) (reply, error) {
	var req webhookRequest
	if err := decode(c.body, &req); err != nil {
		return reply{}, err
	}
	if req.URL == nil {
		return reply{}, invalid("missing", "A value is needed here", "body", "url")
	}
	if req.EventType == nil {
		return reply{}, invalid("missing", "A value is needed here", "body", "event_type")
	}
	if err := req.check(); err != nil {
		return reply{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(c.account.hooks) >= s.cfg.MaxWebhooks {
		return reply{}, errPlan(fmt.Sprintf("An account can have at most %d webhooks.", s.cfg.MaxWebhooks))
	}
	h := &hook{
		id: s.id("webhook"), url: *req.URL, description: req.Description, active: true, event: *req.EventType,
		secret: s.secret(),
	}
	h.created = s.dice.stampAt(s.clock(), "webhook", h.url, h.event)
	h.updated = h.created
	c.account.hooks = append(c.account.hooks, h)
	c.broken = s.untold(h, new(int))
	view := h.view()
	view.Secret = h.secret
	return reply{http.StatusCreated, view}, nil
}

// view is the webhook without its secret.
func (h *hook) view() wireWebhook {
	return wireWebhook{
		ID: h.id, URL: h.url, Description: h.description, IsActive: h.active, EventType: h.event, CreatedAt: h.created,
		UpdatedAt: h.updated,
	}
}

// listWebhooks is GET /v1/webhooks.
func (s *Sandbox) listWebhooks(c *call) (reply, error) {
	q := &query{values: c.r.URL.Query()}
	page, size := q.number("page", 1, 0), q.number("page_size", 100, 100)
	if q.err != nil {
		return reply{}, q.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]any, len(c.account.hooks))
	for i, h := range c.account.hooks {
		rows[i] = h.view()
	}
	return reply{http.StatusOK, itemsPage(rows, page, size)}, nil
}

// itemsPage cuts one page out of all rows.
func itemsPage(rows []any, page, size int) wireItems {
	from := min((page-1)*size, len(rows))
	return wireItems{
		Items: rows[from:min(from+size, len(rows))], Page: page, PageSize: size, PageCount: pageCount(len(rows), size),
	}
}

// withHook runs do under mu with the webhook that the path names.
func (s *Sandbox) withHook(c *call, do func(*hook) reply) (reply, error) {
	id := c.r.PathValue("webhook_id")
	if err := uuid.Validate(id); err != nil {
		return reply{}, invalid("uuid_parsing", "Input should be a valid UUID", "path", "webhook_id")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range c.account.hooks {
		if strings.EqualFold(h.id, id) {
			return do(h), nil
		}
	}
	return reply{}, errNotFound("webhook")
}

// getWebhook is GET /v1/webhooks/{webhook_id}.
func (s *Sandbox) getWebhook(c *call) (reply, error) {
	return s.withHook(c, func(h *hook) reply { return reply{http.StatusOK, h.view()} })
}

// updateWebhook is PATCH /v1/webhooks/{webhook_id}; null leaves a member as it is.
func (s *Sandbox) updateWebhook(c *call) (reply, error) {
	var req webhookRequest
	if err := decode(c.body, &req); err != nil {
		return reply{}, err
	}
	if err := req.check(); err != nil {
		return reply{}, err
	}
	return s.withHook(c, func(h *hook) reply {
		s.applyUpdate(h, req)
		return reply{http.StatusOK, h.view()}
	})
}

// applyUpdate changes the webhook. The caller holds mu.
func (s *Sandbox) applyUpdate(h *hook, req webhookRequest) {
	if req.URL != nil {
		h.url = *req.URL
	}
	if req.Description != nil {
		h.description = req.Description
	}
	if req.EventType != nil {
		h.event = *req.EventType
	}
	if req.IsActive != nil {
		h.active = *req.IsActive
		h.refusals = 0
	}
	h.updated = s.dice.stampAt(s.clock(), "updated", h.url)
	if h.active {
		for _, d := range h.kept {
			s.dispatch(d)
		}
		h.kept = nil
	}
}

// deleteWebhook is DELETE /v1/webhooks/{webhook_id}.
func (s *Sandbox) deleteWebhook(c *call) (reply, error) {
	return s.withHook(c, func(h *hook) reply {
		h.active, h.deleted, h.kept = false, true, nil
		c.account.hooks = slices.DeleteFunc(c.account.hooks, func(o *hook) bool { return o == h })
		return reply{status: http.StatusNoContent}
	})
}

// rotateWebhook is POST /v1/webhooks/{webhook_id}/rotate-secret. The old secret signs nothing from here on.
func (s *Sandbox) rotateWebhook(c *call) (reply, error) {
	return s.withHook(c, func(h *hook) reply {
		h.oldSecret, h.secret = h.secret, s.secret()
		s.sent.Rotations++
		c.broken = s.untold(h, &s.sent.SecretsUntold)
		h.updated = s.dice.stampAt(s.clock(), "rotated", h.url)
		return reply{http.StatusOK, wireSecret{Secret: h.secret}}
	})
}

// untold is what a broken answer means for a webhook's new secret, the last that was made: the client never saw it. What
// it returns is called with mu held and adds to a count. The caller holds mu.
func (s *Sandbox) untold(h *hook, count *int) func() {
	made := s.secrets[len(s.secrets)-1]
	return func() {
		if h.untold == nil {
			h.untold = map[string]bool{}
		}
		made.Untold, h.untold[made.Secret] = true, true
		*count++
	}
}

// listDeliveries is GET /v1/webhooks/{webhook_id}/deliveries.
func (s *Sandbox) listDeliveries(c *call) (reply, error) {
	q := &query{values: c.r.URL.Query()}
	page, size := q.number("page", 1, 0), q.number("page_size", 100, 100)
	status := q.one("status", attemptPending, attemptSuccess, attemptFailed, attemptAbandoned)
	if q.err != nil {
		return reply{}, q.err
	}
	return s.withHook(c, func(h *hook) reply {
		rows := []any{}
		for _, a := range ordered(s, h.log, func(a *attempt) string { return a.id + "#" + strconv.Itoa(a.number) }) {
			if status == "" || status == a.status {
				rows = append(rows, s.viewAttempt(a))
			}
		}
		return reply{http.StatusOK, itemsPage(rows, page, size)}
	})
}

// The states of delivery attempts.
const (
	attemptPending   = "pending"
	attemptSuccess   = "success"
	attemptFailed    = "failed"
	attemptAbandoned = "abandoned"
)

// attempt is one row of the delivery log.
type attempt struct {
	id, event, job string
	number         int
	status         string
	httpStatus     int
	created        stamp
	delivered      *stamp
}

// viewAttempt is an attempt as the log shows it. The caller holds mu.
func (s *Sandbox) viewAttempt(a *attempt) wireDelivery {
	row := wireDelivery{
		ID: a.id, EventType: a.event, AttemptNumber: a.number, Status: a.status, CreatedAt: a.created, DeliveredAt: a.delivered,
	}
	if !s.switches.LogWithoutJob {
		row.JobID = &a.job
	}
	if a.httpStatus != 0 {
		row.HTTPStatus = &a.httpStatus
	}
	return row
}

// open puts a new pending row into the log. The caller holds mu.
func (s *Sandbox) open(d *delivery, number int) *attempt {
	if s.switches.DeliveryIDPerAttempt && number > 1 {
		d.id = s.id("delivery")
	}
	a := &attempt{
		id: d.id, event: d.event, job: d.job.id, number: number, status: attemptPending,
		created: s.dice.stampAt(s.clock(), "attempt", d.key),
	}
	if d.stamp.IsZero() || s.switches.DeliveryIDPerAttempt {
		d.stamp = a.created
	}
	d.hook.log = append(d.hook.log, a)
	if over := len(d.hook.log) - maxLog; over > 0 {
		d.hook.log = slices.Delete(d.hook.log, 0, over)
	}
	return a
}

// settle notes how an attempt ended. The caller holds mu.
func (s *Sandbox) settle(a *attempt, status string, httpStatus int, at time.Time) {
	a.status, a.httpStatus = status, httpStatus
	if status == attemptSuccess {
		t := s.dice.stampAt(at, "delivered", a.id)
		a.delivered = &t
	}
}
