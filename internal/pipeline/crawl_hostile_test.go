package pipeline_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// crawlSays has the vendor say of every crawl what change makes of its answer.
func (r *rig) crawlSays(change func(req *http.Request, body map[string]any)) {
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !isCrawl(req) {
			next.ServeHTTP(w, req)
			return
		}
		rewrite(w, req, next, "the test's own crawl", func(_ int, body map[string]any) { change(req, body) })
	})
}

// crawlRow is a page of a crawl with content.
func crawlRow(url, parent string, depth int) map[string]any {
	return map[string]any{
		"url": url, "parent_url": parent, "depth": depth, "status": "completed", "links": []any{},
		"data": map[string]any{"markdown": "# " + url}, "error_code": nil, "error_message": nil, "metadata": map[string]any{"tokens_charged": 1},
	}
}

// TestACrawlGivenUpThenLateLeavesNothingOpen: what a crawl that nobody asks
// about any more reports too late is answered for at once: nothing would come
// back for a page that it left open.
func TestACrawlGivenUpThenLateLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	failed := func(code string) func(map[string]any) {
		return func(row map[string]any) { row["status"], row["data"], row["error_code"] = "failed", nil, code }
	}
	for name, spoil := range map[string]func(map[string]any){
		"a page without content": func(row map[string]any) { row["data"] = nil },
		"a page that still runs": func(row map[string]any) { row["status"], row["data"] = "processing", nil },
		"a page to try again":    failed("TIMEOUT"),
		"more pages counted":     func(map[string]any) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock, late := &shifted{}, atomic.Bool{}
			r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) {
				deaf(c)
				c.Now, c.GiveUpAfter = clock.now, time.Hour
			})})
			r.crawlSays(func(req *http.Request, body map[string]any) {
				if !late.Load() {
					body["status"], body["results"], body["completed_at"] = "processing", []any{}, nil
					return
				}
				page := crawlRow(madeShop+"a", madeShop, 2)
				spoil(page)
				body["status"], body["total_pages"] = "completed", 3
				body["results"] = []any{crawlRow(madeShop, "", 1), page}
				if req.URL.Query().Get("page") != "1" {
					body["results"] = []any{}
				}
			})
			id := r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 2, Limit: 10})
			job := r.accepted(id)
			clock.forward(2 * time.Hour)
			r.settleNow(job)
			r.wantBatch(r.ended(id), 0, 1, 0)
			late.Store(true)
			r.settleNow(job)
			r.batch(id, func(b *store.Batch) bool { return b.Stored() >= 1 && b.Accepted == 2 })
			r.idle(job)
			b := r.ended(id)
			if b.EndedAt == nil {
				t.Errorf("the batch has not ended: %+v", b)
			}
			r.balanced()
		})
	}
}

// idle waits until no task is under way for a job.
func (r *rig) idle(job int64) {
	r.t.Helper()
	eventually(r.t, "the tasks to end", func() bool {
		return r.number(`SELECT count(*) FROM river_job WHERE (args->>'job_id')::bigint = $1 AND state <> 'completed'`, job) == 0
	})
}

// TestACrawlThatIsAlwaysTooLargeEnds: every page is over the bound, however few
// rows it holds, and none of them is the last.
func TestACrawlThatIsAlwaysTooLargeEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{client: maxResponse(64 << 10), noWebhooks: true})
	r.crawlSays(func(_ *http.Request, body map[string]any) { tooLarge(body) })
	id := r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 2, Limit: 2})
	r.wantBatch(r.crawled(id), 0, 1, 0)
	if got := r.code(id, madeShop); got != "TOO_LARGE" {
		t.Errorf("got %q, want TOO_LARGE", got)
	}
	if n := r.number(`SELECT count(*) FROM job_events WHERE kind = 'page_too_large'`); n != 2 {
		t.Errorf("%d pages were passed over in a crawl of two", n)
	}
}

// tooLarge makes an answer of a crawl larger than 64 KiB.
func tooLarge(body map[string]any) {
	row := crawlRow(madeShop, "", 1)
	row["data"] = map[string]any{"markdown": strings.Repeat("x", 80<<10)}
	body["status"], body["results"] = "completed", []any{row}
}

// TestACrawlGivenUpWithNothingOutstandingEnds: its seed was answered for before
// the vendor fell silent.
func TestACrawlGivenUpWithNothingOutstandingEnds(t *testing.T) {
	t.Parallel()
	clock, silence := &shifted{}, atomic.Bool{}
	r := newRig(t, setup{client: maxResponse(64 << 10), noWebhooks: true, pipeline: silent(func(c *pipeline.Config) {
		deaf(c)
		c.Now, c.GiveUpAfter = clock.now, time.Hour
	})})
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case !isCrawl(req):
			next.ServeHTTP(w, req)
		case silence.Load():
			answerJSON(w, http.StatusServiceUnavailable, refusal("UNAVAILABLE", true), "")
		default:
			rewrite(w, req, next, "the test's own crawl", func(_ int, body map[string]any) { tooLarge(body) })
		}
	})
	id := r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 2, Limit: 1000})
	job := r.accepted(id)
	r.settleNow(job)
	eventually(t, "the seed to be answered for", func() bool { return r.code(id, madeShop) == "TOO_LARGE" })
	clock.forward(2 * time.Hour)
	silence.Store(true)
	// Once: a job is not given up over a wake that came during the look, so
	// waking faster than the vendor is read would keep it open.
	r.settleNow(job)
	eventually(t, "the job to be given up", func() bool { return r.text(`SELECT state FROM jobs WHERE id = $1`, job) == "given_up" })
	r.wantBatch(r.crawled(id), 0, 1, 0)
}

// TestACrawlThatCountsTooFewPagesIsReadToItsEnd: its own count is shown and
// never believed against the rows.
func TestACrawlThatCountsTooFewPagesIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	r.crawlSays(func(req *http.Request, body map[string]any) {
		var page int
		_, _ = fmt.Sscan(req.URL.Query().Get("page"), &page)
		var rows []any
		for i := (page - 1) * 50; i < min(page*50, 120); i++ {
			rows = append(rows, crawlRow(fmt.Sprintf("%sp/%d", madeShop, i), madeShop, 2))
		}
		if page == 1 {
			rows[0] = crawlRow(madeShop, "", 1)
		}
		body["status"], body["total_pages"], body["results"] = "completed", 10, append([]any{}, rows...)
	})
	id := r.startCrawl(madeShop, pipeline.CrawlOptions{Depth: 2, Limit: 200})
	b := r.crawled(id)
	r.wantBatch(b, 120, 0, 0)
	r.balanced()
}
