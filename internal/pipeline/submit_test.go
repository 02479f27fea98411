package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestCheckURL: what is sent for a line, or what is said of it.
func TestCheckURL(t *testing.T) {
	t.Parallel()
	long := "https://a.test/" + strings.Repeat("a", pipeline.MaxURL-15)
	for _, c := range []struct{ line, want, problem string }{
		{"https://a.test/x", "https://a.test/x", ""},
		{"  http://a.test/a b\tc  ", "http://a.test/a%20b%20c", ""},
		{"http://127.0.0.1:8080/admin", "http://127.0.0.1:8080/admin", ""},
		{"http://localhost/", "http://localhost/", ""},
		{"https://h\u00e4.test/\u00fc?q=\U0001F600#f", "https://h\u00e4.test/\u00fc?q=\U0001F600#f", ""},
		{"http://[2001:db8::1]:8080/", "http://[2001:db8::1]:8080/", ""},
		{long, long, ""},
		{long + "a", "", "8001 bytes"},
		{strings.Replace(long, "aa", " a", 1), "", "8002 bytes"},
		{"javascript:alert(1)", "", "javascript:"},
		{"file:///etc/passwd", "", "file:"},
		{"a.test/x", "https://a.test/x", ""},
		{"//a.test/x", "https://a.test/x", ""},
		{"<http://a.test/x>,", "http://a.test/x", ""},
		{"nonsense", "", "http://"},
		{"https://", "", "no host"},
		{"https:///path", "", "no host"},
		{"https://user:secret@a.test/", "", "password"},
		{"https://user@a.test/", "", "user name"},
		{"https://a.test/\x01", "", "control"},
		{"https://a.test/\x00", "", "control"},
		{"https://a.test/\xff", "", "UTF-8"},
		{"https://a.test:notaport/", "", "cannot be read"},
		{"https://a.test/%zz", "", "cannot be read"},
	} {
		got, err := pipeline.CheckURL(c.line)
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if got != c.want || (c.problem == "") != (err == nil) || !strings.Contains(problem, c.problem) {
			t.Errorf("%.60q: got %.60q, %q, want %.60q, %q", c.line, got, problem, c.want, c.problem)
		}
	}
}

// TestSubmissionIsCountedWhole: every line that is not blank is invalid, a
// duplicate or accepted, and what was left out can be read.
func TestSubmissionIsCountedWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	text := "\ufeffhttps://a.test/1\r\n\r\n   \nnonsense\x00\nhttps://a.test/2\rhttps://a.test/1\n https://a.test/1 \nftp://a.test/\nhttps://a.test/3"
	s := pipeline.Submission{Name: " A name\x00 ", Text: text}
	_, err := r.pipe.Submit(t.Context(), s)
	var bad *pipeline.InvalidSubmission
	if !errors.As(err, &bad) || len(bad.Lines) != 2 || bad.Lines[0].Number != 4 || bad.Lines[1].Number != 8 {
		t.Fatalf("got %v, want lines 4 and 8 named", err)
	}
	if n := r.number(`SELECT count(*) FROM batches`); n != 0 {
		t.Errorf("got %d batches of a submission that was refused, want none", n)
	}
	s.LeaveOutBad = true
	got, err := r.pipe.Submit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	want := pipeline.Submitted{BatchID: got.BatchID, Submitted: 7, Invalid: 2, Duplicate: 2, Accepted: 3, ItemID: got.ItemID}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if name := r.text(`SELECT name FROM batches`); name != "A name\ufffd" {
		t.Errorf("got the name %q", name)
	}
	if lines := r.text(`SELECT string_agg(line || ' ' || kind, ', ' ORDER BY line) FROM rejected_lines`); lines != "4 invalid, 6 duplicate, 7 duplicate, 8 invalid" {
		t.Errorf("got the rejected lines %s", lines)
	}
	if order := r.text(`SELECT string_agg(url, ' ' ORDER BY position) FROM items`); order != "https://a.test/1 https://a.test/2 https://a.test/3" {
		t.Errorf("got the items %s", order)
	}
}

// TestSubmissionsThatCannotBeRight: each says which field, and writes nothing.
func TestSubmissionsThatCannotBeRight(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	url := "https://a.test/"
	for name, c := range map[string]struct {
		s     pipeline.Submission
		field string
	}{
		"empty":            {pipeline.Submission{}, "urls"},
		"blank":            {pipeline.Submission{Text: " \n\r\n\t"}, "urls"},
		"nothing good":     {pipeline.Submission{Text: "a\nb", LeaveOutBad: true}, "urls"},
		"too many lines":   {pipeline.Submission{Text: strings.Repeat("\n", pipeline.MaxLines+1)}, "urls"},
		"kind":             {pipeline.Submission{Text: url, Kind: "map"}, "kind"},
		"crawl of two":     {pipeline.Submission{Text: url + "\n" + url + "2", Kind: store.KindCrawl}, "urls"},
		"crawl depth":      {pipeline.Submission{Text: url, Kind: store.KindCrawl, Options: pipeline.Options{Crawl: &pipeline.CrawlOptions{Depth: 11}}}, "depth"},
		"crawl limit":      {pipeline.Submission{Text: url, Kind: store.KindCrawl, Options: pipeline.Options{Crawl: &pipeline.CrawlOptions{Limit: -1}}}, "limit"},
		"crawl headers":    {pipeline.Submission{Text: url, Kind: store.KindCrawl, Headers: map[string]string{"A": "b"}}, "headers"},
		"depth of a batch": {pipeline.Submission{Text: url, Options: pipeline.Options{Crawl: &pipeline.CrawlOptions{}}}, "kind"},
		"name":             {pipeline.Submission{Text: url, Name: strings.Repeat("n", 201)}, "name"},
		"format":           {pipeline.Submission{Text: url, Options: pipeline.Options{Formats: []string{"pdf"}}}, "formats"},
		"country":          {pipeline.Submission{Text: url, Options: pipeline.Options{ProxyCountry: "Germany"}}, "proxy_country"},
		"proxy":            {pipeline.Submission{Text: url, Options: pipeline.Options{ProxyType: "mobile"}}, "proxy_type"},
		"wait until":       {pipeline.Submission{Text: url, Options: pipeline.Options{WaitUntil: "later"}}, "wait_until"},
		"wait time":        {pipeline.Submission{Text: url, Options: pipeline.Options{WaitTimeoutMS: -1}}, "wait_timeout"},
		"selector":         {pipeline.Submission{Text: url, Options: pipeline.Options{WaitFor: "#a\x00"}}, "wait_for"},
		"links of a batch": {pipeline.Submission{Text: url, Kind: store.KindBatch, Options: pipeline.Options{ExtractLinks: true}}, "extract_links"},
		"header name":      {pipeline.Submission{Text: url, Headers: map[string]string{"a b": "c"}}, "headers"},
		"header value":     {pipeline.Submission{Text: url, Headers: map[string]string{"A": "b\r\nC: d"}}, "headers"},
		"headers":          {pipeline.Submission{Text: url, Headers: map[string]string{"A": strings.Repeat("x", 9000)}}, "headers"},
	} {
		_, err := r.pipe.Submit(t.Context(), c.s)
		var bad *pipeline.InvalidSubmission
		if !errors.As(err, &bad) || len(bad.Fields) != 1 || bad.Fields[0].Field != c.field || bad.Fields[0].Message == "" {
			t.Errorf("%s: got %v, want the field %s alone", name, err, c.field)
		}
	}
	if n := r.number(`SELECT count(*) FROM batches`); n != 0 {
		t.Errorf("got %d batches, want none", n)
	}
}

// TestRefusalIsShortInWords: an error of a hundred thousand bad lines is still
// one that can be printed.
func TestRefusalIsShortInWords(t *testing.T) {
	t.Parallel()
	bad := &pipeline.InvalidSubmission{Lines: make([]pipeline.BadLine, 100_000)}
	for i := range bad.Lines {
		bad.Lines[i] = pipeline.BadLine{Number: i + 1, Text: strings.Repeat("x", 300), Reason: "names no host"}
	}
	if text := bad.Error(); len(text) > 4000 || !strings.HasSuffix(text, "and 99990 lines more") {
		t.Errorf("got %d bytes that end with %q", len(text), text[max(0, len(text)-30):])
	}
}

// TestNoURLIsSaidAsTheFormAsks: a form of one URL has no lines.
func TestNoURLIsSaidAsTheFormAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	for kind, want := range map[store.Kind]string{
		store.KindCrawl: "enter the URL", store.KindSync: "enter the URL", store.KindBatch: "enter at least one URL, one on each line",
	} {
		_, err := r.pipe.Submit(t.Context(), pipeline.Submission{Text: " \n", Kind: kind})
		bad, ok := errors.AsType[*pipeline.InvalidSubmission](err)
		if !ok || len(bad.Fields) != 1 || bad.Fields[0] != (pipeline.FieldError{Field: "urls", Message: want}) {
			t.Errorf("%s: got %v, want %q", kind, err, want)
		}
	}
}

// TestKindsAndSizesOfJobs: one URL is an extract job, more are batches of
// URLsPerJob, links need extract jobs, and mixed is half of each.
func TestKindsAndSizesOfJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	for name, c := range map[string]struct {
		kind  store.Kind
		urls  int
		links bool
		want  string
	}{
		"one":         {"", 1, false, "extract 1"},
		"more":        {"", 45, false, "batch 20, batch 20, batch 5"},
		"links":       {"", 2, true, "extract 1, extract 1"},
		"batch":       {store.KindBatch, 1, false, "batch 1"},
		"extract":     {store.KindExtract, 3, false, "extract 1, extract 1, extract 1"},
		"mixed":       {store.KindMixed, 5, false, "extract 1, extract 1, batch 3"},
		"whole parts": {store.KindBatch, 40, false, "batch 20, batch 20"},
	} {
		got, err := r.pipe.Submit(t.Context(), pipeline.Submission{
			Kind: c.kind, Text: strings.Join(sandbox.MadeURLs(c.urls, 1), "\n"), Options: pipeline.Options{ExtractLinks: c.links},
		})
		if err != nil {
			t.Fatal(err)
		}
		if jobs := r.text(`SELECT string_agg(kind || ' ' || url_count, ', ' ORDER BY id) FROM jobs WHERE batch_id = $1`, got.BatchID); jobs != c.want {
			t.Errorf("%s: got %s, want %s", name, jobs, c.want)
		}
		if n := r.number(`SELECT count(*) FROM jobs j LEFT JOIN river_job q ON q.kind = 'dispatch' AND (q.args->>'job_id')::bigint = j.id
			WHERE batch_id = $1 AND q.id IS NULL`, got.BatchID); n != 0 {
			t.Errorf("%s: %d jobs have no task", name, n)
		}
		if n := r.number(`SELECT count(*) FROM items i LEFT JOIN job_items ji ON ji.item_id = i.id AND ji.job_id = i.current_job_id
			WHERE i.batch_id = $1 AND ji.item_id IS NULL`, got.BatchID); n != 0 {
			t.Errorf("%s: %d items have no lineage", name, n)
		}
	}
}

// TestTenThousandLines are taken in one submission, whole; a hundred thousand
// come as a paste, in package web.
func TestTenThousandLines(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true, pipeline: func(c *pipeline.Config) { c.URLsPerJob = 100 }})
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "https://shop.sandbox.test/item/%d\n", i%9900)
	}
	began := time.Now()
	got, err := r.pipe.Submit(t.Context(), pipeline.Submission{Text: text.String()})
	if err != nil {
		t.Fatal(err)
	}
	if got.Submitted != 10_000 || got.Accepted != 9900 || got.Duplicate != 100 {
		t.Errorf("got %+v, want 9,900 accepted and 100 duplicates", got)
	}
	if n := r.number(`SELECT count(*) FROM jobs`); n != 99 {
		t.Errorf("got %d jobs, want 99", n)
	}
	t.Logf("written in %s", time.Since(began).Round(time.Millisecond))
}

// TestOptionsReachTheVendor: what was chosen is what is sent, headers opened.
func TestOptionsReachTheVendor(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	sent := make(chan string, 10)
	r.front.set(recordSubmits(sent))
	got, err := r.pipe.Submit(t.Context(), pipeline.Submission{
		Text: "https://shop.sandbox.test/item/1", Headers: map[string]string{"X-Site": "open sesame"},
		Options: pipeline.Options{
			Formats: []string{"html"}, RenderJS: true, ProxyCountry: "de", ProxyType: "datacenter", WaitUntil: "load", WaitFor: " #main ",
			WaitTimeoutMS: 1500, ExtractLinks: true,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.ended(got.BatchID)
	body := <-sent
	for _, want := range []string{`"formats":["html"]`, `"render_js":true`, `"DE"`, `"datacenter"`, `"load"`, `"#main"`, `1500`, `"extract_links":true`, `"open sesame"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in %s", want, body)
		}
	}
}

// TestAFormSentTwiceMakesOneBatch: a double click, or a reload of the answer.
func TestAFormSentTwiceMakesOneBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	for name, submit := range map[string]func(context.Context, pipeline.Submission) (pipeline.Submitted, error){
		"list": r.pipe.Submit, "try": r.pipe.TryNow,
	} {
		results := make([]pipeline.Submitted, 6)
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() {
				got, err := submit(t.Context(), pipeline.Submission{Text: "https://a.test/" + name, Token: name})
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				results[i] = got
			})
		}
		all.Wait()
		for _, got := range results {
			if got != results[0] || got.ItemID == 0 {
				t.Errorf("%s: got %+v and %+v of one form", name, results[0], got)
			}
		}
	}
	// A person went back to the form and changed it.
	if _, err := r.pipe.Submit(t.Context(), pipeline.Submission{Text: "https://a.test/changed", Token: "list"}); err != nil {
		t.Fatal(err)
	}
	if n := r.number(`SELECT count(*) FROM batches`); n != 3 {
		t.Errorf("got %d batches of three forms", n)
	}
}
