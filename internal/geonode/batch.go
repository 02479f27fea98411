package geonode

import (
	"context"
	"encoding/json"
	"net/http"
)

// MaxBatchURLs is the most URLs the older pages allow in a batch; a plan may allow less.
const MaxBatchURLs = 1000

// BatchRequest asks for many pages with one set of options.
type BatchRequest struct {
	// URLs are processed separately even when equal; their order gives input_index.
	URLs []string
	// RefuseInvalid makes one bad URL fail the whole request. By default bad URLs are set
	// aside and reported in BatchAccepted.InvalidURLs.
	RefuseInvalid bool
	Options
}

type wireBatch struct {
	URLs          []string `json:"urls"`
	IgnoreInvalid bool     `json:"ignore_invalid_urls"`
	wireOptions
}

func (r BatchRequest) wire() wireBatch {
	return wireBatch{URLs: r.URLs, IgnoreInvalid: !r.RefuseInvalid, wireOptions: r.Options.wire()}
}

// check refuses a batch that can't be right. The upper limit is the vendor's to judge.
func (r BatchRequest) check() error {
	if len(r.URLs) == 0 {
		return wrongParam("urls: empty")
	}
	return nil
}

// InvalidURL is a URL the vendor set aside. Its form isn't published.
type InvalidURL struct {
	// URL is the string itself, or the url member of an object; else empty.
	URL string
	// Raw is the element as sent.
	Raw json.RawMessage
}

// UnmarshalJSON takes anything.
func (u *InvalidURL) UnmarshalJSON(b []byte) error {
	*u = InvalidURL{URL: urlIn(b), Raw: append(json.RawMessage(nil), b...)}
	return nil
}

// InvalidURLs are the URLs set aside.
type InvalidURLs struct {
	// Count is how many; unknown when the vendor didn't say.
	Count Count
	// List names them, if the vendor did.
	List []InvalidURL
}

// UnmarshalJSON takes a list, or a bare number as its neighbors among the counters are.
func (u *InvalidURLs) UnmarshalJSON(b []byte) error {
	*u = InvalidURLs{}
	if kindOf(b) != "array" {
		return u.Count.UnmarshalJSON(b)
	}
	if json.Unmarshal(b, &u.List) == nil {
		u.Count = KnownCount(int64(len(u.List)))
	}
	return nil
}

// BatchAccepted is the answer to a batch. The id has been checked.
type BatchAccepted struct {
	Reply        Reply       `json:"-"`
	JobID        string      `json:"job_id"`
	Status       Status      `json:"status"`
	StatusURL    string      `json:"status_url"`
	AcceptedURLs Count       `json:"accepted_urls"`
	InvalidURLs  InvalidURLs `json:"invalid_urls"`
}

// BatchItem is one URL of a batch as far as the vendor has come with it.
type BatchItem struct {
	// InputIndex is the place in the request, from 0. Whether it counts rejected URLs
	// isn't published.
	InputIndex Count
	URL        string
	Status     Status
	// Err is set when the vendor gave a code or a message.
	Err      *ItemError
	Data     *Content
	Metadata Metadata
	// Problem says which member couldn't be read, if any; the others are filled.
	Problem string
}

// wireItem is what batch items and crawl pages share.
type wireItem struct {
	URL          string          `json:"url"`
	Status       Status          `json:"status"`
	ErrorCode    json.RawMessage `json:"error_code"`
	ErrorMessage json.RawMessage `json:"error_message"`
	Data         *Content        `json:"data"`
	Metadata     Metadata        `json:"metadata"`
}

// itemError is the flat error of an item; nil when there is neither code nor message.
func (w *wireItem) itemError() *ItemError {
	e := ItemError{Code: looseText(w.ErrorCode), Message: looseText(w.ErrorMessage)}
	if e.Code == "" && e.Message == "" {
		return nil
	}
	return &e
}

// UnmarshalJSON never fails, so that one bad item doesn't lose its page.
func (i *BatchItem) UnmarshalJSON(b []byte) error {
	var w struct {
		wireItem
		InputIndex Count `json:"input_index"`
	}
	problem := decodeItem(b, &w)
	*i = BatchItem{
		InputIndex: w.InputIndex, URL: w.URL, Status: w.Status, Err: w.itemError(),
		Data: w.Data, Metadata: w.Metadata, Problem: problem,
	}
	return nil
}

// decodeItem reads one item and says what was wrong with it.
func decodeItem(b []byte, v any) string {
	problem, err := decodeObject(b, v)
	if err != nil {
		return err.Error()
	}
	return problem
}

// BatchJob is the progress of a batch and one page of its items. The body has no page
// markers: pages are total / size, and an empty page is the end as well.
type BatchJob struct {
	Reply       Reply
	JobID       string
	Status      Status
	Config      JobConfig
	Tokens      TokenSummary
	Total       Count
	Completed   Count
	Failed      Count
	Cancelled   Count
	Pending     Count
	InvalidURLs InvalidURLs
	CreatedAt   Timestamp
	CompletedAt Timestamp
	Results     []BatchItem
	// Problem says which member outside the items couldn't be read, if any.
	Problem string
}

type wireBatchJob struct {
	JobID       string          `json:"job_id"`
	Status      Status          `json:"status"`
	Config      JobConfig       `json:"batch_config"`
	Tokens      TokenSummary    `json:"token_summary"`
	Total       Count           `json:"total_urls"`
	Completed   Count           `json:"completed_urls"`
	Failed      Count           `json:"failed_urls"`
	Cancelled   Count           `json:"cancelled_urls"`
	Pending     Count           `json:"pending_urls"`
	InvalidURLs InvalidURLs     `json:"invalid_urls"`
	CreatedAt   Timestamp       `json:"created_at"`
	CompletedAt Timestamp       `json:"completed_at"`
	Results     Rows[BatchItem] `json:"results"`
}

// decodeBatch reads a batch's state about the job asked for.
func decodeBatch(b []byte, jobID string) (*BatchJob, error) {
	var w wireBatchJob
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
	return &BatchJob{
		JobID: w.JobID, Status: w.Status, Config: w.Config, Tokens: w.Tokens,
		Total: w.Total, Completed: w.Completed, Failed: w.Failed, Cancelled: w.Cancelled, Pending: w.Pending,
		InvalidURLs: w.InvalidURLs, CreatedAt: w.CreatedAt, CompletedAt: w.CompletedAt,
		Results: w.Results.List, Problem: problem,
	}, nil
}

// Cancelled is the answer to the canceling of a batch or crawl.
type Cancelled struct {
	Reply     Reply
	JobID     string
	Status    Status
	StatusURL string
	// InFlight items were running and may still finish and be charged.
	InFlight Count
}

// BatchSummary is a row of the batch list.
type BatchSummary struct {
	JobID       string    `json:"job_id"`
	Status      Status    `json:"status"`
	Accepted    Count     `json:"accepted_urls"`
	Completed   Count     `json:"completed_urls"`
	Failed      Count     `json:"failed_urls"`
	Config      JobConfig `json:"config"`
	CreatedAt   Timestamp `json:"created_at"`
	CompletedAt Timestamp `json:"completed_at"`
}

// BatchList is a page of the batch list.
type BatchList struct {
	Reply Reply
	ListPage
	Jobs []BatchSummary
}

// SubmitBatch starts a batch. After an error ask [CertaintyOf] before submitting again.
func (c *Client) SubmitBatch(ctx context.Context, r BatchRequest) (*BatchAccepted, error) {
	out := new(BatchAccepted)
	reply, err := c.do(ctx, call{
		op: "submit batch", method: http.MethodPost, path: []string{"v1", "batch"},
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

// GetBatch reads a batch and one page of its items.
func (c *Client) GetBatch(ctx context.Context, jobID string, p Page) (*BatchJob, error) {
	q, err := p.query()
	var out *BatchJob
	reply, err := c.do(ctx, call{
		op: "get batch", method: http.MethodGet, path: []string{"v1", "batch", jobID}, query: q,
		check: firstError(pathID(jobID), err), timeout: c.cfg.Timeouts.Status,
	}, func(b []byte) error {
		job, err := decodeBatch(b, jobID)
		out = job
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}

// CancelBatch asks that no further item of a batch be started. ErrConflict says that
// it can't be cancelled now.
func (c *Client) CancelBatch(ctx context.Context, jobID string) (*Cancelled, error) {
	return c.cancel(ctx, "batch", jobID)
}

// cancel deletes a job of a kind that has a cancel.
func (c *Client) cancel(ctx context.Context, kind, jobID string) (*Cancelled, error) {
	var w struct {
		JobID     string `json:"job_id"`
		Status    Status `json:"status"`
		StatusURL string `json:"status_url"`
		URLs      Count  `json:"in_flight_urls"`
		Pages     Count  `json:"in_flight_pages"`
	}
	reply, err := c.do(ctx, call{
		op: "cancel " + kind, method: http.MethodDelete, path: []string{"v1", kind, jobID},
		check: pathID(jobID), timeout: c.cfg.Timeouts.Submit,
	}, func(b []byte) error {
		if _, err := decodeObject(b, &w); err != nil {
			return err
		}
		return checkID(jobID, w.JobID)
	})
	if err != nil {
		return nil, err
	}
	out := &Cancelled{Reply: reply, JobID: w.JobID, Status: w.Status, StatusURL: w.StatusURL, InFlight: w.URLs}
	if !w.URLs.Known {
		out.InFlight = w.Pages
	}
	return out, nil
}

// ListBatches reads a page of the batch list.
func (c *Client) ListBatches(ctx context.Context, p ListParams) (*BatchList, error) {
	q, err := p.query()
	out := new(BatchList)
	reply, err := c.do(ctx, call{
		op: "list batches", method: http.MethodGet, path: []string{"v1", "batch", "jobs"},
		query: q, check: err, timeout: c.cfg.Timeouts.List,
	}, func(b []byte) error {
		page, jobs, err := decodeJobs(b, func(s BatchSummary) string { return s.JobID })
		out.ListPage, out.Jobs = page, jobs
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Reply = reply
	return out, nil
}

// firstError is the first that isn't nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
