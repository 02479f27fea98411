package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

func hash(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

func TestExtract(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	accepted := r.call("POST", "/v1/extract", `{"url":"https://shop.sandbox.test/item/1","formats":["markdown","html"],
		"processing_mode":"async","extract_links":true,"wait_config":{"wait_for":"#x"}}`).want(202)
	id := accepted.str("job_id")
	if got, want := accepted.str("status_url"), "/v1/extract/"+id; got != want {
		t.Errorf("status_url: got %s, want %s", got, want)
	}
	job := r.finish("/v1/extract/" + id)
	if got := job.str("status"); got != "completed" {
		t.Fatalf("status: got %s", got)
	}
	if job.num("tokens_charged") != 1 || !job.isNull("error") || job.num("metadata", "http_status") != 200 {
		t.Errorf("job: %v", job.v)
	}
	if got := job.str("metadata", "wait_config", "wait_until"); got != "domcontentloaded" {
		t.Errorf("wait_until: got %s", got)
	}
	if len(job.list("data", "links")) < 10 {
		t.Errorf("links: %v", job.list("data", "links"))
	}
	o := r.Books().Jobs[0].Outcomes[0]
	if o.MarkdownSHA256 != hash(job.str("data", "markdown")) || o.HTMLSHA256 != hash(job.str("data", "html")) {
		t.Errorf("the books' hashes are not those of the answer: %+v", o)
	}
	again := r.call("GET", "/v1/extract/"+strings.ToUpper(id), nil).want(200)
	if again.str("data", "markdown") != job.str("data", "markdown") {
		t.Error("the same job reads differently")
	}
}

func TestExtractWhileRunning(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	path := r.call("POST", "/v1/extract", `{"url":"https://shop.sandbox.test/slow/10m","processing_mode":"async"}`).
		want(202).str("status_url")
	job := r.call("GET", path, nil).want(200)
	for _, member := range []string{"completed_at", "data", "metadata", "error", "tokens_charged"} {
		if !job.isNull(member) {
			t.Errorf("%s is not null", member)
		}
	}
	if b := r.Books(); b.Reserved != 1 || b.Charged != 0 {
		t.Errorf("got %d reserved and %d charged", b.Reserved, b.Charged)
	}
}

func TestExtractSync(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	d := r.call("POST", "/v1/extract", `{"url":"https://news.sandbox.test/story/3"}`).want(200)
	if d.str("data", "markdown") == "" || !d.isNull("data", "html") || d.num("tokens_charged") != 1 {
		t.Errorf("got %v", d.v)
	}
	failed := r.call("POST", "/v1/extract", `{"url":"https://news.sandbox.test/fail/BLOCKED"}`).want(422)
	if failed.str("code") != "BLOCKED" || failed.at("retryable").v != false {
		t.Errorf("got %v", failed.v)
	}
	if n := len(r.call("GET", "/v1/extract/jobs", nil).want(200).list("jobs")); n != 0 {
		t.Errorf("%d sync calls are in the list", n)
	}
	if err := r.SetSwitches(Switches{SyncListed: true}); err != nil {
		t.Fatal(err)
	}
	if n := len(r.call("GET", "/v1/extract/jobs", nil).want(200).list("jobs")); n != 2 {
		t.Errorf("%d sync calls are in the list, want 2", n)
	}
	b := r.Books()
	if len(b.Jobs) != 2 || b.Jobs[0].Kind != "sync" || b.Charged != 1 || b.Calls["extract.sync"].Total != 2 {
		t.Errorf("books: %+v", b)
	}
}

func TestExtractSyncTimeout(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.SyncTimeout = 20 * time.Millisecond
	r := setup(t, cfg)
	r.call("POST", "/v1/extract", `{"url":"https://news.sandbox.test/slow/10m"}`).want(504)
}

func TestExtractFailed(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	job := r.extract("https://shop.sandbox.test/fail/not_found")
	if job.str("status") != "failed" || job.str("error", "code") != "NOT_FOUND" || job.num("tokens_charged") != 0 {
		t.Errorf("got %v", job.v)
	}
	if !job.isNull("data") || job.isNull("completed_at") {
		t.Errorf("got %v", job.v)
	}
}

func TestFailRetryable(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	for _, c := range []struct {
		path string
		want []string
	}{
		{"/fail-retryable", []string{"failed", "completed"}},
		{"/fail-retryable/2", []string{"failed", "failed", "completed"}},
	} {
		for i, want := range c.want {
			job := r.extract("https://forum.sandbox.test" + c.path)
			if got := job.str("status"); got != want {
				t.Errorf("%s, attempt %d: got %s, want %s", c.path, i+1, got, want)
			}
			if want == "failed" && job.at("error", "retryable").v != true {
				t.Errorf("%s: not retryable", c.path)
			}
		}
	}
}

func TestExtractList(t *testing.T) {
	t.Parallel()
	cfg := quick()
	clock := newClock()
	cfg.Now = clock.now
	r := setup(t, cfg)
	ids := make([]string, 5)
	for i := range ids {
		ids[i] = r.extract(fmt.Sprintf("https://shop.sandbox.test/item/%d", i), "markdown").str("job_id")
		clock.add(time.Minute)
	}
	failed := r.extract("https://shop.sandbox.test/fail/X", "html").str("job_id")
	start := clock.start.Add(time.Minute).Format(time.RFC3339)
	end := clock.start.Add(3 * time.Minute).Format(time.RFC3339)
	for _, c := range []struct {
		query string
		want  []string
		pages int
	}{
		{"", []string{failed, ids[4], ids[3], ids[2], ids[1], ids[0]}, 1},
		{"page_size=4", []string{failed, ids[4], ids[3], ids[2]}, 2},
		{"page_size=4&page=2", []string{ids[1], ids[0]}, 2},
		{"page_size=4&page=3", []string{}, 2},
		{"status=failed", []string{failed}, 1},
		{"output=html", []string{failed}, 1},
		{"job_id=" + ids[2], []string{ids[2]}, 1},
		{"url=" + url.QueryEscape("https://shop.sandbox.test/item/3"), []string{ids[3]}, 1},
		{"start_date=" + start + "&end_date=" + end, []string{ids[3], ids[2], ids[1]}, 1},
		{"status=queued", []string{}, 0},
	} {
		d := r.call("GET", "/v1/extract/jobs?"+c.query, nil).want(200)
		got := []string{}
		for i := range d.list("jobs") {
			got = append(got, d.str("jobs", i, "job_id"))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || d.num("page_count") != c.pages {
			t.Errorf("%s: got %v of %d pages, want %v of %d", c.query, got, d.num("page_count"), c.want, c.pages)
		}
	}
	for _, bad := range []string{"page=0", "page=x", "page_size=101", "status=done", "output=pdf", "start_date=soon"} {
		d := r.bad("GET", "/v1/extract/jobs?"+bad, nil)
		if d.str("detail", 0, "loc", 0) != "query" {
			t.Errorf("%s: got %v", bad, d.v)
		}
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	urls := MadeURLs(23, 1)
	urls[4] = "https://shop.sandbox.test/fail/GONE"
	urls[7] = "javascript:alert(1)"
	urls[9] = urls[8]
	body := map[string]any{"urls": urls, "formats": []string{"markdown"}, "proxy": map[string]any{"country": "DE"}}
	accepted := r.call("POST", "/v1/batch", body).want(202)
	if accepted.num("accepted_urls") != 22 || accepted.str("invalid_urls", 0) != urls[7] {
		t.Errorf("got %v", accepted.v)
	}
	path := accepted.str("status_url")
	job := r.finish(path)
	for member, want := range map[string]int{
		"total_urls": 22, "completed_urls": 21, "failed_urls": 1, "cancelled_urls": 0, "pending_urls": 0,
	} {
		if got := job.num(member); got != want {
			t.Errorf("%s: got %d, want %d", member, got, want)
		}
	}
	if job.num("token_summary", "tokens_charged_total") != 21 || job.num("token_summary", "tokens_reserved") != 0 {
		t.Errorf("tokens: %v", job.at("token_summary").v)
	}
	if job.str("batch_config", "proxy", "country") != "DE" || job.str("batch_config", "proxy", "type") != "residential" {
		t.Errorf("config: %v", job.at("batch_config").v)
	}
	seen := map[int]string{}
	for page := 1; ; page++ {
		d := r.call("GET", fmt.Sprintf("%s?page=%d", path, page), nil).want(200)
		if len(d.list("results")) == 0 {
			break
		}
		for i := range d.list("results") {
			row := d.at("results", i)
			seen[row.num("input_index")] = row.str("url")
			if row.num("input_index") == 4 && (row.str("error_code") != "GONE" || !row.isNull("data")) {
				t.Errorf("failed row: %v", row.v)
			}
		}
	}
	for i, u := range urls {
		if i != 7 && seen[i] != u {
			t.Errorf("index %d: got %q, want %q", i, seen[i], u)
		}
	}
	b := r.Books()
	if b.Calls["batch.results"].Total != 3 || b.Calls["batch.status"].Total < 2 || b.Calls["batch.submit"].Total != 1 {
		t.Errorf("calls: %+v", b.Calls)
	}
	row := r.call("GET", "/v1/batch/jobs?page_size=50", nil).want(200).at("jobs", 0)
	if row.num("accepted_urls") != 22 || row.num("failed_urls") != 1 || row.isNull("completed_at") {
		t.Errorf("list row: %v", row.v)
	}
}

func TestBatchBadRequests(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxURLsPerBatch = 3
	r := setup(t, cfg)
	many := func(n int) string { return `{"urls":["` + strings.Join(MadeURLs(n, 1), `","`) + `"]}` }
	for name, c := range map[string]struct{ body, member, want string }{
		"NoBody":      {"", "detail", "missing"},
		"NotJSON":     {"{", "detail", "json_invalid"},
		"NoURLs":      {"{}", "detail", "missing"},
		"EmptyList":   {`{"urls":[]}`, "detail", "too_short"},
		"WrongType":   {`{"urls":"x"}`, "detail", "type_error"},
		"OverPlan":    {many(4), "code", "VALIDATION_ERROR"},
		"OverSchema":  {many(1001), "detail", "too_long"},
		"AllInvalid":  {`{"urls":["x"]}`, "detail", "value_error"},
		"OneInvalid":  {`{"urls":["http://ok.sandbox.test","x"],"ignore_invalid_urls":false}`, "detail", "url_parsing"},
		"BadFormat":   {`{"urls":["http://ok.sandbox.test"],"formats":["pdf"]}`, "detail", "enum"},
		"BadWait":     {`{"urls":["http://ok.sandbox.test"],"wait_config":{"wait_until":"x"}}`, "detail", "enum"},
		"BadProxy":    {`{"urls":["http://ok.sandbox.test"],"proxy":{"type":"x"}}`, "detail", "enum"},
		"BadInterval": {`{"urls":["http://ok.sandbox.test"],"wait_config":{"wait_timeout":-1}}`, "detail", "greater_than_equal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := *r
			r.t, r.mark = t, "a bad request"
			a := r.call("POST", "/v1/batch", c.body)
			path := []any{"code"}
			if c.member == "detail" {
				path = []any{"detail", 0, "type"}
			}
			got := a.want(422).str(path...)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestBatchCancel(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Parallelism = 1
	r := setup(t, cfg)
	path := r.batch("https://a.sandbox.test/1", "https://a.sandbox.test/slow/1s", "https://a.sandbox.test/3", "https://a.sandbox.test/4")
	r.until("first done", func(b Books) bool { return b.Jobs[0].Outcomes[1].Status == "processing" })
	cancelled := r.call("DELETE", path, nil).want(202)
	if cancelled.str("status") != "cancelled" || cancelled.num("in_flight_urls") != 1 {
		t.Errorf("got %v", cancelled.v)
	}
	d := r.call("GET", path, nil).want(200)
	if d.num("cancelled_urls") != 2 || d.num("pending_urls") != 1 || !d.isNull("completed_at") {
		t.Errorf("got %v", d.v)
	}
	r.until("running one landed", func(b Books) bool { return b.Reserved == 0 })
	d = r.call("GET", path, nil).want(200)
	if d.num("completed_urls") != 2 || d.num("token_summary", "tokens_charged_total") != 2 {
		t.Errorf("got %v", d.v)
	}
	if code := r.call("DELETE", path, nil).want(409).str("code"); code != "CONFLICT" {
		t.Errorf("got %s", code)
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.APIKeys = map[string]string{DefaultAPIKey: "a", "other": "b", "third": "b"}
	cfg.Balance = 3
	r := setup(t, cfg)
	id := r.extract("https://shop.sandbox.test/item/1").str("job_id")
	for key, want := range map[string]int{DefaultAPIKey: 200, "other": 404, "third": 404, "wrong": 401, "": 401} {
		req := r.request("GET", "/v1/extract/"+id, key)
		if req.status != want {
			t.Errorf("key %q: got %d, want %d", key, req.status, want)
		}
	}
	urls := strings.Join(MadeURLs(3, 1), `","`)
	if code := r.call("POST", "/v1/batch", `{"urls":["`+urls+`"]}`).want(402).str("code"); code != "INSUFFICIENT_BALANCE" {
		t.Errorf("got %s", code)
	}
	r.extract("https://shop.sandbox.test/fail/X")
	r.extract("https://shop.sandbox.test/item/2")
	r.extract("https://shop.sandbox.test/item/3")
	r.call("POST", "/v1/extract", `{"url":"https://shop.sandbox.test/item/4"}`).want(402)
	r.SetBalance(-1)
	r.call("POST", "/v1/extract", `{"url":"https://shop.sandbox.test/item/4"}`).want(200)
}

func TestOtherPaths(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	if got := r.call("GET", "/health", nil).want(200).str("status"); got != "ok" {
		t.Errorf("health: got %s", got)
	}
	r.call("POST", "/v1/map", `{"url":"https://shop.sandbox.test/"}`).want(404).str("correlation_id")
	r.call("GET", "/v1/extract/unknown", nil).want(404)
	r.bad("GET", "/v1/batch/unknown", nil)
	r.call("GET", "/v1/crawl/7b1f0c52-3a6e-4d0b-9c1d-5e8a2f4b6d10", nil).want(404)
	r.extract("https://shop.sandbox.test/item/1")
	r.extract("https://shop.sandbox.test/fail/X")
	st := r.call("GET", "/v1/statistics", nil).want(200)
	if st.num("extraction_count") != 2 || st.num("period_tokens_used") != 1 || st.at("success_rate").v != 0.5 {
		t.Errorf("statistics: %v", st.v)
	}
	if st.num("requests", 0, "failed_request_count") != 1 || st.num("tokens_used", 0, "tokens_used") != 1 {
		t.Errorf("statistics: %v", st.v)
	}
	if got := r.call("GET", "/v1/usage", nil).want(200).num("concurrency", "limit"); got != 32 {
		t.Errorf("usage: got %d", got)
	}
	r.mark = "the front page"
	if a := r.call("GET", "/", nil); !strings.Contains(string(a.raw), "sandbox") {
		t.Errorf("front page: %s", a.raw)
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	path := r.batch("https://a.sandbox.test/slow/10m")
	if err := r.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.call("GET", path, nil).want(503)
	r.call("POST", "/v1/batch", `{"urls":["https://a.sandbox.test/"]}`).want(503)
}
