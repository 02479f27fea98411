package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// maxUpload bounds the file of a new batch.
const maxUpload = 16 << 20

// badLinesShown is how many bad lines the form names; it counts them all.
const badLinesShown = 200

// newBatch is GET /batches/new.
func (s *Server) newBatch(c echo.Context) error {
	return s.showNewBatch(c, http.StatusOK, views.NewBatchProps{Kind: "auto", Markdown: true})
}

func (s *Server) showNewBatch(c echo.Context, status int, props views.NewBatchProps) error {
	l, err := s.layout(c, "New batch", views.SectionNewBatch)
	if err != nil {
		return err
	}
	props.Layout = l
	return render(c, status, views.NewBatch(props))
}

// submitBatch is POST /batches. A submission that can't be taken brings the
// form back with everything that was typed, the uploaded lines too.
func (s *Server) submitBatch(c echo.Context) error {
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	props, err := typedBatch(c)
	if err != nil {
		return err
	}
	submission, errs := submissionOf(props, personOf(c).ID)
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
	r := c.Request()
	formats := r.PostForm["format"]
	p := views.NewBatchProps{
		Name: field(c, "name", 1000), URLs: r.PostFormValue("urls"), Kind: field(c, "kind", 20),
		Markdown: slices.Contains(formats, "markdown"), HTML: slices.Contains(formats, "html"),
		RenderJS: r.PostFormValue("render_js") != "", ProxyCountry: field(c, "proxy_country", 20),
		ProxyType: field(c, "proxy_type", 40), WaitUntil: field(c, "wait_until", 40), WaitFor: field(c, "wait_for", 2000),
		WaitTimeout: field(c, "wait_timeout", 40), Headers: clean(r.PostFormValue("headers"), 64<<10),
		ExtractLinks: r.PostFormValue("extract_links") != "", SkipBad: r.PostFormValue("skip_bad") != "",
	}
	file, err := uploaded(r)
	if err != nil {
		return p, err
	}
	if file != "" && p.URLs != "" && !strings.HasSuffix(p.URLs, "\n") {
		p.URLs += "\n"
	}
	p.URLs += file
	return p, nil
}

// uploaded reads the file of the form; "" when there is none.
func uploaded(r *http.Request) (string, error) {
	file, _, err := r.FormFile("file")
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return "", nil
	}
	if err != nil {
		return "", badRequest("The file arrived damaged. Send it again.", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxUpload+1))
	if err != nil {
		return "", fmt.Errorf("read upload: %w", err)
	}
	if len(content) > maxUpload {
		return "", &http.MaxBytesError{Limit: maxUpload}
	}
	// Some editors begin a file with this mark.
	return string(bytes.TrimPrefix(content, []byte("\uFEFF"))), nil
}

// submissionOf turns the form into what the pipeline takes, or says by field
// why it can't.
func submissionOf(p views.NewBatchProps, by int64) (pipeline.Submission, views.Errors) {
	errs := views.Errors{}
	sub := pipeline.Submission{
		Name: p.Name, Kind: store.Kind(p.Kind), Text: p.URLs, LeaveOutBad: p.SkipBad, CreatedBy: &by,
		Options: pipeline.Options{
			RenderJS: p.RenderJS, ProxyCountry: p.ProxyCountry, ProxyType: p.ProxyType, WaitUntil: p.WaitUntil,
			WaitFor: p.WaitFor, ExtractLinks: p.ExtractLinks,
		},
	}
	if p.Kind == "auto" {
		sub.Kind = ""
	}
	if p.Markdown {
		sub.Options.Formats = append(sub.Options.Formats, "markdown")
	}
	if p.HTML {
		sub.Options.Formats = append(sub.Options.Formats, "html")
	}
	if len(sub.Options.Formats) == 0 {
		errs["format"] = "Choose at least one format."
	}
	if p.WaitTimeout != "" {
		seconds, err := strconv.ParseFloat(p.WaitTimeout, 64)
		if err != nil || seconds <= 0 || seconds > 3600 {
			errs["wait_timeout"] = "Give a number of seconds, such as 30."
		} else {
			sub.Options.WaitTimeoutMS = int(seconds * 1000)
		}
	}
	headers, problem := typedHeaders(p.Headers)
	if problem != "" {
		errs["headers"] = problem
	}
	sub.Headers = headers
	return sub, errs
}

// typedHeaders reads "Name: value", one a line. The second value says what is
// wrong, naming the line but never the value, which may be a secret.
func typedHeaders(text string) (map[string]string, string) {
	headers := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if !ok || name == "" {
			return nil, fmt.Sprintf("Line %d isn't of the form Name: value.", i+1)
		}
		if _, twice := headers[name]; twice {
			return nil, fmt.Sprintf("Line %d names %s a second time.", i+1, clean(name, 100))
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
	p.Errors = views.Errors{}
	for _, each := range invalid.Fields {
		name := formField(each.Field)
		if p.Errors[name] == "" {
			p.Errors[name] = each.Message
		}
	}
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

// formField is a field's name in the form; "form" when it has no place there.
func formField(name string) string {
	switch name {
	case "formats":
		return "format"
	case "name", "urls", "kind", "proxy_country", "proxy_type", "wait_until", "wait_for", "wait_timeout", "headers":
		return name
	}
	return "form"
}
