package web

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// users is GET /users.
func (s *Server) users(c echo.Context) error {
	people, err := s.store.Users(c.Request().Context())
	if err != nil {
		return fmt.Errorf("list users: %w", err)
	}
	props := views.UsersProps{}
	for i := range people {
		u := &people[i]
		props.Users = append(props.Users, views.UserRow{
			Name: u.Name, Role: string(u.Role), CreatedAt: u.CreatedAt, LastSeen: orZero(u.LastSignInAt),
		})
	}
	if props.Layout, err = s.layout(c, "Users", views.SectionUsers); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Users(props))
}

// account is GET /account.
func (s *Server) account(c echo.Context) error {
	now := s.now()
	who, _ := sessionOf(c).Values[visitKey{}].(visit)
	row, err := s.store.LiveSession(c.Request().Context(), who.hash, now, now.Add(-s.cfg.SessionIdle))
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	l, err := s.layout(c, "Account", views.SectionAccount)
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Account(accountProps(l, row)))
}

func accountProps(l views.Layout, row *store.Session) views.AccountProps {
	return views.AccountProps{Layout: l, SignedInAt: row.CreatedAt, EndsAt: row.ExpiresAt}
}
