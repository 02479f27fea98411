package web

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/sessions"
	"github.com/labstack/echo/v4"

	"rollcall/store"
)

// The names under which a request carries who is asking.
const (
	keyPerson  = "person"
	keySession = "session"
	keyAccess  = "access"
)

// csrfField is the hidden field of every form, csrfHeader its other form.
const (
	csrfField  = "csrf_token"
	csrfHeader = "X-CSRF-Token"
)

// guarded puts a route's guards before its handler, cheapest first.
func (s *Server) guarded(r route) echo.HandlerFunc {
	if sessionless(r.path) {
		return r.handle
	}
	return func(c echo.Context) error {
		limitBody(c, r.limitOf(c.Request()))
		if !r.endless() {
			defer withTime(c, pageTime)()
		}
		c.Set(keyAccess, r.who)
		if err := s.identify(c); err != nil {
			return err
		}
		person := personOf(c)
		if person == nil && r.who >= analysts {
			return s.unknown(c, r)
		}
		if person != nil && !r.who.allows(person.Role) {
			return forbidden("Your account doesn't have the role that this needs. An admin can give it.")
		}
		done, err := s.uploads.admit(c.Request(), r)
		if err != nil {
			return err
		}
		defer done()
		// Signing in has no session yet to be bound to; the check of origins
		// stands before it.
		if r.method == http.MethodPost && r.who >= analysts {
			if err := checkToken(c); err != nil {
				return err
			}
		}
		if r.endless() && person != nil {
			defer s.open.join(c)()
		}
		return r.handle(c)
	}
}

// pageTime bounds the making of a page, the upload of its form included.
const pageTime = 2 * time.Minute

// withTime bounds a request until the function it returns is called, which
// gives the request back as it was: an error page must still be made. What an
// upload left on disk goes too: net/http knows only the request it made.
func withTime(c echo.Context, d time.Duration) func() {
	whole := c.Request()
	ctx, cancel := context.WithTimeout(whole.Context(), d)
	c.SetRequest(whole.WithContext(ctx))
	return func() {
		cancel()
		dropUpload(c.Request())
		c.SetRequest(whole)
	}
}

func limitBody(c echo.Context, limit int64) {
	if limit == 0 {
		limit = formLimit
	}
	req := c.Request()
	req.Body = http.MaxBytesReader(c.Response(), req.Body, limit)
}

// identify finds who is asking, if anybody.
func (s *Server) identify(c echo.Context) error {
	s.actsAs(c, new(store.User))
	session, err := s.sessions.Get(c.Request(), s.sessions.cookie)
	if err != nil {
		return err
	}
	c.Set(keySession, session)
	who, ok := session.Values[visitKey{}].(visit)
	if !ok {
		return nil
	}
	user, err := s.store.UserByID(c.Request().Context(), who.userID)
	if errors.Is(err, store.ErrNotFound) || err == nil && user.DisabledAt != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("load user %d: %w", who.userID, err)
	}
	c.Set(keyPerson, user)
	s.actsAs(c, user)
	return nil
}

// actsAs has what the request changes written down under the person's name,
// which is empty for who isn't signed in.
func (s *Server) actsAs(c echo.Context, user *store.User) {
	ctx := store.WithActor(c.Request().Context(), store.Actor{UserID: user.ID, Name: user.Name, Source: c.RealIP()})
	c.SetRequest(c.Request().WithContext(ctx))
}

// unknown answers somebody who would have to sign in first. A batch that was
// typed goes along, so that an expired session loses no work.
func (s *Server) unknown(c echo.Context, r route) error {
	fromPage := c.Request().Header.Get("HX-Request") != ""
	if fromPage {
		// Part of a page can't be the sign-in: the whole page goes there.
		c.Response().Header().Set("HX-Refresh", "true")
	}
	// A stream must not be redirected either: what follows would be read as
	// its news.
	if fromPage || r.stream || wanted(c.Request()) != wantsHTML {
		return &problem{status: http.StatusUnauthorized, title: "Not signed in", text: "Sign in first."}
	}
	if r.method == http.MethodPost && formOf(r.path) != "" {
		return s.carryBatch(c)
	}
	if r.method == http.MethodPost {
		return &problem{
			status: http.StatusUnauthorized, title: "Not signed in",
			text: "Your session has ended, so nothing was changed. Sign in and try again.",
		}
	}
	target := signInPath
	if c.Request().URL.Path != "/" {
		target += "?next=" + url.QueryEscape(c.Request().URL.RequestURI())
	}
	if _, err := c.Request().Cookie(s.sessions.cookie); err == nil {
		target = withParam(target, "note", "expired")
	}
	return c.Redirect(http.StatusSeeOther, target)
}

func withParam(path, key, value string) string {
	glue := "?"
	if strings.Contains(path, "?") {
		glue = "&"
	}
	return path + glue + key + "=" + url.QueryEscape(value)
}

// checkToken wants the session's own token in the form or the header.
func checkToken(c echo.Context) error {
	got := c.Request().Header.Get(csrfHeader)
	if got == "" {
		if err := parseForm(c.Request()); err != nil {
			return err
		}
		got = c.Request().PostFormValue(csrfField)
	}
	want := csrfOf(c)
	if want == "" || subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
		return forbidden("The form came from an earlier session, so nothing was changed. Load its page again and repeat.")
	}
	return nil
}

// memoryOfForm is how much of an upload is held in memory; the rest of it goes
// to a temporary file.
const memoryOfForm = 8 << 20

// parseForm reads either kind of form, once.
func parseForm(r *http.Request) error {
	// In this order: ParseMultipartForm keeps to itself what ParseForm found
	// wrong with a form of the other kind.
	err := r.ParseForm()
	if err == nil {
		err = r.ParseMultipartForm(memoryOfForm)
	}
	if err == nil || errors.Is(err, http.ErrNotMultipart) {
		return nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	return badRequest("The form arrived damaged. Send it again.", err)
}

// field is a form's value, fit for the database.
func field(c echo.Context, name string, limit int) string {
	return clean(strings.TrimSpace(c.Request().PostFormValue(name)), limit)
}

func personOf(c echo.Context) *store.User {
	user, _ := c.Get(keyPerson).(*store.User)
	return user
}

// accessOf is who may call the route of the request.
func accessOf(c echo.Context) access {
	who, _ := c.Get(keyAccess).(access)
	return who
}

func userName(c echo.Context) string {
	if user := personOf(c); user != nil {
		return user.Name
	}
	return ""
}

func sessionOf(c echo.Context) *sessions.Session {
	session, _ := c.Get(keySession).(*sessions.Session)
	return session
}

// visitOf is the row behind the request's session; its zero value when nobody
// is signed in.
func visitOf(c echo.Context) visit {
	if session := sessionOf(c); session != nil {
		who, _ := session.Values[visitKey{}].(visit)
		return who
	}
	return visit{}
}

func csrfOf(c echo.Context) string {
	if session := sessionOf(c); session != nil {
		token, _ := session.Values[keyToken].(string)
		return token
	}
	return ""
}

// enter starts a fresh session for a person, ending the one they came with:
// whoever knew the old token learns nothing of the new one. store.ErrStale:
// their password was changed, or their account disabled, a moment ago.
func (s *Server) enter(c echo.Context, user *store.User) error {
	session, err := s.sessions.Get(c.Request(), s.sessions.cookie)
	if err != nil {
		return err
	}
	s.actsAs(c, user)
	if err := s.sessions.begin(c.Request(), c.Response(), session, user); err != nil {
		return err
	}
	c.Set(keySession, session)
	c.Set(keyPerson, user)
	return nil
}

// flash leaves a note for the next page.
func (s *Server) flash(c echo.Context, level, text string) error {
	session := sessionOf(c)
	session.Values[keyFlash], session.Values[keyFlashLevel] = text, level
	return session.Save(c.Request(), c.Response())
}

// hasPeople reports whether anybody has an account. Once true it stays so.
func (s *Server) hasPeople(ctx context.Context) (bool, error) {
	if s.peopled.Load() {
		return true, nil
	}
	has, err := s.store.HasUsers(ctx)
	if err != nil {
		return false, err
	}
	if has {
		s.peopled.Store(true)
	}
	return has, nil
}

// back is where to go after signing in: a page of ours, whatever was asked.
func back(next string) string {
	u, err := url.Parse(next)
	if err != nil || len(next) > 2000 || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.Contains(u.Path, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
