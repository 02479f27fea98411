package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// How much of a result its page shows, in bytes; the download is whole.
const (
	shownRendered = 512 << 10
	shownSource   = 1 << 20
	shownLinks    = 2000
	// readSmall bounds links and metadata, which are lists of the vendor's.
	readSmall = 4 << 20
	// readWhole bounds a download; what is stored is smaller.
	readWhole = 256 << 20
)

// result is GET /results/{item_id}.
func (s *Server) result(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	facts, err := s.store.PageResult(ctx, id)
	if err != nil {
		return err
	}
	props := resultProps(facts, c.QueryParam("tab"))
	if err := s.fillResult(ctx, id, &props); err != nil {
		return fmt.Errorf("result of item %d: %w", id, err)
	}
	if props.Layout, err = s.layout(c, resultTitle(facts), views.SectionBatches); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Result(props))
}

func resultTitle(facts *store.ResultFacts) string {
	if facts.Title != "" {
		return facts.Title
	}
	return "Result"
}

func resultProps(facts *store.ResultFacts, tab string) views.ResultProps {
	p := views.ResultProps{
		ItemID: idText(facts.ItemID), URL: facts.URL, BatchID: idText(facts.BatchID), BatchName: facts.BatchName,
		JobID: idOrNone(facts.JobID), Net: string(facts.Net), StoredAt: facts.StoredAt, Title: facts.Title,
		HasMD: facts.MarkdownSize >= 0, HasHTML: facts.HTMLSize >= 0,
		Bytes: max(facts.MarkdownSize, 0) + max(facts.HTMLSize, 0),
	}
	p.Metadata = resultMetadata(facts)
	p.Tab = chosenTab(p, tab)
	switch p.Tab {
	case views.TabRead:
		p.Truncated = facts.MarkdownSize > shownRendered
	case views.TabMarkdown:
		p.Truncated = facts.MarkdownSize > shownSource
	case views.TabHTML:
		p.Truncated = facts.HTMLSize > shownSource
	}
	return p
}

// chosenTab is the tab asked for when the result has it, else the first it has.
func chosenTab(p views.ResultProps, asked string) string {
	var tabs []string
	if p.HasMD {
		tabs = append(tabs, views.TabRead, views.TabMarkdown)
	}
	if p.HasHTML {
		tabs = append(tabs, views.TabPreview, views.TabHTML)
	}
	tabs = append(tabs, views.TabMetadata, views.TabLinks)
	if slices.Contains(tabs, asked) {
		return asked
	}
	return tabs[0]
}

// fillResult reads what the chosen tab shows, and no more.
func (s *Server) fillResult(ctx context.Context, id int64, p *views.ResultProps) error {
	raw, err := s.store.ResultPart(ctx, id, store.PartLinks, readSmall)
	if err != nil {
		return err
	}
	links := resultLinks(raw)
	if raw != nil {
		p.LinksTotal = views.Known(int64(len(links)))
	}
	switch p.Tab {
	case views.TabRead:
		p.SafeHTML, err = s.readMarkdown(ctx, id, p.URL)
		return err
	case views.TabMarkdown:
		content, err := s.store.ResultPart(ctx, id, store.PartMarkdown, shownSource)
		p.Markdown = printable(whole(content))
		return err
	case views.TabHTML:
		content, err := s.store.ResultPart(ctx, id, store.PartHTML, shownSource)
		p.HTML = printable(whole(content))
		return err
	case views.TabMetadata:
		content, err := s.store.ResultPart(ctx, id, store.PartMetadata, readSmall)
		p.Metadata = append(p.Metadata, vendorMetadata(content)...)
		return err
	case views.TabLinks:
		p.Truncated = len(links) > shownLinks
		p.Links = links[:min(len(links), shownLinks)]
	}
	return nil
}

// readMarkdown lays out the beginning of a result's Markdown, safe to show.
func (s *Server) readMarkdown(ctx context.Context, id int64, url string) (string, error) {
	content, err := s.store.ResultPart(ctx, id, store.PartMarkdown, shownRendered)
	if err != nil {
		return "", err
	}
	html, err := markdownReader().render(whole(content), url)
	if errors.Is(err, errTangled) {
		return tangledNote, nil
	}
	return html, err
}

// whole drops a character that the limit cut in two.
func whole(content []byte) []byte {
	for range utf8.UTFMax - 1 {
		if r, size := utf8.DecodeLastRune(content); r == utf8.RuneError && size == 1 {
			content = content[:len(content)-1]
			continue
		}
		break
	}
	return content
}

// resultLinks reads the vendor's list: addresses, or objects that have one.
func resultLinks(raw []byte) []views.Link {
	var entries []json.RawMessage
	if json.Unmarshal(raw, &entries) != nil {
		return nil // None, or cut short: nothing that could be shown.
	}
	links := make([]views.Link, 0, len(entries))
	for _, entry := range entries {
		var plain string
		if json.Unmarshal(entry, &plain) == nil {
			links = append(links, views.Link{URL: plain})
			continue
		}
		var object struct {
			URL  string `json:"url"`
			Href string `json:"href"`
			Text string `json:"text"`
		}
		if json.Unmarshal(entry, &object) == nil && object.URL+object.Href != "" {
			links = append(links, views.Link{URL: object.URL + object.Href, Text: object.Text})
		}
	}
	return links
}

func resultMetadata(facts *store.ResultFacts) []views.Pair {
	var pairs []views.Pair
	put := func(name, format string, value any) {
		pairs = append(pairs, views.Pair{Name: name, Value: fmt.Sprintf(format, value)})
	}
	if facts.HTTPStatus != nil {
		put("HTTP status", "%d", *facts.HTTPStatus)
	}
	if facts.DurationMS != nil {
		put("Duration", "%d ms", *facts.DurationMS)
	}
	if facts.RetryCount != nil {
		put("Vendor's retries", "%d", *facts.RetryCount)
	}
	if facts.Charged != nil {
		put("Tokens charged", "%d", *facts.Charged)
	}
	if facts.MarkdownSHA256 != nil {
		put("SHA-256 of the Markdown", "%x", facts.MarkdownSHA256)
	}
	if facts.HTMLSHA256 != nil {
		put("SHA-256 of the HTML", "%x", facts.HTMLSHA256)
	}
	return pairs
}

// vendorMetadata shows what else the vendor sent beside the content, under its
// own names.
func vendorMetadata(raw []byte) []views.Pair {
	var said map[string]json.RawMessage
	if json.Unmarshal(raw, &said) != nil {
		return nil
	}
	for _, known := range []string{"http_status", "duration_ms", "retry_count", "tokens_charged"} {
		delete(said, known) // Shown already, in words.
	}
	pairs := make([]views.Pair, 0, len(said))
	for _, name := range slices.Sorted(maps.Keys(said)) {
		value := string(said[name])
		var plain string
		if json.Unmarshal(said[name], &plain) == nil {
			value = plain
		}
		pairs = append(pairs, views.Pair{Name: clean(name, 200), Value: clean(value, 10_000)})
	}
	return pairs
}

// previewPolicy is for a page that isn't ours: it may style itself and show what it
// brought along, and nothing else. Together with the frame's own sandbox it
// runs nothing, loads nothing, sends nothing, and is of no origin.
const previewPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'self'"

// previewResult is GET /results/{item_id}/preview.
func (s *Server) previewResult(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	content, err := s.store.ResultPart(c.Request().Context(), id, store.PartHTML, readWhole)
	if err != nil {
		return err
	}
	if content == nil {
		return notFound()
	}
	header := c.Response().Header()
	header.Set("Content-Security-Policy", previewPolicy)
	header.Set("Cross-Origin-Opener-Policy", "unsafe-none")
	// Valid UTF-8 whatever the page says of itself: the header has the last word.
	return c.Blob(http.StatusOK, echo.MIMETextHTMLCharsetUTF8, bytes.ToValidUTF8(content, []byte("\uFFFD")))
}

// downloadResult is GET /results/{item_id}/download?format=markdown|html|json.
// Content goes out byte by byte as it is kept.
func (s *Server) downloadResult(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	facts, err := s.store.PageResult(ctx, id)
	if err != nil {
		return err
	}
	var content []byte
	kind, ending := echo.MIMETextPlainCharsetUTF8, ".md"
	switch c.QueryParam("format") {
	case "markdown", "":
		content, err = s.store.ResultPart(ctx, id, store.PartMarkdown, readWhole)
	case "html":
		kind, ending = echo.MIMEOctetStream, ".html"
		content, err = s.store.ResultPart(ctx, id, store.PartHTML, readWhole)
	case "json":
		kind, ending = echo.MIMEApplicationJSON, ".json"
		content, err = s.resultJSON(ctx, facts)
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
func (s *Server) resultJSON(ctx context.Context, facts *store.ResultFacts) ([]byte, error) {
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
		content, err := s.store.ResultPart(ctx, facts.ItemID, part.name, readWhole)
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

// fileName is safe for any file system: the page's host and path in letters,
// digits and dashes, with the item's id, so that no two are the same.
func fileName(facts *store.ResultFacts) string {
	text := ""
	if u, err := url.Parse(facts.URL); err == nil {
		text = u.Hostname() + u.EscapedPath()
	}
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, text)
	safe = strings.Trim(strings.Join(strings.FieldsFunc(safe, func(r rune) bool { return r == '-' }), "-"), "-")
	if len(safe) > 80 {
		safe = safe[:80]
	}
	if safe == "" {
		safe = "result"
	}
	return safe + "-" + idText(facts.ItemID)
}
