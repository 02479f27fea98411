package geonode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls the vendor. It is safe for concurrent use; make one and keep it, for it
// keeps connections for reuse.
type Client struct {
	base  *url.URL
	key   Secret
	cfg   Config
	http  *http.Client
	owned *http.Transport // Nil when the transport was handed in.
	calls callCounter
}

// New checks the configuration, reporting every mistake at once, and makes a client.
// It calls nobody.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("vendor client: %w", err)
	}
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("vendor client: %w", err)
	}
	c := &Client{base: base, key: Secret(cfg.APIKey), cfg: cfg}
	cfg.APIKey, c.cfg.APIKey = "", ""
	transport := cfg.Transport
	if transport == nil {
		c.owned = defaultTransport()
		transport = c.owned
	}
	if cfg.Wrap != nil {
		transport = cfg.Wrap(transport)
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: refuseRedirect}
	return c, nil
}

// Close lets go of idle connections. Calls in flight are not disturbed.
func (c *Client) Close() {
	if c.owned != nil {
		c.owned.CloseIdleConnections()
	}
}

// String says where the client calls, without the key.
func (c *Client) String() string { return "geonode client of " + c.base.String() }

// GoString is String.
func (c *Client) GoString() string { return c.String() }

// refuseRedirect makes a 3xx the answer: following it could carry the key, or a
// submit, to another place.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// call is one request as a method describes it.
type call struct {
	op      string
	method  string
	path    []string // Segments, escaped one by one.
	query   url.Values
	body    any
	timeout time.Duration
	keepRaw bool
	secret  bool // The answer may hold a secret: no excerpt of it.
	check   error
}

// do makes the call and hands the body of a 2xx to read, which may be nil. Every error
// is an *Error.
func (c *Client) do(ctx context.Context, in call, read func([]byte) error) (Reply, error) {
	if in.check != nil {
		return Reply{}, &Error{Op: in.op, err: in.check, refused: true}
	}
	ctx, cancel := context.WithTimeout(ctx, in.timeout)
	defer cancel()
	ctx, trace := traceSend(ctx)
	req, err := c.request(ctx, in)
	if err != nil {
		return Reply{}, &Error{Op: in.op, err: err, refused: true}
	}
	if err := ctx.Err(); err != nil {
		return Reply{}, &Error{Op: in.op, err: err, notSent: true}
	}
	start := c.cfg.Now()
	resp, err := c.http.Do(req)
	if err == nil || !trace.notSent(err) {
		c.calls.add(start, in.kind(), 1)
	}
	if err != nil {
		return Reply{}, &Error{Op: in.op, err: bare(err), notSent: trace.notSent(err)}
	}
	defer func() { _ = resp.Body.Close() }() // Nothing is lost: all that is wanted was read.
	body, err := c.readAll(resp)
	reply := Reply{Status: resp.StatusCode, Date: headerDate(resp.Header), Elapsed: c.cfg.Now().Sub(start)}
	if e := c.failure(in, resp, body, err); e != nil {
		return reply, e
	}
	if in.keepRaw {
		reply.Raw = body
	}
	if read == nil {
		return reply, nil
	}
	if err := read(body); err != nil {
		return reply, c.unreadable(in, reply, body, err)
	}
	return reply, nil
}

// request builds the HTTP request. The body can be read again, so that net/http may
// repeat a request of which no byte was written.
func (c *Client) request(ctx context.Context, in call) (*http.Request, error) {
	var body io.Reader
	if in.body != nil {
		b, err := json.Marshal(in.body)
		if err != nil {
			return nil, fmt.Errorf("encode body: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, in.method, c.target(in), body)
	if err != nil {
		return nil, bare(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	req.Header.Set(c.cfg.KeyHeader, c.key.Reveal())
	return req, nil
}

// target joins base, escaped path segments and query.
func (c *Client) target(in call) string {
	var b strings.Builder
	b.WriteString(c.base.String())
	for _, segment := range in.path {
		b.WriteString("/" + url.PathEscape(segment))
	}
	if len(in.query) > 0 {
		b.WriteString("?" + in.query.Encode())
	}
	return b.String()
}

// readAll reads the body within its bound. An answer over it is cut off by closing
// the connection, which is cheaper than reading on.
func (c *Client) readAll(resp *http.Response) ([]byte, error) {
	limit := c.cfg.MaxResponse
	if resp.StatusCode >= http.StatusMultipleChoices {
		limit = min(limit, maxErrorBody)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return body, fmt.Errorf("read answer: %w", bare(err))
	case int64(len(body)) > limit:
		return body[:limit], fmt.Errorf("%w of %d bytes", ErrTooLarge, limit)
	}
	return body, nil
}

// failure turns an answer that isn't a whole 2xx into an error; nil for one that is.
func (c *Client) failure(in call, resp *http.Response, body []byte, readErr error) *Error {
	ok := resp.StatusCode >= http.StatusOK && resp.StatusCode < http.StatusMultipleChoices
	if ok && readErr == nil {
		return nil
	}
	e := &Error{Op: in.op, Status: resp.StatusCode, Date: headerDate(resp.Header)}
	if ok {
		e.err = readErr
		return e
	}
	// An error answer that is cut short or too long still has its status, which decides.
	if !errors.Is(readErr, ErrTooLarge) {
		e.err = readErr
	}
	if resp.StatusCode < http.StatusBadRequest {
		e.Message = "a redirect, which is not followed"
		return e
	}
	e.readBody(c.redact(body))
	e.hideKey(c.key)
	if in.secret {
		e.Body = ""
	}
	e.retryAfter, e.hasRetry = parseRetryAfter(resp.Header.Get("Retry-After"), c.vendorNow(resp.Header))
	return e
}

// vendorNow is the time by the clock that an answer's dates are by: its own, as its Date header shows it, or ours.
func (c *Client) vendorNow(h http.Header) time.Time {
	if at := headerDate(h); !at.IsZero() {
		return at
	}
	return c.cfg.Now()
}

// unreadable is the error for a 2xx that isn't in the contract's shape.
func (c *Client) unreadable(in call, reply Reply, body []byte, cause error) *Error {
	e := &Error{Op: in.op, Status: reply.Status, Date: reply.Date, err: cause}
	if !in.secret {
		// Enough is taken that a key across the end of the excerpt is seen whole.
		start := c.redact(body[:min(len(body), maxExcerpt+len(c.key))])
		e.Body = excerpt(start)
	}
	return e
}

// redact takes the key out of an answer that repeats it. A key too short to be real
// is left alone, for it would match everywhere.
func (c *Client) redact(body []byte) []byte {
	if len(c.key) < minKeyToRedact {
		return body
	}
	return bytes.ReplaceAll(body, []byte(c.key.Reveal()), []byte(secretSet))
}

// hideKey takes the key out of decoded texts, where escapes could have hidden it.
func (e *Error) hideKey(key Secret) {
	if len(key) < minKeyToRedact {
		return
	}
	for _, text := range []*string{&e.Code, &e.Message, &e.CorrelationID} {
		*text = strings.ReplaceAll(*text, key.Reveal(), secretSet)
	}
	for i := range e.Fields {
		e.Fields[i].Msg = strings.ReplaceAll(e.Fields[i].Msg, key.Reveal(), secretSet)
	}
}

// bare takes the URL off an error of net/http: its query may hold what isn't ours to log.
func bare(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// headerDate reads the Date header.
func headerDate(h http.Header) time.Time {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
