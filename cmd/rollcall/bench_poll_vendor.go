package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// benchVendor answers as the vendor does for extract jobs, in this process and by the clock of the round, and keeps
// count. A job is queued for a moment, then runs for as long as it was given.
type benchVendor struct {
	name string // Of this round, in its jobs' ids.
	now  func() time.Time
	runs []time.Duration

	mu      sync.Mutex
	jobs    []*benchJob // In the order of their submits.
	home    int
	status  int
	lists   int
	results int
}

// benchJob is one job there.
type benchJob struct {
	id      string
	url     string
	created time.Time
	ends    time.Time
	home    time.Time // When its result was first read; zero before.
}

// benchQueued is how long a job is queued, as part of its run.
const benchQueued = time.Second

// benchSite is where the pages of a round are.
const benchSite = "https://bench.sandbox.test/"

func newBenchVendor(now func() time.Time, runs []time.Duration) *benchVendor {
	return &benchVendor{name: rand.Text(), now: now, runs: runs}
}

// urls are what is to be submitted; the number in a URL picks the run length.
func (v *benchVendor) urls() []string {
	urls := make([]string, len(v.runs))
	for i := range urls {
		urls[i] = benchSite + strconv.Itoa(i)
	}
	return urls
}

// left is how many results were not read yet.
func (v *benchVendor) left() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.runs) - v.home
}

// row is what the round came to.
func (v *benchVendor) row(runs []time.Duration) pollRow {
	v.mu.Lock()
	defer v.mu.Unlock()
	row := pollRow{Jobs: len(runs), Way: wayRollcall, StatusCalls: v.status, ListCalls: v.lists, ResultCalls: v.results}
	delays := make([]time.Duration, len(v.jobs))
	for i, j := range v.jobs {
		delays[i] = j.home.Sub(j.ends)
	}
	row.finish(slices.Max(runs), delays)
	return row
}

// RoundTrip answers one call.
func (v *benchVendor) RoundTrip(r *http.Request) (*http.Response, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/extract":
		return v.submit(r)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/extract/jobs":
		return v.list(r)
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/extract/"):
		return v.read(r)
	}
	return nil, fmt.Errorf("%s %s is no call of this measurement", r.Method, r.URL.Path)
}

func (v *benchVendor) submit(r *http.Request) (*http.Response, error) {
	var in struct {
		URL string `json:"url"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, fmt.Errorf("read a submit: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimPrefix(in.URL, benchSite))
	if err != nil || n < 0 || n >= len(v.runs) {
		return nil, fmt.Errorf("%s is no page of this measurement", in.URL)
	}
	now := v.now()
	j := &benchJob{id: fmt.Sprintf("%s-%06d", v.name, len(v.jobs)), url: in.URL, created: now, ends: now.Add(v.runs[n])}
	v.jobs = append(v.jobs, j)
	return v.answer(r, http.StatusAccepted, map[string]any{"job_id": j.id, "status": "queued", "status_url": "/v1/extract/" + j.id})
}

func (j *benchJob) status(now time.Time) string {
	switch {
	case !now.Before(j.ends):
		return "completed"
	case now.Before(j.created.Add(benchQueued)):
		return "queued"
	}
	return "processing"
}

func (v *benchVendor) read(r *http.Request) (*http.Response, error) {
	id, now := path.Base(r.URL.Path), v.now()
	at := slices.IndexFunc(v.jobs, func(j *benchJob) bool { return j.id == id })
	if at < 0 {
		return nil, fmt.Errorf("%s is no job of this measurement", id)
	}
	j := v.jobs[at]
	body := map[string]any{"job_id": j.id, "status": j.status(now), "created_at": wireTime(j.created)}
	if j.status(now) != "completed" {
		v.status++
		return v.answer(r, http.StatusOK, body)
	}
	v.results++
	if j.home.IsZero() {
		j.home = now
		v.home++
	}
	body["completed_at"], body["tokens_charged"] = wireTime(j.ends), 1
	body["data"] = map[string]any{"markdown": "# " + j.url}
	return v.answer(r, http.StatusOK, body)
}

// list answers a page of the job list, the newest first.
func (v *benchVendor) list(r *http.Request) (*http.Response, error) {
	v.lists++
	q := r.URL.Query()
	page, size, from, to, err := listQuery(q)
	if err != nil {
		return nil, err
	}
	now, rows, matching := v.now(), []any{}, 0
	for _, j := range slices.Backward(v.jobs) {
		status := j.status(now)
		if want := q.Get("status"); want != "" && want != status || j.created.Before(from) || j.created.After(to) {
			continue
		}
		if matching++; matching > (page-1)*size && matching <= page*size {
			rows = append(rows, map[string]any{"job_id": j.id, "status": status, "url": j.url, "created_at": wireTime(j.created), "output": []string{"markdown"}})
		}
	}
	pages := (matching + size - 1) / size
	return v.answer(r, http.StatusOK, map[string]any{"jobs": rows, "page": page, "page_size": size, "page_count": pages})
}

// listQuery reads which rows of the list are wanted: page, page size, and the window of their creation.
func listQuery(q url.Values) (int, int, time.Time, time.Time, error) {
	page, err := strconv.Atoi(q.Get("page"))
	if err != nil || page < 1 {
		return 0, 0, time.Time{}, time.Time{}, fmt.Errorf("page %q", q.Get("page"))
	}
	size, err := strconv.Atoi(q.Get("page_size"))
	if err != nil || size < 1 || size > 100 {
		return 0, 0, time.Time{}, time.Time{}, fmt.Errorf("page_size %q", q.Get("page_size"))
	}
	from, err := time.Parse(time.RFC3339, q.Get("start_date"))
	if err != nil {
		return 0, 0, time.Time{}, time.Time{}, fmt.Errorf("start_date: %w", err)
	}
	to, err := time.Parse(time.RFC3339, q.Get("end_date"))
	return page, size, from, to, err
}

func wireTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func (v *benchVendor) answer(r *http.Request, status int, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write an answer: %w", err)
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}, "Date": {v.now().UTC().Format(http.TimeFormat)}},
		Body:   io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}, nil
}
