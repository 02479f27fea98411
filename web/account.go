package web

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// readerZone is the time zone in which the reader types times: their own when
// they chose one, else UTC.
func readerZone(c echo.Context) *time.Location {
	if user := personOf(c); user != nil && knownZone(user.TimeZone) {
		if zone, err := time.LoadLocation(user.TimeZone); err == nil {
			return zone
		}
	}
	return time.UTC
}

const accountPath = "/account"

// account is GET /account.
func (s *Server) account(c echo.Context) error {
	user := personOf(c)
	return s.showAccount(c, http.StatusOK, views.AccountProps{Zone: user.TimeZone, Theme: user.Theme})
}

func (s *Server) showAccount(c echo.Context, status int, props views.AccountProps) error {
	ctx, now := c.Request().Context(), s.now()
	rows, err := s.store.PageSessions(ctx, personOf(c).ID, visitOf(c).hash, now, now.Add(-s.cfg.SessionIdle))
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	for i := range rows {
		row := &rows[i]
		props.Sessions = append(props.Sessions, views.SessionRow{
			ID: idText(row.ID), CreatedAt: row.CreatedAt, LastSeen: row.LastSeenAt, EndsAt: row.ExpiresAt,
			Source: row.Source, Browser: browserName(ctx, row.UserAgent), Agent: row.UserAgent, This: row.This,
		})
	}
	props.Zones = zoneGroups(props.Zone)
	if props.Layout, err = s.layout(c, "Account", views.SectionAccount); err != nil {
		return err
	}
	return render(c, status, views.Account(props))
}

// saveSettings is POST /account/settings.
func (s *Server) saveSettings(c echo.Context) error {
	user := personOf(c)
	props := views.AccountProps{Zone: field(c, "time_zone", 2*longestZone), Theme: field(c, "theme", 20), Errors: views.Errors{}}
	if props.Zone != "" && !knownZone(props.Zone) {
		props.Errors["time_zone"] = views.Textf(c.Request().Context(), "No time zone is called %q. They are named like Europe/Berlin.", props.Zone)
	}
	if props.Theme != "" && props.Theme != "light" && props.Theme != "dark" {
		props.Errors["theme"] = "Choose light, dark, or as the system."
	}
	if len(props.Errors) > 0 {
		return s.showAccount(c, http.StatusUnprocessableEntity, props)
	}
	if err := s.store.SetTaste(c.Request().Context(), user.ID, props.Zone, props.Theme, s.now()); err != nil {
		return err
	}
	return s.flashTo(c, accountPath, "success", views.Textf(c.Request().Context(), "Saved."))
}

// passwordKey counts wrong old passwords: who finds a browser signed in must
// not guess on.
func passwordKey(user *store.User) []store.TryKey {
	return []store.TryKey{{Key: "password of " + idText(user.ID), Free: 5, Cap: sourceWait}}
}

// changePassword is POST /account/password.
func (s *Server) changePassword(c echo.Context) error {
	ctx, now, user := c.Request().Context(), s.now(), personOf(c)
	old, password := c.Request().PostFormValue("old_password"), c.Request().PostFormValue("password")
	errs := checkNewUser(ctx, user.Name, password, c.Request().PostFormValue("password_again"))
	if len(errs) > 0 {
		return s.passwordNotTaken(c, errs)
	}
	wait, err := s.store.ClaimSignIn(ctx, passwordKey(user), now)
	if err != nil {
		return fmt.Errorf("change a password: %w", err)
	}
	if wait > 0 {
		c.Response().Header().Set(echo.HeaderRetryAfter, retrySeconds(wait))
		return s.passwordNotTaken(c, views.Errors{"old_password": tooManyTries(ctx, wait)})
	}
	err = s.hasher.check(ctx, user.PasswordHash, old)
	if errors.Is(err, errWrongPassword) {
		return s.passwordNotTaken(c, views.Errors{"old_password": "This is not your present password."})
	}
	if err != nil {
		return fmt.Errorf("change a password: %w", err)
	}
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return err
	}
	err = s.store.ChangePassword(ctx, user.ID, user.PasswordHash, hash, visitOf(c).hash, now)
	if errors.Is(err, store.ErrStale) {
		return s.passwordNotTaken(c, views.Errors{"old_password": "It was changed meanwhile, so nothing was changed now."})
	}
	if err != nil {
		return err
	}
	if err := s.store.SignedIn(ctx, passwordKey(user), now); err != nil {
		return fmt.Errorf("change a password: %w", err)
	}
	return s.flashTo(c, accountPath, "success", "The password is changed. Your other sessions have ended.")
}

func (s *Server) passwordNotTaken(c echo.Context, errs views.Errors) error {
	user := personOf(c)
	return s.showAccount(c, http.StatusUnprocessableEntity, views.AccountProps{Zone: user.TimeZone, Theme: user.Theme, Errors: errs})
}

// endSession is POST /account/sessions/{id}/end.
func (s *Server) endSession(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	err = s.store.EndSession(ctx, personOf(c).ID, id, s.now())
	if errors.Is(err, store.ErrNotFound) {
		return s.flashTo(c, accountPath, "info", "That session had ended already.")
	}
	if err != nil {
		return err
	}
	living, err := s.sessions.living(ctx, [][]byte{visitOf(c).hash})
	if err != nil {
		return err
	}
	if len(living) == 0 {
		return s.leave(c) // It was this one.
	}
	return s.flashTo(c, accountPath, "success", "That session has ended.")
}

// endOtherSessions is POST /account/sessions/end.
func (s *Server) endOtherSessions(c echo.Context) error {
	if err := s.store.EndOtherSessions(c.Request().Context(), personOf(c).ID, visitOf(c).hash, s.now()); err != nil {
		return err
	}
	return s.flashTo(c, accountPath, "success", "You are signed out everywhere else.")
}
