package web

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
)

// Bounds of the webhook endpoint.
const (
	// lookUpTime is how long it may take to find out whose a delivery is: a
	// database may be silent instead of away, and the sender waits.
	lookUpTime = 5 * time.Second
	// bodyTime is how long a body may take to arrive.
	bodyTime = 30 * time.Second
	// drainTime is how long a refused body may keep its connection busy.
	drainTime = 5 * time.Second
	// receiveTime is how long a delivery may take to be committed. It goes on
	// when the client has gone: others may share its commit.
	receiveTime = 15 * time.Second
	// reserveStep is how much of the budget a body of unknown length takes at a
	// time.
	reserveStep = 64 << 10
)

// receive is POST /webhooks/geonode/{endpoint}. Everything that can be refused
// without the body is, in an order that costs least; what comes through is the
// pipeline's to judge, on the raw bytes.
func (s *Server) receive(c echo.Context) error {
	r := c.Request()
	known, err := s.knownEndpoint(c)
	switch {
	case err != nil:
		s.log.ErrorContext(r.Context(), "endpoint not looked up", slog.Any("error", err))
		return s.tryLater(c, "try again later")
	case !known:
		return s.refuseUnread(c, http.StatusNotFound, "no such endpoint")
	}
	if status, reason := unacceptable(r, s.cfg.MaxBody); status != 0 {
		return s.refuseUnread(c, status, reason)
	}
	if err := s.readUntil(c, s.cfg.bodyTime); err != nil {
		return err
	}
	hold := s.flights.hold()
	defer hold.release()
	body, err := readBody(http.MaxBytesReader(c.Response(), r.Body, s.cfg.MaxBody), r.ContentLength, hold)
	if err != nil {
		return s.unreadBody(c, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), receiveTime)
	defer cancel()
	answer := s.pipeline.Receive(ctx, pipeline.Incoming{
		Endpoint: endpointOf(c), Header: r.Header, Body: body, Source: c.RealIP(), ReceivedAt: s.now(),
	})
	if answer.Status == http.StatusServiceUnavailable {
		c.Response().Header().Set(echo.HeaderRetryAfter, "5")
	}
	return c.JSON(answer.Status, map[string]string{"verdict": string(answer.Verdict), "message": answer.Message})
}

// knownEndpoint reports whether the request is to an endpoint of ours.
func (s *Server) knownEndpoint(c echo.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(c.Request().Context(), s.cfg.lookUpTime)
	defer cancel()
	return s.pipeline.KnownEndpoint(ctx, endpointOf(c))
}

// endpointOf is the last segment of the path. Echo leaves the parameter empty
// where only the method doesn't fit.
func endpointOf(c echo.Context) string {
	return strings.TrimPrefix(c.Request().URL.Path, webhookPrefix)
}

// readUntil bounds how long the rest of a request may take to arrive.
func (s *Server) readUntil(c echo.Context, d time.Duration) error {
	err := http.NewResponseController(c.Response()).SetReadDeadline(s.now().Add(d))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// unacceptable judges a delivery by its header alone; status 0 lets it in.
func unacceptable(r *http.Request, limit int64) (int, string) {
	switch encoding := strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ",")); {
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return http.StatusUnsupportedMediaType, "a body with a Content-Encoding is not taken"
	case !isJSON(r.Header.Values("Content-Type")):
		return http.StatusUnsupportedMediaType, "the Content-Type must be application/json"
	case r.ContentLength > limit:
		return http.StatusRequestEntityTooLarge, "the body is over the limit of " + strconv.FormatInt(limit, 10) + " bytes"
	}
	return 0, ""
}

// isJSON takes application/json in any case, with a charset of UTF-8 or none:
// the signature is over bytes, and JSON has no other encoding.
func isJSON(values []string) bool {
	if len(values) != 1 {
		return false
	}
	kind, params, err := mime.ParseMediaType(values[0])
	if err != nil || kind != "application/json" {
		return false
	}
	charset := params["charset"]
	return charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// errBudget reports that too many bytes of bodies are in flight.
var errBudget = errors.New("too many bodies in flight")

// unreadBody answers a body that didn't arrive, or not whole.
func (s *Server) unreadBody(c echo.Context, err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return s.refuseUnread(c, http.StatusRequestEntityTooLarge,
			"the body is over the limit of "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes")
	case errors.Is(err, errBudget):
		return s.tryLater(c, "too much is being received at the moment")
	}
	// Broken off, too slow, or another length than was said: nobody may be
	// there to read this, and nothing was taken up.
	c.Response().Header().Set(echo.HeaderConnection, "close")
	return answerPlainly(c, http.StatusBadRequest, "the body did not arrive whole")
}

// tryLater answers a delivery that can't be taken up through no fault of its
// own: the vendor sends it again. The rest of the body would hold the
// connection up, so it's closed.
func (s *Server) tryLater(c echo.Context, message string) error {
	c.Response().Header().Set(echo.HeaderRetryAfter, "5")
	c.Response().Header().Set(echo.HeaderConnection, "close")
	return answerPlainly(c, http.StatusServiceUnavailable, message)
}

// refuseMethod answers every method but POST.
func (s *Server) refuseMethod(c echo.Context) error {
	known, err := s.knownEndpoint(c)
	if err == nil && !known {
		return s.refuseUnread(c, http.StatusNotFound, "no such endpoint")
	}
	c.Response().Header().Set(echo.HeaderAllow, http.MethodPost)
	return s.refuseUnread(c, http.StatusMethodNotAllowed, "deliveries are sent by POST")
}

// refuseUnread answers a delivery whose body isn't read, and has it recorded.
func (s *Server) refuseUnread(c echo.Context, status int, reason string) error {
	r := c.Request()
	if status == http.StatusRequestEntityTooLarge {
		// The rest would have to be read before the next request could be.
		c.Response().Header().Set(echo.HeaderConnection, "close")
	} else if err := s.readUntil(c, drainTime); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), receiveTime)
	defer cancel()
	s.pipeline.RefuseUnread(ctx, endpointOf(c), r.Header, c.RealIP(), status, reason)
	return answerPlainly(c, status, reason)
}

func answerPlainly(c echo.Context, status int, message string) error {
	return c.JSON(status, map[string]string{"verdict": "refused", "message": message})
}

// readBody reads a whole body within the budget, which is taken piece by piece
// as the bytes come: a length that was announced may be a lie, and a sender that
// announces much and sends nothing must not hold what others need.
func readBody(body io.Reader, length int64, hold *hold) ([]byte, error) {
	if length == 0 {
		return nil, nil
	}
	size := int64(reserveStep)
	if length > 0 {
		// One byte more, so that the end is seen without growing.
		size = min(length+1, reserveStep)
	}
	if !hold.take(size) {
		return nil, errBudget
	}
	content := make([]byte, 0, size)
	for {
		if len(content) == cap(content) {
			if !hold.take(int64(cap(content))) {
				return nil, errBudget
			}
			content = append(make([]byte, 0, 2*cap(content)), content...)
		}
		n, err := body.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		if errors.Is(err, io.EOF) {
			return content, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// byteBudget bounds the bytes that bodies take up together.
type byteBudget struct {
	mu   sync.Mutex
	free int64
}

func newByteBudget(size int64) *byteBudget { return &byteBudget{free: size} }

// hold is what one body has of the budget.
type hold struct {
	budget *byteBudget
	taken  int64
}

func (b *byteBudget) hold() *hold { return &hold{budget: b} }

// take reserves more, or nothing when there isn't as much.
func (h *hold) take(size int64) bool {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	if h.budget.free < size {
		return false
	}
	h.budget.free -= size
	h.taken += size
	return true
}

func (h *hold) release() {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.budget.free += h.taken
	h.taken = 0
}
