package web

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

const (
	// exportRows is how many lines an export reads at a time.
	exportRows = 500
	// slowExport is how long a reader may take for them.
	slowExport = time.Minute
)

// auditCSV is GET /audit.csv.
func (s *Server) auditCSV(c echo.Context) error {
	return s.exportAudit(c, "csv", "text/csv; charset=utf-8; header=present", func(w io.Writer) auditSink { return &csvSink{csv.NewWriter(w)} })
}

// auditJSONL is GET /audit.jsonl: an object a line.
func (s *Server) auditJSONL(c echo.Context) error {
	return s.exportAudit(c, "jsonl", "application/x-ndjson", func(w io.Writer) auditSink { return jsonlSink{json.NewEncoder(w)} })
}

// auditSink takes the lines of an export.
type auditSink interface {
	begin() error
	put(row *store.AuditRow) error
	// flush hands on what put kept.
	flush() error
}

// exportAudit streams what a filter finds, a few hundred lines at a time, and
// is itself written down before it begins. Lines of after that aren't in it, so
// it ends.
func (s *Server) exportAudit(c echo.Context, ending, kind string, sink func(io.Writer) auditSink) error {
	filter, errs := auditFilterOf(c.Request().Context(), c.QueryParams(), readerZone(c))
	if len(errs) > 0 {
		var texts []string
		for field, text := range errs {
			texts = append(texts, field+": "+text)
		}
		slices.Sort(texts)
		return badRequest(strings.Join(texts, " "), nil)
	}
	now := s.now()
	if filter.Until.IsZero() || filter.Until.After(now) {
		filter.Until = now
	}
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, kind)
	header.Set(echo.HeaderContentDisposition, `attachment; filename="audit-`+now.In(readerZone(c)).Format(time.DateOnly)+"."+ending+`"`)
	if c.Request().Method == http.MethodHead {
		return c.NoContent(http.StatusOK)
	}
	if err := s.auditExport(c, ending, now); err != nil {
		return fmt.Errorf("export the audit log: %w", err)
	}
	return s.streamAudit(c, filter, sink(c.Response()))
}

func (s *Server) auditExport(c echo.Context, ending string, now time.Time) error {
	facts := map[string]string{"format": ending}
	for name, values := range auditTyped(c.QueryParams()) {
		facts[name] = values[0]
	}
	return s.store.Audit(c.Request().Context(), now, store.Change{What: "export.audit", Kind: "audit", After: facts})
}

func (s *Server) streamAudit(c echo.Context, filter store.AuditFilter, sink auditSink) error {
	ctx, control := c.Request().Context(), http.NewResponseController(c.Response())
	c.Response().WriteHeader(http.StatusOK)
	err := sink.begin()
	for from := (store.Key{}); err == nil; {
		var rows []store.AuditRow
		if rows, from, err = s.store.PageAudit(ctx, filter, from, exportRows); err != nil {
			break
		}
		if err = control.SetWriteDeadline(s.now().Add(slowExport)); errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
		for i := range rows {
			err = errors.Join(err, sink.put(&rows[i]))
		}
		if err = errors.Join(err, sink.flush()); from.ID == 0 {
			break
		}
	}
	if err != nil {
		s.log.WarnContext(ctx, "export broken off", slog.String("route", c.Path()), slog.Any("error", err))
		// The reader must see that this is not all: only a broken connection says so now.
		panic(http.ErrAbortHandler)
	}
	if err := control.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// exportTime is a time in an export: UTC, to the microsecond the database keeps.
const exportTime = "2006-01-02T15:04:05.000000Z07:00"

type csvSink struct{ w *csv.Writer }

func (s *csvSink) begin() error {
	return s.w.Write([]string{"id", "at", "who", "user_id", "source", "what", "kind", "on_id", "before", "after"})
}

func (s *csvSink) put(row *store.AuditRow) error {
	user := ""
	if row.UserID != nil {
		user = idText(*row.UserID)
	}
	cells := []string{
		idText(row.ID), row.At.UTC().Format(exportTime), row.Who, user, row.Source, row.What, row.Kind, row.OnID,
		string(row.Before), string(row.After),
	}
	for i, cell := range cells {
		cells[i] = pipeline.SafeCell(cell)
	}
	return s.w.Write(cells)
}

func (s *csvSink) flush() error {
	s.w.Flush()
	return s.w.Error()
}

type jsonlSink struct{ w *json.Encoder }

func (jsonlSink) begin() error { return nil }

func (s jsonlSink) put(row *store.AuditRow) error {
	return s.w.Encode(struct {
		ID     int64           `json:"id"`
		At     string          `json:"at"`
		Who    string          `json:"who"`
		UserID *int64          `json:"user_id"`
		Source string          `json:"source"`
		What   string          `json:"what"`
		Kind   string          `json:"kind"`
		OnID   string          `json:"on_id"`
		Before json.RawMessage `json:"before"`
		After  json.RawMessage `json:"after"`
	}{
		row.ID, row.At.UTC().Format(exportTime), row.Who, row.UserID, row.Source, row.What, row.Kind, row.OnID,
		orNull(row.Before), orNull(row.After),
	})
}

func (jsonlSink) flush() error { return nil }

func orNull(side json.RawMessage) json.RawMessage {
	if len(side) == 0 {
		return json.RawMessage("null")
	}
	return side
}
