package web

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"rollcall/store"
)

// uploadAs sends the form of a new batch with a file of that name.
func (v *visitor) uploadAs(path, name string, file []byte, fields map[string][]string) page {
	v.t.Helper()
	return v.uploadFile(path, name, file, v.token(), fields)
}

func (v *visitor) uploadFile(path, name string, file []byte, token string, fields map[string][]string) page {
	v.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	write := func(name, value string) {
		if err := form.WriteField(name, value); err != nil {
			v.t.Fatal(err)
		}
	}
	write(csrfField, token)
	for name, values := range fields {
		for _, value := range values {
			write(name, value)
		}
	}
	part, err := form.CreateFormFile("file", name)
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

const faultyCSV = "line,page,note\r\n" +
	"a,https://shop.test/1,\"=HYPERLINK(\"\"https://evil.test\"\")\"\r\n" +
	"b,shop.test/2,\r\n" +
	"c,https://shop.test/1,again\r\n" +
	"d,javascript:alert(1),\"<script>alert(1)</script>\x00\"\r\n" +
	"e,,nothing\r\n"

func (v *visitor) wantAt(got page, path string) {
	v.t.Helper()
	if got.status != http.StatusSeeOther || got.header.Get("Location") != path {
		v.t.Fatalf("got %d to %q, want 303 to %q: %s", got.status, got.header.Get("Location"), path, got.text("main"))
	}
}

// TestPreflightPages walks one upload with faulty lines to its batch, with the
// wrong turns that people take on the way.
func TestPreflightPages(t *testing.T) {
	t.Parallel()
	b := setupIdle(t)
	v := b.as(t, store.RoleAnalyst)
	hostile := "<img src=x onerror=alert(1)>\u202e.csv"
	fields := map[string][]string{"name": {"shop"}, "kind": {"batch"}, "format": {"html"}, "headers": {"X-Key: secret"}, "wait_timeout": {"soon"}}

	// A mistake elsewhere doesn't lose the file, which the form names.
	got := v.uploadAs("/preflights", hostile, []byte(faultyCSV), fields)
	if got.status != http.StatusUnprocessableEntity || got.text("#wait_timeout-error") == "" || !strings.Contains(got.text("label:has([data-testid=kept])"), "<img src=x") {
		t.Fatalf("got %d, kept %q", got.status, got.text("label:has([data-testid=kept])"))
	}
	kept := got.doc.Find("input[name=kept]").AttrOr("value", "")
	v.wantAt(v.get("/preflights/"+kept), "/batches/new?from="+kept)
	delete(fields, "wait_timeout")
	fields["kept"] = []string{kept}
	v.wantAt(v.uploadAs("/preflights", "", nil, fields), "/preflights/2")

	got = v.get("/preflights/2")
	if sum := got.text("[data-testid=sum]"); sum != "5 Lines = 2 To submit + 1 Duplicate + 2 Invalid" {
		t.Errorf("sum: got %q", sum)
	}
	if plan := got.text("[data-testid=plan]"); !strings.Contains(plan, "2 requests in 1 job") || !strings.Contains(plan, "How many requests are left is unknown") ||
		!strings.Contains(plan, "How long it may take is unknown") || !strings.Contains(plan, "3 lines are left out") || !strings.Contains(plan, "Submit 2 URLs") {
		t.Errorf("plan: got %q", plan)
	}
	if lines := got.text("[data-testid=lines] tbody"); !strings.Contains(lines, "javascript:alert(1)") || strings.Contains(got.body, "<script>alert(1)") {
		t.Errorf("lines: got %q", lines)
	}
	if lines := v.get("/preflights/2?verdict=fixed").text("[data-testid=lines] tbody"); !strings.Contains(lines, "shop.test/2 Sent as https://shop.test/2") {
		t.Errorf("fixed: got %q", lines)
	}
	v.wrongChoices()
	v.nobodyElses(b)
	v.toTheBatch(b)
}

// TestPreflightsAreBusy is said where the reader stands, and nothing of what was
// typed or sent is lost.
func TestPreflightsAreBusy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	v.wantAt(v.uploadAs("/preflights", "first.csv", []byte(faultyCSV), map[string][]string{"format": {"html"}}), "/preflights/1")
	b.pipeline.busy.Store(true)
	got := v.uploadAs("/preflights", "busy.csv", []byte(faultyCSV), map[string][]string{"name": {"kept"}, "format": {"html"}})
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.text("#urls-error"), "nothing was done") ||
		!strings.Contains(got.text("label:has([data-testid=kept])"), "busy.csv") || got.doc.Find("input[name=name]").AttrOr("value", "") != "kept" {
		t.Errorf("a form: got %d, %q", got.status, got.text("main"))
	}
	for path, form := range map[string]url.Values{"/choices": {"url_column": {"1"}}, "/submit": {"reading": {"1"}}} {
		if got := v.submit("/preflights/1"+path, form); got.status != http.StatusServiceUnavailable || !strings.Contains(got.text("[data-testid=notice]"), "nothing was done") {
			t.Errorf("%s: got %d, %q", path, got.status, got.text("main"))
		}
	}
}

// wrongChoices are named with what was chosen, and the column is changed and
// changed back.
func (v *visitor) wrongChoices() {
	t := v.t
	t.Helper()
	for field, value := range map[string]string{"format": "pdf", "delimiter": "x", "header": "maybe", "stored_days": "many"} {
		got := v.submit("/preflights/2/choices", url.Values{field: {value}, "url_column": {"page"}})
		if got.status != http.StatusUnprocessableEntity || got.text("#"+field+"-error") == "" || got.text("option[value=page][selected]")+got.text("select[name=url_column] option[selected]") == "" {
			t.Errorf("%s: got %d, %q", field, got.status, got.text("#"+field+"-error"))
		}
	}
	if got := v.submit("/preflights/2/choices", url.Values{"stored_days": {"99999"}}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("too many days: got %d", got.status)
	}
	v.wantAt(v.submit("/preflights/2/choices", url.Values{"url_column": {"9"}}), "/preflights/2")
	if got := v.get("/preflights/2"); got.text("[data-testid=problem]") == "" || got.text("#url_column-error") == "" || strings.Contains(got.text("main"), "Submit ") {
		t.Errorf("a column that isn't there: got %q", got.text("main"))
	}
	v.wantAt(v.submit("/preflights/2/choices", url.Values{"url_column": {"2"}, "keep_duplicates": {"on"}, "stored_days": {"3"}}), "/preflights/2")
	got := v.get("/preflights/2")
	if sum := got.text("[data-testid=sum]"); !strings.HasPrefix(sum, "5 Lines = 3 To submit + 0 Duplicate") || got.doc.Find("input[name=stored_days]").AttrOr("value", "") != "3" {
		t.Errorf("sum with duplicates: got %q", sum)
	}
	// What was looked at before that isn't submitted.
	if got := v.submit("/preflights/2/submit", url.Values{"reading": {"1"}}); got.status != http.StatusConflict || got.text("[data-testid=notice]") == "" {
		t.Errorf("an old page was submitted: got %d", got.status)
	}
	v.wantAt(v.submit("/preflights/2/choices", url.Values{"url_column": {"2"}}), "/preflights/2")

	// Back to the form, where everything is as it was.
	form := v.get("/batches/new?from=2")
	for selector, want := range map[string]string{"input[name=name]": "shop", "input[name=kept]": "2", "input[name=format][checked]": "html"} {
		if got := form.doc.Find(selector).AttrOr("value", ""); got != want {
			t.Errorf("the form's %s: got %q, want %q", selector, got, want)
		}
	}
	if form.text("textarea[name=headers]") != "X-Key: secret" || !strings.Contains(form.doc.Find("input[name=how]").AttrOr("value", ""), `"url_column":"2"`) {
		t.Errorf("the form forgot: %q", form.doc.Find("input[name=how]").AttrOr("value", ""))
	}
	if got := v.submit("/preflights", url.Values{"how": {"{"}, "urls": {"https://a.test"}, "format": {"html"}}); got.status != http.StatusBadRequest {
		t.Errorf("a damaged form: got %d", got.status)
	}
}

// nobodyElses: not even an admin sees what somebody is about to submit.
func (v *visitor) nobodyElses(b *bench) {
	t := v.t
	t.Helper()
	other := b.as(t, store.RoleAdmin)
	for _, path := range []string{"/preflights/2", "/preflights/2/rejected.csv", "/batches/new?from=2"} {
		if got := other.get(path); got.status != http.StatusNotFound {
			t.Errorf("GET %s by another: got %d, want 404", path, got.status)
		}
	}
	for _, path := range []string{"/preflights/2/choices", "/preflights/2/submit"} {
		if got := other.submit(path, url.Values{"reading": {"4"}}); got.status != http.StatusNotFound {
			t.Errorf("POST %s by another: got %d, want 404", path, got.status)
		}
	}
	if got := other.submit("/preflights", url.Values{"kept": {"2"}, "format": {"html"}}); got.status != http.StatusUnprocessableEntity || got.text("#file-error") == "" {
		t.Errorf("another's upload: got %d, %q", got.status, got.text("#file-error"))
	}
}

// toTheBatch submits, twice, and reads what was left out.
func (v *visitor) toTheBatch(b *bench) {
	t := v.t
	t.Helper()
	want := [][]string{
		{"page", "line", "note", "rollcall_line", "verdict", "reason", "duplicate_of", "stored_result", "more_cells"},
		{"https://shop.test/1", "c", "again", "4", "duplicate", "", "2", "", ""},
		{"javascript:alert(1)", "d", "<script>alert(1)</script>\uFFFD", "5", "invalid", "", "", "", ""},
		{"", "e", "nothing", "6", "invalid", "", "", "", ""},
	}
	before := v.rejected("/preflights/2/rejected.csv", 5)
	if diff := cmp.Diff(before, want); diff != "" {
		t.Errorf("lines left out (got -, want +):\n%s", diff)
	}
	reading := v.get("/preflights/2").doc.Find("input[name=reading]").AttrOr("value", "")
	v.wantAt(v.submit("/preflights/2/submit", url.Values{"reading": {reading}}), "/batches/1")
	v.wantAt(v.submit("/preflights/2/submit", url.Values{"reading": {reading}}), "/batches/1")
	v.wantAt(v.get("/preflights/2"), "/batches/1")
	v.wantAt(v.get("/preflights/2/rejected.csv"), "/batches/1/rejected.csv")
	if diff := cmp.Diff(v.rejected("/batches/1/rejected.csv", 5), want); diff != "" {
		t.Errorf("rejected lines of the batch (got -, want +):\n%s", diff)
	}
	if n := b.id(t, `SELECT count(*) FROM batches`); n != 1 {
		t.Errorf("batches: got %d, want 1", n)
	}
	if note := b.id(t, `SELECT count(*) FROM items WHERE extra[2] = '=HYPERLINK("https://evil.test")'`); note != 1 {
		t.Errorf("items with their note: got %d", note)
	}
	// The second button looks through what is more than lines, too.
	v.wantAt(v.uploadAs("/batches", "more.csv", []byte(faultyCSV), map[string][]string{"format": {"html"}}), fmt.Sprintf("/preflights/%d", b.id(t, `SELECT max(id) FROM preflights`)))
}

// rejected reads a download as a stranger would, without the texts of a column.
func (v *visitor) rejected(path string, without int) [][]string {
	v.t.Helper()
	got := v.get(path)
	if got.status != http.StatusOK || !strings.HasSuffix(got.header.Get("Content-Disposition"), `-rejected.csv"`) {
		v.t.Fatalf("%s: got %d, %q", path, got.status, got.header.Get("Content-Disposition"))
	}
	rows, err := csv.NewReader(strings.NewReader(got.body)).ReadAll()
	if err != nil {
		v.t.Fatalf("%s: %v", path, err)
	}
	for i := range rows {
		if i > 0 {
			if rows[i][without] == "" {
				v.t.Errorf("%s: row %d has no reason", path, i)
			}
			rows[i][without] = ""
		}
	}
	return rows
}

// TestExpiredSessionKeepsWhatIsChecked: what was typed, and how it was to be
// read, comes through the sign-in; a table doesn't, and the page says so.
func TestExpiredSessionKeepsWhatIsChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addUser(t, "alice", store.RoleAnalyst)
	v := b.visit(t)
	how := `{"choices":{"url_column":"2"},"stored_days":7}`
	got := v.uploadFile("/preflights", "pages.csv", []byte(faultyCSV), "", map[string][]string{"name": {"kept"}, "urls": {"https://a.example/1"}, "how": {how}})
	if got.status != http.StatusUnauthorized || !strings.Contains(got.text("main"), "choose the file once more") {
		t.Fatalf("got %d, %q", got.status, got.text("main"))
	}
	form := signInForm("alice", password)
	got.doc.Find("form input[type=hidden]").Each(func(_ int, s *goquery.Selection) {
		form.Add(s.AttrOr("name", ""), s.AttrOr("value", ""))
	})
	again := v.post("/sign-in", form)
	if again.status != http.StatusOK || again.text("textarea[name=urls]") != "https://a.example/1" || again.doc.Find("input[name=how]").AttrOr("value", "") != how {
		t.Errorf("after sign-in: got %d, URLs %q", again.status, again.text("textarea[name=urls]"))
	}
}

// TestPreflightOfAnySize: 30,000 long lines are looked through, whatever button
// was pressed, and shown.
func TestPreflightOfAnySize(t *testing.T) {
	t.Parallel()
	b := setupIdle(t)
	v := b.as(t, store.RoleAnalyst)
	var lines strings.Builder
	long := strings.Repeat("x", 600)
	for i := range 30_000 {
		fmt.Fprintf(&lines, "https://shop.example/products/%s/%d?ref=catalogue\r\n", long, i)
	}
	v.wantAt(v.uploadAs("/batches", "long.txt", []byte(lines.String()), map[string][]string{"format": {"markdown"}}), "/preflights/1")
	got := v.get("/preflights/1")
	if sum := got.text("[data-testid=sum]"); !strings.HasPrefix(sum, "30,000 Lines = 30,000 To submit") || len(got.body) > 100_000 {
		t.Errorf("got %q in %d bytes", sum, len(got.body))
	}
	if older := got.doc.Find("nav.pager a[rel=next]").AttrOr("href", ""); v.get(older).text("[data-testid=lines] tbody tr:first-child td.num") != "51" {
		t.Errorf("the next page %q does not begin with line 51", older)
	}
}
