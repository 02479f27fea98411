package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
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
	props := views.FailuresProps{Code: filter.Code, Host: filter.Host, Resubmit: resubmitPath(filter)}
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
	return values
}

func failuresPath(f store.Failed) string { return address("/failures", filterValues(f)) }

func resubmitPath(f store.Failed) string {
	values := filterValues(f)
	values.Set("all", "1")
	return address("/resubmit", values)
}

func (s *Server) fillFailures(c echo.Context, filter store.Failed, from store.Key, props *views.FailuresProps) error {
	ctx := c.Request().Context()
	rows, err := s.store.PageFailures(ctx, filter, from, pageRows+1)
	if err != nil {
		return err
	}
	codes, err := s.store.PageFailureCodes(ctx)
	if err != nil {
		return err
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
	}
}
