package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// invitePrefix is what stands before the token in a one-time link.
const invitePrefix = "/invite/"

// linkKey counts the links that a source opens and that can't be used, as
// failed sign-ins are counted, but apart from them.
func linkKey(source string) []store.TryKey {
	return []store.TryKey{{Key: "link " + network(source), Free: 20, Cap: sourceWait}}
}

// openLink finds what the link of the request is for; store.ErrNotFound when it
// can't be used, whatever the reason.
func (s *Server) openLink(c echo.Context) (*store.Invite, error) {
	ctx, now, keys := c.Request().Context(), s.now(), linkKey(c.RealIP())
	wait, err := s.store.ClaimSignIn(ctx, keys, now)
	if err != nil {
		return nil, fmt.Errorf("open a link: %w", err)
	}
	if wait > 0 {
		return nil, tooManyLinks(ctx, wait)
	}
	token := c.Param("token")
	if len(token) != tokenLength {
		return nil, store.ErrNotFound
	}
	in, err := s.store.LiveInvite(ctx, tokenHash(token), now)
	if err != nil {
		return nil, err
	}
	return in, s.store.SignedIn(ctx, keys, now)
}

func tooManyLinks(ctx context.Context, wait time.Duration) error {
	return &problem{
		status: http.StatusTooManyRequests, title: "Too many tries in a row",
		text:       views.Counted(ctx, views.Known(wholeSeconds(wait)), "Wait %s second and open the link again.", "Wait %s seconds and open the link again."),
		retryAfter: wait,
	}
}

// linkGone is the one answer for links that expired, were used, or never were.
func (s *Server) linkGone(c echo.Context, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return render(c, http.StatusNotFound, views.InviteGone(s.bareLayout(c, "This link can't be used")))
}

func (s *Server) inviteProps(c echo.Context, in *store.Invite) views.InviteProps {
	title := views.Textf(c.Request().Context(), "Welcome")
	if in.UserID != nil {
		title = "Set a new password"
	}
	return views.InviteProps{
		Layout: s.bareLayout(c, title), Path: invitePrefix + c.Param("token"), Name: in.Name, Role: string(in.Role),
		Reset: in.UserID != nil, SignedIn: userName(c),
	}
}

// invite is GET /invite/{token}.
func (s *Server) invite(c echo.Context) error {
	in, err := s.openLink(c)
	if err != nil {
		return s.linkGone(c, err)
	}
	return render(c, http.StatusOK, views.Invite(s.inviteProps(c, in)))
}

// useInvite is POST /invite/{token}: it makes the account, or sets the
// password, and signs the person in.
func (s *Server) useInvite(c echo.Context) error {
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	in, err := s.openLink(c)
	if err != nil {
		return s.linkGone(c, err)
	}
	props := s.inviteProps(c, in)
	password := c.Request().PostFormValue("password")
	props.Errors = checkNewUser(c.Request().Context(), in.Name, password, c.Request().PostFormValue("password_again"))
	if len(props.Errors) > 0 {
		return render(c, http.StatusUnprocessableEntity, views.Invite(props))
	}
	ctx := c.Request().Context()
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return err
	}
	user, err := s.store.UseInvite(ctx, tokenHash(c.Param("token")), hash, s.now())
	if errors.Is(err, store.ErrTaken) {
		props.Errors = views.Errors{"form": "Somebody has an account of this name by now. Ask for an invitation with another name."}
		return render(c, http.StatusConflict, views.Invite(props))
	}
	if err != nil {
		return s.linkGone(c, err)
	}
	if err := s.enter(c, user); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/")
}
