package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// previewPolicy is for a page that isn't ours: it may style itself and show what it
// brought along, and nothing else. Together with the frame's own sandbox it
// runs nothing, loads nothing, sends nothing, and is of no origin.
const previewPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'self'"

// previewResult is GET /results/{item_id}/preview.
func (s *Server) previewResult(c echo.Context) error {
	shown, err := s.resultAsked(c)
	if err != nil {
		return err
	}
	content, err := shown.part(c.Request().Context(), store.PartHTML, readWhole)
	if err != nil {
		return err
	}
	if content == nil {
		return notFound()
	}
	header := c.Response().Header()
	header.Set("Content-Security-Policy", previewPolicy)
	header.Set("Cross-Origin-Opener-Policy", "unsafe-none")
	header.Set("X-Frame-Options", "SAMEORIGIN")
	header.Set("X-DNS-Prefetch-Control", "off")
	// Valid UTF-8 whatever the page says of itself: the header has the last word.
	return c.Blob(http.StatusOK, echo.MIMETextHTMLCharsetUTF8, bytes.ToValidUTF8(content, []byte("\uFFFD")))
}

// downloadResult is GET /results/{item_id}/download?format=markdown|html|json.
// Content goes out byte by byte as it is kept.
func (s *Server) downloadResult(c echo.Context) error {
	shown, err := s.resultAsked(c)
	if err != nil {
		return err
	}
	ctx, facts := c.Request().Context(), shown.ResultFacts
	var content []byte
	kind, ending := echo.MIMETextPlainCharsetUTF8, ".md"
	switch c.QueryParam("format") {
	case "markdown", "":
		content, err = shown.part(ctx, store.PartMarkdown, readWhole)
	case "html":
		kind, ending = echo.MIMEOctetStream, ".html"
		content, err = shown.part(ctx, store.PartHTML, readWhole)
	case "json":
		kind, ending = echo.MIMEApplicationJSON, ".json"
		content, err = resultJSON(ctx, shown)
	default:
		return notFound()
	}
	if err != nil {
		return err
	}
	if content == nil {
		return notFound()
	}
	if err := s.auditDownload(c, facts, ending); err != nil {
		return fmt.Errorf("download a result: %w", err)
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentDisposition, `attachment; filename="`+fileName(facts)+ending+`"`)
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	return c.Blob(http.StatusOK, kind, content)
}

// auditDownload writes down that content leaves; HEAD takes none.
func (s *Server) auditDownload(c echo.Context, facts *store.ResultFacts, ending string) error {
	if c.Request().Method == http.MethodHead {
		return nil
	}
	return s.store.Audit(c.Request().Context(), s.now(), store.Change{
		What: "export.result", Kind: "item", ID: idText(facts.ItemID), After: map[string]string{"format": strings.TrimPrefix(ending, ".")},
	})
}

// resultJSON is a whole result as one object. Text that isn't valid UTF-8 has
// what can't be shown replaced: the other formats have every byte.
func resultJSON(ctx context.Context, facts shownResult) ([]byte, error) {
	object := struct {
		ItemID   int64           `json:"item_id"`
		URL      string          `json:"url"`
		Batch    string          `json:"batch"`
		Title    string          `json:"title,omitempty"`
		Net      string          `json:"net"`
		StoredAt string          `json:"stored_at"`
		Status   *int            `json:"http_status,omitempty"`
		Markdown *string         `json:"markdown,omitempty"`
		HTML     *string         `json:"html,omitempty"`
		Links    json.RawMessage `json:"links,omitempty"`
		Metadata json.RawMessage `json:"metadata,omitempty"`
	}{
		ItemID: facts.ItemID, URL: facts.URL, Batch: facts.BatchName, Title: facts.Title, Net: string(facts.Net),
		StoredAt: facts.StoredAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"), Status: facts.HTTPStatus,
	}
	for _, part := range []struct {
		name store.Part
		put  func([]byte)
	}{
		{store.PartMarkdown, func(b []byte) { object.Markdown = textOf(b) }},
		{store.PartHTML, func(b []byte) { object.HTML = textOf(b) }},
		{store.PartLinks, func(b []byte) { object.Links = jsonOf(b) }},
		{store.PartMetadata, func(b []byte) { object.Metadata = jsonOf(b) }},
	} {
		content, err := facts.part(ctx, part.name, readWhole)
		if err != nil {
			return nil, err
		}
		part.put(content)
	}
	encoded, err := json.MarshalIndent(object, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return encoded, nil
}

func textOf(content []byte) *string {
	if content == nil {
		return nil
	}
	text := string(content)
	return &text
}

func jsonOf(content []byte) json.RawMessage {
	if !json.Valid(content) {
		return nil
	}
	return content
}

// fileName is the name that the result has in an export too, with its version
// where that is an earlier one.
func fileName(facts *store.ResultFacts) string {
	name := pipeline.FileName(facts.URL, facts.ItemID)
	if facts.Version != facts.Latest {
		name += "-version-" + strconv.Itoa(facts.Version)
	}
	return name
}
