package geonode

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Defaults of [Config].
const (
	// DefaultKeyHeader carries the API key.
	DefaultKeyHeader = "X-Api-Key"
	// DefaultMaxResponse is the largest answer read, in bytes after decompression.
	DefaultMaxResponse int64 = 64 << 20
	// DefaultUserAgent names us to the vendor.
	DefaultUserAgent = "rollcall/1"
)

const (
	maxMaxResponse int64 = 1 << 30
	maxCallTimeout       = time.Hour
	defaultSubmit        = 30 * time.Second
	defaultStatus        = time.Minute
	defaultList          = 30 * time.Second
	defaultSync          = 2 * time.Minute
	minKeyToRedact       = 6
	dialTimeout          = 10 * time.Second
	// A submit sent on a connection that the other side is just closing is lost without
	// a trace, so idle connections are given up before load balancers commonly do (60 s).
	idleTimeout            = 30 * time.Second
	idlePerHost            = 64
	maxResponseHeads int64 = 256 << 10
)

// Config says how to reach the vendor. BaseURL, APIKey and Now are required; every
// other zero value means its default.
type Config struct {
	// BaseURL is https, or plain http to a loopback host. A path prefix is kept; user
	// information, a query or a fragment is refused.
	BaseURL string
	// APIKey is sent in KeyHeader with every call. It is never logged.
	APIKey string
	// KeyHeader is the header of the key, by default X-Api-Key.
	KeyHeader string
	// UserAgent is sent with every call.
	UserAgent string
	// Transport replaces the client's own transport, for tests. Redirects, timeouts
	// and limits stay the client's business.
	Transport http.RoundTripper
	// Wrap, when set, puts something around the transport, for drills.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Now is the clock: it dates calls and measures Retry-After dates.
	Now func() time.Time
	// MaxResponse bounds an answer in bytes after decompression, at most 1 GiB.
	MaxResponse int64
	// Timeouts bound the calls, each from dialing to the last byte read.
	Timeouts Timeouts
}

// Timeouts bound each kind of call; zero means the default, an hour is the most.
type Timeouts struct {
	// Submit bounds the creation of a job and every change (30 s).
	Submit time.Duration
	// Status bounds one read of a job, with its page of results (60 s).
	Status time.Duration
	// List bounds one page of a list and the reports (30 s).
	List time.Duration
	// Sync bounds an inline extraction, beyond the wait the request itself asks for (2 min).
	Sync time.Duration
}

// String describes the configuration without its key.
func (c Config) String() string {
	return fmt.Sprintf("geonode.Config{BaseURL:%q APIKey:%s}", withoutSecrets(c.BaseURL), Secret(c.APIKey))
}

// GoString is String, so that %#v doesn't show the key either.
func (c Config) GoString() string { return c.String() }

// LogValue shows the base URL and whether there is a key.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("base_url", withoutSecrets(c.BaseURL)),
		slog.Bool("api_key_set", c.APIKey != ""),
	)
}

// withDefaults fills what was left zero.
func (c Config) withDefaults() Config {
	if c.KeyHeader == "" {
		c.KeyHeader = DefaultKeyHeader
	}
	if c.UserAgent == "" {
		c.UserAgent = DefaultUserAgent
	}
	if c.MaxResponse == 0 {
		c.MaxResponse = DefaultMaxResponse
	}
	c.Timeouts = c.Timeouts.withDefaults()
	return c
}

func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		Submit: orDefault(t.Submit, defaultSubmit),
		Status: orDefault(t.Status, defaultStatus),
		List:   orDefault(t.List, defaultList),
		Sync:   orDefault(t.Sync, defaultSync),
	}
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}

// validate reports every mistake at once, and none of them shows the key.
func (c Config) validate() error {
	var errs []error
	if _, err := parseBase(c.BaseURL); err != nil {
		errs = append(errs, err)
	}
	if c.APIKey == "" {
		errs = append(errs, errors.New("api key: empty"))
	} else if !headerSafe(c.APIKey) {
		errs = append(errs, errors.New("api key: holds a character that a header can't carry"))
	}
	if !tokenSafe(c.KeyHeader) {
		errs = append(errs, fmt.Errorf("key header %q: not a header name", c.KeyHeader))
	}
	if !headerSafe(c.UserAgent) {
		errs = append(errs, errors.New("user agent: holds a character that a header can't carry"))
	}
	if c.Now == nil {
		errs = append(errs, errors.New("clock: missing"))
	}
	if c.MaxResponse < 1 || c.MaxResponse > maxMaxResponse {
		errs = append(errs, fmt.Errorf("largest response %d: not between 1 and %d bytes", c.MaxResponse, maxMaxResponse))
	}
	return errors.Join(append(errs, c.Timeouts.validate())...)
}

func (t Timeouts) validate() error {
	var errs []error
	for _, one := range []struct {
		name string
		d    time.Duration
	}{{"submit", t.Submit}, {"status", t.Status}, {"list", t.List}, {"sync", t.Sync}} {
		if one.d < 0 || one.d > maxCallTimeout {
			errs = append(errs, fmt.Errorf("%s timeout %s: not between 0 and %s", one.name, one.d, maxCallTimeout))
		}
	}
	return errors.Join(errs...)
}

// parseBase checks a base URL. Its errors don't repeat the URL, which may hold a password.
func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("base url: not a url")
	}
	switch {
	case u.Hostname() == "":
		return nil, errors.New("base url: no host")
	case u.User != nil:
		return nil, errors.New("base url: user information is not allowed")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("base url: a query or fragment is not allowed")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		u.Path = strings.TrimRight(u.Path, "/")
		u.RawPath = strings.TrimRight(u.RawPath, "/")
		return u, nil
	case u.Scheme == "http":
		return nil, errors.New("base url: plain http is only for loopback hosts")
	}
	return nil, fmt.Errorf("base url: scheme %q is not https", u.Scheme)
}

// isLoopback is about the name or address as written; nothing is resolved.
func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// headerSafe reports whether s may stand in a header value.
func headerSafe(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// tokenSafe reports whether s may be a header's name.
func tokenSafe(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("()<>@,;:\\\"/[]?={}", r)
	})
}

// withoutSecrets keeps of a URL what is safe to show.
func withoutSecrets(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "unreadable"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// defaultTransport keeps connections for reuse, and honors the proxy variables that
// every program of the machine honors.
func defaultTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           2 * idlePerHost,
		MaxIdleConnsPerHost:    idlePerHost,
		MaxResponseHeaderBytes: maxResponseHeads,
	}
}
