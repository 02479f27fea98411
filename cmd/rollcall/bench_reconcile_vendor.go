package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// listVendor is a vendor of so many ended extract jobs that it keeps none: a row of its list is computed from its place.
type listVendor struct {
	now    func() time.Time
	groups []listGroup
	calls  atomic.Int64
}

// listGroup is jobs whose ids are a prefix and a number from 1.
type listGroup struct {
	prefix string
	n      int
}

// listPageSize is the largest page of the extract list.
const listPageSize = 100

func (v *listVendor) total() int {
	sum := 0
	for _, g := range v.groups {
		sum += g.n
	}
	return sum
}

// pages is how many pages the lists of the three kinds have together; an empty list has one.
func (v *listVendor) pages() int { return (v.total()+listPageSize-1)/listPageSize + 2 }

// id is the job at a place in the list.
func (v *listVendor) id(at int) string {
	for _, g := range v.groups {
		if at < g.n {
			return g.prefix + strconv.Itoa(at+1)
		}
		at -= g.n
	}
	return ""
}

// RoundTrip answers one call.
func (v *listVendor) RoundTrip(r *http.Request) (*http.Response, error) {
	v.calls.Add(1)
	path := r.URL.Path
	switch {
	case r.Method != http.MethodGet:
	case path == "/v1/extract/jobs":
		return v.list(r, v.total())
	case path == "/v1/batch/jobs", path == "/v1/crawl/jobs":
		return v.list(r, 0)
	case strings.HasPrefix(path, "/v1/extract/"):
		w := httptest.NewRecorder()
		answerCanned(w, strings.TrimPrefix(path, "/v1/extract/"))
		return w.Result(), nil
	case path == "/v1/webhooks":
		return v.answer(r, map[string]any{"webhooks": []any{}, "items": []any{}, "page": 1, "page_size": listPageSize, "page_count": 1})
	}
	return v.answer(r, map[string]any{})
}

func (v *listVendor) list(r *http.Request, total int) (*http.Response, error) {
	page, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil || page < 1 {
		return nil, fmt.Errorf("page %q", r.URL.Query().Get("page"))
	}
	size, err := strconv.Atoi(r.URL.Query().Get("page_size"))
	if err != nil || size < 1 || size > listPageSize {
		return nil, fmt.Errorf("page_size %q", r.URL.Query().Get("page_size"))
	}
	made := wireTime(v.now().Add(-time.Hour))
	rows := []any{}
	for at := (page - 1) * size; at < min(page*size, total); at++ {
		rows = append(rows, map[string]any{
			"job_id": v.id(at), "status": "completed", "url": "https://canned.sandbox.test/", "created_at": made, "output": []string{"markdown"},
		})
	}
	return v.answer(r, map[string]any{"jobs": rows, "page": page, "page_size": size, "page_count": (total + size - 1) / size})
}

func (v *listVendor) answer(r *http.Request, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write an answer: %w", err)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}, "Date": {v.now().UTC().Format(http.TimeFormat)}},
		Body:   io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}, nil
}
