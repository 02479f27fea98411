package web

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// problem is an answer other than the page asked for. Title and text are
// written for the reader; the cause is for the log.
type problem struct {
	status     int
	title      string
	text       string
	retryAfter time.Duration
	cause      error
}

// Error implements error.
func (p *problem) Error() string {
	text := strconv.Itoa(p.status) + " " + p.title
	if p.cause != nil {
		text += ": " + p.cause.Error()
	}
	return text
}

// Unwrap gives the cause, which may be nil.
func (p *problem) Unwrap() error { return p.cause }

func notFound() error { return nothingHere() }

func nothingHere() *problem {
	return &problem{
		status: http.StatusNotFound, title: "Not found",
		text: "Nothing is kept at this address. It may have been mistyped, or what was here is gone.",
	}
}

func forbidden(text string) error {
	return &problem{status: http.StatusForbidden, title: "Not allowed", text: text}
}

func badRequest(text string, cause error) error {
	return &problem{status: http.StatusBadRequest, title: "That can't be read", text: text, cause: cause}
}

// removedItems answers for what can't be done with a batch of which only the
// counts are left.
func removedItems(ctx context.Context, b *store.Batch) error {
	return &problem{
		status: http.StatusUnprocessableEntity, title: "Its items were removed",
		text: views.Textf(ctx, "The items of batch %s were removed after the time for which batches are kept. Only its counts are left.", idText(b.ID)),
	}
}

// asProblem is the one place where an error becomes a status and a text. What
// it doesn't know is internal: nothing of it is shown but a random id.
func asProblem(ctx context.Context, err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	var tooLarge *http.MaxBytesError
	var framework *echo.HTTPError
	var refused *pipeline.InvalidSubmission
	switch {
	case errors.As(err, &tooLarge):
		return &problem{
			status: http.StatusRequestEntityTooLarge, title: "Too large",
			text: views.Textf(ctx, "More was sent than is taken at once (%d KiB).", tooLarge.Limit>>10), cause: err,
		}
	case errors.As(err, &refused):
		text := make([]string, len(refused.Fields))
		for i, each := range refused.Fields {
			text[i] = sentence(each.Message)
		}
		return &problem{status: http.StatusUnprocessableEntity, title: "That can't be done", text: strings.Join(text, " "), cause: err}
	case errors.Is(err, store.ErrNotFound):
		return nothingHere()
	case store.IsAway(err):
		return &problem{
			status: http.StatusServiceUnavailable, title: "The database can't be reached",
			text: "Nothing is lost: jobs go on at the vendor and are brought home later. Try again in a moment.", retryAfter: busyFor, cause: err,
		}
	case errors.Is(err, context.DeadlineExceeded):
		return &problem{
			status: http.StatusServiceUnavailable, title: "That took too long",
			text: "The server is busy. Try again in a moment.", retryAfter: busyFor, cause: err,
		}
	case errors.As(err, &framework):
		return fromEcho(framework)
	}
	return &problem{
		status: http.StatusInternalServerError, title: "Something went wrong",
		text: "This is our fault, and it has been written to the log.", cause: err,
	}
}

func fromEcho(err *echo.HTTPError) *problem {
	switch {
	case err.Code == http.StatusNotFound:
		return nothingHere()
	case err.Code == http.StatusMethodNotAllowed:
		return &problem{
			status: err.Code, title: "Not that way",
			text: "This address doesn't take that method: the Allow header lists what it takes.",
		}
	case err.Code >= http.StatusInternalServerError:
		return &problem{
			status: err.Code, title: "Something went wrong",
			text: "This is our fault, and it has been written to the log.", cause: err,
		}
	}
	return &problem{status: err.Code, title: http.StatusText(err.Code), text: "The request can't be served as it is.", cause: err}
}

// answerError writes the answer to an error that a handler returned.
func (s *Server) answerError(err error, c echo.Context) {
	ctx := c.Request().Context()
	if c.Response().Committed {
		// The headers are out; all that is left is to tell the log.
		s.log.WarnContext(ctx, "answer broken off", slog.String("route", c.Path()), slog.Any("error", err))
		return
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		// The reader went away; there is nobody to answer.
		c.Response().Status = statusClientGone
		return
	}
	p := asProblem(ctx, err)
	id := ""
	if p.status >= http.StatusInternalServerError {
		id = errorID()
		s.log.ErrorContext(ctx, "request failed", slog.String("error_id", id), slog.String("method", c.Request().Method),
			slog.String("route", c.Path()), slog.Int("status", p.status), slog.Any("error", err))
	}
	if err := s.writeProblem(c, p, id); err != nil {
		s.log.WarnContext(ctx, "error page not written", slog.String("route", c.Path()), slog.Any("error", err))
	}
}

// busyFor is how long somebody should wait before asking a busy server again.
const busyFor = 10 * time.Second

// statusClientGone is what the access log shows for an answer nobody took.
const statusClientGone = 499

func (s *Server) writeProblem(c echo.Context, p *problem, id string) error {
	header := c.Response().Header()
	header.Set(echo.HeaderCacheControl, "no-store")
	header.Del(echo.HeaderContentDisposition)
	if p.retryAfter > 0 {
		header.Set(echo.HeaderRetryAfter, retrySeconds(p.retryAfter))
	}
	switch wanted(c.Request()) {
	case wantsHTML:
		return s.errorPage(c, p, id)
	case wantsJSON:
		body := map[string]string{"error": p.title, "message": p.text}
		if id != "" {
			body["error_id"] = id
		}
		return c.JSON(p.status, body)
	case wantsText:
	}
	return plainProblem(c, p, id)
}

func plainProblem(c echo.Context, p *problem, id string) error {
	text := p.title + ". " + p.text
	if id != "" {
		text += " Error id: " + id + "."
	}
	return c.String(p.status, text+"\n")
}

// retrySeconds rounds up, so that whoever waits as told is let through.
func retrySeconds(d time.Duration) string { return strconv.FormatInt(wholeSeconds(d), 10) }

func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// errorID ties what a reader sees to a line of the log.
func errorID() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
