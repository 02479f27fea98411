package geonode

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// What errors.Is can find in an error of this package.
var (
	// ErrUnauthorized is 401: the key is missing or wrong.
	ErrUnauthorized = errors.New("the vendor refused the API key")
	// ErrBalance is 402: the account has nothing left to pay with.
	ErrBalance = errors.New("the vendor account has no balance")
	// ErrNotFound is 404: no such job or webhook on this account.
	ErrNotFound = errors.New("the vendor knows no such thing")
	// ErrConflict is 409: a job that can't be cancelled now.
	ErrConflict = errors.New("the vendor can't do that now")
	// ErrThrottled is 429: too many requests, or the plan's concurrency is in use.
	ErrThrottled = errors.New("the vendor asks to slow down")
	// ErrTooLarge is ours: the answer went over Config.MaxResponse.
	ErrTooLarge = errors.New("the answer is over the size limit")
	// ErrMalformed is a 2xx answer that isn't what the contract says.
	ErrMalformed = errors.New("the answer is not in the contract's shape")
)

// Shape names the form an error body had.
type Shape int

// The shapes of contract.md, section 4. The flat item error, its shape 4, is in an
// item and never an error of a call.
const (
	// ShapeNone is no body, HTML, or JSON of no known form.
	ShapeNone Shape = iota
	// ShapeStandard is code, message, correlation_id and retryable.
	ShapeStandard
	// ShapeDetail is a list of refused fields.
	ShapeDetail
	// ShapeExtraction is code, message, retryable and details: the page failed, not the call.
	ShapeExtraction
)

// Certainty says whether a failed submit may have made a job.
type Certainty int

const (
	// Unknown means the vendor may have accepted the work: never submit again without looking.
	Unknown Certainty = iota
	// CertainlyNotAccepted means no job was made, so a further submit can't double it.
	CertainlyNotAccepted
)

// String names the certainty.
func (c Certainty) String() string {
	if c == CertainlyNotAccepted {
		return "certainly not accepted"
	}
	return "unknown"
}

// FieldError is one refused field of a request.
type FieldError struct {
	// Loc leads to the field: where it was (body, query), then its name and indexes.
	Loc  []string
	Msg  string
	Type string
}

// Error is every failure of a call. Its text holds neither key nor URL.
type Error struct {
	// Op says what was being done, such as "create batch".
	Op string
	// Status is the HTTP status; 0 when there was no answer.
	Status int
	// Date is the vendor's clock, from the answer; zero without one.
	Date time.Time
	// Shape is the form of the body that Code to Fields were read from.
	Shape         Shape
	Code          string
	Message       string
	CorrelationID string
	// RetryableSent is the body's retryable flag; nil when it wasn't sent as a boolean.
	RetryableSent *bool
	// Fields are the refused fields of a ShapeDetail body.
	Fields []FieldError
	// Body is the start of the answer, at most 2 KiB, without the key. It is empty where the
	// answer could hold a webhook secret.
	Body string

	err        error // The cause on our side, if any.
	refused    bool  // A wrong parameter: the call was refused here.
	notSent    bool  // Proof that no byte of the request went out.
	retryAfter time.Duration
	hasRetry   bool
}

const maxErrorText = 300

// Error tells what failed, for logs. It is not meant for pages.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Status != 0 {
		fmt.Fprintf(&b, ": status %d", e.Status)
	}
	if e.Code != "" {
		b.WriteString(" " + clip(e.Code, maxErrorText))
	}
	if e.Message != "" {
		b.WriteString(": " + clip(e.Message, maxErrorText))
	}
	for _, f := range e.Fields {
		b.WriteString(": " + clip(strings.Join(f.Loc, ".")+" "+f.Msg, maxErrorText))
		break
	}
	if e.CorrelationID != "" {
		b.WriteString(" (correlation " + clip(e.CorrelationID, maxErrorText) + ")")
	}
	if e.err != nil {
		b.WriteString(": " + e.err.Error())
	}
	return b.String()
}

// Unwrap gives the cause on our side, such as context.DeadlineExceeded.
func (e *Error) Unwrap() error { return e.err }

// Is matches the sentinels that stand for a status.
func (e *Error) Is(target error) bool {
	switch e.Status {
	case http.StatusUnauthorized:
		return target == ErrUnauthorized
	case http.StatusPaymentRequired:
		return target == ErrBalance
	case http.StatusNotFound:
		return target == ErrNotFound
	case http.StatusConflict:
		return target == ErrConflict
	case http.StatusTooManyRequests:
		return target == ErrThrottled
	}
	return false
}

// Retryable says whether the same call can succeed later: the vendor's flag decides,
// else the status (429, 502, 503 and 504; 408 is documented for map alone, which this
// client doesn't have). A call without an answer is retryable unless it was refused
// here or given up by the caller. For a submit ask Certainty first.
func (e *Error) Retryable() bool {
	if e.RetryableSent != nil {
		return *e.RetryableSent
	}
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case 0:
		return !e.refused && !errors.Is(e.err, context.Canceled)
	}
	// A 2xx of which the end never came may well come whole the next time.
	return e.Status < http.StatusMultipleChoices && e.err != nil &&
		!errors.Is(e.err, ErrMalformed) && !errors.Is(e.err, ErrTooLarge) && !errors.Is(e.err, context.Canceled)
}

// RetryAfter is how long the vendor asks to wait, never negative; false when it didn't
// say so readably. The caller caps it.
func (e *Error) RetryAfter() (time.Duration, bool) { return e.retryAfter, e.hasRetry }

// Timeout is true when the call's time ran out, here or on the way.
func (e *Error) Timeout() bool {
	if errors.Is(e.err, context.DeadlineExceeded) {
		return true
	}
	var timed interface{ Timeout() bool }
	return errors.As(e.err, &timed) && timed.Timeout()
}

// PlanLimit is true when the plan or the vendor's size limit refused the request, so
// that a smaller one may pass: a 413, a 422 in the standard shape, or a 422 that
// finds the list of urls too long. A refused field of another kind is a mistake of
// ours, and an extraction error is about the page. Ask it of batches and crawls: a sync
// extraction that failed without details looks like the standard shape.
func (e *Error) PlanLimit() bool {
	switch {
	case e.Status == http.StatusRequestEntityTooLarge:
		return true
	case e.Status != http.StatusUnprocessableEntity:
		return false
	case e.Shape == ShapeStandard:
		return true
	}
	for _, f := range e.Fields {
		if f.tooManyURLs() {
			return true
		}
	}
	return false
}

// tooManyURLs knows the type words of the validators in use for a list over its limit.
func (f FieldError) tooManyURLs() bool {
	if len(f.Loc) == 0 || f.Loc[len(f.Loc)-1] != "urls" {
		return false
	}
	for _, word := range []string{"too_long", "too_many", "max_items", "max_length"} {
		if strings.Contains(f.Type, word) {
			return true
		}
	}
	return false
}

// Certainty says whether a failed submit may nevertheless have made a job. It errs
// towards Unknown: believing wrongly in a job costs a look through the lists, believing
// wrongly in none costs a second charge and a second set of results.
//
// No job was made when
//   - no connection was had, so no byte of the request left (dial refused, unknown
//     host, failed TLS handshake, a parameter refused here);
//   - the answer is any 4xx: the vendor read the request and declined it;
//   - the answer is a 503, which is documented as "not now", or another 5xx whose body
//     is the vendor's own standard error with a boolean retryable: the application
//     itself, not a proxy before it, says that the request failed.
//
// It stays unknown when
//   - time ran out or the connection broke after the request began to go out;
//   - a 500, 502 or 504 came without such a body: a proxy may have lost the answer of
//     an application that had already accepted;
//   - a 2xx came that can't be read, for it says yes without saying which job;
//   - a 3xx came: who answered there, and what the vendor did, is anybody's guess.
func (e *Error) Certainty() Certainty {
	switch {
	case e.Status == 0 && (e.notSent || e.refused):
		return CertainlyNotAccepted
	case e.Status >= 400 && e.Status < 500, e.Status == http.StatusServiceUnavailable:
		return CertainlyNotAccepted
	case e.Status >= 500 && e.Shape == ShapeStandard && e.RetryableSent != nil:
		return CertainlyNotAccepted
	}
	return Unknown
}

// CertaintyOf is the certainty of any error; one that isn't an *Error is Unknown.
func CertaintyOf(err error) Certainty {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Certainty()
	}
	return Unknown
}

// clip shortens s to about n bytes without cutting a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
