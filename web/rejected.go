package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// rejectedTable says what the lines of a download came from.
type rejectedTable struct {
	pipeline.RejectedTable
	file string // Its name, without the ending.
	desk string // The public address, before the paths of results; may be empty.
	// next lists lines after a number.
	next func(after int) ([]store.RejectedLine, error)
}

// preflightRejected is GET /preflights/{id}/rejected.csv: the lines that would
// be left out.
func (s *Server) preflightRejected(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	f, err := s.store.Preflight(ctx, id, &personOf(c).ID, s.now())
	if err != nil {
		return err
	}
	if f.BatchID != nil {
		return c.Redirect(http.StatusSeeOther, "/batches/"+idText(*f.BatchID)+"/rejected.csv")
	}
	var found pipeline.Detected
	if err := json.Unmarshal(f.Detected, &found); err != nil {
		return fmt.Errorf("what was detected of preflight %d: %w", id, err)
	}
	return s.sendRejected(c, rejectedTable{
		file: "preflight-" + idText(id), RejectedTable: pipeline.RejectedTable{URLColumn: found.URLColumn, Columns: found.Columns},
		next: func(after int) ([]store.RejectedLine, error) {
			lines, err := s.store.PreflightLines(ctx, id, store.Rejected(), after, exportRows)
			out := make([]store.RejectedLine, len(lines))
			for i, l := range lines {
				out[i] = store.RejectedLine{
					Line: l.Number, Kind: string(l.Verdict), Text: l.Original, Reason: l.Reason, Extra: l.Extra, DuplicateOf: l.DuplicateOf,
					StoredItem: l.StoredItem,
				}
			}
			return out, err
		},
	})
}

// batchRejected is GET /batches/{id}/rejected.csv: the lines that became no
// item, with all their columns.
func (s *Server) batchRejected(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	b, err := s.store.Batch(ctx, id)
	if err != nil {
		return err
	}
	return s.sendRejected(c, rejectedTable{
		file: "batch-" + idText(id), RejectedTable: pipeline.RejectedTable{URLColumn: b.URLColumn, Columns: b.Columns},
		next: func(after int) ([]store.RejectedLine, error) { return s.store.PageRejected(ctx, id, after, exportRows) },
	})
}

// sendRejected streams a table, a few hundred lines at a time. A reader must
// see when it is not all: the connection breaks then.
func (s *Server) sendRejected(c echo.Context, t rejectedTable) error {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/csv; charset=utf-8; header=present")
	header.Set(echo.HeaderContentDisposition, `attachment; filename="`+t.file+`-rejected.csv"`)
	if c.Request().Method == http.MethodHead {
		return c.NoContent(http.StatusOK)
	}
	t.desk = strings.TrimRight(s.cfg.PublicURL, "/")
	if err := s.auditRejected(c, t.file); err != nil {
		return fmt.Errorf("download the lines of %s: %w", t.file, err)
	}
	lines, err := t.next(0)
	if err != nil {
		return fmt.Errorf("lines of %s: %w", t.file, err)
	}
	control := http.NewResponseController(c.Response())
	c.Response().WriteHeader(http.StatusOK)
	err = t.Begin(c.Response())
	for err == nil && len(lines) > 0 {
		if err = control.SetWriteDeadline(s.now().Add(slowExport)); errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
		for i := range lines {
			err = errors.Join(err, t.put(&lines[i]))
		}
		if err = errors.Join(err, t.Flush()); err != nil || len(lines) < exportRows {
			break
		}
		lines, err = t.next(lines[len(lines)-1].Line)
	}
	if err = errors.Join(err, t.Flush()); err != nil {
		s.log.WarnContext(c.Request().Context(), "download broken off", slog.String("route", c.Path()), slog.Any("error", err))
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s *Server) auditRejected(c echo.Context, file string) error {
	kind, id, _ := strings.Cut(file, "-")
	return s.store.Audit(c.Request().Context(), s.now(), store.Change{What: "export.rejected", Kind: kind, ID: id})
}

func (t *rejectedTable) put(l *store.RejectedLine) error {
	row := pipeline.RejectedRow{Line: l.Line, Verdict: l.Kind, Reason: l.Reason, Text: l.Text, Extra: l.Extra}
	if l.DuplicateOf != nil {
		row.DuplicateOf = *l.DuplicateOf
	}
	if l.StoredItem != nil {
		row.StoredResult = t.desk + "/results/" + idText(*l.StoredItem)
	}
	return t.Write(&row)
}
