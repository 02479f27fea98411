package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"unicode/utf8"
)

// page is a page that was turned into content.
type page struct {
	content content
	made    bool // It can be made again from its URL.
}

// maxURLBytes is the longest URL that is accepted.
const maxURLBytes = 8 << 10

// errURL says why a URL is not accepted.
var (
	errURLLong   = errors.New("URL is longer than 8,192 bytes")
	errURLForm   = errors.New("not a valid URL")
	errURLScheme = errors.New("URL scheme is not http or https")
	errURLHost   = errors.New("URL has no host")
)

// checkURL says whether a page can be asked for under this text: http or https, a host, at most 8 KiB of UTF-8
// without control characters or spaces.
func checkURL(text string) error {
	if len(text) > maxURLBytes {
		return errURLLong
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return errURLForm
	}
	u, err := url.Parse(text)
	if err != nil {
		return errURLForm
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return errURLScheme
	}
	if u.Hostname() == "" {
		return errURLHost
	}
	return nil
}

// visit gets the page of an item.
func (s *Sandbox) visit(ctx context.Context, it *item, headers map[string]string) (*page, outcome) {
	u, err := url.Parse(it.url)
	if err != nil {
		return nil, outcome{code: "INVALID_URL", message: "The URL can't be read."}
	}
	if isMade(u.Hostname()) {
		return s.visitMade(ctx, u, it)
	}
	return s.fetcher.visit(ctx, u, headers)
}

// visitMade makes a page under sandbox.test, or plays what its path asks for.
func (s *Sandbox) visitMade(ctx context.Context, u *url.URL, it *item) (*page, outcome) {
	if wait := slowness(u.Path); wait > 0 && !sleep(ctx, wait) {
		return nil, outcome{code: "TIMEOUT", message: "The target took too long.", retryable: true}
	}
	end := magicOutcome(u, it.attempt)
	if end.code != "" {
		return nil, end
	}
	made := s.makePage(u, it.edition)
	return &page{content: made, made: true}, end
}

// text reads the content of a good item again.
func (s *Sandbox) text(it *item) content {
	if it.body.length > 0 {
		c, err := s.bodies.get(it.body)
		if err != nil {
			s.log.ErrorContext(s.ctx, "page not read", slog.String("url", it.url), slog.Any("err", err))
		}
		return c
	}
	u, err := url.Parse(it.url)
	if err != nil || !isMade(u.Hostname()) {
		return content{}
	}
	return s.makePage(u, it.edition)
}

// hostKey is the host and port of a URL in one form, to compare sites by.
func hostKey(u *url.URL) string {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if port := u.Port(); port != "" {
		return net.JoinHostPort(host, port)
	}
	return host
}
