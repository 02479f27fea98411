package sandbox

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// batchRequest is BatchRequest.
type batchRequest struct {
	requestOptions
	URLs   []string `json:"urls"`
	Ignore *bool    `json:"ignore_invalid_urls"`
}

// hardBatchLimit is the size that the vendor's schema allows; a plan may allow less.
const hardBatchLimit = 1000

// createBatch is POST /v1/batch.
func (s *Sandbox) createBatch(c *call) (reply, error) {
	var req batchRequest
	if err := decode(c.body, &req); err != nil {
		return reply{}, err
	}
	if err := s.checkSize(req.URLs); err != nil {
		return reply{}, err
	}
	opts, err := req.options()
	if err != nil {
		return reply{}, err
	}
	j := s.newJob(kindBatch, c.account, "", opts)
	j.submitted = req.URLs
	if err := s.fillBatch(j, req.Ignore == nil || *req.Ignore); err != nil {
		return reply{}, err
	}
	if err := s.accept(j); err != nil {
		return reply{}, err
	}
	s.hurry(c.r.Context(), j)
	s.mu.Lock()
	defer s.mu.Unlock()
	return reply{http.StatusAccepted, wireBatchAccepted{
		JobID: j.id, Status: stateQueued, StatusURL: "/v1/batch/" + j.id, AcceptedURLs: len(j.items),
		InvalidURLs: s.invalidURLs(j.invalid),
	}}, nil
}

// checkSize refuses an empty list, one over the schema's limit, and one over the plan's, each in its own shape.
func (s *Sandbox) checkSize(urls []string) error {
	switch n := len(urls); {
	case urls == nil:
		return invalid("missing", "A value is needed here", "body", "urls")
	case n == 0:
		return invalid("too_short", "The list should have at least 1 item", "body", "urls")
	case n > max(hardBatchLimit, s.cfg.MaxURLsPerBatch), n > s.cfg.MaxURLsPerBatch && s.Switches().PlanDetail:
		return invalid("too_long", "The list has too many items", "body", "urls")
	case n > s.cfg.MaxURLsPerBatch:
		return errPlan(fmt.Sprintf("The plan allows %d URLs in a batch and %d were sent.", s.cfg.MaxURLsPerBatch, n))
	default:
		return nil
	}
}

// fillBatch makes the items and sets invalid URLs aside, or refuses the batch for them.
func (s *Sandbox) fillBatch(j *job, ignore bool) error {
	accepted := s.Switches().IndexAccepted
	for i, u := range j.submitted {
		if err := checkURL(u); err != nil {
			if !ignore {
				return invalid("url_parsing", "Input should be a valid URL: "+err.Error(), "body", "urls", i)
			}
			j.invalid = append(j.invalid, u)
			continue
		}
		number := i
		if accepted {
			number = len(j.items)
		}
		j.add(u, "", number, 1)
	}
	if len(j.items) == 0 {
		return invalid("value_error", "The list holds no valid URL", "body", "urls")
	}
	return nil
}

// lookUp finds a batch or crawl by the id in the path, which must be a UUID.
func (s *Sandbox) lookUp(c *call, k kind) (*job, error) {
	id := c.r.PathValue("job_id")
	if err := uuid.Validate(id); err != nil {
		return nil, invalid("uuid_parsing", "Input should be a valid UUID", "path", "job_id")
	}
	return s.find(c.account, k, id)
}

// resultPage reads the paging of a job read; a page past the first counts as a read of results.
func resultPage(c *call, k kind) (int, int, error) {
	q := &query{values: c.r.URL.Query()}
	page, size := q.number("page", 1, 0), q.number("page_size", 10, 50)
	if page > 1 {
		c.name = string(k) + ".results"
	}
	return page, size, q.err
}

// getBatch is GET /v1/batch/{job_id}.
func (s *Sandbox) getBatch(c *call) (reply, error) {
	page, size, err := resultPage(c, kindBatch)
	if err != nil {
		return reply{}, err
	}
	j, err := s.lookUp(c, kindBatch)
	if err != nil {
		return reply{}, err
	}
	return reply{http.StatusOK, s.viewBatch(j, page, size, false)}, nil
}

// viewBatch is a batch as a read shows it; size 0 is all results.
func (s *Sandbox) viewBatch(j *job, page, size int, truth bool) wireBatchJob {
	snap := s.snap(j, page, size, truth)
	view := snap.batchSummary(j)
	view.BatchConfig = j.batchConfig()
	view.InvalidURLs = &snap.invalid
	results := make([]wireBatchItem, 0, len(snap.items))
	for i := range snap.items {
		it := &snap.items[i]
		code, message := failure(it)
		data, _ := s.contentOf(it, j.opts)
		results = append(results, wireBatchItem{
			InputIndex: it.number, URL: it.url, Status: it.status, ErrorCode: code, ErrorMessage: message,
			Data: data, Metadata: itemMeta(it),
		})
	}
	view.Results = &results
	return view
}

// batchSummary is a batch without settings and results, as callbacks carry it.
func (n snapshot) batchSummary(j *job) wireBatchJob {
	return wireBatchJob{
		JobID: j.id, Status: n.status, TokenSummary: wireTokens{n.charged, n.reserved}, TotalURLs: n.total,
		CompletedURLs: n.tally[stateCompleted], FailedURLs: n.tally[stateFailed], CancelledURLs: n.tally[stateCancelled],
		PendingURLs: n.tally[stateQueued] + n.tally[stateProcessing], CreatedAt: j.created, CompletedAt: n.completed,
	}
}

func (j *job) batchConfig() *wireBatchConfig {
	return &wireBatchConfig{
		RenderJS: j.opts.renderJS, Formats: j.opts.formats, Proxy: j.opts.proxy, Headers: j.opts.headers,
		WaitConfig: j.opts.wait,
	}
}

// cancelBatch is DELETE /v1/batch/{job_id}.
func (s *Sandbox) cancelBatch(c *call) (reply, error) {
	j, err := s.lookUp(c, kindBatch)
	if err != nil {
		return reply{}, err
	}
	running, err := s.cancelJob(j)
	if err != nil {
		return reply{}, err
	}
	return reply{http.StatusAccepted, wireBatchCancelled{
		JobID: j.id, Status: stateCancelled, StatusURL: "/v1/batch/" + j.id, InFlightURLs: running,
	}}, nil
}

// listBatch is GET /v1/batch/jobs.
func (s *Sandbox) listBatch(c *call) (reply, error) {
	q := &query{values: c.r.URL.Query()}
	return s.list(c.account, kindBatch, q, 10, every, func(j *job) any {
		row := wireBatchRow{
			JobID: j.id, Status: s.shown(j), AcceptedURLs: len(j.items), Config: j.batchConfig(), CreatedAt: j.created,
		}
		if !s.stillStale(j) {
			n := j.tally()
			row.CompletedURLs, row.FailedURLs, row.CompletedAt = n[stateCompleted], n[stateFailed], j.completed
		}
		return row
	})
}

// every lets all jobs pass.
func every(*job) bool { return true }
