package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// How much of a result its page shows, in bytes; the download is whole.
const (
	shownRendered = 512 << 10
	shownSource   = 4 << 20
	shownLinks    = 2000
	// readSmall bounds links and metadata, which are lists of the vendor's.
	readSmall = 4 << 20
	// readWhole bounds a download; what is stored is smaller.
	readWhole = 256 << 20
)

// versionParam says in an address which version of a result is meant.
const versionParam = "version"

// shownResult is a result, or an earlier version of one, that a page is about.
type shownResult struct {
	*store.ResultFacts
	q store.Queries
}

// part reads the beginning of one of its contents; nil when it has none.
func (r shownResult) part(ctx context.Context, part store.Part, limit int64) ([]byte, error) {
	if r.Version != r.Latest {
		return r.q.VersionPart(ctx, r.ItemID, r.Version, part, limit)
	}
	return r.q.ResultPart(ctx, r.ItemID, part, limit)
}

// resultAsked is the result that an address names: the present one, or the
// version asked for.
func (s *Server) resultAsked(c echo.Context) (shownResult, error) {
	out := shownResult{q: s.store.Queries}
	id, err := idParam(c)
	if err != nil {
		return out, err
	}
	ctx := c.Request().Context()
	text := c.QueryParam(versionParam)
	if text == "" {
		out.ResultFacts, err = s.store.PageResult(ctx, id)
		return out, err
	}
	version, err := strconv.ParseInt(text, 10, 32)
	if err != nil || version < 1 {
		return out, notFound()
	}
	out.ResultFacts, err = s.store.PageResultVersion(ctx, id, int(version))
	return out, err
}

// result is GET /results/{item_id}.
func (s *Server) result(c echo.Context) error {
	shown, err := s.resultAsked(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	props := resultProps(shown, c.QueryParam("tab"))
	if err := s.countHistory(ctx, shown, &props); err != nil {
		return fmt.Errorf("history of the result of item %d: %w", shown.ItemID, err)
	}
	if err := s.fillResult(c, shown, &props); err != nil {
		return fmt.Errorf("result of item %d: %w", shown.ItemID, err)
	}
	if props.Layout, err = s.layout(c, resultTitle(ctx, shown.ResultFacts), views.SectionBatches); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Result(props))
}

func resultTitle(ctx context.Context, facts *store.ResultFacts) string {
	if facts.Title != "" {
		return facts.Title
	}
	return views.Textf(ctx, "Result")
}

func resultProps(r shownResult, tab string) views.ResultProps {
	p := views.ResultProps{
		ItemID: idText(r.ItemID), URL: r.URL, BatchID: idText(r.BatchID), BatchName: r.BatchName,
		JobID: idOrNone(r.JobID), Net: string(r.Net), StoredAt: r.StoredAt, Title: r.Title,
		HasMD: r.MarkdownSize >= 0, HasHTML: r.HTMLSize >= 0, Bytes: max(r.MarkdownSize, 0) + max(r.HTMLSize, 0),
		Mark: string(r.Mark), MarkReason: r.MarkReason, Version: r.Version, Latest: r.Latest, ReplacedAt: orZero(r.ReplacedAt),
	}
	p.Tab = chosenTab(p, tab)
	switch p.Tab {
	case views.TabRead:
		p.Truncated = r.MarkdownSize > shownRendered
	case views.TabMarkdown:
		p.Truncated = r.MarkdownSize > shownSource
	case views.TabHTML:
		p.Truncated = r.HTMLSize > shownSource
	}
	return p
}

// chosenTab is the tab asked for when the result has it, else the first it has.
func chosenTab(p views.ResultProps, asked string) string {
	if slices.Contains(p.Tabs(), asked) {
		return asked
	}
	return p.Tabs()[0]
}

// fillResult reads what the chosen tab shows, and no more.
func (s *Server) fillResult(c echo.Context, r shownResult, p *views.ResultProps) error {
	ctx := c.Request().Context()
	var err error
	switch p.Tab {
	case views.TabRead:
		p.SafeHTML, err = readMarkdown(ctx, r)
	case views.TabMarkdown:
		p.Source, err = resultSource(c, r, store.PartMarkdown)
	case views.TabHTML:
		p.Source, err = resultSource(c, r, store.PartHTML)
	case views.TabMetadata:
		err = s.fillDetails(ctx, r, p)
	case views.TabLinks:
		err = fillLinks(c, r, p)
	case views.TabStory:
		p.Story, err = s.provenance(ctx, r)
	case views.TabHistory:
		err = s.fillHistory(c, r, p)
	}
	return err
}

// readMarkdown lays out the beginning of a result's Markdown, safe to show.
func readMarkdown(ctx context.Context, r shownResult) (string, error) {
	content, err := r.part(ctx, store.PartMarkdown, shownRendered)
	if err != nil {
		return "", err
	}
	html, err := markdownReader().render(store.WholeText(content), r.URL)
	if errors.Is(err, errTangled) {
		return tangledNote(ctx), nil
	}
	return html, err
}

// readMarkdown is the same for the present result of an item.
func (s *Server) readMarkdown(ctx context.Context, id int64, url string) (string, error) {
	return readMarkdown(ctx, shownResult{ResultFacts: &store.ResultFacts{Result: store.Result{ItemID: id}, URL: url}, q: s.store.Queries})
}
