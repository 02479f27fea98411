package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// failures is GET /failures.
func (s *Server) failures(c echo.Context) error {
	from, err := keyParam(c)
	if err != nil {
		return err
	}
	filter, err := failedFilter(c.QueryParams())
	if err != nil {
		return err
	}
	props := views.FailuresProps{
		Code: filter.Code, Host: filter.Host, Standing: standingParam(filter.Standing), GroupKey: filter.Group,
		Resubmit: planPath("/resubmit", filter), Resolve: planPath("/failures/resolve", filter), AllGroups: failuresPath(ungrouped(filter)),
	}
	if filter.BatchID > 0 {
		batch, err := s.store.PageBatch(c.Request().Context(), filter.BatchID)
		if err != nil {
			return err
		}
		props.BatchID, props.BatchName = idText(batch.ID), batch.Name
	}
	if err := s.fillFailures(c, filter, from, &props); err != nil {
		return fmt.Errorf("list failures: %w", err)
	}
	if props.Layout, err = s.layout(c, "Failures", views.SectionFailures); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Failures(props))
}

// typedHost is a host as it is kept: people paste whole addresses.
func typedHost(text string) string {
	text = strings.ToLower(strings.TrimSpace(clean(text, 300)))
	if _, rest, found := strings.Cut(text, "://"); found {
		text = rest
	}
	if end := strings.IndexByte(text, ']'); end >= 0 && text[0] == '[' {
		return text[:end+1]
	}
	if end := strings.IndexAny(text, "/?#:"); end >= 0 {
		text = text[:end]
	}
	return text
}

// countFailed counts failures, exactly as far as one press of "resubmit all"
// goes.
func (s *Server) countFailed(ctx context.Context, f store.Failed) (views.Count, error) {
	n, err := s.store.CountFailed(ctx, f, resubmitMost)
	return views.Count{N: min(n, resubmitMost), Known: true, More: n > resubmitMost}, err
}

// filterValues is a filter as an address carries it.
func filterValues(f store.Failed) url.Values {
	values := url.Values{}
	if f.Code != "" {
		values.Set("code", f.Code)
	}
	if f.Host != "" {
		values.Set("host", f.Host)
	}
	if f.BatchID > 0 {
		values.Set("batch", idText(f.BatchID))
	}
	if f.Group != "" {
		values.Set("group", f.Group)
	}
	if standing := standingParam(f.Standing); standing != "" {
		values.Set("standing", standing)
	}
	return values
}

// standingParam is a standing as an address says it; those that wait need no
// saying.
func standingParam(s store.FailureStanding) string {
	switch s {
	case store.FailureWaiting:
		return ""
	case store.FailureResolved:
		return string(s)
	}
	return standingAll
}

func ungrouped(f store.Failed) store.Failed {
	f.Group = ""
	return f
}

func failuresPath(f store.Failed) string { return address("/failures", filterValues(f)) }

// planPath leads to a plan for all failures that match.
func planPath(path string, f store.Failed) string {
	values := filterValues(f)
	values.Set("all", "1")
	return address(path, values)
}

// groupsListed is how many groups of failures a page lists at most.
const groupsListed = 50

// failureGroups groups the failures that match, the largest groups first.
func (s *Server) failureGroups(ctx context.Context, f store.Failed, most int) (views.FailureGroups, error) {
	found, err := s.store.PageFailureGroups(ctx, f, most)
	shown := views.FailureGroups{
		Looked: views.Known(found.Looked), Cut: found.Cut, Others: views.Known(found.Others), All: failuresPath(ungrouped(f)),
		MayResolve: f.Standing != store.FailureResolved,
	}
	for i := range found.Groups {
		g := &found.Groups[i]
		of := f
		of.Group = g.Key
		shown.Groups = append(shown.Groups, views.FailureGroup{
			Key: g.Key, Code: g.Code, Host: g.Host, Message: g.Message, Count: capped(g.Count), First: g.First, Last: g.Last,
			SampleID: idText(g.Sample), SampleURL: g.SampleURL, SampleMessage: g.SampleMessage, Retryable: g.Retryable,
			Path: failuresPath(of), Resubmit: planPath("/resubmit", of), Resolve: planPath("/failures/resolve", of),
		})
	}
	return shown, err
}

func (s *Server) fillFailures(c echo.Context, filter store.Failed, from store.Key, props *views.FailuresProps) error {
	ctx := c.Request().Context()
	rows, err := s.store.PageFailures(ctx, filter, from, pageRows+1)
	if err != nil {
		return err
	}
	if props.Groups, err = s.failureGroups(ctx, filter, groupsListed); err != nil {
		return err
	}
	codes, err := s.store.PageFailureCodes(ctx, filter.Standing)
	if err != nil {
		return err
	}
	if filter.Code != "" && !slices.Contains(codes, filter.Code) {
		codes = append(codes, filter.Code) // What is chosen is shown, also when nothing fits it.
	}
	for _, code := range codes {
		props.Codes = append(props.Codes, views.Option{Value: code, Text: code})
	}
	if props.Total, err = s.countFailed(ctx, filter); err != nil {
		return err
	}
	rows, more := cut(rows, pageRows)
	last := ""
	for i := range rows {
		props.Failures = append(props.Failures, failureRow(&rows[i]))
		last = keyCursor(*rows[i].EndedAt, rows[i].ID)
	}
	props.Pager = pager(c, cursorParam, more, last)
	return nil
}

func failureRow(row *store.FailureRow) views.FailureRow {
	return views.FailureRow{
		ItemID: idText(row.ID), URL: row.URL, Code: row.ErrorCode, Message: row.ErrorMessage,
		Retryable: row.ErrorRetryable, BatchID: idText(row.BatchID), BatchName: row.BatchName,
		JobID: idOrNone(row.CurrentJobID), Attempts: row.Attempts, At: latest(row.CreatedAt, row.EndedAt),
		ResolvedAt: orZero(row.ResolvedAt), Note: row.ResolvedNote,
	}
}
