package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/static"
	"rollcall/views"
)

// extractor finds a client's address: the connection's own, or what a trusted
// proxy says of it.
func extractor(trusted []netip.Prefix) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, prefix := range trusted {
		addr := prefix.Masked().Addr()
		options = append(options, echo.TrustIPRange(&net.IPNet{
			IP: addr.AsSlice(), Mask: net.CIDRMask(prefix.Bits(), addr.BitLen()),
		}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// logged writes one line a request. Query strings stay out of it, and so does
// most of a webhook's endpoint, which is half a secret.
func (s *Server) logged(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := s.now()
		err := next(c)
		if err != nil {
			c.Error(err)
		}
		level := slog.LevelInfo
		if sessionless(c.Path()) && c.Path() != webhookPath && !s.cfg.Dev {
			level = slog.LevelDebug
		}
		s.log.LogAttrs(c.Request().Context(), level, "request",
			slog.String("method", c.Request().Method), slog.String("path", maskedPath(c.Request().URL.Path)),
			slog.Int("status", c.Response().Status), slog.Int64("bytes", c.Response().Size),
			slog.Int64("micros", s.now().Sub(began).Microseconds()), slog.String("source", c.RealIP()),
			slog.String("user", userName(c)))
		return nil
	}
}

// shownOfEndpoint is how much of a webhook's endpoint the log shows.
const shownOfEndpoint = 6

// maskedPath masks a webhook's endpoint, also in an address that was only meant
// for one, such as one with a slash too many, and the token of a one-time link.
func maskedPath(path string) string {
	if before, _, ok := strings.Cut(path, invitePrefix); ok {
		return before + invitePrefix + "..."
	}
	before, endpoint, ok := strings.Cut(path, webhookPrefix)
	endpoint = strings.TrimLeft(endpoint, "/")
	if !ok || len(endpoint) <= shownOfEndpoint {
		return path
	}
	return before + webhookPrefix + endpoint[:shownOfEndpoint] + "..."
}

// recovered turns a panic into an error like any other.
func (s *Server) recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := errors.New("handler did not return")
		func() {
			defer func() {
				switch value := recover(); value {
				case nil:
				case http.ErrAbortHandler:
					panic(value)
				default:
					err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
				}
			}()
			err = next(c)
		}()
		return err
	}
}

// pagePolicy lets a page load our own files and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; frame-src 'self'; base-uri 'none'; frame-ancestors 'none'"

// headers sets what every answer carries; a handler may narrow it.
func (s *Server) headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		header := c.Response().Header()
		header.Set("Content-Security-Policy", pagePolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		if strings.HasPrefix(s.cfg.PublicURL, "https://") {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if r := c.Request(); !strings.HasPrefix(r.URL.Path, static.Prefix) {
			header.Set("Cache-Control", "no-store")
			c.SetRequest(r.WithContext(views.WithLanguage(r.Context(), views.LanguageFor(r.Header.Get("Accept-Language")))))
		}
		return next(c)
	}
}

// sameOrigin refuses changes that another site's page asks for. The vendor's
// deliveries are no browser's work and carry their own signature.
func (s *Server) sameOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Path() == webhookPath {
			return next(c)
		}
		if err := s.origins.Check(c.Request()); err != nil {
			return &problem{
				status: http.StatusForbidden, title: "Not allowed",
				text: "Another site's page asked for this change, so it was not made.", cause: err,
			}
		}
		return next(c)
	}
}

// peopledFirst leads every page to the set-up while nobody has an account.
func (s *Server) peopledFirst(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.peopled.Load() || sessionless(c.Path()) || c.Path() == setUpPath {
			return next(c)
		}
		has, err := s.hasPeople(c.Request().Context())
		if err != nil {
			return err
		}
		if has {
			return next(c)
		}
		return c.Redirect(http.StatusSeeOther, setUpPath)
	}
}
