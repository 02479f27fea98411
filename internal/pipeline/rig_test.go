package pipeline_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/geonode/contracttest"
	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
	"rollcall/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		os.Exit(workerMain())
	}
	flag.Parse()
	// Most of these tests wait for timers and sockets, so more of them than
	// there are cores may run at once. More yet only make each last longer, and
	// a rig that waits looks for work all the time.
	unlessGiven("test.parallel", "4")
	// A check is a whole life of some batches, not a function call.
	unlessGiven("rapid.checks", "6")
	storetest.Main(contracttest.Main(m))
}

// unlessGiven sets a flag that was not set on the command line.
func unlessGiven(name, value string) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	if err := flag.Set(name, value); err != nil {
		panic(err)
	}
}

// rig is a whole Rollcall without pages: a database, the sandbox as vendor,
// a webhook endpoint on a real socket, and a pipeline.
type rig struct {
	t        testing.TB
	store    *store.Store
	eyes     *sql.DB // What the test itself looks and holds with.
	dsn      string
	sandbox  *sandbox.Sandbox
	vendor   *httptest.Server // What the client calls; tests may put faults in front.
	front    *front
	client   *geonode.Client
	pipe     *pipeline.Pipeline
	hooks    *httptest.Server
	receiver *receiver
}

// leastConns is the fewest connections that a process may be set to: nobody may
// wait for somebody who waits for a connection.
const leastConns = 6

// setup says what a test wants different.
type setup struct {
	sandbox  func(*sandbox.Config)
	pipeline func(*pipeline.Config)
	// noWebhooks leaves the webhooks unregistered.
	noWebhooks bool
	// stopped makes the pipeline but does not start it.
	stopped bool
	// client is how answers are read, for those who want it different.
	client func(*geonode.Config)
}

// front stands before the sandbox: a test may answer a call itself.
type front struct {
	next http.Handler
	do   atomic.Pointer[intercept]
}

type intercept func(w http.ResponseWriter, r *http.Request, next http.Handler)

// set puts do before the sandbox from now on; nil takes it away.
func (f *front) set(do intercept) {
	if do == nil {
		f.do.Store(nil)
		return
	}
	f.do.Store(&do)
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if do := f.do.Load(); do != nil {
		(*do)(w, r, f.next)
		return
	}
	f.next.ServeHTTP(w, r)
}

// receiver is the webhook endpoint, as web makes it, around the pipeline.
type receiver struct {
	pipe atomic.Pointer[pipeline.Pipeline]
	// worker is a process that takes the deliveries instead of pipe.
	worker atomic.Pointer[worker]
	// before may swallow a delivery, as a network would.
	before atomic.Pointer[func(r *http.Request, body []byte) bool]
}

// swallow decides from now on which deliveries arrive.
func (h *receiver) swallow(pass func(r *http.Request, body []byte) bool) { h.before.Store(&pass) }

func (h *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if before := h.before.Load(); before != nil && !(*before)(r, body) {
		http.Error(w, "lost on the way", http.StatusBadGateway)
		return
	}
	if to := h.worker.Load(); to != nil {
		to.forward(w, r, body)
		return
	}
	a := h.pipe.Load().Receive(r.Context(), pipeline.Incoming{
		Endpoint: r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], Header: r.Header, Body: body,
		Source: "127.0.0.1", ReceivedAt: time.Now(),
	})
	w.WriteHeader(a.Status)
}

func newRig(tb testing.TB, s setup) *rig {
	tb.Helper()
	r := &rig{t: tb, dsn: storetest.DSN(tb)}
	r.store, r.eyes = storetest.OpenWith(tb, r.dsn, leastConns), storetest.Eyes(tb, r.dsn)
	cfg := sandbox.Config{
		Seed: 1, RunTime: 20 * time.Millisecond, RetryGaps: []time.Duration{50 * time.Millisecond, 200 * time.Millisecond},
		DelayUnit: 20 * time.Millisecond, ReorderHold: 200 * time.Millisecond, EarlyLag: 50 * time.Millisecond, SlowMax: 100 * time.Millisecond,
	}
	if s.sandbox != nil {
		s.sandbox(&cfg)
	}
	box, err := sandbox.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	r.sandbox = box
	r.front = &front{next: box.Handler()}
	r.vendor = httptest.NewServer(r.front)
	r.client = r.newClient(s.client)
	r.receiver = &receiver{}
	r.hooks = httptest.NewServer(r.receiver)
	r.pipe = r.newPipeline(s)
	r.receiver.pipe.Store(r.pipe)
	tb.Cleanup(r.close)
	tb.Cleanup(r.tell)
	if !s.stopped {
		r.start(s)
	}
	return r
}

// tell has a failed test say what its database holds: what failed once in a
// hundred runs can't be asked again.
func (r *rig) tell() {
	if !r.t.Failed() {
		return
	}
	for name, query := range map[string]string{
		"jobs":    `SELECT state, coalesce(settle_net, ''), (next_poll_at IS NOT NULL)::text, count(*) FROM jobs GROUP BY 1, 2, 3`,
		"tasks":   `SELECT kind, state::text, coalesce((errors[array_upper(errors, 1)])->>'error', ''), count(*) FROM river_job GROUP BY 1, 2, 3`,
		"replays": `SELECT state, coalesce(outcome, ''), '', count(*) FROM replay_jobs GROUP BY 1, 2`,
		"events":  `SELECT kind, net, '', count(*) FROM job_events GROUP BY 1, 2`,
		"waiting": `SELECT coalesce(wait_event_type, ''), coalesce(wait_event, ''), left(query, 100), count(*) FROM pg_stat_activity
			WHERE datname = current_database() GROUP BY 1, 2, 3`,
	} {
		r.t.Logf("%s: %s", name, r.text(`SELECT coalesce(string_agg(concat_ws(' ', a, b, c, n), '; '), 'none') FROM (`+query+`) AS t (a, b, c, n)`))
	}
}

func (r *rig) start(s setup) {
	r.t.Helper()
	if err := r.pipe.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if !s.noWebhooks {
		if _, err := r.pipe.RegisterWebhooks(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) newClient(change func(*geonode.Config)) *geonode.Client {
	r.t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 32}
	r.t.Cleanup(transport.CloseIdleConnections)
	cfg := geonode.Config{
		BaseURL: r.vendor.URL, APIKey: sandbox.DefaultAPIKey, Now: time.Now,
		Transport: contracttest.Transport(r.t, transport),
		Timeouts:  geonode.Timeouts{Submit: 10 * time.Second, Status: 10 * time.Second, List: 10 * time.Second},
	}
	if change != nil {
		change(&cfg)
	}
	client, err := geonode.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return client
}

// neverByItself keeps the timers still of the reconciler and of what removes old
// rows. They go at full multiples of their interval: with an hour, whatever test
// ran as the hour struck had a run that it knew nothing of.
const neverByItself = 100 * 365 * 24 * time.Hour

// newPipeline is a further process on the same database.
func (r *rig) newPipeline(s setup) *pipeline.Pipeline {
	r.t.Helper()
	level := slog.LevelError
	if testing.Verbose() {
		level = slog.LevelInfo
	}
	cfg := pipeline.Config{
		Store: r.store, Vendor: r.client, Now: time.Now, Key: bytes.Repeat([]byte{7}, 32), Account: "test",
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
		PublicURL: r.hooks.URL, PollFirst: 50 * time.Millisecond, PollCap: 300 * time.Millisecond,
		PollTick: 100 * time.Millisecond, ListEvery: 100 * time.Millisecond, WebhookFallback: time.Second, ReconcileEvery: neverByItself, RetainEvery: neverByItself,
		ReconcileOlderThan: time.Millisecond, URLsPerJob: 20, MissingGap: 100 * time.Millisecond, CancelGrace: 300 * time.Millisecond,
		AdoptGap: 200 * time.Millisecond, ProbeEvery: 100 * time.Millisecond, VendorRPS: 500, ClaimLease: 15 * time.Second, NoIndex: true,
		RetryGaps: make([]time.Duration, 3), // At once: what is to wait would wait for the timer of the queue, up to 5 s.
	}
	if s.pipeline != nil {
		s.pipeline(&cfg)
	}
	p, err := pipeline.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patienceOfTests)
	defer cancel()
	if err := r.pipe.Stop(ctx); err != nil {
		r.t.Error(err)
	}
	if err := r.sandbox.Close(); err != nil {
		r.t.Error(err)
	}
	r.hooks.Close()
	r.client.Close()
	r.vendor.Close()
}

// submit submits URLs and returns the batch's id.
func (r *rig) submit(kind store.Kind, urls ...string) int64 {
	r.t.Helper()
	got, err := r.pipe.Submit(r.t.Context(), pipeline.Submission{
		Name: "test", Kind: kind, Text: strings.Join(urls, "\n"),
		Options: pipeline.Options{Formats: []string{"markdown", "html"}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return got.BatchID
}

// batch waits until the batch's counters satisfy done and returns it.
func (r *rig) batch(id int64, done func(*store.Batch) bool) *store.Batch {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patienceOfTests)
	defer cancel()
	for gap := 5 * time.Millisecond; ; gap = min(gap*3/2, 60*time.Millisecond) { // Each look takes time from what it waits for.
		b, err := r.store.Batch(ctx, id)
		if err != nil {
			r.t.Fatalf("batch %d: %v\n%s", id, err, r.describe(id))
		}
		if done(b) {
			return b
		}
		select {
		case <-ctx.Done():
			r.t.Fatalf("batch %d did not get there: %+v\n%s", id, b, r.describe(id))
		case <-time.After(gap):
		}
	}
}

// ended waits until nothing of the batch is outstanding.
func (r *rig) ended(id int64) *store.Batch {
	r.t.Helper()
	return r.batch(id, func(b *store.Batch) bool { return b.Outstanding == 0 })
}

// describe is what a failed test shows of a batch's jobs.
func (r *rig) describe(id int64) string {
	var out strings.Builder
	rows, err := r.eyes.QueryContext(context.Background(), `SELECT j.id, j.kind, j.state, coalesce(j.vendor_status, ''),
		j.wake_seq, j.polls, j.settle_page, j.settle_passes, j.error_code,
		(SELECT string_agg(e.kind || ' ' || e.net || ' ' || e.detail, ' | ' ORDER BY e.id) FROM job_events e WHERE e.job_id = j.id),
		(SELECT string_agg(q.kind || ':' || q.state::text || ':' || q.attempt || ' ' || coalesce(q.errors[array_upper(q.errors, 1)]->>'error', ''), ' ; ')
		 FROM river_job q WHERE (q.args->>'job_id')::bigint = j.id AND q.state <> 'completed')
		FROM jobs j WHERE j.batch_id = $1 AND j.state NOT IN ('settled', 'split') ORDER BY j.id LIMIT 20`, id)
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	for rows.Next() {
		var job, seq int64
		var polls, page, passes int
		var kind, state, status, code string
		var events, tasks *string
		if err := rows.Scan(&job, &kind, &state, &status, &seq, &polls, &page, &passes, &code, &events, &tasks); err != nil {
			return err.Error()
		}
		fmt.Fprintf(&out, "job %d %s %s vendor=%s wake=%d polls=%d page=%d passes=%d %s\n", job, kind, state, status, seq, polls, page, passes, code)
		for _, s := range []*string{events, tasks} {
			if s != nil {
				fmt.Fprintf(&out, "   %s\n", *s)
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err.Error()
	}
	return out.String()
}

// balanced checks the roll call against the rows and the sandbox's books.
func (r *rig) balanced(ids ...int64) {
	r.t.Helper()
	diff, _, err := r.store.RecountBatches(r.t.Context(), 0, 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(diff) > 0 {
		r.t.Errorf("counters differ from rows: %+v", diff)
	}
	for _, id := range ids {
		r.likeBooks(id)
	}
}

// likeBooks holds the stored results of a batch against what the vendor says
// it made of each URL.
func (r *rig) likeBooks(id int64) {
	r.t.Helper()
	truth := map[string][]*sandbox.Outcome{}
	books := r.sandbox.Books()
	for i := range books.Jobs {
		for k := range books.Jobs[i].Outcomes {
			o := &books.Jobs[i].Outcomes[k]
			truth[o.URL] = append(truth[o.URL], o)
		}
	}
	rows, err := r.eyes.QueryContext(r.t.Context(), `SELECT i.url, i.state, i.error_code, r.markdown
		FROM items i LEFT JOIN results r ON r.item_id = i.id WHERE i.batch_id = $1`, id)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var url, state, code string
		var markdown []byte
		if err := rows.Scan(&url, &state, &code, &markdown); err != nil {
			r.t.Fatal(err)
		}
		if !explained(truth[url], state, code, markdown) {
			r.t.Errorf("%s is %s %s here, and the vendor says %+v", url, state, code, truth[url])
		}
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
}

func explained(outcomes []*sandbox.Outcome, state, code string, markdown []byte) bool {
	sum := sha256.Sum256(markdown)
	for _, o := range outcomes {
		switch {
		case state == "stored" && o.Status == "completed" && o.MarkdownSHA256 == hex.EncodeToString(sum[:]):
			return true
		case state == "failed" && o.Status == "failed" && o.Code == code:
			return true
		}
	}
	return false
}
