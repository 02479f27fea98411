package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// user is GET /users/{id}.
func (s *Server) user(c echo.Context) error {
	u, err := s.userParam(c)
	if err != nil {
		return err
	}
	return s.showUser(c, http.StatusOK, u, nil)
}

func (s *Server) userParam(c echo.Context) (*store.User, error) {
	id, err := idParam(c)
	if err != nil {
		return nil, err
	}
	return s.store.UserByID(c.Request().Context(), id)
}

func (s *Server) showUser(c echo.Context, status int, u *store.User, errs views.Errors) error {
	ctx, now := c.Request().Context(), s.now()
	sessions, err := s.store.PageSessions(ctx, u.ID, []byte{}, now, now.Add(-s.cfg.SessionIdle))
	if err != nil {
		return fmt.Errorf("list sessions of user %d: %w", u.ID, err)
	}
	props := views.UserProps{
		ID: idText(u.ID), Name: u.Name, Role: string(u.Role), CreatedAt: u.CreatedAt, LastSeen: orZero(u.LastSignInAt),
		PasswordChanged: u.PasswordChangedAt, DisabledAt: orZero(u.DisabledAt), Sessions: views.Known(int64(len(sessions))),
		Self: u.ID == personOf(c).ID, Errors: errs,
		AuditBy: address(auditPath, url.Values{"who": {u.Name}}), AuditOf: address(auditPath, url.Values{"kind": {"user"}, "id": {u.Name}}),
	}
	invites, err := s.store.Invites(ctx)
	if err != nil {
		return fmt.Errorf("list invites: %w", err)
	}
	for i := range invites {
		if of := invites[i].UserID; of != nil && *of == u.ID {
			row := s.inviteRow(&invites[i])
			props.Link = &row
		}
	}
	if props.Layout, err = s.layout(c, u.Name, views.SectionUsers); err != nil {
		return err
	}
	return render(c, status, views.OneUser(props))
}

// another is the person that a form is about, who is not the one who sent it:
// what admins do to accounts they never do to their own, so none of them locks
// everybody out, or themselves by a slip.
func (s *Server) another(c echo.Context) (*store.User, error) {
	u, err := s.userParam(c)
	if err != nil {
		return nil, err
	}
	if u.ID == personOf(c).ID {
		return nil, forbidden("This is your own account: another admin can change it so.")
	}
	return u, nil
}

func userPath(u *store.User) string { return "/users/" + idText(u.ID) }

// setRole is POST /users/{id}/role.
func (s *Server) setRole(c echo.Context) error {
	u, err := s.another(c)
	if err != nil {
		return err
	}
	role, wrong := roleField(c)
	if wrong != "" {
		return s.showUser(c, http.StatusUnprocessableEntity, u, views.Errors{"role": wrong})
	}
	return s.changed(c, u, s.store.SetRole(c.Request().Context(), u.ID, role, s.now()), roleSet(c.Request().Context(), u.Name, role))
}

func roleSet(ctx context.Context, name string, role store.Role) string {
	switch role {
	case store.RoleAdmin:
		return views.Textf(ctx, "%s is an admin now.", name)
	case store.RoleOperator:
		return views.Textf(ctx, "%s is an operator now.", name)
	case store.RoleAnalyst:
		return views.Textf(ctx, "%s is an analyst now.", name)
	}
	return views.Textf(ctx, "%s is %s now.", name, role)
}

// disableUser is POST /users/{id}/disable.
func (s *Server) disableUser(c echo.Context) error {
	u, err := s.another(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	text := views.Textf(ctx, "%s is signed out everywhere, and can't sign in.", u.Name)
	return s.changed(c, u, s.store.DisableUser(ctx, u.ID, s.now()), text)
}

// enableUser is POST /users/{id}/enable.
func (s *Server) enableUser(c echo.Context) error {
	u, err := s.another(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	return s.changed(c, u, s.store.EnableUser(ctx, u.ID, s.now()), views.Textf(ctx, "%s can sign in again.", u.Name))
}

// changed answers a change of a person.
func (s *Server) changed(c echo.Context, u *store.User, err error, text string) error {
	switch {
	case errors.Is(err, store.ErrLastAdmin):
		text = views.Textf(c.Request().Context(), "%s is the last active admin: make somebody else an admin first. Nothing was changed.", u.Name)
		return s.flashTo(c, userPath(u), "danger", text)
	case errors.Is(err, store.ErrStale):
		return s.flashTo(c, userPath(u), "danger", "The account is disabled. Enable it first: nothing was changed.")
	case err != nil:
		return whoMay(err)
	}
	return s.flashTo(c, userPath(u), "success", text)
}

// resetPassword is POST /users/{id}/reset.
func (s *Server) resetPassword(c echo.Context) error {
	u, err := s.another(c)
	if err != nil {
		return err
	}
	token, in, unusable := NewReset(u.ID, personOf(c).Name, s.now())
	if err := s.store.ResetPassword(c.Request().Context(), in, unusable); err != nil {
		return s.changed(c, u, err, "")
	}
	return s.showLinkOnce(c, in, token)
}

// signOutUser is POST /users/{id}/sign-out, one's own account included.
func (s *Server) signOutUser(c echo.Context) error {
	u, err := s.userParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	n, err := s.store.EndUserSessions(ctx, u.ID, s.now())
	if err == nil && u.ID == personOf(c).ID {
		return s.leave(c)
	}
	text := views.Textf(ctx, "%s is signed out everywhere: %d sessions ended.", u.Name, n)
	if n == 1 {
		text = views.Textf(ctx, "%s is signed out: one session ended.", u.Name)
	}
	return s.changed(c, u, err, text)
}
