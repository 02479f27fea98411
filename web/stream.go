package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"rollcall/views"
)

// overviewLive is GET /live.
func (s *Server) overviewLive(c echo.Context) error { return s.live.serve(c, overviewTopic) }

// serve is one stream, until the reader goes, their session ends, or the
// server shuts down.
func (h *hub) serve(c echo.Context, id int64) error {
	key := topicOf(c, id)
	news, err := h.join(key)
	if err != nil {
		return tooManyStreams(err)
	}
	defer h.leave(key, news)
	startStream(c)
	beat := time.NewTicker(h.server.cfg.beat)
	defer beat.Stop()
	for {
		var next message
		select {
		case <-c.Request().Context().Done():
			return nil
		case <-h.quit:
			return nil
		case next = <-news:
		case <-beat.C:
			if !h.server.mayStay(c) {
				return nil
			}
			next.data = []byte(stillHere)
		}
		if err := h.send(c, next.data); err != nil || next.last {
			return nil // Done; or the reader is gone or too slow; the stream ends either way.
		}
	}
}

// topicOf is a topic in the language of who asks.
func topicOf(c echo.Context, id int64) topicKey {
	return topicKey{id: id, lang: views.LanguageFor(c.Request().Header.Get("Accept-Language"))}
}

func (h *hub) send(c echo.Context, data []byte) error {
	control := http.NewResponseController(c.Response())
	if err := control.SetWriteDeadline(h.server.now().Add(slowClient)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := c.Response().Write(data); err != nil {
		return err
	}
	return control.Flush()
}

// mayStay reports whether the stream's session still stands, and its person may
// still call the route. While the database can't say, the stream goes on: it
// shows nothing new then.
func (s *Server) mayStay(c echo.Context) bool {
	who, ok := sessionOf(c).Values[visitKey{}].(visit)
	if !ok {
		return false
	}
	roles, err := s.sessions.living(c.Request().Context(), [][]byte{who.hash})
	if err != nil {
		return true
	}
	role, lives := roles[string(who.hash)]
	return lives && accessOf(c).allows(role)
}

// startStream sends what stands before the first event.
func startStream(c echo.Context) {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/event-stream")
	header.Set(echo.HeaderCacheControl, "no-store")
	header.Set("X-Accel-Buffering", "no")
	c.Response().WriteHeader(http.StatusOK)
}

// tooManyStreams is the answer when this process keeps no more of them.
func tooManyStreams(cause error) error {
	return &problem{
		status: http.StatusServiceUnavailable, title: "Too many live pages",
		text: "This page won't move by itself for now. Load it again to see what is new.",
		// Long enough for somebody else to leave.
		retryAfter: time.Minute, cause: cause,
	}
}

// event is a fragment as one unnamed server-sent event.
func event(ctx context.Context, fragment templ.Component) ([]byte, error) {
	buffer := takeBuffer()
	defer giveBuffer(buffer)
	if err := fragment.Render(ctx, buffer); err != nil {
		return nil, fmt.Errorf("render event: %w", err)
	}
	var text bytes.Buffer
	// A lone CR ends a line of the stream too: one in a name that somebody
	// chose would let the rest of the name speak as an event of its own.
	for line := range bytes.Lines(bytes.ReplaceAll(buffer.Bytes(), []byte("\r"), []byte("\n"))) {
		text.WriteString("data: ")
		text.Write(bytes.TrimRight(line, "\n"))
		text.WriteByte('\n')
	}
	text.WriteByte('\n')
	return text.Bytes(), nil
}
