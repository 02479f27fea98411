package web

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// shape is one of the three shapes an answer may have.
type shape int

const (
	wantsText shape = iota
	wantsHTML
	wantsJSON
)

// wanted reads the Accept header, coarsely: browsers name text/html first.
func wanted(r *http.Request) shape {
	accept := r.Header.Get("Accept")
	html, json := strings.Index(accept, "text/html"), strings.Index(accept, "application/json")
	switch {
	case html >= 0 && (json < 0 || html < json):
		return wantsHTML
	case json >= 0:
		return wantsJSON
	case r.Header.Get("HX-Request") != "":
		return wantsHTML
	}
	return wantsText
}

// buffers hold rendered pages until they are known to be whole.
//
//nolint:gochecknoglobals // A pool has no state to share.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keptBuffer is the largest buffer that goes back to the pool.
const keptBuffer = 1 << 20

// render writes a page only once it is whole: a page that can't be rendered
// becomes an error page instead of half a page.
func render(c echo.Context, status int, page templ.Component) error {
	buffer := takeBuffer()
	defer giveBuffer(buffer)
	if err := page.Render(c.Request().Context(), buffer); err != nil {
		return fmt.Errorf("render %s: %w", c.Path(), err)
	}
	return c.Blob(status, echo.MIMETextHTMLCharsetUTF8, buffer.Bytes())
}

func takeBuffer() *bytes.Buffer {
	buffer, ok := buffers.Get().(*bytes.Buffer)
	if !ok {
		return new(bytes.Buffer)
	}
	buffer.Reset()
	return buffer
}

func giveBuffer(buffer *bytes.Buffer) {
	if buffer.Cap() <= keptBuffer {
		buffers.Put(buffer)
	}
}

// layout is what surrounds a page, with what the whole installation needs to
// be told. The flash of the last form is used up by it.
func (s *Server) layout(c echo.Context, title, section string) (views.Layout, error) {
	l := s.bareLayout(c, title)
	l.Section = section
	if l.User == nil {
		return l, nil
	}
	ctx := c.Request().Context()
	failures, err := s.store.CountFailures(ctx, store.Failed{})
	if err != nil {
		return l, fmt.Errorf("count failures: %w", err)
	}
	l.Failures = capped(failures)
	if l.Alerts, err = s.alerts(ctx); err != nil {
		return l, err
	}
	err = s.takeFlash(c, &l)
	return l, err
}

// bareLayout asks the database nothing, so an error page always has one.
func (s *Server) bareLayout(c echo.Context, title string) views.Layout {
	l := views.Layout{Title: title, CSRF: csrfOf(c), Sandbox: s.cfg.Sandbox}
	if user := personOf(c); user != nil {
		l.User = &views.User{Name: user.Name, Role: string(user.Role)}
		l.Theme, l.Zone = user.Theme, user.TimeZone
	}
	return l
}

// takeFlash leaves the note to a whole page: a page that asks for a part of
// itself anew shows none, and may be the one that was left for another.
func (s *Server) takeFlash(c echo.Context, l *views.Layout) error {
	if c.Request().Header.Get("HX-Request") != "" {
		return nil
	}
	session := sessionOf(c)
	text, ok := session.Values[keyFlash].(string)
	if !ok {
		return nil
	}
	level, _ := session.Values[keyFlashLevel].(string)
	l.Flash = &views.Flash{Level: level, Text: text}
	delete(session.Values, keyFlash)
	delete(session.Values, keyFlashLevel)
	return session.Save(c.Request(), c.Response())
}

// alerts are the troubles that everybody should see until they are over.
func (s *Server) alerts(ctx context.Context) ([]views.Alert, error) {
	gates, err := s.store.Gates(ctx)
	if err != nil {
		return nil, fmt.Errorf("read gates: %w", err)
	}
	var alerts []views.Alert
	for _, gate := range gates {
		if gate.PausedAt != nil {
			alerts = append(alerts, pauseAlert(ctx, gate))
		}
	}
	hooks, err := s.store.PageTroubledWebhooks(ctx)
	if err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	for i := range hooks {
		alerts = append(alerts, webhookAlert(ctx, &hooks[i]))
	}
	return alerts, nil
}

func pauseAlert(ctx context.Context, gate *store.Gate) views.Alert {
	text := "Jobs that aren't sent yet wait, and nothing is lost: sending goes on when the vendor accepts the account again, or when an operator resumes."
	title := "Dispatch is paused"
	if gate.PausedStatus != nil {
		switch *gate.PausedStatus {
		case http.StatusUnauthorized:
			title = "Dispatch is paused: the vendor refuses the API key (401)"
		case http.StatusPaymentRequired:
			title = "Dispatch is paused: the vendor says the account has no credit left (402)"
		default:
			title = views.Textf(ctx, "Dispatch is paused: the vendor answered %d", *gate.PausedStatus)
		}
	}
	if gate.PausedReason != "" {
		text = views.Textf(ctx, "Jobs that aren't sent yet wait, and nothing is lost: sending goes on when the vendor accepts the account again, or when an operator resumes. Reason: %s", gate.PausedReason)
	}
	return views.Alert{
		Level: "danger", Title: title, Text: text, Since: orZero(gate.PausedAt), Resume: true,
	}
}

func webhookAlert(ctx context.Context, hook *store.Webhook) views.Alert {
	a := views.Alert{
		Level: "danger", Title: views.Textf(ctx, "The webhook for %s brings nothing home", hook.EventType), Since: hook.StateAt,
		Repair: webhookPage(hook.ID) + "/repair",
	}
	switch hook.State {
	case store.WebhookInactive:
		a.Text = "The vendor has switched it off. Polling and reconciling take over until an admin repairs it."
	case store.WebhookMoved:
		a.Text = "At the vendor it has another address or event now. Polling and reconciling take over until an admin repairs it."
	case store.WebhookGone:
		a.Text = "The vendor doesn't know it any more. Polling and reconciling take over until an admin repairs it, which registers it anew."
	case store.WebhookSecretUnknown:
		a.Text = "Its secret was changed and the answer was lost: deliveries can't be verified until it is rotated again."
		a.Repair = ""
	case store.WebhookRegistering, store.WebhookLive, store.WebhookPaused, store.WebhookRotating, store.WebhookRemoved:
	}
	return a
}

// errorPage shows a problem inside the frame the reader knows.
func (s *Server) errorPage(c echo.Context, p *problem, id string) error {
	if p.status == http.StatusNotFound && personOf(c) == nil && c.Get(keyAccess) == nil {
		// No route took it, so nobody asked yet whose it is; whoever is signed in keeps the menu.
		if err := s.identify(c); err != nil {
			s.log.WarnContext(c.Request().Context(), "error page without a menu", slog.Any("error", err))
		}
	}
	props := views.ErrorProps{
		Layout: s.bareLayout(c, p.title), Status: p.status, Title: p.title, Message: p.text, LogID: id,
	}
	if p.status >= http.StatusInternalServerError {
		props.Typed = typedURLs(c)
	}
	err := render(c, p.status, views.Error(props))
	if err == nil || c.Response().Committed {
		return err
	}
	s.log.ErrorContext(c.Request().Context(), "error page not rendered", slog.Any("error", err))
	return c.String(p.status, p.title+". "+p.text+"\n")
}

// inEnglish is for words that are kept with a thing: everybody reads them there,
// whatever their language.
func inEnglish(ctx context.Context) context.Context { return views.WithLanguage(ctx, views.English) }

// capped is a count as the pages show it: exact up to the limit.
func capped(n int64) views.Count {
	return views.Count{N: min(n, store.CountLimit), Known: true, More: n > store.CountLimit}
}
