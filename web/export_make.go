package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// What is sent at once; more is made in the background.
const (
	directRows  = 20_000
	directBytes = 50_000_000
)

// exportAsk is what a form or an address asks for.
type exportAsk struct {
	filter  store.ItemFilter
	choices pipeline.ExportChoices
	behind  bool // In the background, by choice.
	weight  store.ExportWeight
	large   bool // Too large to be sent at once, or nobody knows how large.
}

// exportAskOf reads what is asked for. Boxes count when the form was sent, which
// names the format; a link without one gets the usual choices.
func exportAskOf(ctx context.Context, values url.Values, zone *time.Location) (exportAsk, error) {
	filter, err := itemFilterOf(values, zone)
	if err != nil {
		return exportAsk{}, wrongFilter(ctx, err)
	}
	a := exportAsk{filter: filter, choices: pipeline.DefaultExport(pipeline.ExportCSV), behind: values.Get("behind") != ""}
	if !values.Has("format") {
		return a, nil
	}
	format := pipeline.ExportFormat(values.Get("format"))
	if !slices.Contains(pipeline.ExportFormats(), format) {
		return a, badRequest(views.Textf(ctx, "format: choose one of csv, jsonl, zip, parquet."), nil)
	}
	a.choices = pipeline.DefaultExport(format)
	if !values.Has("chosen") {
		return a, nil
	}
	on := func(name string) bool { return values.Get(name) != "" }
	a.choices.Markdown, a.choices.HTML, a.choices.Links, a.choices.Metadata = on("markdown"), on("html"), on("links"), on("metadata")
	a.choices.SafeCells, a.choices.BOM = on("safe_cells"), on("bom")
	return a, nil
}

// choiceValues is the way back.
func (a *exportAsk) choiceValues() url.Values {
	values := itemFilterValues(a.filter)
	values.Set("format", string(a.choices.Format))
	values.Set("chosen", "1")
	for name, is := range map[string]bool{
		"markdown": a.choices.Markdown, "html": a.choices.HTML, "links": a.choices.Links, "metadata": a.choices.Metadata,
		"safe_cells": a.choices.SafeCells, "bom": a.choices.BOM,
	} {
		if is {
			values.Set(name, "on")
		}
	}
	return values
}

// weigh finds out how much it is, as far as that takes no long look.
func (s *Server) weigh(c echo.Context, a *exportAsk) error {
	parts := store.ExportParts{Markdown: a.choices.Markdown, HTML: a.choices.HTML, Links: a.choices.Links, Metadata: a.choices.Metadata}
	var err error
	a.weight, err = s.store.ExportSize(c.Request().Context(), a.filter, parts)
	a.large = !a.weight.Known || a.weight.Rows > directRows || a.weight.Bytes > directBytes
	return err
}

// picked says in words what is exported.
func (s *Server) picked(ctx context.Context, f store.ItemFilter) (string, error) {
	words := views.Textf(ctx, "items of all batches")
	if f.Batch > 0 {
		batch, err := s.store.Batch(ctx, f.Batch)
		if err != nil {
			return "", err
		}
		if batch.PrunedAt != nil {
			return "", removedItems(ctx, batch)
		}
		words = views.Textf(ctx, "items of batch %s, %s", idText(f.Batch), clean(batch.Name, 100))
	}
	values := itemFilterValues(f)
	var narrowed []string
	for _, name := range itemFilterNames() {
		if name != "batch" && values.Get(name) != "" {
			narrowed = append(narrowed, narrowedBy(ctx, name, values.Get(name)))
		}
	}
	if len(narrowed) > 0 {
		words = views.Textf(ctx, "%s, with %s", words, strings.Join(narrowed, ", "))
	}
	return words, nil
}

// narrowedBy is a field of a filter in words.
func narrowedBy(ctx context.Context, name, value string) string {
	switch name {
	case "state":
		return views.Textf(ctx, "state %s", value)
	case "net":
		return views.Textf(ctx, "net %s", value)
	case "http":
		return views.Textf(ctx, "http %s", value)
	case "code":
		return views.Textf(ctx, "code %s", value)
	case "host":
		return views.Textf(ctx, "host %s", value)
	case "url":
		return views.Textf(ctx, "url %s", value)
	case "min_bytes":
		return views.Textf(ctx, "min bytes %s", value)
	case "max_bytes":
		return views.Textf(ctx, "max bytes %s", value)
	case "min_ms":
		return views.Textf(ctx, "min ms %s", value)
	case "max_ms":
		return views.Textf(ctx, "max ms %s", value)
	case "since":
		return views.Textf(ctx, "since %s", value)
	case "until":
		return views.Textf(ctx, "until %s", value)
	case "mark":
		return views.Textf(ctx, "mark %s", value)
	}
	return views.Textf(ctx, "standing %s", value)
}

// newExport is GET /exports/new: what would be exported, and the choices.
func (s *Server) newExport(c echo.Context) error {
	ctx := c.Request().Context()
	a, err := exportAskOf(ctx, c.QueryParams(), readerZone(c))
	if err != nil {
		return err
	}
	if !c.QueryParams().Has("format") {
		a.choices.Format = pipeline.ExportCSV
	}
	if err := s.weigh(c, &a); err != nil {
		return fmt.Errorf("weigh an export: %w", err)
	}
	props := views.NewExportProps{
		Back: exportsPath, BackText: "Exports", Once: newToken(), Format: string(a.choices.Format), Markdown: a.choices.Markdown, HTML: a.choices.HTML,
		Links: a.choices.Links, Metadata: a.choices.Metadata, SafeCells: a.choices.SafeCells, BOM: a.choices.BOM, Behind: a.behind, TooLarge: a.large,
		Rows:  views.Count{N: a.weight.Rows, Known: true, More: !a.weight.Known},
		Bytes: views.Count{N: a.weight.Bytes, Known: true, More: !a.weight.Known},
	}
	if a.filter.Batch > 0 {
		batch, err := s.store.Batch(ctx, a.filter.Batch)
		if err != nil {
			return err
		}
		props.Back, props.BackText = "/batches/"+idText(batch.ID), batch.Name
	}
	if props.Picked, err = s.picked(ctx, a.filter); err != nil {
		return err
	}
	props.Fields = append(props.Fields, views.Option{Value: "chosen", Text: "1"})
	for name, values := range itemFilterValues(a.filter) {
		props.Fields = append(props.Fields, views.Option{Value: name, Text: values[0]})
	}
	if a.large {
		props.Fields = append(props.Fields, views.Option{Value: "large", Text: "1"})
	}
	slices.SortFunc(props.Fields, func(a, b views.Option) int { return strings.Compare(a.Value, b.Value) })
	for _, each := range pipeline.ExportColumns() {
		props.Columns = append(props.Columns, views.Option{Value: each.Name, Text: each.About})
	}
	if props.Layout, err = s.layout(c, "Export items", views.SectionExports); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.NewExport(props))
}

// makeExport is POST /exports: what the form found to be large begins to be made,
// another one to be sent, where it is weighed. The same form sent twice leads to
// the same file.
func (s *Server) makeExport(c echo.Context) error {
	r := c.Request()
	if err := parseForm(r); err != nil {
		return err
	}
	a, err := exportAskOf(r.Context(), r.PostForm, readerZone(c))
	if err != nil {
		return err
	}
	if r.PostForm.Get("large") == "" && !a.behind {
		return c.Redirect(http.StatusSeeOther, directPath(&a))
	}
	req, err := s.exportRequest(c, &a)
	if err != nil {
		return err
	}
	req.Token = field(c, "once", maxOnce)
	e, err := s.pipeline.Export(c.Request().Context(), req)
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, exportPath(e.ID))
}

// directPath is where a small export is sent from.
func directPath(a *exportAsk) string {
	values := a.choiceValues()
	if a.filter.Batch == 0 {
		return address(exportsPath+"/items", values)
	}
	values.Del("batch")
	return address("/batches/"+idText(a.filter.Batch)+"/export", values)
}

func (s *Server) exportRequest(c echo.Context, a *exportAsk) (pipeline.ExportRequest, error) {
	picked, err := s.picked(inEnglish(c.Request().Context()), a.filter)
	if err != nil {
		return pipeline.ExportRequest{}, err
	}
	words := map[string]string{}
	for name, values := range itemFilterValues(a.filter) {
		words[name] = values[0]
	}
	return pipeline.ExportRequest{Filter: a.filter, Choices: a.choices, Picked: picked, Words: words}, nil
}

// exportBatch is GET /batches/{id}/export?format=...: items of the batch, sent at
// once.
func (s *Server) exportBatch(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	values := c.QueryParams()
	values.Set("batch", idText(id))
	return s.sendExport(c, values)
}

// exportItems is GET /exports/items?format=...: the same of all batches.
func (s *Server) exportItems(c echo.Context) error { return s.sendExport(c, c.QueryParams()) }

// sendExport sends what isn't too large for it; a larger one leads to the page
// that has it made in the background.
func (s *Server) sendExport(c echo.Context, values url.Values) error {
	a, err := exportAskOf(c.Request().Context(), values, readerZone(c))
	if err != nil {
		return err
	}
	if err := s.weigh(c, &a); err != nil {
		return fmt.Errorf("weigh an export: %w", err)
	}
	if a.large || !values.Has("format") {
		return c.Redirect(http.StatusSeeOther, address(exportsPath+"/new", a.choiceValues()))
	}
	req, err := s.exportRequest(c, &a)
	if err != nil {
		return err
	}
	req.Expected = &a.weight.Rows
	if c.Request().Method == http.MethodHead {
		c.Response().Header().Set(echo.HeaderContentType, a.choices.Format.MediaType())
		return c.NoContent(http.StatusOK)
	}
	direct, err := pipeline.BeginExport(c.Request().Context(), s.store, s.now, req)
	if err != nil {
		return err
	}
	return s.streamExport(c, direct, a.choices.Format)
}

// streamExport sends the file. Once a byte is out, only a connection that breaks
// tells the reader that it isn't whole.
func (s *Server) streamExport(c echo.Context, direct *pipeline.DirectExport, format pipeline.ExportFormat) error {
	ctx, control, header := c.Request().Context(), http.NewResponseController(c.Response()), c.Response().Header()
	header.Set(echo.HeaderContentType, format.MediaType())
	header.Set(echo.HeaderContentDisposition, `attachment; filename="`+direct.Row.Name+`"`)
	header.Set("Link", "<"+exportPath(direct.Row.ID)+`/manifest.json>; rel="describedby"`)
	patient := func() error {
		if err := control.SetWriteDeadline(s.now().Add(slowExport)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		return nil
	}
	if err := patient(); err != nil {
		return err
	}
	if _, err := direct.Send(ctx, c.Response(), patient); err != nil {
		if !c.Response().Committed {
			return err
		}
		s.log.WarnContext(ctx, "export broken off", slog.Int64("export_id", direct.Row.ID), slog.Any("error", err))
		panic(http.ErrAbortHandler)
	}
	if err := control.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
