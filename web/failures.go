package web

import (
	"fmt"
	"net/http"

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
	props := views.FailuresProps{Code: clean(c.QueryParam("code"), 100)}
	if err := s.fillFailures(c, from, &props); err != nil {
		return fmt.Errorf("list failures: %w", err)
	}
	if props.Layout, err = s.layout(c, "Failures", views.SectionFailures); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Failures(props))
}

func (s *Server) fillFailures(c echo.Context, from store.Key, props *views.FailuresProps) error {
	ctx := c.Request().Context()
	rows, err := s.store.PageFailures(ctx, props.Code, from, pageRows+1)
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
	total, err := s.store.CountFailures(ctx, props.Code)
	if err != nil {
		return err
	}
	props.Total = capped(total)
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
