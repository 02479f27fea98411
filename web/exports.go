package web

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

const exportsPath = "/exports"

func exportPath(id int64) string { return exportsPath + "/" + idText(id) }

// exports is GET /exports: a person's own, an admin's everybody's.
func (s *Server) exports(c echo.Context) error {
	from, err := keyParam(c)
	if err != nil {
		return err
	}
	rows, err := s.store.PageExports(c.Request().Context(), exportsOf(c), from, pageRows+1)
	if err != nil {
		return fmt.Errorf("list exports: %w", err)
	}
	rows, more := cut(rows, pageRows)
	props := views.ExportsProps{Everyone: exportsOf(c) == 0, Self: c.Request().URL.RequestURI(), Keep: s.cfg.KeepExports}
	last := ""
	for i := range rows {
		row := exportRow(&rows[i], s.now())
		props.Rows = append(props.Rows, row)
		props.Live = props.Live || !rows[i].Over()
		last = keyCursor(rows[i].CreatedAt, rows[i].ID)
	}
	props.Pager = pager(c, cursorParam, more, last)
	if props.Layout, err = s.layout(c, "Exports", views.SectionExports); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Exports(props))
}

// exportsOf is whose exports a person sees; 0 is everybody's.
func exportsOf(c echo.Context) int64 {
	if p := personOf(c); p.Role != store.RoleAdmin {
		return p.ID
	}
	return 0
}

// ownExport is the export of the path. What is somebody else's isn't there,
// except for admins.
func (s *Server) ownExport(c echo.Context) (*store.Export, error) {
	id, err := idParam(c)
	if err != nil {
		return nil, err
	}
	e, err := s.store.Export(c.Request().Context(), id)
	if err != nil {
		return nil, err
	}
	if mine := exportsOf(c); mine != 0 && (e.OwnerID == nil || *e.OwnerID != mine) {
		return nil, notFound()
	}
	return e, nil
}

func exportRow(e *store.Export, now time.Time) views.ExportRow {
	state := e.State
	if e.Spent(now) {
		state = store.ExportExpired
	}
	row := views.ExportRow{
		ID: idText(e.ID), Name: e.Name, Picked: e.Picked, By: e.MadeBy, State: string(state), Direct: e.Direct, At: e.CreatedAt,
		EndedAt: orZero(e.EndedAt), ExpiresAt: e.ExpiresAt, Rows: views.Known(e.Rows), Bytes: views.Known(e.Bytes), Reason: e.Reason,
		Downloads: views.Known(int64(e.Downloads)), SHA256: hex.EncodeToString(e.SHA256),
	}
	if e.Expected != nil {
		row.Expected = views.Known(*e.Expected)
	}
	return row
}

// export is GET /exports/{id}.
func (s *Server) export(c echo.Context) error {
	e, err := s.ownExport(c)
	if err != nil {
		return err
	}
	props := views.ExportProps{ExportRow: exportRow(e, s.now()), Live: !e.Over(), Self: c.Request().URL.RequestURI(), Begun: e.Claim}
	props.Format, props.Choices = choiceWords(c.Request().Context(), e.Choices)
	if props.Layout, err = s.layout(c, e.Name, views.SectionExports); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Export(props))
}

// choiceWords says what format a file has, and what goes into it.
func choiceWords(ctx context.Context, raw json.RawMessage) (string, []string) {
	var choices pipeline.ExportChoices
	if json.Unmarshal(raw, &choices) != nil {
		return "", nil
	}
	words := []string{views.Textf(ctx, "what is known of each item")}
	for _, each := range []struct {
		in   bool
		text string
	}{
		{choices.Markdown, "Markdown"},
		{choices.HTML, "HTML"},
		{choices.Links, views.Textf(ctx, "links")},
		{choices.Metadata, views.Textf(ctx, "metadata")},
		{choices.SafeCells && (choices.Format == pipeline.ExportCSV || choices.Format == pipeline.ExportZIP), views.Textf(ctx, "cells safe for spreadsheets")},
		{choices.BOM && choices.Format == pipeline.ExportCSV, views.Textf(ctx, "a BOM")},
	} {
		if each.in {
			words = append(words, each.text)
		}
	}
	return string(choices.Format), words
}

// exportsLive is GET /exports/live.
func (s *Server) exportsLive(c echo.Context) error {
	whose := exportsOf(c)
	return s.follow(c, overviewTopic, func(ctx context.Context) (string, bool, error) {
		rows, err := s.store.PageExports(ctx, whose, store.Key{}, pageRows)
		var stamp strings.Builder
		done := true
		for i := range rows {
			stamp.WriteString(exportStamp(&rows[i]))
			done = done && rows[i].Over()
		}
		return stamp.String(), done && err == nil, err
	})
}

// exportLive is GET /exports/{id}/live.
func (s *Server) exportLive(c echo.Context) error {
	e, err := s.ownExport(c)
	if err != nil {
		return err
	}
	return s.follow(c, overviewTopic, func(ctx context.Context) (string, bool, error) {
		is, err := s.store.Export(ctx, e.ID)
		if err != nil {
			return "", false, err
		}
		return exportStamp(is), is.Over(), nil
	})
}

func exportStamp(e *store.Export) string {
	return fmt.Sprintln(e.ID, e.State, e.Rows, e.Bytes, e.Expected != nil)
}

// exportManifest is GET /exports/{id}/manifest.json.
func (s *Server) exportManifest(c echo.Context) error {
	e, err := s.ownExport(c)
	if err != nil {
		return err
	}
	if len(e.Manifest) == 0 {
		return notFound()
	}
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="`+e.Name+`.manifest.json"`)
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, e.Manifest)
}

// cancelExport is POST /exports/{id}/cancel.
func (s *Server) cancelExport(c echo.Context) error {
	return s.moveExport(c, "Cancelled. Nothing of the file is kept.", "It had ended already.", s.pipeline.CancelExport)
}

// deleteExport is POST /exports/{id}/delete.
func (s *Server) deleteExport(c echo.Context) error {
	return s.moveExport(c, "Deleted. Who asked for it stays in the list.", "There is no file to delete.", s.pipeline.DeleteExport)
}

func (s *Server) moveExport(c echo.Context, done, late string, move func(context.Context, int64) (bool, error)) error {
	e, err := s.ownExport(c)
	if err != nil {
		return err
	}
	moved, err := move(c.Request().Context(), e.ID)
	if err != nil {
		return err
	}
	level, text := "success", done
	if !moved {
		level, text = "info", late
	}
	return s.flashTo(c, exportPath(e.ID), level, text)
}
