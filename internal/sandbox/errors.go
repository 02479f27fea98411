package sandbox

import (
	"net/http"
	"strconv"
	"time"
)

// apiError is an answer in the standard error shape.
type apiError struct {
	status     int
	Code       string `json:"code"`
	Message    string `json:"message"`
	Correlated string `json:"correlation_id"`
	Retryable  bool   `json:"retryable"`

	retryAfter string // The Retry-After header; none when empty.
}

// Error is the code and the message.
func (e *apiError) Error() string { return e.Code + ": " + e.Message }

// validationError is an answer in the request validation shape.
type validationError struct {
	Detail []wireInvalid `json:"detail"`
}

// wireInvalid is ValidationErrorItem; Loc holds strings and integers.
type wireInvalid struct {
	Loc  []any  `json:"loc"`
	Msg  string `json:"msg"`
	Type string `json:"type"`
}

// Error is the first complaint.
func (e *validationError) Error() string {
	if len(e.Detail) == 0 {
		return "invalid request"
	}
	return e.Detail[0].Msg
}

// invalid is a validation error with one complaint about the place loc.
func invalid(kind, msg string, loc ...any) error {
	return &validationError{Detail: []wireInvalid{{Loc: loc, Msg: msg, Type: kind}}}
}

// extractionError is the answer of a sync call whose page could not be extracted.
type extractionError struct{ body wireExtractError }

// Error is the code and the message.
func (e *extractionError) Error() string { return e.body.Code + ": " + e.body.Message }

func errNotFound(what string) error {
	return &apiError{status: http.StatusNotFound, Code: "NOT_FOUND", Message: "There is no such " + what + "."}
}

func errUnauthorized() error {
	return &apiError{status: http.StatusUnauthorized, Code: "UNAUTHORIZED", Message: "The API key is missing or not known."}
}

func errBalance() error {
	return &apiError{
		status: http.StatusPaymentRequired, Code: "INSUFFICIENT_BALANCE",
		Message: "The balance does not cover this request.",
	}
}

func errConflict() error {
	return &apiError{
		status: http.StatusConflict, Code: "CONFLICT",
		Message: "The job has ended and can no longer be cancelled.",
	}
}

func errPlan(message string) error {
	return &apiError{status: http.StatusUnprocessableEntity, Code: "VALIDATION_ERROR", Message: message}
}

func errTooLarge() error {
	return &apiError{
		status: http.StatusRequestEntityTooLarge, Code: "PAYLOAD_TOO_LARGE",
		Message: "The request body is too large.",
	}
}

// errThrottled is a 429; wait is the Retry-After header, none when empty.
func errThrottled(wait string) error {
	return &apiError{
		status: http.StatusTooManyRequests, Code: "RATE_LIMITED", Message: "Too many requests.",
		Retryable: true, retryAfter: wait,
	}
}

func errUnavailable(status int) error {
	return &apiError{status: status, Code: "SERVICE_ERROR", Message: http.StatusText(status) + ".", Retryable: true}
}

// retrySeconds and retryDate are the two forms of Retry-After; a wait is rounded up to whole seconds.
func retrySeconds(wait time.Duration) string {
	return strconv.Itoa(int((wait + time.Second - 1) / time.Second))
}

func retryDate(now time.Time, wait time.Duration) string {
	return now.Add(wait + time.Second).UTC().Format(http.TimeFormat)
}
