package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

const (
	checkPath = "/webhooks/check"
	// checkLimit bounds the form: a body of JSON triples when a form carries it.
	checkLimit = 3*pipeline.CheckedBody + formLimit
	// longestSecret is the longest that is looked at.
	longestSecret = 500
	// countedFor is how far back the counts of refused deliveries go.
	countedFor = 7 * 24 * time.Hour
)

// checkPage is GET /webhooks/check.
func (s *Server) checkPage(c echo.Context) error {
	return s.showCheck(c, http.StatusOK, views.CheckProps{})
}

func (s *Server) showCheck(c echo.Context, status int, props views.CheckProps) error {
	l, err := s.layout(c, "Check a signature", views.SectionWebhooks)
	if err != nil {
		return err
	}
	props.Layout, props.Header = l, s.pipeline.SignatureHeader()
	return render(c, status, views.Check(props))
}

// checkRequest is POST /webhooks/check. It changes nothing and has nowhere to
// lead to: what was found is shown above what was typed, which is kept nowhere.
// The secret is used once; it is neither shown again nor in any message.
func (s *Server) checkRequest(c echo.Context) error {
	r := c.Request()
	if err := parseForm(r); err != nil {
		return err
	}
	props := views.CheckProps{Headers: r.PostFormValue("headers"), Body: r.PostFormValue("body"), Errors: views.Errors{}}
	captured := pipeline.Captured{Body: props.Body, Secret: r.PostFormValue("secret")}
	var err error
	if captured.Header, err = pipeline.ParseHeaders(props.Headers); err != nil {
		props.Errors["headers"] = err.Error()
	} else if len(captured.Header) == 0 {
		props.Errors["headers"] = "Enter the headers that came with the delivery."
	}
	if len(props.Body) > pipeline.CheckedBody {
		props.Errors["body"] = views.Textf(r.Context(), "The body is over %s bytes.", number(pipeline.CheckedBody))
		props.Body = props.Body[:pipeline.CheckedBody]
	}
	if text := secretError(r.Context(), captured.Secret); text != "" {
		props.Errors["secret"] = text
	}
	if len(props.Errors) > 0 {
		return s.showCheck(c, http.StatusUnprocessableEntity, props)
	}
	if props.Result, err = s.checked(r.Context(), captured); err != nil {
		return err
	}
	return s.showCheck(c, http.StatusOK, props)
}

// secretError says what keeps a secret from being tried; "" when nothing does.
func secretError(ctx context.Context, secret string) string {
	switch {
	case secret == "":
		return "Enter the secret."
	case len(secret) < pipeline.ShortestSecret:
		return views.Textf(ctx, "A secret has at least %d characters.", pipeline.ShortestSecret)
	case len(secret) > longestSecret:
		return views.Textf(ctx, "The secret is over %d characters.", longestSecret)
	}
	return ""
}

// checked is what a captured request shows, with the webhooks that the form
// could be set for.
func (s *Server) checked(ctx context.Context, captured pipeline.Captured) (*views.CheckResult, error) {
	found := s.pipeline.CheckRequest(captured)
	if !found.Matches {
		return &views.CheckResult{Title: found.Diagnosis.Code.Title(), Text: found.Diagnosis.Text}, nil
	}
	taken, _ := s.pipeline.FormInUse(found.Form)
	result := &views.CheckResult{Matches: true, Form: found.Form, Reading: found.Reading, Fixed: taken != found.Form}
	hooks, err := s.store.Webhooks(ctx)
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	for _, w := range hooks {
		if w.EventType == found.Event {
			result.Webhook = idText(w.ID)
		}
		result.Webhooks = append(result.Webhooks, views.Option{Value: idText(w.ID), Text: w.EventType + " (" + idText(w.ID) + ")"})
	}
	return result, nil
}

// setCheckedForm is POST /webhooks/check/form: one click on the form that was
// found.
func (s *Server) setCheckedForm(c echo.Context) error {
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	id, err := strconv.ParseInt(field(c, "webhook", 20), 10, 64)
	if err != nil {
		return notFound()
	}
	err = s.pipeline.SetSignatureForm(c.Request().Context(), id, field(c, "form", 100))
	if refused, ok := errors.AsType[*pipeline.WebhookError](err); ok {
		return s.leaveNote(c, "danger", refused.Text, checkPath)
	}
	if err != nil {
		return fmt.Errorf("set the form of webhook %d: %w", id, err)
	}
	return s.leaveNote(c, "success", "Only this form of signature is taken from now on. Every process follows within a second.", webhookPage(id))
}

// verifyDelivery is POST /deliveries/{id}/verify: what is stored is verified
// again, and taken up when it is good.
func (s *Server) verifyDelivery(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	v, err := s.pipeline.VerifyStored(ctx, id)
	if err != nil {
		return err
	}
	page := "/deliveries/" + idText(id)
	if v.Verdict != store.VerdictRefused && v.Verdict != store.VerdictUnreadable {
		return s.leaveNote(c, "info", views.Textf(ctx, "It is not refused any more. %s", v.Diagnosis.Text), page)
	}
	taken, err := s.pipeline.TakeUpAgain(ctx, []int64{id})
	if err != nil {
		return fmt.Errorf("take up delivery %d: %w", id, err)
	}
	level, text := takenUpText(ctx, taken, v)
	return s.leaveNote(c, level, text, page)
}

// takenUpText says what became of a delivery that was verified again.
func takenUpText(ctx context.Context, taken pipeline.TakenUp, v pipeline.Verification) (string, string) {
	switch {
	case taken.Recovered > 0:
		return "success", views.Textf(ctx, "Verified, and taken up like any other delivery. %s", v.Diagnosis.Text)
	case taken.Already > 0:
		return "info", "It was taken up meanwhile."
	case v.Matches:
		return "warning", "The signature is right, but the delivery can't be read, so that it isn't taken up."
	}
	return "warning", views.Textf(ctx, "Still refused: %s", v.Diagnosis.Text)
}

// shownCause is the reason that is kept with a refused delivery. Of one that
// was refused unread it needs no look.
func shownCause(d *store.Delivery) views.Cause {
	if unread, ok := pipeline.Unread(d); ok {
		return views.Cause{Title: unread.Code.Title(), Text: unread.Text}
	}
	found, ok := pipeline.ParseDiagnosis(d.Diagnosis)
	if !ok {
		return views.Cause{Text: d.Diagnosis}
	}
	return views.Cause{Title: found.Code.Title(), Text: found.Text}
}

// refusedCounts are the refused deliveries of the last week that were counted
// instead of kept, by webhook; of one webhook, unless that is zero.
func (s *Server) refusedCounts(ctx context.Context, webhook int64) ([]views.RefusedCount, error) {
	counts, err := s.store.UnsignedCounts(ctx, s.now().Add(-countedFor))
	if err != nil {
		return nil, fmt.Errorf("count refused deliveries: %w", err)
	}
	var out []views.RefusedCount
	last := int64(0)
	for _, each := range counts {
		if webhook != 0 && each.WebhookID != webhook {
			continue
		}
		if each.WebhookID != last {
			last, out = each.WebhookID, append(out, views.RefusedCount{Event: each.EventType})
		}
		one := &out[len(out)-1]
		if each.Cause == store.CauseUnsigned {
			one.Unsigned += each.Deliveries
		} else {
			one.Others += each.Deliveries
		}
		if each.LastAt.After(one.LastAt) {
			one.LastAt, one.LastSource = each.LastAt, each.LastSource
		}
	}
	return out, nil
}
