package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// preflighter is what the pages ask of the pipeline about preflights. One of
// another owner, or whose time is over, is store.ErrNotFound.
type preflighter interface {
	// Preflight keeps and reads a submission; KeepUpload only keeps its file. One
	// that finds too many being read is pipeline.ErrBusy, as of the others.
	Preflight(ctx context.Context, in pipeline.PreflightInput) (int64, error)
	KeepUpload(ctx context.Context, in pipeline.PreflightInput) (int64, error)
	// PreflightForm is what a preflight was made from.
	PreflightForm(ctx context.Context, id int64, owner *int64) (pipeline.PreflightInput, error)
	// Reread reads it in another way.
	Reread(ctx context.Context, id int64, owner *int64, c pipeline.Choices, storedDays int) error
	// PlanPreflight says what submitting would do; it asks no vendor.
	PlanPreflight(ctx context.Context, f *store.Preflight) (pipeline.PreflightPlan, error)
	// SubmitPreflight makes the batch, once.
	SubmitPreflight(ctx context.Context, id int64, owner *int64, reading int) (pipeline.Submitted, error)
}

// maxHow bounds the hidden field with the choices of a form.
const maxHow = 2000

// how is how a form's lines are to be read, as its hidden field carries it.
type how struct {
	Choices    pipeline.Choices `json:"choices"`
	StoredDays int              `json:"stored_days"`
}

func preflightPath(id int64) string { return preflightsPath + "/" + idText(id) }

// makePreflight is POST /preflights: what was pasted and uploaded is kept, read,
// and shown before anything is spent.
func (s *Server) makePreflight(c echo.Context) error {
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	props := typedFields(c)
	in, errs, err := preflightInput(c, props)
	if err != nil {
		return err
	}
	if len(errs) > 0 {
		props.Errors = errs
		return s.formWithUpload(c, http.StatusUnprocessableEntity, props, in)
	}
	id, err := s.pipeline.Preflight(c.Request().Context(), in)
	if invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err); ok {
		return s.formWithUpload(c, http.StatusUnprocessableEntity, withMistakes(props, invalid), in)
	}
	if errors.Is(err, pipeline.ErrBusy) {
		props.Errors = views.Errors{"urls": busyReading}
		return s.formWithUpload(c, http.StatusServiceUnavailable, props, in)
	}
	if err != nil {
		return fmt.Errorf("preflight: %w", err)
	}
	return c.Redirect(http.StatusSeeOther, preflightPath(id))
}

// preflightInput turns the form into what the pipeline takes, or says by field
// why it can't.
func preflightInput(c echo.Context, props views.NewBatchProps) (pipeline.PreflightInput, views.Errors, error) {
	sub, errs := submissionOf(c.Request().Context(), props, personOf(c).ID)
	in := pipeline.PreflightInput{Submission: sub}
	if props.How != "" {
		var h how
		if err := json.Unmarshal([]byte(props.How), &h); err != nil {
			return in, nil, badRequest("The form arrived damaged. Send it again.", err)
		}
		in.Choices, in.StoredDays = h.Choices, h.StoredDays
	}
	if text := c.Request().PostFormValue("kept"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return in, nil, badRequest("The form arrived damaged. Send it again.", err)
		}
		in.Kept = id
	}
	var err error
	in.Files, err = uploaded(c.Request())
	return in, errs, err
}

// busyReading is what whoever is kept waiting too long is told.
const busyReading = "Rollcall is reading as many lists as it can at once, so nothing was done. " +
	"All of yours is still here: press again in a moment."

// formWithUpload brings the form back with its mistakes. Its file is kept, for
// browsers forget it.
func (s *Server) formWithUpload(c echo.Context, status int, props views.NewBatchProps, in pipeline.PreflightInput) error {
	kept := in.Kept
	if len(in.Files) > 0 && props.Errors["file"] == "" {
		var err error
		kept, err = s.pipeline.KeepUpload(c.Request().Context(), in)
		if invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err); ok {
			// The file is wrong too, and there is nothing to keep.
			maps.Copy(props.Errors, fieldErrors(invalid))
		} else if err != nil {
			return fmt.Errorf("keep an upload: %w", err)
		}
	}
	if err := s.nameKept(c, &props, kept); err != nil {
		return err
	}
	return s.showNewBatch(c, status, props)
}

// nameKept names the upload that is kept; none when its time is over.
func (s *Server) nameKept(c echo.Context, props *views.NewBatchProps, kept int64) error {
	if kept == 0 {
		return nil
	}
	f, err := s.store.Preflight(c.Request().Context(), kept, &personOf(c).ID, s.now())
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("upload of preflight %d: %w", kept, err)
	}
	props.Kept, props.KeptName, props.KeptSize = idText(f.ID), f.UploadName, f.UploadSize
	return nil
}

// formAgain is GET /batches/new?from=: the form that a preflight was made from.
func (s *Server) formAgain(c echo.Context) error {
	id, err := strconv.ParseInt(c.QueryParam("from"), 10, 64)
	if err != nil || id <= 0 {
		return notFound()
	}
	in, err := s.pipeline.PreflightForm(c.Request().Context(), id, &personOf(c).ID)
	if err != nil {
		return err
	}
	props := views.NewBatchProps{
		Name: in.Name, URLs: in.Text, Kind: string(in.Kind), Fetch: fetchOf(in.Options), ExtractLinks: in.Options.ExtractLinks,
		Headers: headerLines(in.Headers),
	}
	if props.Kind == "" {
		props.Kind = "auto"
	}
	chosen, err := json.Marshal(how{in.Choices, in.StoredDays})
	if err != nil {
		return fmt.Errorf("encode the choices: %w", err)
	}
	props.How = string(chosen)
	if err := s.nameKept(c, &props, in.Kept); err != nil {
		return err
	}
	return s.showNewBatch(c, http.StatusOK, props)
}

// fetchOf is fetchOptions the other way round.
func fetchOf(o pipeline.Options) views.Fetch {
	f := views.Fetch{
		Markdown: slices.Contains(o.Formats, "markdown") || len(o.Formats) == 0, HTML: slices.Contains(o.Formats, "html"),
		RenderJS: o.RenderJS, ProxyCountry: o.ProxyCountry, ProxyType: o.ProxyType, WaitUntil: o.WaitUntil, WaitFor: o.WaitFor,
	}
	if o.WaitTimeoutMS > 0 {
		f.WaitTimeout = strconv.FormatFloat(float64(o.WaitTimeoutMS)/1000, 'f', -1, 64)
	}
	return f
}

// rereadPreflight is POST /preflights/{id}/choices.
func (s *Server) rereadPreflight(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	choices, errs := typedChoices(c)
	days := 0
	if text := field(c, "stored_days", 20); text != "" {
		if days, err = strconv.Atoi(text); err != nil {
			errs["stored_days"] = "Give a number of days, such as 7."
		}
	}
	if len(errs) == 0 {
		err := s.pipeline.Reread(c.Request().Context(), id, &personOf(c).ID, choices, days)
		invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err)
		switch {
		case err == nil:
			return c.Redirect(http.StatusSeeOther, preflightPath(id))
		case errors.Is(err, pipeline.ErrBusy):
			return s.showPreflight(c, id, http.StatusServiceUnavailable, func(p *views.PreflightProps) {
				p.Notice, p.Choices = busyReading, choicesOf(choices, field(c, "stored_days", 20))
			})
		case !ok:
			return err
		}
		for _, each := range invalid.Fields {
			errs[each.Field] = each.Message
		}
	}
	return s.showPreflight(c, id, http.StatusUnprocessableEntity, func(p *views.PreflightProps) {
		p.Errors, p.Choices = errs, choicesOf(choices, field(c, "stored_days", 20))
	})
}

func typedChoices(c echo.Context) (pipeline.Choices, views.Errors) {
	r, errs := c.Request(), views.Errors{}
	choices := pipeline.Choices{
		Format: field(c, "format", 20), Charset: field(c, "charset", 40), URLColumn: field(c, "url_column", 500),
		KeepDuplicates: r.PostFormValue("keep_duplicates") != "", KeepFragment: r.PostFormValue("keep_fragment") != "",
		SortQuery: r.PostFormValue("sort_query") != "",
		// A tab would be trimmed away.
		Delimiter: clean(r.PostFormValue("delimiter"), 4),
	}
	if !slices.Contains([]string{"", "txt", "csv", "jsonl", "sitemap"}, choices.Format) {
		errs["format"] = "Choose text, CSV, JSON lines or XML sitemap."
	}
	if !slices.Contains([]string{"", ",", ";", "\t", "|"}, choices.Delimiter) {
		errs["delimiter"] = "Choose a comma, a semicolon, a tab or a bar."
	}
	switch field(c, "header", 10) {
	case "":
	case "yes", "no":
		yes := field(c, "header", 10) == "yes"
		choices.Header = &yes
	default:
		errs["header"] = "Choose whether the first line names the columns."
	}
	return choices, errs
}

// submitPreflight is POST /preflights/{id}/submit. Sent twice, it leads to the
// batch that the first made.
func (s *Server) submitPreflight(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	reading, err := strconv.Atoi(field(c, "reading", 20))
	if err != nil {
		return badRequest("The form arrived damaged. Load its page again and repeat.", err)
	}
	done, err := s.pipeline.SubmitPreflight(c.Request().Context(), id, &personOf(c).ID, reading)
	invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err)
	switch {
	case errors.Is(err, pipeline.ErrReadAgain):
		return s.showPreflight(c, id, http.StatusConflict, func(p *views.PreflightProps) {
			p.Notice = "This was read in another way meanwhile, so nothing was submitted. Look at it again."
		})
	case errors.Is(err, pipeline.ErrBusy):
		return s.showPreflight(c, id, http.StatusServiceUnavailable, func(p *views.PreflightProps) { p.Notice = busyReading })
	case ok:
		return s.showPreflight(c, id, http.StatusUnprocessableEntity, func(p *views.PreflightProps) { p.Errors = choiceErrors(invalid) })
	case err != nil:
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/batches/"+idText(done.BatchID))
}

// choiceErrors puts what was refused beside the choices it is about.
func choiceErrors(invalid *pipeline.InvalidSubmission) views.Errors {
	errs := views.Errors{}
	for _, each := range invalid.Fields {
		errs[each.Field] = each.Message
	}
	if errs["urls"] != "" {
		errs["form"] = errs["urls"]
		delete(errs, "urls")
	}
	return errs
}
