package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

func crawlForm() url.Values {
	return url.Values{
		"urls": {"https://a.example/"}, "depth": {"3"}, "limit": {"1,500"}, "same_domain": {"on"}, "format": {"markdown", "html"},
		"render_js": {"on"}, "proxy_country": {"DE"}, "wait_timeout": {"2.5"}, "name": {"docs"},
	}
}

func TestSubmitCrawl(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	fresh := v.get("/crawls/new")
	if got := fresh.doc.Find("#depth").AttrOr("value", "") + " " + fresh.doc.Find("#limit").AttrOr("value", ""); got != "2 100" {
		t.Errorf("depth and limit: got %q, want 2 100", got)
	}
	if !strings.Contains(fresh.text("[data-testid=cost]"), "100 requests") {
		t.Errorf("cost: got %q", fresh.text("[data-testid=cost]"))
	}
	if got := v.submit("/crawls", crawlForm()); got.status != http.StatusSeeOther || got.header.Get("Location") != "/batches/1" {
		t.Fatalf("got %d to %q, want 303 to the batch", got.status, got.header.Get("Location"))
	}
	sent := b.pipeline.submitted[0]
	want := pipeline.CrawlOptions{Depth: 3, Limit: 1500, SameDomainOnly: true}
	if sent.Kind != store.KindCrawl || sent.Text != "https://a.example/" || *sent.Options.Crawl != want || len(sent.Options.Formats) != 2 ||
		!sent.Options.RenderJS || sent.Options.WaitTimeoutMS != 2500 || sent.Name != "docs" || sent.CreatedBy == nil {
		t.Errorf("submitted %+v with %+v", sent, *sent.Options.Crawl)
	}
}

// TestCrawlFormKeepsWhatWasTyped: each mistake stands at its field, and nothing
// else is lost.
func TestCrawlFormKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	for field, values := range map[string][]string{
		"depth": {"", "0", "11", "deep", "2.5", "-1", "9999999999999999999999"}, "limit": {"", "0", "10001", "many"}, "urls": {" "},
		"wait_timeout": {"soon"}, "format": {"pdf"},
	} {
		for _, value := range values {
			form := crawlForm()
			form.Set(field, value)
			got := v.submit("/crawls", form)
			if got.status != http.StatusUnprocessableEntity || got.doc.Find("#"+field+"-error").Length() != 1 {
				t.Errorf("%s %q: got %d and no error there", field, value, got.status)
			}
			if got.doc.Find("#name").AttrOr("value", "") != "docs" || got.doc.Find("input[name=same_domain][checked]").Length() != 1 ||
				got.doc.Find("input[name=subdomains][checked]").Length() != 0 || got.doc.Find("#proxy_country").AttrOr("value", "") != "DE" {
				t.Errorf("%s %q: the form forgot a field", field, value)
			}
		}
	}
	if len(b.pipeline.submitted) != 0 {
		t.Error("a crawl with mistakes was submitted")
	}
	b.pipeline.submit = func(pipeline.Submission) (pipeline.Submitted, error) {
		return pipeline.Submitted{}, &pipeline.InvalidSubmission{Lines: []pipeline.BadLine{{Number: 1, Text: "x", Reason: "has no host"}}}
	}
	if got := v.submit("/crawls", crawlForm()); !strings.Contains(got.text("#urls-error"), "it has no host") {
		t.Errorf("a bad seed: got %d %q", got.status, got.text("#urls-error"))
	}
}

func TestTryNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	b.pipeline.submit = func(pipeline.Submission) (pipeline.Submitted, error) {
		return pipeline.Submitted{BatchID: 3, ItemID: 5}, nil
	}
	form := url.Values{"urls": {" https://a.example/1 "}, "format": {"html"}, "extract_links": {"on"}}
	if got := v.submit("/try", form); got.status != http.StatusSeeOther || got.header.Get("Location") != "/items/5" {
		t.Errorf("got %d to %q, want 303 to the item", got.status, got.header.Get("Location"))
	}
	if sent := b.pipeline.tried[0]; sent.Text != "https://a.example/1" || sent.Options.Formats[0] != "html" || !sent.Options.ExtractLinks || sent.CreatedBy == nil {
		t.Errorf("tried %+v", sent)
	}
	got := v.submit("/try", url.Values{"wait_for": {"main"}})
	if got.status != http.StatusUnprocessableEntity || got.text("#urls-error") == "" || got.text("#format-error") == "" ||
		got.doc.Find("#wait_for").AttrOr("value", "") != "main" {
		t.Errorf("nothing typed: got %d, want both errors and the selector still there", got.status)
	}
	b.pipeline.submit = func(pipeline.Submission) (pipeline.Submitted, error) {
		return pipeline.Submitted{}, &pipeline.InvalidSubmission{Fields: []pipeline.FieldError{{Field: "urls", Message: "enter one URL only"}}}
	}
	if got := v.submit("/try", form); got.text("#urls-error") != "enter one URL only" || len(b.pipeline.tried) != 2 {
		t.Errorf("two URLs: got %q", got.text("#urls-error"))
	}
}

// TestExpiredSessionKeepsCrawlAndTry: what was typed is there again after the
// sign-in, in the form it was typed in.
func TestExpiredSessionKeepsCrawlAndTry(t *testing.T) {
	t.Parallel()
	b := setupWith(t, Config{SessionIdle: time.Hour})
	b.addUser(t, "alice", store.RoleAnalyst)
	for path, form := range map[string]url.Values{"/crawls": crawlForm(), "/try": {"urls": {"https://a.example/"}, "wait_for": {"main"}, "format": {"html"}}} {
		v := b.visit(t)
		v.post("/sign-in", signInForm("alice", password))
		form.Set(csrfField, v.token())
		b.clock.advance(2 * time.Hour)
		got := v.post(path, form)
		if got.status != http.StatusUnauthorized {
			t.Fatalf("%s: got %d, want 401", path, got.status)
		}
		again := signInForm("alice", password)
		got.doc.Find("form input[type=hidden]").Each(addTo(again))
		back := v.post("/sign-in", again)
		if back.doc.Find("form[action='"+path+"']").Length() != 1 || back.doc.Find("#urls").AttrOr("value", "") != "https://a.example/" ||
			back.doc.Find("input[value=html][checked]").Length() != 1 {
			t.Errorf("%s: got %d %q, want the form as it was typed", path, back.status, back.text("h1"))
		}
		if path == "/crawls" && (back.doc.Find("#limit").AttrOr("value", "") != "1,500" || back.doc.Find("input[name=same_domain][checked]").Length() != 1) {
			t.Error("the crawl forgot its limit or its domain")
		}
	}
	if len(b.pipeline.submitted)+len(b.pipeline.tried) != 0 {
		t.Error("something was submitted without being asked for")
	}
}

// crawlSeed is a crawl with a seed, a page under it, and sixty under that: the
// batch, and the items of the first two.
func (b *bench) crawlSeed(t *testing.T) (int64, int64, int64) {
	t.Helper()
	batch := b.id(t, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted)
		VALUES ('docs', 'crawl', '{"formats":["markdown"],"crawl":{"depth":3,"limit":500,"same_domain_only":true,"include_subdomains":false}}', now(), 62, 62) RETURNING id`)
	job := b.id(t, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at)
		VALUES ($1, 'crawl', 'accepted', 'submit', '\x00', 1, now()) RETURNING id`, batch)
	b.exec(t, `INSERT INTO items (batch_id, position, url, url_hash, current_job_id, created_at)
		SELECT $1, g, 'https://a.example/' || CASE g WHEN 1 THEN '' WHEN 2 THEN 'guides' ELSE 'guides/' || g || '"><script>' END, '\x00', $2, now()
		FROM generate_series(1, 62) g`, batch, job)
	b.exec(t, `INSERT INTO job_items (job_id, input_index, item_id) SELECT $1, position - 1, id FROM items WHERE batch_id = $2`, job, batch)
	b.exec(t, `INSERT INTO crawl_pages (job_id, url_hash, item_id, parent_url, depth)
		SELECT $1, sha256(convert_to(url, 'UTF8')), id, CASE position WHEN 1 THEN '' WHEN 2 THEN 'https://a.example/' ELSE 'https://a.example/guides' END, least(position, 3)
		FROM items WHERE batch_id = $2`, job, batch)
	root := b.id(t, "SELECT id FROM items WHERE batch_id = $1 AND position = 1", batch)
	return batch, root, root + 1
}

// TestCrawlPages: the tree level by level, and the same pages as a table.
func TestCrawlPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	batch, root, guides := b.crawlSeed(t)
	path := fmt.Sprintf("/batches/%d", batch)
	got := v.get(path)
	for selector, want := range map[string]string{
		"[data-testid=seed]": "https://a.example/", "[data-testid=options]": "Depth 3 At most 500 pages Same domain", "[data-testid=tree] tbody": "https://a.example/ 1 page",
		"[data-testid=roll-call]": "62 Accepted so far", "#item-tabs [aria-current=true]": "Tree",
	} {
		if text := got.text(selector); !strings.Contains(text, want) {
			t.Errorf("%s: got %q, want %q in it", selector, text, want)
		}
	}
	below, _ := got.doc.Find(".open-level").Attr("href")
	if want := fmt.Sprintf("%s/items?view=tree&parent=%d#items", path, root); below != want {
		t.Fatalf("the next level: got %q, want %q", below, want)
	}
	if level := v.get(strings.TrimSuffix(below, "#items")); level.text(".trail") != "Root https://a.example/" || !strings.Contains(level.text("[data-testid=tree]"), "60 pages") {
		t.Errorf("second level: got trail %q, pages %q", level.text(".trail"), level.text("[data-testid=tree]"))
	}
	deep := fmt.Sprintf("%s/items?view=tree&parent=%d", path, guides)
	if pages := walk(t, v, deep, "[data-testid=tree] tbody th a"); len(pages) != 60 || !strings.HasSuffix(pages[0], `"><script>`) {
		t.Errorf("third level: got %d pages, want 60", len(pages))
	}
	if asks := v.get(deep).doc.Find("#items-new a").AttrOr("hx-get", ""); asks != deep[:len(path)]+"/items?parent="+idText(guides)+"&view=tree" {
		t.Errorf("what is new of the level is at %q", asks)
	}
	table := v.get(path + "/items?view=table")
	if row := table.text("[data-testid=items] tbody tr:nth-child(3)"); !strings.Contains(row, "3 https://a.example/guides") {
		t.Errorf("a page in the table: got %q, want its depth and parent", row)
	}
	if n := len(walk(t, v, path+"/items?view=table", "[data-testid=items] tbody th a")); n != 62 {
		t.Errorf("the table: got %d pages, want 62", n)
	}
	for _, parent := range []string{"0", "-1", "abc", "99999999", "9223372036854775808"} {
		if got := v.get(path + "/items?view=tree&parent=" + parent); got.status != http.StatusNotFound {
			t.Errorf("parent %s: got %d, want 404", parent, got.status)
		}
	}
	item := v.get(fmt.Sprintf("/items/%d", guides))
	if text := item.text("main"); !strings.Contains(text, "Found on https://a.example/") || !strings.Contains(text, "60 pages") || !strings.Contains(text, "found by the crawl") {
		t.Errorf("a page's own page: got %q", text)
	}
}
