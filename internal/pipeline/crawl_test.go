package pipeline_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

const madeShop = "https://shop.sandbox.test/"

// startCrawl submits a crawl and returns its batch's id.
func (r *rig) startCrawl(seed string, far pipeline.CrawlOptions) int64 {
	r.t.Helper()
	got, err := r.pipe.Submit(r.t.Context(), pipeline.Submission{
		Kind: store.KindCrawl, Text: seed, Options: pipeline.Options{Formats: []string{"markdown"}, Crawl: &far},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return got.BatchID
}

// crawled waits until the crawl is settled, which is later than the moment
// when nothing of it is outstanding.
func (r *rig) crawled(id int64) *store.Batch {
	r.t.Helper()
	return r.batch(id, func(b *store.Batch) bool { return b.EndedAt != nil })
}

// crawlBooks are the pages that the vendor says the crawl of the batch made.
func (r *rig) crawlBooks() []sandbox.Outcome {
	r.t.Helper()
	books := r.sandbox.Books()
	var out []sandbox.Outcome
	for i := range books.Jobs {
		if books.Jobs[i].Kind == "crawl" {
			out = append(out, books.Jobs[i].Outcomes...)
		}
	}
	return out
}

func TestACrawlCountsEachPageOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	b := r.crawled(r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 4, Limit: 120, SameDomainOnly: true}))
	pages := r.crawlBooks()
	if len(pages) < 60 {
		t.Fatalf("the crawl has only %d pages: too few for a second page of results", len(pages))
	}
	if int(b.Accepted) != len(pages) || b.Submitted != b.Accepted {
		t.Errorf("%d submitted, %d accepted, and the vendor crawled %d pages", b.Submitted, b.Accepted, len(pages))
	}
	r.balanced(b.ID)
	if n := r.number(`SELECT count(*) FROM crawl_pages WHERE depth > 1 AND parent_url <> ''`); int(n) != len(pages)-1 {
		t.Errorf("%d pages have a parent and a depth, want all but the seed's", n)
	}
	if n := r.number(`SELECT count(*) FROM results WHERE links IS NOT NULL`); n == 0 {
		t.Error("no page kept its links")
	}
}

// TestAPageOfACrawlUnderTwoParentsIsStoredOnce: what is reported again under
// another page is the same item, charged once, where it was found first.
func TestAPageOfACrawlUnderTwoParentsIsStoredOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	again := ""
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isCrawl(req) {
			next.ServeHTTP(w, req)
			return
		}
		rewrite(w, req, next, "", func(_ int, body map[string]any) {
			list, _ := body["results"].([]any)
			if len(list) < 3 || body["status"] != "completed" {
				return
			}
			page, other := list[1].(map[string]any), list[2].(map[string]any)
			again = page["url"].(string)
			body["results"] = append(list, copyRow(page, map[string]any{"parent_url": other["url"], "depth": 3}))
		})
	})
	b := r.crawled(r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 2, Limit: 10, SameDomainOnly: true}))
	pages := int64(len(r.crawlBooks()))
	if again == "" || b.Accepted != pages || b.Stored() != pages || b.Charged != pages || b.ChargedTwice != 0 {
		t.Errorf("got %+v, want %d pages, each stored and charged once", b, pages)
	}
	if n := r.number(`SELECT count(*) FROM crawl_pages c JOIN items i ON i.id = c.item_id WHERE i.url = $1 AND c.parent_url = $2`, again, madeShop); n != 1 {
		t.Errorf("%s stands %d times under the page it was found on, want once", again, n)
	}
	r.balanced(b.ID)
}

func TestACrawlOverThePlanIsRefusedInTheVendorsWords(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sandbox: func(c *sandbox.Config) { c.MaxCrawlDepth = 2 }})
	b := r.crawled(r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 5, Limit: 10}))
	r.wantBatch(b, 0, 1, 0)
	if said := r.text(`SELECT error_message FROM items WHERE batch_id = $1`, b.ID); !strings.Contains(said, "depth of 2") {
		t.Errorf("the failure says %q, not what the plan allows", said)
	}
}

func TestLateRowsOfACrawlAreWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{
		sandbox: func(c *sandbox.Config) {
			c.Faults, c.LateFor = sandbox.Faults{sandbox.FaultLateRows: 1}, 200*time.Millisecond
		},
		pipeline: func(c *pipeline.Config) { c.MissingGap = 400 * time.Millisecond },
	})
	b := r.crawled(r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 3, Limit: 40, SameDomainOnly: true}))
	if pages := r.crawlBooks(); int(b.Accepted) != len(pages) {
		t.Errorf("%d pages here, %d at the vendor", b.Accepted, len(pages))
	}
	r.balanced(b.ID)
}

func TestAFailedPageOfACrawlIsFetchedAgainByItself(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sandbox: func(c *sandbox.Config) { c.Faults = sandbox.Faults{sandbox.FaultItemFail: 0.3} }})
	b := r.crawled(r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 3, Limit: 40, SameDomainOnly: true}))
	b = r.ended(b.ID)
	if n := r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND kind = 'extract' AND origin = 'retry'`, b.ID); n == 0 {
		t.Error("no failed page was fetched again")
	}
	r.balanced(b.ID)
}

// TestLostCrawlsOfOneSeedAreToldApart: the vendor echoes neither depth nor
// limit, and both answers are lost.
func TestLostCrawlsOfOneSeedAreToldApart(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.AdoptGap = 20 * time.Second }})
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/v1/crawl") {
			next.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
	})
	deep := r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 3, Limit: 60, SameDomainOnly: true})
	flat := r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 1, Limit: 60, SameDomainOnly: true})
	if b := r.crawled(flat); b.Accepted != 1 {
		t.Errorf("the crawl of the seed alone has %d pages", b.Accepted)
	}
	if b := r.crawled(deep); b.Accepted < 10 {
		t.Errorf("the crawl of depth 3 has %d pages only", b.Accepted)
	}
	r.balanced(deep, flat)
}

func TestALostCrawlIsAdopted(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	lost := false
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/v1/crawl") && !lost {
			lost = true
			next.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
	})
	b := r.crawled(r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 2, Limit: 15, SameDomainOnly: true}))
	books := r.sandbox.Books()
	if n := len(slices.DeleteFunc(books.Jobs, func(j sandbox.JobRecord) bool { return j.Kind != "crawl" })); n != 1 {
		t.Errorf("the vendor was asked for %d crawls", n)
	}
	if r.number(`SELECT count(*) FROM jobs WHERE batch_id = $1 AND adopted`, b.ID) != 1 {
		t.Error("the crawl whose answer was lost was not adopted")
	}
	r.balanced(b.ID)
}
