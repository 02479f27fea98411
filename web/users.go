package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// users is GET /users.
func (s *Server) users(c echo.Context) error {
	return s.showUsers(c, http.StatusOK, views.UsersProps{})
}

func (s *Server) showUsers(c echo.Context, status int, props views.UsersProps) error {
	ctx := c.Request().Context()
	people, err := s.store.Users(ctx)
	if err != nil {
		return fmt.Errorf("list users: %w", err)
	}
	for i := range people {
		u := &people[i]
		props.Users = append(props.Users, views.UserRow{
			ID: idText(u.ID), Name: u.Name, Role: string(u.Role), CreatedAt: u.CreatedAt, LastSeen: orZero(u.LastSignInAt),
			Disabled: u.DisabledAt != nil, Self: u.ID == personOf(c).ID,
		})
	}
	invites, err := s.store.Invites(ctx)
	if err != nil {
		return fmt.Errorf("list invites: %w", err)
	}
	for i := range invites {
		props.Invites = append(props.Invites, s.inviteRow(&invites[i]))
	}
	if props.Layout, err = s.layout(c, "Users", views.SectionUsers); err != nil {
		return err
	}
	return render(c, status, views.Users(props))
}

func (s *Server) inviteRow(in *store.Invite) views.InviteRow {
	return views.InviteRow{
		ID: idText(in.ID), Name: in.Name, Role: string(in.Role), Reset: in.UserID != nil, By: in.MadeBy,
		CreatedAt: in.CreatedAt, ExpiresAt: in.ExpiresAt, Expired: !in.ExpiresAt.After(s.now()),
	}
}

// roleField reads a role from a form; the text says what is wrong with it.
func roleField(c echo.Context) (store.Role, string) {
	role := store.Role(field(c, "role", 20))
	switch role {
	case store.RoleAnalyst, store.RoleOperator, store.RoleAdmin:
		return role, ""
	}
	return role, "Choose analyst, operator or admin."
}

// inviteUser is POST /users/invite.
func (s *Server) inviteUser(c echo.Context) error {
	name := field(c, "name", 4*longestName)
	role, wrong := roleField(c)
	props := views.UsersProps{Name: name, Role: string(role), Errors: views.Errors{}}
	if text := CheckName(c.Request().Context(), name); text != "" {
		props.Errors["name"] = text
	}
	if wrong != "" {
		props.Errors["role"] = wrong
	}
	if len(props.Errors) > 0 {
		return s.showUsers(c, http.StatusUnprocessableEntity, props)
	}
	token, in := NewInvite(name, role, personOf(c).Name, s.now())
	err := s.store.Invite(c.Request().Context(), in)
	if errors.Is(err, store.ErrTaken) {
		props.Errors["name"] = "There is an account of that name already."
		return s.showUsers(c, http.StatusUnprocessableEntity, props)
	}
	if err != nil {
		return whoMay(err)
	}
	return s.showLinkOnce(c, in, token)
}

// whoMay turns the store's refusal of who asks into what they are told.
func whoMay(err error) error {
	if errors.Is(err, store.ErrNotAdmin) {
		return forbidden("You aren't an admin any more, so nothing was changed.")
	}
	return err
}

// linkCookie carries a new link's token from the answer that made it to the
// page that shows it, in the admin's own browser: what is kept here is a hash.
const (
	linkCookie     = "rollcall-link"
	linkCookieTime = 5 * time.Minute
	linksPath      = "/users/invites/"
)

func (s *Server) showLinkOnce(c echo.Context, in *store.Invite, token string) error {
	c.SetCookie(s.linkCookie(in.ID, token, int(linkCookieTime/time.Second)))
	return c.Redirect(http.StatusSeeOther, linksPath+idText(in.ID))
}

func (s *Server) linkCookie(id int64, token string, age int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure where the address is, as the session's own.
		Name: linkCookie, Value: token, Path: linksPath + idText(id), MaxAge: age,
		HttpOnly: true, Secure: s.cfg.SecureCookies, SameSite: http.SameSiteStrictMode,
	}
}

// showLink is GET /users/invites/{id}: the link itself once, in the browser that
// asked for it.
func (s *Server) showLink(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	in, err := s.store.InviteByID(c.Request().Context(), id)
	if err != nil {
		return err
	}
	props := views.LinkProps{
		Name: in.Name, Reset: in.UserID != nil, ExpiresAt: in.ExpiresAt, Whole: s.cfg.PublicURL != "",
	}
	if brought, err := c.Cookie(linkCookie); err == nil && bytes.Equal(tokenHash(brought.Value), in.TokenHash) {
		props.Link = InviteLink(s.cfg.PublicURL, brought.Value)
		c.SetCookie(s.linkCookie(id, "", -1))
	}
	if props.Layout, err = s.layout(c, "One-time link", views.SectionUsers); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.OneTimeLink(props))
}

// revokeInvite is POST /users/invites/{id}/revoke.
func (s *Server) revokeInvite(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	err = s.store.RevokeInvite(c.Request().Context(), id, s.now())
	level, text := "success", "The link is revoked."
	if errors.Is(err, store.ErrNotFound) {
		level, text = "info", "The link is gone already: it was used, revoked or replaced."
	} else if err != nil {
		return whoMay(err)
	}
	return s.flashTo(c, "/users", level, text)
}

// flashTo leaves a note and leads to the page that shows it.
func (s *Server) flashTo(c echo.Context, path, level, text string) error {
	if err := s.flash(c, level, text); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, path)
}

// How long a one-time link is good for.
const (
	inviteFor = 3 * 24 * time.Hour
	resetFor  = 24 * time.Hour
)

// NewInvite makes a link for somebody who has no account yet: the token that
// the link holds, and what store.Invite keeps.
func NewInvite(name string, role store.Role, madeBy string, now time.Time) (string, *store.Invite) {
	token := newToken()
	return token, &store.Invite{
		TokenHash: tokenHash(token), Name: name, Role: role, MadeBy: madeBy, CreatedAt: now, ExpiresAt: now.Add(inviteFor),
	}
}

// NewReset makes a link by which a person sets a new password: the token that
// the link holds, and what store.ResetPassword keeps, with a hash that no
// password has.
func NewReset(userID int64, madeBy string, now time.Time) (string, *store.Invite, string) {
	token := newToken()
	return token, &store.Invite{
		TokenHash: tokenHash(token), UserID: &userID, MadeBy: madeBy, CreatedAt: now, ExpiresAt: now.Add(resetFor),
	}, HashPassword(newToken())
}

// InviteLink is the link of a token: at the public address, never at one that a
// request named; without a public address it is the path alone.
func InviteLink(publicURL, token string) string {
	return strings.TrimRight(publicURL, "/") + invitePrefix + token
}
