package sandbox

import (
	"net/http"
	"time"
)

// extractRequest is ExtractRequest.
type extractRequest struct {
	requestOptions
	URL            *string `json:"url"`
	ProcessingMode *string `json:"processing_mode"`
}

// createExtract is POST /v1/extract.
func (s *Sandbox) createExtract(c *call) (reply, error) {
	var req extractRequest
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
	mode := "sync"
	if req.ProcessingMode != nil {
		mode = *req.ProcessingMode
	}
	switch mode {
	case "async":
		return s.extractAsync(c, *req.URL, opts)
	case "sync":
		c.name = "extract.sync"
		return s.extractSync(c, *req.URL, opts)
	default:
		return reply{}, invalid("enum", "Input should be 'sync' or 'async'", "body", "processing_mode")
	}
}

func (s *Sandbox) extractAsync(c *call, url string, opts options) (reply, error) {
	j := s.newJob(kindExtract, c.account, url, opts)
	j.submitted = []string{url}
	j.add(url, "", 0, 1)
	if err := s.accept(j); err != nil {
		return reply{}, err
	}
	s.hurry(c.r.Context(), j)
	return reply{http.StatusAccepted, wireExtractAccepted{
		JobID: j.id, Status: stateQueued, StatusURL: "/v1/extract/" + j.id, EstimatedTokens: 1,
	}}, nil
}

// extractSync runs the page and waits for it, at most SyncTimeout; the page is charged even if nobody waits any more.
func (s *Sandbox) extractSync(c *call, url string, opts options) (reply, error) {
	j := s.newJob(kindSync, c.account, url, opts)
	j.submitted = []string{url}
	j.add(url, "", 0, 1)
	if err := s.accept(j); err != nil {
		return reply{}, err
	}
	timer := time.NewTimer(s.cfg.SyncTimeout)
	defer timer.Stop()
	select {
	case <-j.done:
	case <-timer.C:
		return reply{}, errUnavailable(http.StatusGatewayTimeout)
	case <-c.r.Context().Done():
		return reply{}, errUnavailable(http.StatusServiceUnavailable)
	case <-s.ctx.Done():
		return reply{}, errUnavailable(http.StatusServiceUnavailable)
	}
	view := s.viewExtract(j, true)
	if view.Error != nil {
		return reply{}, &extractionError{body: *view.Error}
	}
	return reply{http.StatusOK, wireExtractSync{Data: *view.Data, Metadata: *view.Metadata, TokensCharged: 1}}, nil
}

// getExtract is GET /v1/extract/{job_id}.
func (s *Sandbox) getExtract(c *call) (reply, error) {
	j, err := s.find(c.account, kindExtract, c.r.PathValue("job_id"))
	if err != nil {
		return reply{}, err
	}
	return reply{http.StatusOK, s.viewExtract(j, false)}, nil
}

// viewExtract is an extraction as a read shows it; truth looks past what the fault early makes reads show.
func (s *Sandbox) viewExtract(j *job, truth bool) wireExtractJob {
	snap := s.snap(j, 1, 1, truth)
	view := wireExtractJob{JobID: j.id, Status: snap.status, CreatedAt: j.created, CompletedAt: snap.completed}
	if snap.status != stateCompleted && snap.status != stateFailed {
		return view
	}
	it := &snap.items[0]
	view.TokensCharged = &it.charged
	if it.end.code != "" {
		view.Error = &wireExtractError{
			Code: it.end.code, Message: it.end.message, Retryable: it.end.retryable, Details: map[string]string{"url": it.url},
		}
		return view
	}
	view.Data, _ = s.contentOf(it, j.opts)
	view.Metadata = j.metadata(it)
	return view
}

// metadata is what the vendor reports about a good page.
func (j *job) metadata(it *item) *wireExtractMeta {
	mode := "async"
	if j.kind == kindSync {
		mode = "sync"
	}
	return &wireExtractMeta{
		URL: it.end.finalURL, RenderJS: j.opts.renderJS, HTTPStatus: &it.end.httpStatus, DurationMS: it.millis(),
		RetryCount: new(0), Formats: j.opts.formats, Proxy: j.opts.proxy, ProcessingMode: mode, Headers: j.opts.headers,
		WaitConfig: j.opts.wait,
	}
}

// listExtract is GET /v1/extract/jobs.
func (s *Sandbox) listExtract(c *call) (reply, error) {
	q := &query{values: c.r.URL.Query()}
	output := q.one("output", "markdown", "html")
	id, url := q.values.Get("job_id"), q.values.Get("url")
	return s.list(c.account, kindExtract, q, 100, func(j *job) bool {
		return (output == "" || j.opts.wants(output)) && (id == "" || id == j.id) && (url == "" || url == j.url)
	}, func(j *job) any {
		row := wireExtractRow{
			JobID: j.id, Status: s.shown(j), URL: j.url, CreatedAt: j.created, Output: j.opts.formats,
		}
		if row.Status == stateCompleted {
			row.ExecutionTime = j.items[0].millis()
		}
		return row
	})
}
