package sandbox

import (
	"fmt"
	"strings"
	"testing"
)

func TestCrawl(t *testing.T) {
	t.Parallel()
	crawlAll := func(r *rig, body string) ([]string, doc) {
		path := r.call("POST", "/v1/crawl", body).want(202).str("status_url")
		d := r.finish(path)
		var urls []string
		for page := 1; page <= 3; page++ {
			p := r.call("GET", fmt.Sprintf("%s?page_size=50&page=%d", path, page), nil).want(200)
			for i := range p.list("results") {
				urls = append(urls, p.str("results", i, "url"))
			}
		}
		return urls, d
	}
	r := setup(t, quick())
	urls, d := crawlAll(r, `{"url":"https://shop.sandbox.test/","depth":3,"limit":60}`)
	if len(urls) != 60 || d.num("total_pages") != 60 || d.str("status") != "completed" {
		t.Errorf("got %d pages, total %d", len(urls), d.num("total_pages"))
	}
	first := d.at("results", 0)
	if first.num("depth") != 1 || !first.isNull("parent_url") || len(first.list("links")) == 0 {
		t.Errorf("seed: %v", first.v)
	}
	if d.str("results", 1, "parent_url") != "https://shop.sandbox.test/" || d.num("results", 1, "depth") != 2 {
		t.Errorf("second: %v", d.at("results", 1).v)
	}
	denied := 0
	for _, o := range r.Books().Jobs[0].Outcomes {
		if !strings.HasPrefix(o.URL, "https://shop.sandbox.test/") {
			t.Errorf("%s is another site", o.URL)
		}
		if strings.Contains(o.URL, "/private/") {
			denied++
			if o.Code != "ROBOTS_DISALLOWED" {
				t.Errorf("%s: got %q", o.URL, o.Code)
			}
		}
	}
	if denied == 0 {
		t.Error("no page was kept away by robots.txt")
	}
	again, _ := crawlAll(setup(t, quick()), `{"url":"https://shop.sandbox.test/","depth":3,"limit":60}`)
	if fmt.Sprint(urls) != fmt.Sprint(again) {
		t.Error("the same crawl found other pages")
	}
	alone, _ := crawlAll(r, `{"url":"https://shop.sandbox.test/","depth":1}`)
	if len(alone) != 1 {
		t.Errorf("depth 1: got %v", alone)
	}
	wide, _ := crawlAll(r, `{"url":"https://shop.sandbox.test/","depth":2,"same_domain_only":false}`)
	sub, _ := crawlAll(r, `{"url":"https://shop.sandbox.test/","depth":2,"include_subdomains":true}`)
	if all := strings.Join(wide, " "); !strings.Contains(all, "news.sandbox.test") {
		t.Errorf("same_domain_only false: got %v", wide)
	}
	if all := strings.Join(sub, " "); !strings.Contains(all, "help.shop.") || strings.Contains(all, "news.") {
		t.Errorf("include_subdomains: got %v", sub)
	}
	row := r.call("GET", "/v1/crawl/jobs", nil).want(200).at("jobs", 3)
	if row.num("total_pages") != 60 || row.str("url") != "https://shop.sandbox.test/" {
		t.Errorf("row: %v", row.v)
	}
}

func TestCrawlLimits(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxCrawlDepth = 2
	r := setup(t, cfg)
	d := r.call("POST", "/v1/crawl", `{"url":"https://shop.sandbox.test/","depth":4}`).want(422)
	if d.str("code") != "VALIDATION_ERROR" || d.at("retryable").v != false {
		t.Errorf("got %v", d.v)
	}
	r.bad("POST", "/v1/crawl", `{"url":"https://shop.sandbox.test/","depth":11}`)
	r.bad("POST", "/v1/crawl", `{"url":"https://shop.sandbox.test/","limit":0}`)
	path := r.call("POST", "/v1/crawl", `{"url":"https://shop.sandbox.test/fail/X"}`).want(202).str("status_url")
	if got := r.finish(path).str("status"); got != "failed" {
		t.Errorf("a crawl whose seed failed: got %s", got)
	}
	slow := r.call("POST", "/v1/crawl", `{"url":"https://shop.sandbox.test/slow/1s"}`).want(202).str("status_url")
	r.until("seed started", func(b Books) bool { return b.Jobs[1].Outcomes[0].Status == "processing" })
	if n := r.call("DELETE", slow, nil).want(202).num("in_flight_pages"); n != 1 {
		t.Errorf("got %d in flight", n)
	}
}
