package contracttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// DeliberateHeader marks a request, or an answer, that breaks the contract on purpose;
// its value is the reason. The kit takes it off.
const DeliberateHeader = "X-Contract-Deliberate"

// kitHeader tells Handler that a Transport of the kit is at the other end, which does
// the counting and takes the marks off the answers.
const kitHeader = "X-Contract-Kit"

// maxKept bounds the bodies that are validated; larger ones pass unread.
const maxKept = 128 << 20

type deliberateKey struct{}

// Deliberate marks the calls made with the context as breaking the contract on
// purpose, for a reason that the reader of the test should know.
func Deliberate(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, deliberateKey{}, reason)
}

type transport struct {
	base http.RoundTripper
	out  *reporter
	skip []string
}

// Transport validates every request and answer that passes through base, which may be
// nil for http.DefaultTransport. Paths that begin with one of skip are none of the
// contract's business. An answer is read whole before it is handed on.
func Transport(tb testing.TB, base http.RoundTripper, skip ...string) http.RoundTripper {
	tb.Helper()
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{base: base, out: newReporter(tb), skip: skip}
}

// RoundTrip makes one call.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if skipped(r.URL.Path, t.skip) {
		return t.base.RoundTrip(r)
	}
	counts.checked.Add(1)
	body, err := requestBody(r)
	if err != nil {
		return nil, err
	}
	reason, marked := markOf(r)
	x, breach := checkRequest(r.Context(), r, body)
	if !marked && breach != nil {
		t.out.breach("client", r.Method+" "+r.URL.Path, breach)
	}
	resp, err := t.base.RoundTrip(outgoing(r, body, reason))
	if err != nil {
		countMark(marked)
		return nil, err
	}
	marked = resp.Header.Get(DeliberateHeader) != "" || marked
	resp.Header.Del(DeliberateHeader)
	countMark(marked)
	got, whole := keepBody(resp)
	if x != nil && whole && !marked {
		if breach := x.checkResponse(r.Context(), resp.StatusCode, resp.Header, got); breach != nil {
			t.out.breach("client", r.Method+" "+r.URL.Path, breach)
		}
	}
	return resp, nil
}

func countMark(marked bool) {
	if marked {
		counts.deliberate.Add(1)
	}
}

// markOf finds the mark in the context or the header of a request.
func markOf(r *http.Request) (string, bool) {
	if reason, ok := r.Context().Value(deliberateKey{}).(string); ok {
		return reason, true
	}
	reason := r.Header.Get(DeliberateHeader)
	return reason, reason != ""
}

// requestBody reads the body of a request, which the caller gives up.
func requestBody(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	return body, nil
}

// outgoing copies the request, as a RoundTripper must not change it.
func outgoing(r *http.Request, body []byte, reason string) *http.Request {
	out := r.Clone(r.Context())
	out.Header.Set(kitHeader, "1")
	if reason != "" {
		out.Header.Set(DeliberateHeader, reason)
	}
	if body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return out
}

// keepBody reads the answer and puts it back; false when it came broken or too large
// to keep, and then the reader of the answer meets the same end.
func keepBody(resp *http.Response) ([]byte, bool) {
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxKept+1))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failingReader{err}
	}
	resp.Body = &putBack{Reader: io.MultiReader(bytes.NewReader(got), rest), Closer: resp.Body}
	return got, err == nil && len(got) <= maxKept
}

type putBack struct {
	io.Reader
	io.Closer
}

type failingReader struct{ err error }

// Read fails as the answer did.
func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func skipped(path string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
