package web

import (
	"bytes"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestBatchSaysWhatItCosts before the click.
func TestBatchSaysWhatItCosts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if got := b.as(t, store.RoleAnalyst).get("/batches/new").text("[data-testid=cost]"); !strings.Contains(got, "one request for each URL that comes") {
		t.Errorf("cost: got %q", got)
	}
}

// upload sends the form of a new batch as a browser does.
func (v *visitor) upload(path string, fields map[string][]string, file []byte) page {
	v.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, values := range fields {
		for _, value := range values {
			if err := form.WriteField(name, value); err != nil {
				v.t.Fatal(err)
			}
		}
	}
	part, err := form.CreateFormFile("file", "urls.txt")
	if err != nil {
		v.t.Fatal(err)
	}
	if _, err := part.Write(file); err != nil {
		v.t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		v.t.Fatal(err)
	}
	r := v.request(http.MethodPost, path, &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return v.do(r)
}

func TestNewBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	if got := v.get("/batches/new"); got.status != http.StatusOK || got.doc.Find("input[name=format][value=markdown][checked]").Length() != 1 {
		t.Fatalf("form: got %d", got.status)
	}
	fields := map[string][]string{
		csrfField: {v.token()}, "name": {" November "}, "urls": {"https://a.example/1"}, "kind": {"auto"}, "format": {"markdown", "html"},
		"render_js": {"on"}, "proxy_country": {"de"}, "proxy_type": {"residential"}, "wait_until": {"load"}, "wait_for": {"main"},
		"wait_timeout": {"2.5"}, "headers": {"accept-language: de\r\nX-Key:  s: 1 \n\n"}, "extract_links": {"on"}, "skip_bad": {"on"},
	}
	got := v.upload("/batches", fields, []byte("\uFEFFhttps://a.example/2\nhttps://a.example/3"))
	if got.status != http.StatusSeeOther || got.header.Get("Location") != "/batches/1" {
		t.Fatalf("got %d to %q: %s", got.status, got.header.Get("Location"), got.text("main"))
	}
	sub := b.pipeline.submitted[0]
	if sub.CreatedBy == nil {
		t.Error("nobody submitted it")
	}
	sub.CreatedBy = nil
	want := pipeline.Submission{
		Name: "November", Text: "https://a.example/1\nhttps://a.example/2\nhttps://a.example/3", LeaveOutBad: true,
		Headers: map[string]string{"Accept-Language": "de", "X-Key": "s: 1"},
		Options: pipeline.Options{
			Formats: []string{"markdown", "html"}, RenderJS: true, ProxyCountry: "de", ProxyType: "residential",
			WaitUntil: "load", WaitFor: "main", WaitTimeoutMS: 2500, ExtractLinks: true,
		},
	}
	if diff := cmp.Diff(sub, want); diff != "" {
		t.Errorf("submission (got -, want +):\n%s", diff)
	}
}

func TestNewBatchLosesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	b.pipeline.submit = func(pipeline.Submission) (pipeline.Submitted, error) {
		bad := &pipeline.InvalidSubmission{Fields: []pipeline.FieldError{{Field: "proxy_country", Message: "two letters"}, {Field: "extract_links", Message: "not here"}}}
		for i := range 300 {
			bad.Lines = append(bad.Lines, pipeline.BadLine{Number: i + 1, Text: "javascript:<b>", Reason: "begins with javascript:"})
		}
		return pipeline.Submitted{}, bad
	}
	fields := map[string][]string{
		csrfField: {v.token()}, "name": {"n <b>"}, "urls": {"javascript:<b>\n</textarea>"}, "kind": {"batch"}, "format": {"html"},
		"proxy_country": {"xyz"}, "headers": {"A: b"},
	}
	got := v.upload("/batches", fields, []byte("from the file"))
	if got.status != http.StatusUnprocessableEntity {
		t.Fatalf("got %d, want 422", got.status)
	}
	for selector, want := range map[string]string{
		"textarea[name=urls]": "javascript:<b> </textarea> from the file", "textarea[name=headers]": "A: b",
		"#proxy_country-error": "two letters", "#error-summary": "not here", "[data-testid=bad-lines] .card-title": "300 lines can't be submitted",
	} {
		if text := got.text(selector); !strings.Contains(text, want) {
			t.Errorf("%s: got %q, want %q in it", selector, text, want)
		}
	}
	if n := got.doc.Find("[data-testid=bad-lines] tbody tr").Length(); n != badLinesShown {
		t.Errorf("bad lines shown: got %d, want %d", n, badLinesShown)
	}
	if kind := got.doc.Find("select[name=kind] option[selected]").AttrOr("value", ""); kind != "batch" {
		t.Errorf("kind: got %q, want batch", kind)
	}
	if got.doc.Find("input[name=format][checked]").AttrOr("value", "") != "html" || got.doc.Find("input[name=name]").AttrOr("value", "") != "n <b>" {
		t.Error("the form forgot a field")
	}
	for name, fields := range map[string]map[string][]string{
		"format":       {"urls": {"https://a.example/"}},
		"wait_timeout": {"urls": {"https://a.example/"}, "format": {"html"}, "wait_timeout": {"soon"}},
		"headers":      {"urls": {"https://a.example/"}, "format": {"html"}, "headers": {"no colon"}},
	} {
		fields[csrfField] = []string{v.token()}
		got := v.upload("/batches", fields, nil)
		if got.status != http.StatusUnprocessableEntity || got.text("#"+name+"-error") == "" {
			t.Errorf("%s: got %d, message %q", name, got.status, got.text("#"+name+"-error"))
		}
	}
}

func TestNewBatchOfAnySize(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	var lines strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&lines, "https://shop.example/products/%d?ref=catalogue\r\n", i)
	}
	fields := url.Values{csrfField: {v.token()}, "urls": {lines.String()}, "format": {"markdown"}}
	if got := v.upload("/batches", fields, nil); got.status != http.StatusSeeOther || b.pipeline.submitted[0].Text != lines.String() {
		t.Errorf("a paste of 100,000 lines: got %d", got.status)
	}
	fields.Set("urls", "")
	if got := v.upload("/batches", fields, bytes.Repeat([]byte("x"), maxAtOnce)); got.status != http.StatusSeeOther {
		t.Errorf("a file at the limit: got %d, want 303", got.status)
	}
	if got := v.upload("/batches", fields, bytes.Repeat([]byte("x"), maxUpload+1)); got.status != http.StatusRequestEntityTooLarge || got.text("h1") != "Too large" {
		t.Errorf("a file over the limit: got %d %q, want 413 as a page", got.status, got.text("h1"))
	}
	if len(b.pipeline.submitted) != 2 {
		t.Errorf("submissions: got %d, want 2", len(b.pipeline.submitted))
	}
}

func TestDamagedForms(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	for _, kind := range []string{"multipart/form-data", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "text/plain", ""} {
		r := v.request(http.MethodPost, "/batches", strings.NewReader("--x\r\nnonsense %zz"))
		r.Header.Set("Content-Type", kind)
		if got := v.do(r); got.status != http.StatusBadRequest && got.status != http.StatusForbidden {
			t.Errorf("%q: got %d, want 400 or 403", kind, got.status)
		}
	}
	if len(b.pipeline.submitted) != 0 {
		t.Error("a damaged form was submitted")
	}
}

// What is wrong with a form of either kind is what is answered, not that the
// fields behind the damage are missing.
func TestFormsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	token := csrfField + "=" + v.token()
	large := "&urls=" + strings.Repeat("x", pasteLimit)
	for _, tc := range []struct {
		path, form string
		want       int
	}{
		{"/batches", token + "&urls=%zz", http.StatusBadRequest},
		{"/batches", token + large, http.StatusRequestEntityTooLarge},
		{"/sign-out", token + large, http.StatusRequestEntityTooLarge},
		{"/sign-in", "name=a&password=b&batch_urls=%zz", http.StatusBadRequest},
		{"/sign-in", "name=a&password=b&batch_urls=" + large, http.StatusRequestEntityTooLarge},
	} {
		r := v.request(http.MethodPost, tc.path, strings.NewReader(tc.form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if got := v.do(r); got.status != tc.want {
			t.Errorf("%s with %d bytes: got %d %q, want %d", tc.path, len(tc.form), got.status, got.text("h1"), tc.want)
		}
	}
}

func TestSubmitFailureIsInternal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	b.pipeline.submit = func(pipeline.Submission) (pipeline.Submitted, error) {
		return pipeline.Submitted{}, errors.New("secret detail")
	}
	got := v.upload("/batches", map[string][]string{csrfField: {v.token()}, "urls": {"https://a.example/"}, "format": {"html"}}, nil)
	id := got.text(".oops-log code")
	if got.status != http.StatusInternalServerError || strings.Contains(got.body, "secret detail") || id == "" {
		t.Errorf("got %d, id %q", got.status, id)
	}
	if log := b.log.String(); !strings.Contains(log, id) || !strings.Contains(log, "secret detail") {
		t.Error("the log doesn't say what the page's id stands for")
	}
}
