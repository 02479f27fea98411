package sandbox

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/temoto/robotstxt"
)

// crawlRequest is CrawlRequest.
type crawlRequest struct {
	requestOptions
	URL        *string `json:"url"`
	Depth      *int    `json:"depth"`
	Limit      *int    `json:"limit"`
	SameDomain *bool   `json:"same_domain_only"`
	Subdomains *bool   `json:"include_subdomains"`
}

// The limits of the vendor's schema, and the number of pages when none is given, which the contract doesn't tell.
const (
	hardCrawlDepth    = 10
	hardCrawlLimit    = 10_000
	defaultCrawlDepth = 2
	defaultCrawlLimit = 100
)

// createCrawl is POST /v1/crawl.
func (s *Sandbox) createCrawl(c *call) (reply, error) {
	var req crawlRequest
	if err := decode(c.body, &req); err != nil {
		return reply{}, err
	}
	if err := requireURL(req.URL); err != nil {
		return reply{}, err
	}
	opts, err := req.options()
	if err != nil {
		return reply{}, err
	}
	opts.sameDomain = req.SameDomain == nil || *req.SameDomain
	opts.subdomains = req.Subdomains != nil && *req.Subdomains
	crawling, err := s.newCrawl(req)
	if err != nil {
		return reply{}, err
	}
	j := s.newJob(kindCrawl, c.account, *req.URL, opts)
	j.submitted = []string{*req.URL}
	j.crawl = crawling
	j.add(*req.URL, "", 0, 1)
	if err := s.accept(j); err != nil {
		return reply{}, err
	}
	s.hurry(c.r.Context(), j)
	return reply{http.StatusAccepted, wireCrawlAccepted{
		JobID: j.id, URL: j.url, Status: stateQueued, StatusURL: "/v1/crawl/" + j.id, EstimatedPages: crawling.limit,
	}}, nil
}

// newCrawl checks depth and limit, against the schema and then against the plan.
func (s *Sandbox) newCrawl(req crawlRequest) (*crawl, error) {
	depth, limit := defaultCrawlDepth, defaultCrawlLimit
	if req.Depth != nil {
		depth = *req.Depth
	}
	if req.Limit != nil {
		limit = *req.Limit
	}
	if depth < 1 || depth > hardCrawlDepth {
		return nil, invalid("out_of_range", "Input should be between 1 and 10", "body", "depth")
	}
	if limit < 1 || limit > hardCrawlLimit {
		return nil, invalid("out_of_range", "Input should be between 1 and 10000", "body", "limit")
	}
	if depth > s.cfg.MaxCrawlDepth {
		return nil, errPlan(fmt.Sprintf("The plan allows a crawl depth of %d and %d was asked for.", s.cfg.MaxCrawlDepth, depth))
	}
	seed, err := url.Parse(*req.URL)
	if err != nil {
		return nil, invalid("url_parsing", "Input should be a valid URL", "body", "url")
	}
	canonical := *seed
	canonical.Fragment, canonical.RawFragment = "", ""
	return &crawl{
		depth: depth, limit: limit, seed: seed, robots: map[string]func() *robotstxt.Group{},
		seen: map[string]bool{*req.URL: true, canonical.String(): true, finalMade(seed): true},
	}, nil
}

// getCrawl is GET /v1/crawl/{job_id}.
func (s *Sandbox) getCrawl(c *call) (reply, error) {
	page, size, err := resultPage(c, kindCrawl)
	if err != nil {
		return reply{}, err
	}
	j, err := s.lookUp(c, kindCrawl)
	if err != nil {
		return reply{}, err
	}
	return reply{http.StatusOK, s.viewCrawl(j, page, size, false)}, nil
}

// viewCrawl is a crawl as a read shows it; size 0 is all results.
func (s *Sandbox) viewCrawl(j *job, page, size int, truth bool) wireCrawlJob {
	snap := s.snap(j, page, size, truth)
	view := snap.crawlSummary(j)
	view.CrawlConfig = j.crawlConfig()
	results := make([]wireCrawlPage, 0, len(snap.items))
	for i := range snap.items {
		it := &snap.items[i]
		code, message := failure(it)
		data, links := s.contentOf(it, j.opts)
		row := wireCrawlPage{
			URL: it.url, Depth: it.depth, Status: it.status, ErrorCode: code, ErrorMessage: message,
			Links: links, Data: data, Metadata: itemMeta(it),
		}
		if it.parent != "" {
			row.ParentURL = &it.parent
		}
		results = append(results, row)
	}
	view.Results = &results
	return view
}

// crawlSummary is a crawl without settings and results, as callbacks carry it.
func (n snapshot) crawlSummary(j *job) wireCrawlJob {
	return wireCrawlJob{
		JobID: j.id, URL: j.url, Status: n.status, TokenSummary: wireTokens{n.charged, n.reserved}, TotalPages: n.total,
		CompletedPages: n.tally[stateCompleted], FailedPages: n.tally[stateFailed], CancelledPages: n.tally[stateCancelled],
		CreatedAt: j.created, CompletedAt: n.completed,
	}
}

func (j *job) crawlConfig() *wireCrawlConfig {
	return &wireCrawlConfig{
		RenderJS: j.opts.renderJS, Formats: j.opts.formats, SameDomainOnly: j.opts.sameDomain,
		IncludeSubdomains: j.opts.subdomains, Proxy: j.opts.proxy, WaitConfig: j.opts.wait,
	}
}

// cancelCrawl is DELETE /v1/crawl/{job_id}.
func (s *Sandbox) cancelCrawl(c *call) (reply, error) {
	j, err := s.lookUp(c, kindCrawl)
	if err != nil {
		return reply{}, err
	}
	running, err := s.cancelJob(j)
	if err != nil {
		return reply{}, err
	}
	return reply{http.StatusAccepted, wireCrawlCancelled{
		JobID: j.id, Status: stateCancelled, StatusURL: "/v1/crawl/" + j.id, InFlightPages: running,
	}}, nil
}

// listCrawl is GET /v1/crawl/jobs.
func (s *Sandbox) listCrawl(c *call) (reply, error) {
	q := &query{values: c.r.URL.Query()}
	return s.list(c.account, kindCrawl, q, 10, every, func(j *job) any {
		row := wireCrawlRow{
			JobID: j.id, URL: j.url, Status: s.shown(j), TotalPages: len(j.items), Config: j.crawlConfig(), CreatedAt: j.created,
		}
		if !s.stillStale(j) {
			n := j.tally()
			row.CompletedPages, row.FailedPages, row.CompletedAt = n[stateCompleted], n[stateFailed], j.completed
		}
		return row
	})
}
