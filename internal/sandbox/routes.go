package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// call is one request to the API.
type call struct {
	r       *http.Request
	name    string // Of the endpoint, as the books count it.
	account *account
	body    []byte
	// broken is called, with mu held, when the answer is not sent; nil does nothing.
	broken func()
}

// reply is a good answer.
type reply struct {
	status int
	body   any // nil for none.
}

// rawError is an error answer whose body is not JSON.
type rawError struct {
	status      int
	contentType string
	body        string
}

// Error is the status line.
func (e *rawError) Error() string { return http.StatusText(e.status) }

type handler func(*call) (reply, error)

// routes is the whole surface. The literal "jobs" wins over {job_id}, as the mux prefers the more specific pattern.
func (s *Sandbox) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range []struct {
		pattern, name string
		do            handler
	}{
		{"POST /v1/extract", "extract.submit", s.createExtract},
		{"GET /v1/extract/jobs", "extract.list", s.listExtract},
		{"GET /v1/extract/{job_id}", "extract.status", s.getExtract},
		{"POST /v1/batch", "batch.submit", s.createBatch},
		{"GET /v1/batch/jobs", "batch.list", s.listBatch},
		{"GET /v1/batch/{job_id}", "batch.status", s.getBatch},
		{"DELETE /v1/batch/{job_id}", "batch.cancel", s.cancelBatch},
		{"POST /v1/crawl", "crawl.submit", s.createCrawl},
		{"GET /v1/crawl/jobs", "crawl.list", s.listCrawl},
		{"GET /v1/crawl/{job_id}", "crawl.status", s.getCrawl},
		{"DELETE /v1/crawl/{job_id}", "crawl.cancel", s.cancelCrawl},
		{"GET /v1/usage", "usage", s.getUsage},
		{"GET /v1/statistics", "statistics", s.getStatistics},
		{"POST /v1/webhooks", "webhooks.create", s.createWebhook},
		{"GET /v1/webhooks", "webhooks.list", s.listWebhooks},
		{"GET /v1/webhooks/{webhook_id}", "webhooks.get", s.getWebhook},
		{"PATCH /v1/webhooks/{webhook_id}", "webhooks.update", s.updateWebhook},
		{"DELETE /v1/webhooks/{webhook_id}", "webhooks.delete", s.deleteWebhook},
		{"POST /v1/webhooks/{webhook_id}/rotate-secret", "webhooks.rotate", s.rotateWebhook},
		{"GET /v1/webhooks/{webhook_id}/deliveries", "webhooks.deliveries", s.listDeliveries},
	} {
		mux.HandleFunc(r.pattern, s.serve(r.name, r.do))
	}
	mux.HandleFunc("GET /health", s.getHealth)
	mux.HandleFunc("GET /{$}", front)
	mux.HandleFunc("/", s.unknown)
	s.adminRoutes(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Rollcall-Sandbox", "1")
		s.mu.Lock()
		w.Header().Set("Date", s.clock().UTC().Format(http.TimeFormat))
		s.mu.Unlock()
		mux.ServeHTTP(w, r)
	})
}

// serve turns a handler into an HTTP handler: key, body, faults, answer, books.
func (s *Sandbox) serve(name string, do handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{r: r, name: name}
		plan, err := s.admit(r.Context(), w, c)
		var rep reply
		if err == nil {
			rep, err = do(c)
		}
		if err == nil && plan.reset {
			s.breakAnswer(c)
			s.count(c.name, 0)
			panic(http.ErrAbortHandler)
		}
		s.write(r.Context(), w, c, rep, err, plan.truncate)
	}
}

// admit does what stands before every handler. An error is the answer.
func (s *Sandbox) admit(ctx context.Context, w http.ResponseWriter, c *call) (callPlan, error) {
	account, ok := s.cfg.APIKeys[c.r.Header.Get("X-Api-Key")]
	if !ok {
		return callPlan{}, errUnauthorized()
	}
	var err error
	c.body, err = io.ReadAll(http.MaxBytesReader(w, c.r.Body, s.cfg.MaxRequestBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return callPlan{}, errTooLarge()
	}
	if err != nil {
		return callPlan{}, invalid("body", "The request body could not be read", "body")
	}
	s.mu.Lock()
	c.account = s.accounts[account]
	closed := s.closed
	plan := s.planCall(c)
	s.mu.Unlock()
	if closed {
		return callPlan{}, errUnavailable(http.StatusServiceUnavailable)
	}
	if plan.slow > 0 && !sleep(ctx, plan.slow) {
		return callPlan{}, errUnavailable(http.StatusServiceUnavailable)
	}
	return plan, plan.err
}

// breakAnswer notes what the client never got to know.
func (s *Sandbox) breakAnswer(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.broken != nil {
		c.broken()
	}
}

// callPlan is what the faults hold for a call.
type callPlan struct {
	slow     time.Duration
	err      error
	reset    bool
	truncate bool
}

// planCall asks the faults about a call. The caller holds mu.
func (s *Sandbox) planCall(c *call) callPlan {
	who := s.callKey(c)
	key := []string{c.name, who, s.turn("call", c.name, who)}
	read := c.r.Method == http.MethodGet
	plan := callPlan{
		reset:    c.r.Method == http.MethodPost && s.hits(FaultResetAfterAccept, key...),
		truncate: read && s.hits(FaultTruncate, key...),
	}
	if s.hits(FaultSlow, key...) {
		plan.slow = s.dice.between(s.cfg.SlowMax/20, s.cfg.SlowMax, append(key, "slow")...)
	}
	switch {
	case s.spell(FaultOutage):
		plan.err = &rawError{status: http.StatusServiceUnavailable}
	case s.spell(FaultKeyRevoked):
		plan.err = errUnauthorized()
	case submits(c.name) && s.hits(FaultBalanceOut, key...):
		plan.err = errBalance()
	case s.hits(FaultRateLimit, key...):
		plan.err = errThrottled(retrySeconds(s.cfg.RetryAfter))
	case s.hits(FaultRateLimitDate, key...):
		plan.err = errThrottled(retryDate(s.clock(), s.cfg.RetryAfter))
	case s.hits(FaultRateLimitBare, key...):
		plan.err = errThrottled("")
	case s.hits(FaultErr5xx, key...):
		plan.err = s.brokenAnswer(read, key)
	}
	return plan
}

// submits says that an endpoint makes jobs.
func submits(name string) bool { return strings.HasSuffix(name, ".submit") }

// callKey names what a call is about, the same in every run: the content of a submit, the content of the job read.
func (s *Sandbox) callKey(c *call) string {
	id := c.r.PathValue("job_id")
	if j := s.jobs[id]; j != nil {
		return j.key + "/" + c.r.URL.Query().Get("page")
	}
	if len(c.body) > 0 {
		return strconv.FormatUint(s.dice.number(string(c.body)), 36)
	}
	return id
}

// brokenAnswer is a 5xx; reads get it as standard error, HTML or without a body.
func (s *Sandbox) brokenAnswer(read bool, key []string) error {
	status := []int{500, 502, 503, 504}[s.dice.pick(4, append(key, "status")...)]
	if read {
		switch s.dice.pick(3, append(key, "form")...) {
		case 0:
			return htmlError(status)
		case 1:
			return &rawError{status: status}
		}
	}
	return errUnavailable(status)
}

func htmlError(status int) *rawError {
	text := strconv.Itoa(status) + " " + http.StatusText(status)
	return &rawError{
		status: status, contentType: "text/html; charset=utf-8",
		body: "<html><head><title>" + text + "</title></head><body><h1>" + text + "</h1><hr>Rollcall sandbox</body></html>\n",
	}
}

// write sends the answer and counts the call.
func (s *Sandbox) write(
	ctx context.Context, w http.ResponseWriter, c *call, rep reply, err error, truncate bool,
) {
	status, contentType, body := rep.status, "application/json", []byte(nil)
	if err != nil {
		status, contentType, body = s.errorAnswer(ctx, w, c, err)
	} else if rep.body != nil {
		body, err = json.Marshal(rep.body)
		if err != nil {
			s.log.ErrorContext(ctx, "answer not encoded", slog.String("call", c.name), slog.Any("err", err))
			status = http.StatusInternalServerError
		}
	}
	s.count(c.name, status)
	if err != nil && (contentType != "application/json" || bytes.HasPrefix(body, detailStart)) {
		w.Header().Set("X-Contract-Deliberate", "error answer in no published form")
	}
	if len(body) > 0 {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	if truncate && len(body) > 1 {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	if _, err := w.Write(body); err != nil && len(body) > 0 {
		s.log.DebugContext(ctx, "answer not sent", slog.String("call", c.name), slog.Any("err", err))
	}
}

// errorAnswer is the status, content type and body for an error.
func (s *Sandbox) errorAnswer(
	ctx context.Context, w http.ResponseWriter, c *call, err error,
) (int, string, []byte) {
	status, body := http.StatusInternalServerError, any(nil)
	var standard *apiError
	var validation *validationError
	var extraction *extractionError
	var raw *rawError
	switch {
	case errors.As(err, &raw):
		return raw.status, raw.contentType, []byte(raw.body)
	case errors.As(err, &standard):
		s.mu.Lock()
		standard.Correlated = s.id("correlation")
		s.mu.Unlock()
		status, body = standard.status, standard
		if standard.retryAfter != "" {
			w.Header().Set("Retry-After", standard.retryAfter)
		}
	case errors.As(err, &validation):
		status, body = http.StatusUnprocessableEntity, validation
	case errors.As(err, &extraction):
		status, body = http.StatusUnprocessableEntity, extraction.body
	default:
		s.log.ErrorContext(ctx, "call without answer", slog.String("call", c.name), slog.Any("err", err))
	}
	if contentType, text, ok := s.otherForm(c, status); ok {
		return status, contentType, text
	}
	text, err := json.Marshal(body)
	if err != nil {
		s.log.ErrorContext(ctx, "error not encoded", slog.String("call", c.name), slog.Any("err", err))
	}
	return status, "application/json", text
}

// detailStart begins an error answer whose detail is a text and no list.
var detailStart = []byte(`{"detail":"`)

// otherForm is an error answer in the form that the switch asks for, when that isn't the standard one. What is wrong with
// a submit is always told: only its 429 and 5xx answers, of which nobody knows the form, vary too.
func (s *Sandbox) otherForm(c *call, status int) (string, []byte, bool) {
	vague := status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodDelete && !vague {
		return "", nil, false
	}
	words := http.StatusText(status)
	switch s.Switches().ErrorBody {
	case "empty":
		return "", nil, true
	case "html":
		raw := htmlError(status)
		return raw.contentType, []byte(raw.body), true
	case "text":
		return "text/plain; charset=utf-8", []byte(words + "\n"), true
	case "detail":
		return "application/json", append(slices.Clone(detailStart), words+`"}`...), true
	default:
		return "", nil, false
	}
}

// unknown answers paths that the sandbox doesn't have, map and search among them.
func (s *Sandbox) unknown(w http.ResponseWriter, r *http.Request) {
	s.write(r.Context(), w, &call{r: r, name: "unknown"}, reply{}, errNotFound("path"), false)
}

func (s *Sandbox) getHealth(w http.ResponseWriter, r *http.Request) {
	s.write(r.Context(), w, &call{r: r, name: "health"}, reply{http.StatusOK, wireHealth{Status: "ok"}}, nil, false)
}

// front is the only page for people.
func front(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!doctype html><html lang=\"en\"><title>Rollcall sandbox</title>"+
		"<h1>This is the Rollcall sandbox</h1><p>A simulated vendor. Nothing here is the actual Geonode Scraper API.</p>"+
		"<p><a href=\"/_sandbox/books\">Its books</a></p></html>\n")
}
