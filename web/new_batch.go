package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

const (
	// maxUpload bounds the files of a new batch together.
	maxUpload = pipeline.MaxPreflight
	// maxAtOnce bounds the file that is submitted without being looked through.
	maxAtOnce = pipeline.MaxPasted
)

// nameSuggested bounds a name that is taken from a file's, in bytes.
const nameSuggested = 200

// badLinesShown is how many bad lines the form names; it counts them all.
const badLinesShown = 200

// newBatch is GET /batches/new; with ?from=, the form that a preflight was made
// from, with everything still in it.
func (s *Server) newBatch(c echo.Context) error {
	if c.QueryParam("from") != "" {
		return s.formAgain(c)
	}
	return s.showNewBatch(c, http.StatusOK, views.NewBatchProps{Kind: "auto", Fetch: views.Fetch{Markdown: true}})
}

func (s *Server) showNewBatch(c echo.Context, status int, props views.NewBatchProps) error {
	l, err := s.layout(c, "New batch", views.SectionNewBatch)
	if err != nil {
		return err
	}
	props.Layout, props.Fetch = l, once(props.Fetch)
	return render(c, status, views.NewBatch(props))
}

// submitBatch is POST /batches. A submission that can't be taken brings the
// form back with everything that was typed, the uploaded lines too. What is
// more than lines of text is looked through first.
func (s *Server) submitBatch(c echo.Context) error {
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	if tabular(c.Request()) {
		return s.makePreflight(c)
	}
	props, err := typedBatch(c)
	if err != nil {
		return err
	}
	submission, errs := submissionOf(c.Request().Context(), props, personOf(c).ID)
	if len(errs) > 0 {
		props.Errors = errs
		return s.showNewBatch(c, http.StatusUnprocessableEntity, props)
	}
	done, err := s.pipeline.Submit(c.Request().Context(), submission)
	if invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err); ok {
		return s.showNewBatch(c, http.StatusUnprocessableEntity, withMistakes(props, invalid))
	}
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	return c.Redirect(http.StatusSeeOther, "/batches/"+idText(done.BatchID))
}

// dropUpload removes what an upload left on disk.
func dropUpload(r *http.Request) {
	if r.MultipartForm != nil {
		_ = r.MultipartForm.RemoveAll()
	}
}

// typedBatch is the form as it was sent, with the file's lines behind those
// that were typed. Text is kept as it came: what is wrong with a line, its
// reason says.
func typedBatch(c echo.Context) (views.NewBatchProps, error) {
	p := typedFields(c)
	files, err := uploaded(c.Request())
	if err != nil || len(files) == 0 {
		return p, err
	}
	in, err := files[0].Open()
	if err != nil {
		return p, fmt.Errorf("open upload: %w", err)
	}
	defer in.Close()
	content, err := io.ReadAll(io.LimitReader(in, maxAtOnce))
	if err != nil {
		return p, fmt.Errorf("read upload: %w", err)
	}
	// Some editors begin a file with this mark.
	file := string(bytes.TrimPrefix(content, []byte("\uFEFF")))
	if file != "" && p.URLs != "" && !strings.HasSuffix(p.URLs, "\n") {
		p.URLs += "\n"
	}
	p.URLs += file
	return p, nil
}

// typedFields is the form as it was sent, without its file.
func typedFields(c echo.Context) views.NewBatchProps {
	r := c.Request()
	return views.NewBatchProps{
		Name: cmp.Or(field(c, "name", 1000), nameOfFile(r)), URLs: r.PostFormValue("urls"), Kind: field(c, "kind", 20), Fetch: typedFetch(c),
		Headers:      clean(r.PostFormValue("headers"), 64<<10),
		ExtractLinks: r.PostFormValue("extract_links") != "", SkipBad: r.PostFormValue("skip_bad") != "",
		How: field(c, "how", maxHow),
	}
}

// listEndings are those of the files that lists come in.
var listEndings = []string{".gz", ".txt", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xml"}

// nameOfFile is what a batch is called whose form has a file and no name.
func nameOfFile(r *http.Request) string {
	files := chosen(r)
	if len(files) == 0 {
		return ""
	}
	return NameOfFile(files[0].Filename)
}

// NameOfFile is what a batch is called after the file of that name: the file's
// own name without its ending.
func NameOfFile(name string) string {
	for range 2 { // As in urls.csv.gz.
		if ext := path.Ext(name); slices.Contains(listEndings, strings.ToLower(ext)) {
			name = strings.TrimSuffix(name, ext)
		}
	}
	return strings.TrimSpace(clean(name, nameSuggested))
}

// uploaded are the files of the form. They are read where they lie.
func uploaded(r *http.Request) ([]pipeline.File, error) {
	var files []pipeline.File
	left := int64(maxUpload)
	for _, h := range chosen(r) {
		if left -= h.Size; left < 0 {
			return nil, &http.MaxBytesError{Limit: maxUpload}
		}
		files = append(files, pipeline.File{Name: h.Filename, Open: func() (io.ReadCloser, error) { return h.Open() }})
	}
	return files, nil
}

func hasFile(r *http.Request) bool { return len(chosen(r)) > 0 }

// chosen are the files of the form. A browser sends one without a name for none.
func chosen(r *http.Request) []*multipart.FileHeader {
	if r.MultipartForm == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.MultipartForm.File["file"]), func(h *multipart.FileHeader) bool {
		return h.Filename == "" && h.Size == 0
	})
}

// tabular reports a form whose lines are to be looked through whatever button
// was pressed: its file is kept already, is one of several, is large, or is no
// text with a URL a line.
func tabular(r *http.Request) bool {
	if r.PostFormValue("kept") != "" {
		return true
	}
	files := chosen(r)
	if len(files) != 1 || files[0].Size > maxAtOnce {
		return len(files) > 0
	}
	switch strings.ToLower(path.Ext(files[0].Filename)) {
	case ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xml", ".gz":
		return true
	}
	return false
}

// submissionOf turns the form into what the pipeline takes, or says by field
// why it can't.
func submissionOf(ctx context.Context, p views.NewBatchProps, by int64) (pipeline.Submission, views.Errors) {
	options, errs := fetchOptions(p.Fetch)
	options.ExtractLinks = p.ExtractLinks
	sub := pipeline.Submission{
		Name: p.Name, Kind: store.Kind(p.Kind), Text: p.URLs, LeaveOutBad: p.SkipBad, CreatedBy: &by, Options: options,
		Token: p.Once,
	}
	if p.Kind == "auto" {
		sub.Kind = ""
	}
	headers, problem := typedHeaders(ctx, p.Headers)
	if problem != "" {
		errs["headers"] = problem
	}
	sub.Headers = headers
	return sub, errs
}

// headerLines is typedHeaders the other way round.
func headerLines(headers map[string]string) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		fmt.Fprintf(&out, "%s: %s\n", name, headers[name])
	}
	return out.String()
}

// typedHeaders reads "Name: value", one a line. The second value says what is
// wrong, naming the line but never the value, which may be a secret.
func typedHeaders(ctx context.Context, text string) (map[string]string, string) {
	headers := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if !ok || name == "" {
			return nil, views.Textf(ctx, "Line %d isn't of the form Name: value.", i+1)
		}
		if _, twice := headers[name]; twice {
			return nil, views.Textf(ctx, "Line %d names %s a second time.", i+1, clean(name, 100))
		}
		headers[name] = strings.TrimSpace(value)
	}
	if len(headers) == 0 {
		return nil, ""
	}
	return headers, ""
}

// withMistakes puts what the pipeline refused beside the fields it is about.
func withMistakes(p views.NewBatchProps, invalid *pipeline.InvalidSubmission) views.NewBatchProps {
	p.Errors = fieldErrors(invalid)
	p.BadTotal = views.Known(int64(len(invalid.Lines)))
	for _, line := range invalid.Lines[:min(len(invalid.Lines), badLinesShown)] {
		p.BadLines = append(p.BadLines, views.RejectedLine{
			Number: line.Number, Text: clean(line.Text, 2000), State: "invalid", Reason: line.Reason,
		})
	}
	p.NoRest = p.Errors["urls"] != ""
	if len(invalid.Lines) > 0 && !p.NoRest {
		p.Errors["urls"] = "Some lines can't be submitted: correct them, or tick the box below their list to leave them out."
	}
	return p
}
