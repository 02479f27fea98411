package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// sendURL is a tiny page that is always there, the sandbox's one that no fault
// of its own keeps from being fetched.
func (s *Server) sendURL() string {
	if s.cfg.Sandbox {
		return "https://shop.sandbox.test/steady/1"
	}
	return "https://example.com/"
}

// sendWhat is the job that "send me one" submits, in words; "" for an event
// that none is known of.
func sendWhat(ctx context.Context, event string) string {
	switch event {
	case "extract_completed":
		return views.Textf(ctx, "one extract job")
	case "batch_completed":
		return views.Textf(ctx, "a batch of one URL")
	case "crawl_completed":
		return views.Textf(ctx, "a crawl of one page")
	}
	return ""
}

// sendOne is POST /webhooks/{id}/send.
func (s *Server) sendOne(c echo.Context) error {
	w, err := s.hookParam(c)
	if err != nil {
		return err
	}
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	by := personOf(c).ID
	done, err := s.pipeline.SendOne(c.Request().Context(), w.ID, field(c, "url", maxTypedURL), &by)
	wrong := ""
	if refused, ok := errors.AsType[*pipeline.WebhookError](err); ok {
		wrong = refused.Text
	}
	if invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err); ok {
		wrong = oneLineErrors(c.Request().Context(), invalid)["urls"]
		if wrong == "" {
			wrong = invalid.Error()
		}
	}
	if wrong != "" {
		return s.showWebhook(c, http.StatusUnprocessableEntity, w, typedWebhook(c, "url", wrong))
	}
	if err != nil {
		return fmt.Errorf("send one: %w", err)
	}
	return c.Redirect(http.StatusSeeOther, sentPath(w.ID, done.BatchID))
}

func sentPath(webhook, batch int64) string { return webhookPage(webhook) + "/sent/" + idText(batch) }

// sentParams are the webhook and the batch that the path names.
func (s *Server) sentParams(c echo.Context) (*store.Webhook, int64, error) {
	w, err := s.hookParam(c)
	if err != nil {
		return nil, 0, err
	}
	text := c.Param("batch")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 || strconv.FormatInt(id, 10) != text {
		return nil, 0, notFound()
	}
	return w, id, nil
}

// sentOne is GET /webhooks/{id}/sent/{batch}: how far the job has come.
func (s *Server) sentOne(c echo.Context) error {
	w, batch, err := s.sentParams(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	trail, err := s.trailOf(ctx, w, batch)
	if err != nil {
		return err
	}
	props := views.SentProps{
		WebhookID: idText(w.ID), Event: w.EventType, BatchID: idText(batch), Hops: trail.hops(ctx), Live: !trail.ended(ctx),
		Self: sentPath(w.ID, batch), Ended: trail.pageEnd(),
	}
	if props.Layout, err = s.layout(c, "Send me one", views.SectionWebhooks); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.SentOne(props))
}

// sentLive is GET /webhooks/{id}/sent/{batch}/live.
func (s *Server) sentLive(c echo.Context) error {
	w, batch, err := s.sentParams(c)
	if err != nil {
		return err
	}
	return s.follow(c, batch, func(ctx context.Context) (string, bool, error) {
		trail, err := s.trailOf(ctx, w, batch)
		if err != nil {
			return "", false, err
		}
		var stamp strings.Builder
		for _, hop := range trail.hops(ctx) {
			fmt.Fprintf(&stamp, "%s %d %q %q %q\n", hop.State, hop.At.UnixNano(), hop.Detail, hop.Path, hop.Reasons)
		}
		return stamp.String(), trail.ended(ctx), nil
	})
}

// trailOf is what is known of a test's job. A batch that no test of such a
// webhook made has no such page.
func (s *Server) trailOf(ctx context.Context, w *store.Webhook, batch int64) (*trail, error) {
	job, err := s.store.PageTestJob(ctx, batch)
	if err != nil {
		return nil, err
	}
	if job.Name != pipeline.TestName(w.EventType) {
		return nil, notFound()
	}
	now, err := s.store.Webhook(ctx, w.ID) // It may have been paused meanwhile, which says much.
	if err != nil {
		return nil, err
	}
	t := &trail{hook: now, job: job, now: s.now(), address: s.endpointsAt()}
	t.came, t.refused, err = s.store.PageTestDeliveries(ctx, w.ID, job.VendorJobID, job.CreatedAt)
	return t, err
}
