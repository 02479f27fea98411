package geonode

import (
	"context"
	"net/http"
)

// The vendor's bounds of a crawl; a plan may allow less.
const (
	MaxCrawlDepth = 10
	MaxCrawlPages = 10000
)

// CrawlRequest asks to follow the links of a seed page.
type CrawlRequest struct {
	URL string
	// Depth is 1 to MaxCrawlDepth; 1 is the seed alone.
	Depth int
	// Limit is the most pages, 1 to MaxCrawlPages.
	Limit             int
	SameDomainOnly    bool
	IncludeSubdomains bool
	// Options without Headers, which a crawl can't have.
	Options
}

type wireCrawl struct {
	URL               string `json:"url"`
	Depth             int    `json:"depth"`
	Limit             int    `json:"limit"`
	SameDomainOnly    bool   `json:"same_domain_only"`
	IncludeSubdomains bool   `json:"include_subdomains"`
	wireOptions
}

func (r CrawlRequest) wire() wireCrawl {
	return wireCrawl{
		URL: r.URL, Depth: r.Depth, Limit: r.Limit, SameDomainOnly: r.SameDomainOnly,
		IncludeSubdomains: r.IncludeSubdomains, wireOptions: r.Options.wire(),
	}
}

// check wants every number: the vendor's defaults aren't all published.
func (r CrawlRequest) check() error {
	switch {
	case r.URL == "":
		return wrongParam("url: empty")
	case r.Depth < 1 || r.Depth > MaxCrawlDepth:
		return wrongParam("depth %d: not 1 to %d", r.Depth, MaxCrawlDepth)
	case r.Limit < 1 || r.Limit > MaxCrawlPages:
		return wrongParam("limit %d: not 1 to %d", r.Limit, MaxCrawlPages)
	case len(r.Headers) > 0:
		return wrongParam("headers: a crawl can't have any")
	}
	return nil
}

// CrawlAccepted is the answer to a crawl. The id has been checked.
type CrawlAccepted struct {
	Reply          Reply  `json:"-"`
	JobID          string `json:"job_id"`
	URL            string `json:"url"`
	Status         Status `json:"status"`
	StatusURL      string `json:"status_url"`
	EstimatedPages Count  `json:"estimated_pages"`
}

// CrawlPage is one page of a crawl.
type CrawlPage struct {
	URL string
	// ParentURL is empty for the seed.
	ParentURL string
	// Depth is 1 for the seed.
	Depth  Count
	Status Status
	// Err is set when the vendor gave a code or a message.
	Err      *ItemError
	Links    Links
	Data     *Content
	Metadata Metadata
	// Problem says which member couldn't be read, if any; the others are filled.
	Problem string
}

// UnmarshalJSON never fails, so that one bad page doesn't lose its neighbors.
func (p *CrawlPage) UnmarshalJSON(b []byte) error {
	var w struct {
		wireItem
		ParentURL string `json:"parent_url"`
		Depth     Count  `json:"depth"`
		Links     Links  `json:"links"`
	}
	problem := decodeItem(b, &w)
	*p = CrawlPage{
		URL: w.URL, ParentURL: w.ParentURL, Depth: w.Depth, Status: w.Status, Err: w.itemError(),
		Links: w.Links, Data: w.Data, Metadata: w.Metadata, Problem: problem,
	}
	return nil
}

// CrawlJob is the progress of a crawl and one page of its pages.
type CrawlJob struct {
	Reply  Reply
	JobID  string
	URL    string
	Status Status
	Config JobConfig
	Tokens TokenSummary
	// Total counts the site's pages found so far and grows; it is no count of result pages.
	Total       Count
	Completed   Count
	Failed      Count
	Cancelled   Count
	CreatedAt   Timestamp
	CompletedAt Timestamp
	Results     []CrawlPage
	// Problem says which member outside the pages couldn't be read, if any.
	Problem string
}

type wireCrawlJob struct {
	JobID       string          `json:"job_id"`
	URL         string          `json:"url"`
	Status      Status          `json:"status"`
	Config      JobConfig       `json:"crawl_config"`
	Tokens      TokenSummary    `json:"token_summary"`
	Total       Count           `json:"total_pages"`
	Completed   Count           `json:"completed_pages"`
	Failed      Count           `json:"failed_pages"`
	Cancelled   Count           `json:"cancelled_pages"`
	CreatedAt   Timestamp       `json:"created_at"`
	CompletedAt Timestamp       `json:"completed_at"`
	Results     Rows[CrawlPage] `json:"results"`
}

// decodeCrawl reads a crawl's state about the job asked for.
func decodeCrawl(b []byte, jobID string) (*CrawlJob, error) {
	var w wireCrawlJob
	problem, err := decodeObject(b, &w)
	if err != nil {
		return nil, err
	}
	if err := checkJob(jobID, w.JobID, w.Status); err != nil {
		return nil, err
	}
	if err := okRows("results", w.Results); err != nil {
		return nil, err
	}
	return &CrawlJob{
		JobID: w.JobID, URL: w.URL, Status: w.Status, Config: w.Config, Tokens: w.Tokens,
		Total: w.Total, Completed: w.Completed, Failed: w.Failed, Cancelled: w.Cancelled,
		CreatedAt: w.CreatedAt, CompletedAt: w.CompletedAt, Results: w.Results.List, Problem: problem,
	}, nil
}

// CrawlSummary is a row of the crawl list.
type CrawlSummary struct {
	JobID       string    `json:"job_id"`
	URL         string    `json:"url"`
	Status      Status    `json:"status"`
	Total       Count     `json:"total_pages"`
	Completed   Count     `json:"completed_pages"`
	Failed      Count     `json:"failed_pages"`
	Config      JobConfig `json:"config"`
	CreatedAt   Timestamp `json:"created_at"`
	CompletedAt Timestamp `json:"completed_at"`
}

// CrawlList is a page of the crawl list.
type CrawlList struct {
	Reply Reply
	ListPage
	Jobs []CrawlSummary
}

// SubmitCrawl starts a crawl. After an error ask [CertaintyOf] before submitting again.
func (c *Client) SubmitCrawl(ctx context.Context, r CrawlRequest) (*CrawlAccepted, error) {
	out := new(CrawlAccepted)
	reply, err := c.do(ctx, call{
		op: "submit crawl", method: http.MethodPost, path: []string{"v1", "crawl"},
		body: r.wire(), check: r.check(), timeout: c.cfg.Timeouts.Submit, keepRaw: true,
	}, func(b []byte) error {
		if _, err := decodeObject(b, out); err != nil {
			return err
		}
		return checkAccepted(out.JobID)
	})
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}

// GetCrawl reads a crawl and one page of its pages.
func (c *Client) GetCrawl(ctx context.Context, jobID string, p Page) (*CrawlJob, error) {
	q, err := p.query()
	var out *CrawlJob
	reply, err := c.do(ctx, call{
		op: "get crawl", method: http.MethodGet, path: []string{"v1", "crawl", jobID}, query: q,
		check: firstError(pathID(jobID), err), timeout: c.cfg.Timeouts.Status,
	}, func(b []byte) error {
		job, err := decodeCrawl(b, jobID)
		out = job
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}

// CancelCrawl asks that no further page of a crawl be started. ErrConflict says that
// it can't be cancelled now.
func (c *Client) CancelCrawl(ctx context.Context, jobID string) (*Cancelled, error) {
	return c.cancel(ctx, "crawl", jobID)
}

// ListCrawls reads a page of the crawl list.
func (c *Client) ListCrawls(ctx context.Context, p ListParams) (*CrawlList, error) {
	q, err := p.query()
	out := new(CrawlList)
	reply, err := c.do(ctx, call{
		op: "list crawls", method: http.MethodGet, path: []string{"v1", "crawl", "jobs"},
		query: q, check: err, timeout: c.cfg.Timeouts.List,
	}, func(b []byte) error {
		page, jobs, err := decodeJobs(b, func(s CrawlSummary) string { return s.JobID })
		out.ListPage, out.Jobs = page, jobs
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}
