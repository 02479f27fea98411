package geonode_test

import (
	"context"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/geonode"
)

const (
	extractID = "7b1f0c52-3a6e-4d0b-9c1d-5e8a2f4b6d10"
	batchID   = "1f6d2a90-7c54-4e1b-a3d8-90b7c5e2f611"
	crawlID   = "5d90b3e8-2f47-4a6c-b1e0-7a3c9d8f2e05"
	hookID    = "3c8e7f21-54ab-4d19-9e60-b7f2a1d8c530"
)

var (
	germany = &geonode.Proxy{Country: "DE", Type: "residential"}
	start   = time.Date(2026, 9, 14, 8, 0, 0, 1, time.FixedZone("x", 3600))
	end     = time.Date(2026, 9, 14, 9, 0, 0, 1, time.UTC)
)

// endpoint is one method with the request it must make and the answer it gets.
type endpoint struct {
	call    func(context.Context, *geonode.Client) (any, error)
	method  string
	uri     string
	status  int
	answer  string // An example file; empty for no body.
	request string // An example file, or JSON; empty for no body.
	want    any    // Part of the result as check picks it.
	check   func(any) any
}

func ok(edit func(*endpoint)) endpoint {
	e := endpoint{method: http.MethodGet, status: http.StatusOK}
	edit(&e)
	return e
}

func endpoints() map[string]endpoint {
	all := map[string]endpoint{}
	for _, group := range []map[string]endpoint{extractEndpoints(), batchEndpoints(), crawlEndpoints(), webhookEndpoints(), reportEndpoints()} {
		maps.Copy(all, group)
	}
	return all
}

func extractEndpoints() map[string]endpoint {
	return map[string]endpoint{
		"SubmitExtract": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.SubmitExtract(ctx, geonode.ExtractRequest{
					URL: "https://shop.example/catalogue", ExtractLinks: true,
					Options: geonode.Options{
						Formats: []geonode.Format{geonode.FormatMarkdown, geonode.FormatHTML}, RenderJS: true,
						Proxy:   &geonode.Proxy{Country: "FR", Type: "datacenter"},
						Headers: geonode.Headers{"Accept-Language": "fr-FR"},
						Wait:    &geonode.WaitConfig{Until: "domcontentloaded", For: "#grid", TimeoutMS: 8000},
					},
				})
			}
			e.method, e.uri, e.status = http.MethodPost, "/v1/extract", http.StatusAccepted
			e.request, e.answer = "extract_request_async.json", "extract_response_accepted.json"
			e.want = []any{extractID, geonode.StatusQueued, "/v1/extract/" + extractID, geonode.KnownCount(1), true}
			e.check = func(v any) any {
				r := v.(*geonode.ExtractAccepted)
				return []any{r.JobID, r.Status, r.StatusURL, r.EstimatedTokens, len(r.Reply.Raw) > 0}
			}
		}),
		"ExtractSync": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.ExtractSync(ctx, geonode.ExtractRequest{
					URL: "https://shop.example/items/42", Options: geonode.Options{Proxy: germany},
				})
			}
			e.method, e.uri, e.answer = http.MethodPost, "/v1/extract", "extract_response_sync.json"
			e.request = `{"url":"https://shop.example/items/42","formats":["markdown"],"render_js":false,"processing_mode":"sync",
				"proxy":{"country":"DE","type":"residential"},"extract_links":false}`
			e.want = []any{"# Blue kettle\n\nIn stock.", true, geonode.KnownCount(200), geonode.KnownCount(1)}
			e.check = func(v any) any {
				r := v.(*geonode.ExtractResult)
				return []any{string(r.Data.Markdown), r.Data.HTML == nil, r.Metadata.HTTPStatus, r.TokensCharged}
			}
		}),
		"GetExtract": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) { return c.GetExtract(ctx, extractID) }
			e.uri, e.answer = "/v1/extract/"+extractID, "extract_job_completed.json"
			e.want = []any{true, "<h1>", 2, "2026-09-14T07:20:36.004518Z", "fr-FR", true}
			e.check = func(v any) any {
				r := v.(*geonode.ExtractJob)
				return []any{
					r.Status.Terminal(), string(r.Data.HTML[:4]), len(r.Data.Links), r.CompletedAt.Format(time.RFC3339Nano),
					r.Metadata.Config.Headers["Accept-Language"], r.Err == nil,
				}
			}
		}),
		"GetExtractFailed": ok(func(e *endpoint) {
			id := "c0a8e4d7-19f3-4b62-8f55-2d71b9e30c44"
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) { return c.GetExtract(ctx, id) }
			e.uri, e.answer = "/v1/extract/"+id, "extract_job_failed.json"
			e.want = []any{geonode.StatusFailed, "RATE_LIMITED", true, true}
			e.check = func(v any) any {
				r := v.(*geonode.ExtractJob)
				return []any{r.Status, r.Err.Code, *r.Err.RetryableSent, r.Data.Empty()}
			}
		}),
		"GetExtractProcessing": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) { return c.GetExtract(ctx, extractID) }
			e.uri, e.answer = "/v1/extract/"+extractID, "extract_job_processing.json"
			e.want = []any{false, true, geonode.Count{}}
			e.check = func(v any) any {
				r := v.(*geonode.ExtractJob)
				return []any{r.Status.Terminal(), r.CompletedAt.IsZero(), r.TokensCharged}
			}
		}),
		"ListExtracts": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.ListExtracts(ctx, geonode.ExtractListParams{
					ListParams: geonode.ListParams{Page: 2, PageSize: 20, Status: geonode.StatusCompleted, Start: start, End: end},
					URL:        "https://a.example/?q=1&r=2", JobID: extractID, Output: geonode.FormatHTML,
				})
			}
			e.uri = "/v1/extract/jobs?end_date=2026-09-14T09%3A00%3A00.001Z&job_id=" + extractID + "&output=html&page=2&page_size=20" +
				"&start_date=2026-09-14T07%3A00%3A00.000Z&status=completed&url=https%3A%2F%2Fa.example%2F%3Fq%3D1%26r%3D2"
			e.answer = "extract_jobs_list.json"
			e.want = []any{2, geonode.KnownCount(4702), geonode.Count{}, geonode.KnownCount(1), 0}
			e.check = func(v any) any {
				r := v.(*geonode.ExtractList)
				return []any{len(r.Jobs), r.Jobs[0].ExecutionTime, r.Jobs[1].ExecutionTime, r.PageCount, r.Unreadable}
			}
		}),
	}
}

func batchEndpoints() map[string]endpoint {
	get := func(ctx context.Context, c *geonode.Client) (any, error) {
		return c.GetBatch(ctx, batchID, geonode.Page{Number: 3, Size: 25})
	}
	return map[string]endpoint{
		"SubmitBatch": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.SubmitBatch(ctx, geonode.BatchRequest{
					URLs:    []string{"https://shop.example/items/42", "https://shop.example/items/43", "https://gone.example/"},
					Options: geonode.Options{Proxy: germany},
				})
			}
			e.method, e.uri, e.status = http.MethodPost, "/v1/batch", http.StatusAccepted
			e.request = `{"urls":["https://shop.example/items/42","https://shop.example/items/43","https://gone.example/"],
				"ignore_invalid_urls":true,"formats":["markdown"],"render_js":false,"proxy":{"country":"DE","type":"residential"}}`
			e.answer = "batch_accepted.json"
			e.want = []any{batchID, geonode.KnownCount(3), geonode.KnownCount(0)}
			e.check = func(v any) any {
				r := v.(*geonode.BatchAccepted)
				return []any{r.JobID, r.AcceptedURLs, r.InvalidURLs.Count}
			}
		}),
		"GetBatch": ok(func(e *endpoint) {
			e.call, e.uri, e.answer = get, "/v1/batch/"+batchID+"?page=3&page_size=25", "batch_status_completed_with_failures.json"
			e.want = []any{geonode.StatusCompleted, geonode.KnownCount(3), geonode.KnownCount(1), "# Item 1", geonode.KnownCount(2), "EXAMPLE_ITEM_ERROR", true}
			e.check = func(v any) any {
				r := v.(*geonode.BatchJob)
				last := r.Results[2]
				return []any{r.Status, r.Total, r.Failed, string(r.Results[1].Data.Markdown), last.InputIndex, last.Err.Code, r.Results[0].Err == nil}
			}
		}),
		"GetBatchProcessing": ok(func(e *endpoint) {
			e.call, e.uri, e.answer = get, "/v1/batch/"+batchID+"?page=3&page_size=25", "batch_status_processing.json"
			e.want = []any{false, geonode.KnownCount(2), "DE"}
			e.check = func(v any) any {
				r := v.(*geonode.BatchJob)
				return []any{r.Status.Terminal(), r.Tokens.Reserved, r.Config.Proxy.Country}
			}
		}),
		"CancelBatch": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) { return c.CancelBatch(ctx, batchID) }
			e.method, e.uri, e.status = http.MethodDelete, "/v1/batch/"+batchID, http.StatusAccepted
			e.answer, e.want = "batch_cancel_response.json", geonode.KnownCount(1)
			e.check = func(v any) any { return v.(*geonode.Cancelled).InFlight }
		}),
		"ListBatches": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.ListBatches(ctx, geonode.ListParams{})
			}
			e.uri, e.answer = "/v1/batch/jobs?page=1&page_size=100", "batch_jobs_list.json"
			e.want = []any{batchID, geonode.KnownCount(3), []geonode.Format{"markdown"}}
			e.check = func(v any) any {
				row := v.(*geonode.BatchList).Jobs[0]
				return []any{row.JobID, row.Accepted, row.Config.Formats}
			}
		}),
	}
}

func crawlEndpoints() map[string]endpoint {
	return map[string]endpoint{
		"SubmitCrawl": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.SubmitCrawl(ctx, geonode.CrawlRequest{
					URL: "https://docs.example/", Depth: 2, Limit: 30, SameDomainOnly: true,
					Options: geonode.Options{Proxy: &geonode.Proxy{Country: "US", Type: "residential"}},
				})
			}
			e.method, e.uri, e.status = http.MethodPost, "/v1/crawl", http.StatusAccepted
			e.request, e.answer = "crawl_request.json", "crawl_accepted.json"
			e.want = []any{crawlID, geonode.KnownCount(30)}
			e.check = func(v any) any {
				r := v.(*geonode.CrawlAccepted)
				return []any{r.JobID, r.EstimatedPages}
			}
		}),
		"GetCrawl": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.GetCrawl(ctx, crawlID, geonode.Page{})
			}
			e.uri, e.answer = "/v1/crawl/"+crawlID+"?page=1&page_size=50", "crawl_status_processing.json"
			e.want = []any{geonode.KnownCount(12), "", geonode.KnownCount(1), 2, "# Docs", true}
			e.check = func(v any) any {
				r := v.(*geonode.CrawlJob)
				p := r.Results[0]
				return []any{r.Total, p.ParentURL, p.Depth, len(p.Links), string(p.Data.Markdown), *r.Config.SameDomainOnly}
			}
		}),
		"CancelCrawl": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) { return c.CancelCrawl(ctx, crawlID) }
			e.method, e.uri, e.status = http.MethodDelete, "/v1/crawl/"+crawlID, http.StatusAccepted
			e.answer, e.want = "crawl_cancel_response.json", geonode.KnownCount(2)
			e.check = func(v any) any { return v.(*geonode.Cancelled).InFlight }
		}),
		"ListCrawls": ok(func(e *endpoint) {
			e.call = func(ctx context.Context, c *geonode.Client) (any, error) {
				return c.ListCrawls(ctx, geonode.ListParams{PageSize: 10})
			}
			e.uri, e.answer = "/v1/crawl/jobs?page=1&page_size=10", "crawl_jobs_list.json"
			e.want = []any{crawlID, geonode.StatusCancelled, geonode.KnownCount(12)}
			e.check = func(v any) any {
				row := v.(*geonode.CrawlList).Jobs[0]
				return []any{row.JobID, row.Status, row.Total}
			}
		}),
	}
}

// TestEndpoints makes every call of the client over real HTTP: it must send what the
// contract asks for and read what the contract's examples say.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	for name, tc := range endpoints() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := ""
			if tc.answer != "" {
				answer = example(t, tc.answer)
			}
			v := newVendor(t, says(tc.status, answer))
			got, err := tc.call(t.Context(), v.client(t))
			if err != nil {
				t.Fatal(err)
			}
			if tc.check != nil {
				if d := cmp.Diff(tc.check(got), tc.want); d != "" {
					t.Error(d)
				}
			}
			checkSent(t, v.one(t), tc)
		})
	}
}

func checkSent(t *testing.T, got seen, want endpoint) {
	t.Helper()
	if got.Method != want.method || got.URI != want.uri {
		t.Errorf("got %s %s, want %s %s", got.Method, got.URI, want.method, want.uri)
	}
	if key := got.Header.Get("X-Api-Key"); key != testKey {
		t.Errorf("got key %q", key)
	}
	switch {
	case want.request == "" && len(got.Body) > 0:
		t.Errorf("got body %s, want none", got.Body)
	case want.request == "":
	case want.request[0] == '{':
		sameJSON(t, got.Body, want.request)
	default:
		sameJSON(t, got.Body, example(t, want.request))
	}
}
