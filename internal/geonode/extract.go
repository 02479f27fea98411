package geonode

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// ExtractRequest asks for one page.
type ExtractRequest struct {
	URL string
	Options
	// ExtractLinks fills Content.Links; it follows none of them.
	ExtractLinks bool
}

type wireExtract struct {
	URL string `json:"url"`
	wireOptions
	Mode         string `json:"processing_mode"`
	ExtractLinks bool   `json:"extract_links"`
}

func (r ExtractRequest) wire(mode string) wireExtract {
	return wireExtract{URL: r.URL, wireOptions: r.Options.wire(), Mode: mode, ExtractLinks: r.ExtractLinks}
}

func (r ExtractRequest) check() error {
	if r.URL == "" {
		return wrongParam("url: empty")
	}
	return nil
}

// ExtractAccepted is the answer to an async extraction. The id has been checked.
type ExtractAccepted struct {
	Reply           Reply  `json:"-"`
	JobID           string `json:"job_id"`
	Status          Status `json:"status"`
	StatusURL       string `json:"status_url"`
	EstimatedTokens Count  `json:"estimated_tokens"`
}

// ExtractResult is the answer to a sync extraction, which has no job id.
type ExtractResult struct {
	Reply         Reply    `json:"-"`
	Data          *Content `json:"data"`
	Metadata      Metadata `json:"metadata"`
	TokensCharged Count    `json:"tokens_charged"`
	// Problem says which member couldn't be read, if any.
	Problem string `json:"-"`
}

// ExtractJob is the state of an async extraction, and its content once completed.
type ExtractJob struct {
	Reply         Reply      `json:"-"`
	JobID         string     `json:"job_id"`
	Status        Status     `json:"status"`
	CreatedAt     Timestamp  `json:"created_at"`
	CompletedAt   Timestamp  `json:"completed_at"`
	Data          *Content   `json:"data"`
	Metadata      Metadata   `json:"metadata"`
	Err           *ItemError `json:"error"`
	TokensCharged Count      `json:"tokens_charged"`
	// Problem says which member couldn't be read, if any; for a completed job the content may be lacking.
	Problem string `json:"-"`
}

// ExtractSummary is a row of the extraction list. The vendor sends no completion time.
type ExtractSummary struct {
	JobID         string    `json:"job_id"`
	Status        Status    `json:"status"`
	URL           string    `json:"url"`
	CreatedAt     Timestamp `json:"created_at"`
	ExecutionTime Count     `json:"execution_time"` // Milliseconds, judging by the vendor's sample.
	Output        []Format  `json:"output"`
}

// ExtractListParams are the filters of the extraction list.
type ExtractListParams struct {
	ListParams
	// URL and JobID keep one address or one job; empty keeps all.
	URL, JobID string
	// Output keeps jobs that made one format; empty keeps all.
	Output Format
}

// ExtractList is a page of the extraction list.
type ExtractList struct {
	Reply Reply
	ListPage
	Jobs []ExtractSummary
}

// SubmitExtract starts an async extraction. After an error ask [CertaintyOf] before
// submitting again.
func (c *Client) SubmitExtract(ctx context.Context, r ExtractRequest) (*ExtractAccepted, error) {
	out := new(ExtractAccepted)
	reply, err := c.do(ctx, call{
		op: "submit extract", method: http.MethodPost, path: []string{"v1", "extract"},
		body: r.wire("async"), check: r.check(), timeout: c.cfg.Timeouts.Submit, keepRaw: true,
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

// ExtractSync extracts a page within the call. The timeout is Timeouts.Sync plus the
// wait the request asks for. A page that could not be extracted comes as an [*Error]
// of status 422 and ShapeExtraction.
func (c *Client) ExtractSync(ctx context.Context, r ExtractRequest) (*ExtractResult, error) {
	out := new(ExtractResult)
	reply, err := c.do(ctx, call{
		op: "extract sync", method: http.MethodPost, path: []string{"v1", "extract"},
		body: r.wire("sync"), check: r.check(), timeout: c.cfg.Timeouts.Sync + r.wait(), keepRaw: false,
	}, func(b []byte) error {
		problem, err := decodeObject(b, out)
		if err == nil && out.Data == nil {
			err = malformed("no data")
		}
		out.Problem = problem
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}

// SyncTimeout bounds a sync extraction, beyond the wait that its request asks for.
func (c *Client) SyncTimeout() time.Duration { return c.cfg.Timeouts.Sync }

// GetExtract reads an async extraction.
func (c *Client) GetExtract(ctx context.Context, jobID string) (*ExtractJob, error) {
	out := new(ExtractJob)
	reply, err := c.do(ctx, call{
		op: "get extract", method: http.MethodGet, path: []string{"v1", "extract", jobID},
		check: pathID(jobID), timeout: c.cfg.Timeouts.Status,
	}, func(b []byte) error { return decodeExtract(b, jobID, out) })
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}

// DecodeExtractJob reads an extraction job from JSON that came another way, such as a
// webhook's data member. The Reply is zero.
func DecodeExtractJob(b []byte) (*ExtractJob, error) {
	out := new(ExtractJob)
	problem, err := decodeObject(b, out)
	if err != nil {
		return nil, err
	}
	out.Problem = problem
	if err := checkJob(out.JobID, out.JobID, out.Status); err != nil {
		return nil, err
	}
	return out, nil
}

func decodeExtract(b json.RawMessage, jobID string, out *ExtractJob) error {
	problem, err := decodeObject(b, out)
	if err != nil {
		return err
	}
	out.Problem = problem
	return checkJob(jobID, out.JobID, out.Status)
}

// ListExtracts reads a page of the extraction list.
func (c *Client) ListExtracts(ctx context.Context, p ExtractListParams) (*ExtractList, error) {
	q, err := p.query()
	out := new(ExtractList)
	reply, err := c.do(ctx, call{
		op: "list extracts", method: http.MethodGet, path: []string{"v1", "extract", "jobs"},
		query: q, check: err, timeout: c.cfg.Timeouts.List,
	}, func(b []byte) error { return decodeExtractList(b, out) })
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}

func (p ExtractListParams) query() (url.Values, error) {
	q, err := p.ListParams.query()
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"url": p.URL, "job_id": p.JobID, "output": string(p.Output)} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q, nil
}

func decodeExtractList(b []byte, out *ExtractList) error {
	page, jobs, err := decodeJobs(b, func(s ExtractSummary) string { return s.JobID })
	out.ListPage, out.Jobs = page, jobs
	return err
}

// decodeJobs reads a job list of any kind.
func decodeJobs[T any](b []byte, id func(T) string) (ListPage, []T, error) {
	var wire struct {
		ListPage
		Jobs Rows[row[T]] `json:"jobs"`
	}
	if _, err := decodeObject(b, &wire); err != nil {
		return ListPage{}, nil, err
	}
	if err := needRows("jobs", wire.Jobs); err != nil {
		return ListPage{}, nil, err
	}
	jobs, bad := keepRows(wire.Jobs, id)
	wire.Unreadable = bad
	return wire.ListPage, jobs, nil
}
