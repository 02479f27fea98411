package web

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// EnsureSetupToken makes a one-time token for the first admin while nobody has
// an account, and returns it for the log; "" when there is somebody. Only its
// hash is kept. Every process prints its own, each is good until one is used.
func (s *Server) EnsureSetupToken(ctx context.Context) (string, error) {
	has, err := s.hasPeople(ctx)
	if err != nil {
		return "", fmt.Errorf("look for users: %w", err)
	}
	if has {
		return "", nil
	}
	token := newToken()
	if err := s.store.AddSetupToken(ctx, hex.EncodeToString(tokenHash(token)), s.now()); err != nil {
		return "", fmt.Errorf("keep the set-up token: %w", err)
	}
	return token, nil
}

// setUpPage is GET /setup.
func (s *Server) setUpPage(c echo.Context) error {
	if err := s.setUpOver(c); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Setup(views.SetupProps{
		Layout: s.bareLayout(c, "Set up"), Token: clean(c.QueryParam("token"), 100),
	}))
}

// setUp is POST /setup. The token is used up in the transaction that makes the
// account, so two forms at once make one admin.
func (s *Server) setUp(c echo.Context) error {
	if err := s.setUpOver(c); err != nil {
		return err
	}
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	props := views.SetupProps{
		Layout: s.bareLayout(c, "Set up"), Token: field(c, "token", 100), Name: field(c, "name", 4*longestName),
	}
	password := c.Request().PostFormValue("password")
	props.Errors = checkNewUser(c.Request().Context(), props.Name, password, c.Request().PostFormValue("password_again"))
	if len(props.Errors) > 0 {
		return render(c, http.StatusUnprocessableEntity, views.Setup(props))
	}
	user, err := s.firstUser(c.Request().Context(), props.Token, props.Name, password)
	if errors.Is(err, store.ErrNotFound) {
		props.Errors = views.Errors{"token": "This is not the token of the log, or it has been used."}
		return render(c, http.StatusForbidden, views.Setup(props))
	}
	if err != nil {
		return fmt.Errorf("make the first admin: %w", err)
	}
	s.peopled.Store(true)
	if err := s.enter(c, user); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/")
}

// setUpOver is an error once somebody has an account.
func (s *Server) setUpOver(c echo.Context) error {
	has, err := s.hasPeople(c.Request().Context())
	if err == nil && has {
		return notFound()
	}
	return err
}

func (s *Server) firstUser(ctx context.Context, token, name, password string) (*store.User, error) {
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return nil, err
	}
	now := s.now()
	user := &store.User{
		Name: name, Role: store.RoleAdmin, PasswordHash: hash, CreatedAt: now, PasswordChangedAt: now, LastSignInAt: &now,
	}
	if err := s.store.AddFirstUser(ctx, hex.EncodeToString(tokenHash(token)), user); err != nil {
		return nil, err
	}
	return user, nil
}

// CheckName says in one sentence why a person's name is not taken, or "".
func CheckName(ctx context.Context, name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "A name is needed."
	case len(name) > longestName:
		return views.Textf(ctx, "A name has at most %d bytes.", longestName)
	case clean(name, longestName) != name || strings.ContainsAny(name, "\r\n\t"):
		return "A name is one line of plain text."
	}
	return ""
}

func checkNewUser(ctx context.Context, name, password, again string) views.Errors {
	errs := views.Errors{}
	if text := CheckName(ctx, name); text != "" {
		errs["name"] = text
	}
	if text := CheckPassword(ctx, password); text != "" {
		errs["password"] = text
	}
	if password != again {
		errs["password_again"] = "The two passwords differ."
	}
	return errs
}
