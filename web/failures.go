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
	ctx, values := c.Request().Context(), c.QueryParams()
	props := views.FailuresProps{BatchID: clean(strings.TrimSpace(values.Get("batch")), 40)}
	if props.BatchName, props.Errors, err = s.failuresOf(ctx, props.BatchID); err != nil {
		return err
	}
	values.Set("batch", props.BatchID)
	if len(props.Errors) > 0 {
		values.Del("batch")
	}
	filter, err := failedFilter(values)
	if err != nil {
		return err
	}
	props.Code, props.Host, props.Standing, props.GroupKey = filter.Code, filter.Host, standingParam(filter.Standing), filter.Group
	props.Resubmit, props.Resolve, props.AllGroups = planPath("/resubmit", filter), planPath("/failures/resolve", filter), failuresPath(ungrouped(filter))
	status := http.StatusUnprocessableEntity
	if len(props.Errors) == 0 {
		status = http.StatusOK
		if err := s.fillFailures(c, filter, from, &props); err != nil {
			return fmt.Errorf("list failures: %w", err)
		}
	}
	if props.Codes, err = s.failureCodes(ctx, filter); err != nil {
		return err
	}
	if props.Layout, err = s.layout(c, "Failures", views.SectionFailures); err != nil {
		return err
	}
	return render(c, status, views.Failures(props))
}

// failuresOf names the batch whose failures are asked for, or says that there is
// none of that number.
func (s *Server) failuresOf(ctx context.Context, number string) (string, views.Errors, error) {
	if number == "" {
		return "", nil, nil
	}
	b, err := s.batchNamed(ctx, number)
	if err != nil && asProblem(ctx, err).status == http.StatusNotFound {
		return "", views.Errors{"batch": "There is no batch of that number."}, nil
	}
	if err != nil {
		return "", nil, err
	}
	return b.Name, nil, nil
}

// failureCodes are those to filter by. What is chosen is among them, also when
// nothing fits it.
func (s *Server) failureCodes(ctx context.Context, f store.Failed) ([]views.Option, error) {
	codes, err := s.store.PageFailureCodes(ctx, f.Standing)
	if err != nil {
		return nil, fmt.Errorf("list the codes of failures: %w", err)
	}
	if f.Code != "" && !slices.Contains(codes, f.Code) {
		codes = append(codes, f.Code)
	}
	shown := make([]views.Option, len(codes))
	for i, code := range codes {
		shown[i] = views.Option{Value: code, Text: code}
	}
	return shown, nil
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
