package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

const (
	// comparedBytes is how much of a content is compared and shown.
	comparedBytes = 128 << 10
	// comparedLines bounds the lines shown of each side.
	comparedLines = 400
)

// differences is GET /replays/{id}/differences.
func (s *Server) differences(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	afterItem, err := placeParam(c, cursorParam, 0)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if _, err := s.store.Replay(ctx, id); err != nil {
		return err
	}
	rows, err := s.store.PageDifferences(ctx, id, afterItem, pageRows+1)
	if err != nil {
		return fmt.Errorf("list the differences of replay %d: %w", id, err)
	}
	rows, more := cut(rows, pageRows)
	props := views.DifferencesProps{ID: idText(id)}
	last := ""
	for i := range rows {
		d := &rows[i]
		props.Rows = append(props.Rows, views.DifferenceRow{
			ItemID: idText(d.ItemID), URL: d.URL, JobID: idText(d.JobID), At: d.FoundAt, Kept: d.Kept,
			ReplacedAt: orZero(d.ReplacedAt), ReplacedBy: d.ReplacedBy,
		})
		last = placeCursor(d.ItemID)
	}
	props.Pager = pager(c, cursorParam, more, last)
	if props.Layout, err = s.layout(c, "What differs", views.SectionReplays); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Differences(props))
}

// difference is GET /replays/{id}/differences/{item}.
func (s *Server) difference(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	item, err := itemParam(c)
	if err != nil {
		return err
	}
	found, err := s.store.PageComparison(c.Request().Context(), id, item, comparedBytes+1)
	if err != nil {
		return err
	}
	props := views.DifferenceProps{
		ReplayID: idText(id), ItemID: idText(item), URL: found.URL, JobID: idText(found.JobID), StoredAt: found.Stored.StoredAt,
		FoundAt: found.FoundAt, Version: found.Version, ReplacedAt: orZero(found.ReplacedAt), ReplacedBy: found.ReplacedBy,
		MayReplace: found.Kept && found.ReplacedAt == nil && found.Current == found.Version,
	}
	switch {
	case !found.Kept:
		props.Why = "More differs than a replay keeps, so its content isn't here. Replay this job by itself to see it."
	case found.Current != found.Version:
		props.Why = "The result has been replaced since it was compared. Replay the job again to compare it with what is stored now."
	}
	if found.Kept {
		props.Parts = []views.DifferencePart{
			comparePart("Markdown", found.Stored.Markdown, found.Markdown), comparePart("HTML", found.Stored.HTML, found.HTML),
		}
	}
	if props.Layout, err = s.layout(c, "Stored and fetched", views.SectionReplays); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.DifferencePage(props))
}

// comparePart leaves out the lines that both begin and end with. What a page
// holds is shown as text, whatever it is.
func comparePart(name string, stored, fetched []byte) views.DifferencePart {
	p := views.DifferencePart{Name: name, Cut: len(stored) > comparedBytes || len(fetched) > comparedBytes}
	was, is := comparedText(stored), comparedText(fetched)
	p.Same = slices.Equal(was, is) && (stored == nil) == (fetched == nil) && !p.Cut
	for len(was) > 0 && len(is) > 0 && was[0] == is[0] {
		was, is = was[1:], is[1:]
		p.Before++
	}
	for !p.Cut && len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] {
		was, is = was[:len(was)-1], is[:len(is)-1]
		p.After++
	}
	p.Cut = p.Cut || max(len(was), len(is)) > comparedLines
	p.Stored, p.Fetched = shownLines(was), shownLines(is)
	return p
}

func comparedText(content []byte) []string {
	if len(content) == 0 {
		return nil
	}
	return strings.Split(store.CleanText(string(content[:min(len(content), comparedBytes)])), "\n")
}

func shownLines(lines []string) string {
	return strings.Join(lines[:min(len(lines), comparedLines)], "\n")
}

// replaceResult is POST /replays/{id}/differences/{item}/replace.
func (s *Server) replaceResult(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	item, err := itemParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if _, err := s.store.Difference(ctx, id, item); err != nil {
		return err
	}
	done, err := s.pipeline.ReplaceResult(ctx, id, item)
	if err != nil {
		return err
	}
	level, text := "success", "Replaced. The earlier version is kept."
	if !done {
		level, text = "info", "Nothing was replaced: the result is another by now, or was replaced before."
	}
	if err := s.flash(c, level, text); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, fmt.Sprintf("%s/differences/%d", replayPath(id), item))
}
