package contracttest

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
)

// Handler validates every request that reaches next and every answer it gives. Paths
// that begin with one of skip are none of the contract's business. Answers pass
// through as they are written, so slow ones stay slow; one that is hijacked or
// aborted isn't validated.
func Handler(tb testing.TB, next http.Handler, skip ...string) http.Handler {
	tb.Helper()
	out := newReporter(tb)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if skipped(r.URL.Path, skip) {
			next.ServeHTTP(w, r)
			return
		}
		serve(out, next, w, r)
	})
}

// serve handles one call: the request is checked before, the answer after.
func serve(out *reporter, next http.Handler, w http.ResponseWriter, r *http.Request) {
	fromKit := r.Header.Get(kitHeader) != ""
	_, marked := markOf(r)
	r.Header.Del(kitHeader)
	r.Header.Del(DeliberateHeader)
	body, whole := takeBody(r)
	what := r.Method + " " + r.URL.Path
	x, breach := checkRequest(r.Context(), r, body)
	if breach != nil && whole && !marked {
		out.breach("server", what, breach)
	}
	rec := &recorder{ResponseWriter: w, keepMark: fromKit}
	next.ServeHTTP(rec, r)
	rec.WriteHeader(http.StatusOK) // For a handler that wrote nothing; else without effect.
	marked = marked || rec.marked
	if !fromKit {
		counts.checked.Add(1)
		countMark(marked)
	}
	if x == nil || marked || rec.hijacked || rec.overflow {
		return
	}
	if breach := x.checkResponse(r.Context(), rec.status, rec.header, rec.body.Bytes()); breach != nil {
		out.breach("server", what, breach)
	}
}

// takeBody reads the request's body and puts it back; false when it came broken or is
// too large to keep.
func takeBody(r *http.Request) ([]byte, bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, true
	}
	got, err := io.ReadAll(io.LimitReader(r.Body, maxKept+1))
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failingReader{err}
	}
	r.Body = &putBack{Reader: io.MultiReader(bytes.NewReader(got), rest), Closer: r.Body}
	return got, err == nil && len(got) <= maxKept
}

// recorder passes an answer through and keeps a copy.
type recorder struct {
	http.ResponseWriter
	keepMark bool // The client's kit takes the mark off.
	marked   bool
	wrote    bool
	hijacked bool
	overflow bool
	status   int
	header   http.Header
	body     bytes.Buffer
}

// WriteHeader sends the first final status, without the mark.
func (r *recorder) WriteHeader(status int) {
	if r.wrote || r.hijacked {
		return
	}
	if status < http.StatusOK {
		r.ResponseWriter.WriteHeader(status)
		return
	}
	r.wrote, r.status = true, status
	r.marked = r.Header().Get(DeliberateHeader) != ""
	if !r.keepMark {
		r.Header().Del(DeliberateHeader)
	}
	r.header = r.Header().Clone()
	r.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body and keeps it.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.body.Len()+len(b) > maxKept {
		r.overflow = true
	} else {
		r.body.Write(b)
	}
	return r.ResponseWriter.Write(b)
}

// Flush sends what was written so far.
func (r *recorder) Flush() {
	r.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(r.ResponseWriter).Flush() // A writer that can't flush sends at the end.
}

// Hijack gives the connection away; what happens there is not validated.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.hijacked = true
	return http.NewResponseController(r.ResponseWriter).Hijack()
}

// Unwrap lets http.ResponseController reach the deadlines.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
