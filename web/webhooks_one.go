package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// hookParam is the webhook that the path names; a removed one is none.
func (s *Server) hookParam(c echo.Context) (*store.Webhook, error) {
	id, err := idParam(c)
	if err != nil {
		return nil, err
	}
	w, err := s.store.Webhook(c.Request().Context(), id)
	if err != nil {
		return nil, err
	}
	if w.State == store.WebhookRemoved {
		return nil, notFound()
	}
	return w, nil
}

// webhookOne is GET /webhooks/{id}.
func (s *Server) webhookOne(c echo.Context) error {
	w, err := s.hookParam(c)
	if err != nil {
		return err
	}
	return s.showWebhook(c, http.StatusOK, w, nil)
}

// showWebhook is the page of one webhook; typed puts back what a form held.
func (s *Server) showWebhook(c echo.Context, status int, w *store.Webhook, typed func(*views.WebhookProps)) error {
	rows, err := s.webhookRows(c.Request().Context(), []store.Webhook{*w}, versionsShown)
	if err != nil {
		return err
	}
	_, fixed := s.pipeline.FormInUse(w.SignatureForm)
	props := views.WebhookProps{
		Webhook: rows[0], Since: w.StateAt, CheckedAt: orZero(w.CheckedAt), Description: w.Description, FormFixed: fixed,
		Points: formPoints(rows[0].Form), SendURL: s.sendURL(), SendWhat: sendWhat(c.Request().Context(), w.EventType),
	}
	if props.Counted, err = s.refusedCounts(c.Request().Context(), w.ID); err != nil {
		return err
	}
	if typed != nil {
		typed(&props)
	}
	if props.Layout, err = s.layout(c, views.Textf(c.Request().Context(), "Webhook for %s", w.EventType), views.SectionWebhooks); err != nil {
		return err
	}
	return render(c, status, views.Webhook(props))
}

// formPoints are the points of a signature's form, with the values in use; of
// one that isn't fixed, with none.
func formPoints(form string) []views.FormPoint {
	values := strings.Split(form, " ")
	var points []views.FormPoint
	for i, each := range pipeline.SignaturePoints() {
		point := views.FormPoint{Name: each.Name, Text: each.Text, Values: each.Values}
		if len(values) == len(pipeline.SignaturePoints()) {
			point.Current = values[i]
		}
		points = append(points, point)
	}
	return points
}

// changeWebhook has do change the webhook that the path names and says on its
// page what came of it, or why nothing did.
func (s *Server) changeWebhook(c echo.Context, done string, do func(context.Context, int64) error) error {
	w, err := s.hookParam(c)
	if err != nil {
		return err
	}
	err = do(c.Request().Context(), w.ID)
	if refused, ok := errors.AsType[*pipeline.WebhookError](err); ok {
		return s.leaveNote(c, "danger", refused.Text, webhookPage(w.ID))
	}
	if err != nil {
		return fmt.Errorf("change webhook %d: %w", w.ID, err)
	}
	return s.leaveNote(c, "success", done, webhookPage(w.ID))
}

// pauseWebhook is POST /webhooks/{id}/pause.
func (s *Server) pauseWebhook(c echo.Context) error {
	return s.changeWebhook(c, "Paused. Jobs come home by polling until it is resumed.", s.pipeline.PauseWebhook)
}

// resumeWebhook is POST /webhooks/{id}/resume.
func (s *Server) resumeWebhook(c echo.Context) error {
	return s.changeWebhook(c, "Resumed. The vendor delivers to it again.", s.pipeline.ResumeWebhook)
}

// repairWebhook is POST /webhooks/{id}/repair.
func (s *Server) repairWebhook(c echo.Context) error {
	return s.changeWebhook(c, "Repaired. It is at the vendor as it should be: send one to see that it works.", s.pipeline.RepairWebhook)
}

// removeWebhook is POST /webhooks/{id}/remove. A second press finds it removed.
func (s *Server) removeWebhook(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	w, err := s.store.Webhook(c.Request().Context(), id)
	if err != nil {
		return err
	}
	err = s.pipeline.RemoveWebhook(c.Request().Context(), w.ID)
	if refused, ok := errors.AsType[*pipeline.WebhookError](err); ok {
		return s.leaveNote(c, "danger", refused.Text, webhookPage(w.ID))
	}
	// Not found: somebody else removed it meanwhile.
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("remove webhook %d: %w", w.ID, err)
	}
	text := views.Textf(c.Request().Context(), "The webhook for %s is removed, here and at the vendor.", w.EventType)
	return s.leaveNote(c, "success", text, webhooksPath)
}

// describeWebhook is POST /webhooks/{id}/describe.
func (s *Server) describeWebhook(c echo.Context) error {
	return s.formOfWebhook(c, func(ctx context.Context, w *store.Webhook) error {
		return s.pipeline.DescribeWebhook(ctx, w.ID, field(c, "description", 2000))
	}, "The description is changed, here and at the vendor.")
}

// formWebhook is POST /webhooks/{id}/form: to=auto, or to=this and the points.
func (s *Server) formWebhook(c echo.Context) error {
	return s.formOfWebhook(c, func(ctx context.Context, w *store.Webhook) error {
		if field(c, "to", 10) == "auto" {
			return s.pipeline.SetSignatureForm(ctx, w.ID, "")
		}
		return s.pipeline.SetSignatureForm(ctx, w.ID, typedForm(c))
	}, "The signature form is set. Every process follows within a second.")
}

// typedForm is the form that the drop-downs name.
func typedForm(c echo.Context) string {
	var parts []string
	for _, each := range pipeline.SignaturePoints() {
		parts = append(parts, field(c, each.Name, 50))
	}
	return strings.Join(parts, " ")
}

// formOfWebhook carries out a form of a webhook's page. What was wrong with
// what was typed brings the page back with it.
func (s *Server) formOfWebhook(c echo.Context, do func(context.Context, *store.Webhook) error, done string) error {
	w, err := s.hookParam(c)
	if err != nil {
		return err
	}
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	err = do(c.Request().Context(), w)
	if refused, ok := errors.AsType[*pipeline.WebhookError](err); ok {
		return s.showWebhook(c, http.StatusUnprocessableEntity, w, typedWebhook(c, refused.Field, refused.Text))
	}
	if err != nil {
		return fmt.Errorf("change webhook %d: %w", w.ID, err)
	}
	return s.leaveNote(c, "success", done, webhookPage(w.ID))
}

// typedWebhook puts back what a form of a webhook's page held, with what was
// wrong with it.
func typedWebhook(c echo.Context, name, wrong string) func(*views.WebhookProps) {
	switch name {
	case "":
		name = "form" // The page's own word for what is about no field.
	case "form":
		name = "signed"
	}
	return func(p *views.WebhookProps) {
		p.Errors = views.Errors{name: wrong}
		r := c.Request()
		form := r.PostForm
		if form.Has("description") {
			p.Description = field(c, "description", 2000)
		}
		if form.Has("url") {
			p.SendURL = field(c, "url", maxTypedURL)
		}
		if form.Has("signed") {
			p.Points = formPoints(typedForm(c))
		}
	}
}
