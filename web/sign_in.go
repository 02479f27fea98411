package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// carryLimit bounds a sign-in: it may carry a batch that was typed before the
// session ended. carriedText bounds that batch alone; in a form it may take up
// to three times as much.
const (
	carryLimit  = 3*carriedText + formLimit
	carriedText = 4 << 20
)

// longestName is the longest name of a person, in bytes.
const longestName = 80

// signInPage is GET /sign-in.
func (s *Server) signInPage(c echo.Context) error {
	next := back(c.QueryParam("next"))
	if personOf(c) != nil {
		return c.Redirect(http.StatusSeeOther, next)
	}
	props := views.SignInProps{Layout: s.bareLayout(c, "Sign in"), Next: next}
	if c.QueryParam("note") == "expired" {
		props.Note = "Your session has ended. Sign in to go on where you were."
	}
	return render(c, http.StatusOK, views.SignIn(props))
}

// signIn is POST /sign-in. Every refusal shows the form again with what was
// typed, except the password.
func (s *Server) signIn(c echo.Context) error {
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	name := field(c, "name", longestName)
	props := views.SignInProps{
		Layout: s.bareLayout(c, "Sign in"), Name: name, Next: back(c.Request().PostFormValue("next")),
	}
	props.Carry = carried(c)
	ctx, now := c.Request().Context(), s.now()
	keys := tryKeys(name, c.RealIP())
	wait, err := s.store.ClaimSignIn(ctx, keys, now)
	if err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	if wait > 0 {
		return s.refuseTry(c, props, wait)
	}
	user, err := s.checkSignIn(c, name)
	if errors.Is(err, errWrongPassword) {
		return s.wrongPassword(c, props)
	}
	if err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	err = s.enter(c, user)
	if errors.Is(err, store.ErrStale) {
		return s.wrongPassword(c, props) // It was the right one a moment ago.
	}
	if err != nil {
		return err
	}
	if err := s.store.SignedIn(ctx, keys, now); err != nil {
		return fmt.Errorf("sign in user %d: %w", user.ID, err)
	}
	if len(props.Carry) > 0 {
		return s.carriedBatch(c)
	}
	return c.Redirect(http.StatusSeeOther, props.Next)
}

func (s *Server) wrongPassword(c echo.Context, props views.SignInProps) error {
	s.actsAs(c, new(store.User))
	if err := s.store.NoteFailedSignIn(c.Request().Context(), props.Name, s.now()); err != nil {
		return fmt.Errorf("note a failed sign-in: %w", err)
	}
	props.Error = "That name and password don't belong together."
	return render(c, http.StatusUnauthorized, views.SignIn(props))
}

func (s *Server) refuseTry(c echo.Context, props views.SignInProps, wait time.Duration) error {
	c.Response().Header().Set(echo.HeaderRetryAfter, retrySeconds(wait))
	props.Error = tooManyTries(c.Request().Context(), wait)
	return render(c, http.StatusTooManyRequests, views.SignIn(props))
}

func tooManyTries(ctx context.Context, wait time.Duration) string {
	return views.Counted(ctx, views.Known(wholeSeconds(wait)), "Too many tries in a row. Wait %s second and try again.",
		"Too many tries in a row. Wait %s seconds and try again.")
}

// checkSignIn finds the person, or errWrongPassword: a name that isn't there
// and an account that is closed take as long and say the same.
func (s *Server) checkSignIn(c echo.Context, name string) (*store.User, error) {
	ctx := c.Request().Context()
	user, err := s.store.UserByName(ctx, name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	hash, known := s.hasher.dummy, false
	if err == nil && user.DisabledAt == nil {
		hash, known = user.PasswordHash, true
	}
	if err := s.hasher.check(ctx, hash, c.Request().PostFormValue("password")); err != nil {
		return nil, err
	}
	if !known {
		return nil, errWrongPassword
	}
	return user, nil
}

// The longest waits. A name's own is short, so that nobody who knows it can
// keep its owner out for long; whoever guesses meets their source's first.
const (
	nameWait   = 4 * time.Second
	sourceWait = 30 * time.Second
)

// tryKeys counts a try against the name, the source, and both together.
func tryKeys(name, source string) []store.TryKey {
	name, source = strings.ToLower(name), network(source)
	return []store.TryKey{
		{Key: "name " + name, Free: 5, Cap: nameWait},
		{Key: "source " + source, Free: 20, Cap: sourceWait},
		{Key: "both " + source + " " + name, Free: 3, Cap: sourceWait},
	}
}

// network is the address itself, or the /64 of an IPv6 one: whoever has one of
// those has them all.
func network(source string) string {
	addr, err := netip.ParseAddr(source)
	if err != nil || !addr.Is6() || addr.Is4In6() {
		return source
	}
	return netip.PrefixFrom(addr.WithZone(""), 64).Masked().String()
}

// signOut is POST /sign-out.
func (s *Server) signOut(c echo.Context) error {
	who := visitOf(c)
	if err := s.store.SignOut(c.Request().Context(), who.userID, who.hash, s.now()); err != nil {
		return err
	}
	return s.leave(c)
}

// leave answers somebody whose session has ended.
func (s *Server) leave(c echo.Context) error {
	session := sessionOf(c)
	session.ID, session.Options.MaxAge = "", -1
	if err := session.Save(c.Request(), c.Response()); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, signInPath)
}
