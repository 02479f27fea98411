package pipeline_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"rollcall/internal/pipeline"
)

// isCrawl reports whether a request reads one crawl.
func isCrawl(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/crawl/") && !strings.HasSuffix(r.URL.Path, "/jobs")
}

// row is a copy of a result with other members.
func copyRow(of any, change map[string]any) map[string]any {
	out := maps.Clone(of.(map[string]any))
	maps.Copy(out, change)
	return out
}

// TestInterleavingCrawlSeedReportedTwice: the seed comes again, under a parent,
// in another spelling, and as a failure. It is one item, stored once, and no
// page is charged twice.
func TestInterleavingCrawlSeedReportedTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isCrawl(req) {
			next.ServeHTTP(w, req)
			return
		}
		rewrite(w, req, next, "", func(_ int, body map[string]any) {
			list, _ := body["results"].([]any)
			if len(list) < 2 {
				return
			}
			failed := map[string]any{"status": "failed", "error_code": "TIMEOUT", "error_message": "late", "data": nil, "links": nil}
			body["results"] = append([]any{copyRow(list[0], failed)}, append(list,
				copyRow(list[0], map[string]any{"parent_url": list[1].(map[string]any)["url"], "depth": 2}),
				copyRow(list[0], map[string]any{"url": strings.TrimSuffix(madeShop, "/")}),
			)...)
		})
	})
	id := r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 2, Limit: 10, SameDomainOnly: true})
	b := r.crawled(id)
	pages := r.crawlBooks()
	if int(b.Accepted) != len(pages) || b.Submitted != b.Accepted {
		t.Errorf("got %d accepted of %d submitted, and the vendor crawled %d pages", b.Accepted, b.Submitted, len(pages))
	}
	charged := int64(0)
	for _, p := range pages {
		charged += int64(p.Charged)
	}
	if b.Charged != charged || b.ChargedTwice != 0 {
		t.Errorf("got %d charged, %d twice, want %d, 0", b.Charged, b.ChargedTwice, charged)
	}
	if got := r.number(`SELECT count(*) FROM items WHERE batch_id = $1 AND url LIKE $2`, id, strings.TrimSuffix(madeShop, "/")+"%"); got != int64(len(pages)) {
		t.Errorf("got %d items, want one for each of %d pages", got, len(pages))
	}
	if got := r.text(`SELECT state || ' ' || url FROM items WHERE batch_id = $1 ORDER BY position LIMIT 1`, id); got != "stored "+madeShop {
		t.Errorf("the seed is %q, want it stored under the URL that was submitted", got)
	}
	if got := r.number(`SELECT count(*) FROM crawl_pages WHERE depth = 1 AND parent_url = ''`); got == 0 {
		t.Error("the seed has a parent")
	}
	r.wantTrue(id)
}

// TestInterleavingResponseOverItsBoundInACrawl: which page it is the vendor
// cannot say without sending it, so that one is told of in the job's timeline;
// the others come home. Of the seed it is known, and the seed fails.
func TestInterleavingResponseOverItsBoundInACrawl(t *testing.T) {
	t.Parallel()
	t.Run("a page", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, setup{client: maxResponse(512 << 10)})
		r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			if !isCrawl(req) {
				next.ServeHTTP(w, req)
				return
			}
			rewrite(w, req, next, "", func(_ int, body map[string]any) {
				list, _ := body["results"].([]any)
				for _, one := range list {
					if page, _ := one.(map[string]any); page["url"] == r.crawlBooks()[3].URL && page["data"] != nil {
						page["data"] = copyRow(page["data"], map[string]any{"markdown": strings.Repeat("x", 1<<20)})
					}
				}
			})
		})
		id := r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 2, Limit: 12, SameDomainOnly: true})
		b := r.crawled(id)
		if pages := len(r.crawlBooks()); int(b.Accepted) != pages-1 {
			t.Errorf("got %d pages, want all but one of %d", b.Accepted, pages)
		}
		if got := r.number(`SELECT count(*) FROM job_events WHERE kind = 'page_too_large'`); got == 0 {
			t.Error("the timeline doesn't tell of the page that is missing")
		}
		r.balanced(id)
	})
	t.Run("the seed", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, setup{client: maxResponse(512 << 10)})
		seed := "https://shop.sandbox.test/huge/1mb"
		id := r.startCrawl(seed, pipeline.CrawlOptions{Depth: 1, Limit: 5})
		r.wantBatch(r.crawled(id), 0, 1, 0)
		if got := r.code(id, seed); got != "TOO_LARGE" {
			t.Errorf("got %q, want TOO_LARGE", got)
		}
	})
}
