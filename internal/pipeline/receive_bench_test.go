package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
)

// The load of the benchmark.
const (
	benchConnections = 64
	benchBody        = 2 << 10
	benchRounds      = 4 // Turns of each way, so that both see the same machine.
)

// BenchmarkReceive measures the receiver over real sockets, 64 connections of
// 2 KB deliveries for known jobs, by group commit and by one transaction a
// delivery of the same statements, in turns. An op is one delivery each way.
//
//	go test ./internal/pipeline -run xxx -bench Receive -benchtime 8000x
func BenchmarkReceive(b *testing.B) {
	r := newRig(b, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.OnlySubmit = true }})
	name := r.newWebhook("extract_completed")
	ways := map[string]func(context.Context, pipeline.Incoming) pipeline.Answer{"group": r.pipe.Receive, "plain": r.pipe.ReceiveAlone}
	took := map[string]time.Duration{}
	each := max(1, b.N/benchRounds)
	for round := range benchRounds {
		for way, receive := range ways {
			run := fmt.Sprintf("bench-%s-%d-%d", way, round, b.N)
			r.benchJobs(run, each)
			b.ResetTimer()
			took[way] += flood(b, name, run, each, receive)
			b.StopTimer()
		}
	}
	total := float64(each * benchRounds)
	group, plain := total/took["group"].Seconds(), total/took["plain"].Seconds()
	b.ReportMetric(group, "group/s")
	b.ReportMetric(plain, "plain/s")
	b.ReportMetric(group/plain, "ratio")
}

// benchJobs makes accepted jobs for deliveries to be about.
func (r *rig) benchJobs(prefix string, n int) {
	r.t.Helper()
	r.exec(`WITH batch AS (INSERT INTO batches (name, kind, options, created_at, submitted, accepted)
			VALUES ('bench', 'extract', '{}', now(), 0, 0) RETURNING id)
		INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, accepted_at, vendor_job_id)
		SELECT batch.id, 'extract', 'accepted', 'submit', '', 1, now(), now(), $1 || '-' || n
		FROM batch, generate_series(1, $2::int) n`, prefix, n)
	r.exec(`ANALYZE jobs`)
}

// flood sends n deliveries over the benchmark's connections and reports how
// long it took.
func flood(b *testing.B, endpoint, prefix string, n int, receive func(context.Context, pipeline.Incoming) pipeline.Answer) time.Duration {
	b.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a := receive(r.Context(), pipeline.Incoming{Endpoint: endpoint, Header: r.Header, Body: body, Source: "127.0.0.1", ReceivedAt: time.Now()})
		w.WriteHeader(a.Status)
	}))
	defer server.Close()
	transport := &http.Transport{MaxConnsPerHost: benchConnections, MaxIdleConnsPerHost: benchConnections}
	defer transport.CloseIdleConnections()
	requests := make([]*http.Request, n)
	for i := range requests {
		requests[i] = benchRequest(b, server.URL, endpoint, fmt.Sprintf("%s-%d", prefix, i+1))
	}
	var next, bad atomic.Int64
	began := time.Now()
	var wg sync.WaitGroup
	for range benchConnections {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				resp, err := transport.RoundTrip(requests[i])
				if err != nil {
					bad.Add(1)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					bad.Add(1)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if bad.Load() > 0 {
		b.Errorf("%d of %d deliveries were not taken up", bad.Load(), n)
	}
	return took
}

func benchRequest(b *testing.B, server, endpoint, job string) *http.Request {
	b.Helper()
	head := fmt.Sprintf(`{"event":"extract_completed","delivery_id":%q,"timestamp":"2026-11-29T12:00:00Z","data":{"job_id":%q,"fill":"`, job, job)
	body := []byte(head + strings.Repeat("x", max(0, benchBody-len(head)-3)) + `"}}`)
	in := signedDelivery(endpoint, "extract_completed", testSecret, body)
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server+"/webhooks/geonode/"+endpoint, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header = in.Header
	return req
}
