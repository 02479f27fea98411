package store_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

func exec(t *testing.T, s *store.Store, query string, args ...any) {
	t.Helper()
	if _, err := s.SQL().ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// fill makes enough rows that the planner has a reason to use an index.
func fill(t *testing.T, s *store.Store) {
	t.Helper()
	exec(t, s, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted, failed, stored_webhook, ended_at)
		SELECT 'batch ' || g, 'batch', '{}', timestamptz '2026-11-01' + (g / 3) * interval '1 min', 20, 20, 5, 10, CASE WHEN g % 50 > 0 THEN now() END
		FROM generate_series(1, 2000) g`)
	exec(t, s, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id, vendor_status, ended_at, settle_net, webhook_at)
		SELECT id, 'batch', 'settled', 'submit', '\x00', 20, created_at, 'v' || id, 'completed', created_at, 'webhook', created_at FROM batches`)
	exec(t, s, `INSERT INTO items (batch_id, position, url, url_hash, state, net, current_job_id, error_code, created_at, ended_at)
		SELECT b.id, p, 'https://a.example/' || p, '\x00', CASE WHEN p % 4 = 0 THEN 'failed' WHEN p % 4 = 1 THEN 'outstanding' ELSE 'stored' END,
			CASE WHEN p % 4 > 1 THEN 'webhook' END, b.id, CASE WHEN p % 8 = 0 THEN 'TIMEOUT' WHEN p % 4 = 0 THEN 'NOT_FOUND' ELSE '' END, b.created_at,
			CASE WHEN p % 4 <> 1 THEN b.created_at END
		FROM batches b, generate_series(1, 20) p`)
	exec(t, s, `INSERT INTO job_items (job_id, input_index, item_id) SELECT current_job_id, position - 1, id FROM items`)
	exec(t, s, `INSERT INTO deliveries (received_at, verdict, status, event_type, vendor_job_id, headers, body, body_size)
		SELECT created_at, CASE WHEN id % 100 = 0 THEN 'refused' ELSE 'accepted' END, 200, 'batch_completed', 'v' || id, '', 'x', 1 FROM batches`)
	exec(t, s, `INSERT INTO job_events (job_id, at, kind) SELECT id, created_at, 'intended' FROM jobs`)
	exec(t, s, `INSERT INTO reconcile_runs (trigger, started_at, window_start, window_end)
		SELECT 'timer', created_at, created_at, created_at FROM batches`)
	exec(t, s, `INSERT INTO rejected_lines (batch_id, line, kind, text, reason) SELECT b.id, g, 'invalid', 'x', 'y' FROM batches b, generate_series(1, 3) g`)
	exec(t, s, "ANALYZE")
}

// TestPageListsWalkWhole: every list, followed by its keys in pages of seven,
// shows every row once, whatever times rows share.
func TestPageListsWalkWhole(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fill(t, s)
	for name, tc := range pageLists(s) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := walkList(t, tc.page); got != tc.want {
				t.Errorf("got %d rows, want %d", got, tc.want)
			}
		})
	}
}

// pageList is a list by time and id with the number of its rows.
type pageList struct {
	want int
	page func(context.Context, store.Key) ([]store.Key, error)
}

func pageLists(s *store.Store) map[string]pageList {
	return map[string]pageList{
		"batches": {2000, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			rows, err := s.PageBatches(ctx, "", from, 70)
			return keys(rows, func(r store.BatchRow) store.Key { return store.Key{At: r.CreatedAt, ID: r.ID} }), err
		}},
		"batches by name": {111, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			rows, err := s.PageBatches(ctx, "CH 19", from, 7)
			return keys(rows, func(r store.BatchRow) store.Key { return store.Key{At: r.CreatedAt, ID: r.ID} }), err
		}},
		"deliveries": {2000, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			rows, err := s.PageDeliveries(ctx, store.DeliveryFilter{}, from, 70)
			return keys(rows, func(r store.DeliveryRow) store.Key { return store.Key{At: r.ReceivedAt, ID: r.ID} }), err
		}},
		"deliveries refused": {20, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			rows, err := s.PageDeliveries(ctx, store.DeliveryFilter{Verdict: store.VerdictRefused, Event: "batch_completed"}, from, 7)
			return keys(rows, func(r store.DeliveryRow) store.Key { return store.Key{At: r.ReceivedAt, ID: r.ID} }), err
		}},
		"failures": {10000, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			rows, err := s.PageFailures(ctx, store.Failed{}, from, 1000)
			return keys(rows, func(r store.FailureRow) store.Key { return store.Key{At: *r.EndedAt, ID: r.ID} }), err
		}},
		"failures by code": {4000, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			rows, err := s.PageFailures(ctx, store.Failed{Code: "TIMEOUT"}, from, 300)
			return keys(rows, func(r store.FailureRow) store.Key { return store.Key{At: *r.EndedAt, ID: r.ID} }), err
		}},
		"runs": {2000, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			rows, err := s.PageRuns(ctx, from, 70)
			return keys(rows, func(r store.ReconcileRun) store.Key { return store.Key{At: r.StartedAt, ID: r.ID} }), err
		}},
	}
}

// walkList follows a list to its end and counts its rows.
func walkList(t *testing.T, page func(context.Context, store.Key) ([]store.Key, error)) int {
	t.Helper()
	seen, from := map[int64]bool{}, store.Key{}
	for {
		rows, err := page(t.Context(), from)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			return len(seen)
		}
		for _, key := range rows {
			if seen[key.ID] || from.ID != 0 && key.At.After(from.At) {
				t.Fatalf("row %d is shown twice or out of order", key.ID)
			}
			seen[key.ID], from = true, key
		}
	}
}

func keys[T any](rows []T, key func(T) store.Key) []store.Key {
	out := make([]store.Key, len(rows))
	for i, row := range rows {
		out[i] = key(row)
	}
	return out
}

func TestPageItemsAndJobs(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fill(t, s)
	var batch, job int64
	if err := s.SQL().QueryRowContext(t.Context(), "SELECT batch_id, id FROM jobs ORDER BY id LIMIT 1").Scan(&batch, &job); err != nil {
		t.Fatal(err)
	}
	for state, want := range map[store.ItemState]int{"": 20, store.ItemFailed: 5, store.ItemStored: 10, store.ItemCancelled: 0} {
		got, after := 0, -1
		for {
			rows, err := s.PageItems(t.Context(), batch, state, after, 3)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 {
				break
			}
			got, after = got+len(rows), rows[len(rows)-1].Position
		}
		if got != want {
			t.Errorf("items %q: got %d, want %d", state, got, want)
		}
	}
	jobs, err := s.PageJobs(t.Context(), batch, 0, 10)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("jobs: got %d, %v", len(jobs), err)
	}
	if a := jobs[0].Answers; a.Accepted != 20 || a.StoredWebhook != 10 || a.Failed != 5 || a.Outstanding != 5 {
		t.Errorf("answers of the job: got %+v", a)
	}
	if rest, err := s.PageJobs(t.Context(), batch, jobs[0].ID, 10); len(rest) != 0 || err != nil {
		t.Errorf("jobs before the first: got %d, %v", len(rest), err)
	}
	carried, err := s.PageJobItems(t.Context(), job, 4, 10)
	if err != nil || len(carried) != 10 || carried[0].InputIndex != 5 || carried[0].Position != 6 || carried[0].Attempts != 1 {
		t.Errorf("items of the job after the fifth: got %d, %v", len(carried), err)
	}
	exec(t, s, `INSERT INTO jobs (batch_id, kind, state, origin, parent_job_id, request_hash, url_count, created_at)
		VALUES ($1, 'batch', 'intended', 'retry', $2, '\x00', 1, now())`, batch, job)
	again, err := s.PageJobs(t.Context(), batch, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if retried, err := s.PageJob(t.Context(), again[0].ID); err != nil || retried.Attempt != 2 {
		t.Errorf("a retry: got %+v, %v, want the second attempt", retried, err)
	}
	exec(t, s, `UPDATE items SET current_job_id = $1 WHERE current_job_id = $2 AND position <= 3`, again[0].ID, job)
	story, err := s.PageJob(t.Context(), job)
	if err != nil || story.TakenOver+story.Answers.Accepted != 20 || story.TakenOver == 0 || story.Attempt != 1 || len(story.Children) != 1 || len(story.Events) != 1 || len(story.Deliveries) != 1 || story.BatchName == "" {
		t.Errorf("story: got %+v, %v", story, err)
	}
}

func TestPagesOfNothing(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for name, ask := range map[string]func() error{
		"batch":    func() error { _, err := s.PageBatch(t.Context(), 1<<62); return err },
		"job":      func() error { _, err := s.PageJob(t.Context(), 1<<62); return err },
		"item":     func() error { _, err := s.PageItem(t.Context(), 1<<62); return err },
		"result":   func() error { _, err := s.PageResult(t.Context(), 1<<62); return err },
		"part":     func() error { _, err := s.ResultPart(t.Context(), 1<<62, store.PartHTML, 1); return err },
		"delivery": func() error { _, err := s.PageDelivery(t.Context(), 1<<62, 1); return err },
	} {
		if err := ask(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("unknown %s: got %v, want ErrNotFound", name, err)
		}
	}
}

func TestPageCountsStop(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fill(t, s)
	if got, err := s.CountFailures(t.Context(), store.Failed{}); got != 10000 || err != nil {
		t.Errorf("at the limit: got %d, %v, want 10000", got, err)
	}
	exec(t, s, `INSERT INTO items (batch_id, position, url, url_hash, state, error_code, created_at, ended_at)
		SELECT (SELECT min(id) FROM batches), 100 + g, 'x', '\x00', 'failed', 'ZZZ', now(), now() FROM generate_series(1, 500) g`)
	if got, err := s.CountFailures(t.Context(), store.Failed{}); got != store.CountLimit+1 || err != nil {
		t.Errorf("above it: got %d, %v, want one more than the limit", got, err)
	}
	exec(t, s, `UPDATE items SET resolved_at = now() WHERE state = 'failed' AND error_code = 'NOT_FOUND'`)
	exec(t, s, `UPDATE items SET resolved_at = now() WHERE id = (SELECT max(id) FROM items WHERE state = 'failed' AND error_code = 'ZZZ')`)
	for standing, want := range map[store.FailureStanding]string{
		"": "NOT_FOUND TIMEOUT ZZZ", store.FailureWaiting: "TIMEOUT ZZZ", store.FailureResolved: "NOT_FOUND ZZZ",
	} {
		codes, err := s.PageFailureCodes(t.Context(), standing)
		if got := strings.Join(codes, " "); got != want || err != nil {
			t.Errorf("codes of %q: got %q, %v", standing, got, err)
		}
	}
	days, err := s.PageDays(t.Context(), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	if err != nil || len(days) != 1 || days[0].Accepted != 40000 || days[0].Outstanding != 10000 || days[0].Day.Hour() != 0 {
		t.Errorf("days: got %+v, %v", days, err)
	}
	kinds, err := s.PagePunctuality(t.Context(), 50, time.Minute, time.Now())
	if err != nil || len(kinds) != 1 || kinds[0].Jobs != 50 || kinds[0].InTime != 50 {
		t.Errorf("punctuality: got %+v, %v", kinds, err)
	}
}

// TestPagesUseIndexes has the plan of every statement of the pages' queries
// written down, and looks in it for a table that grows without end and would
// be read from one end to the other. Backlog and days are left out: they look
// at a part of their table that is as large as it is.
func TestPagesUseIndexes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fill(t, s)
	var statements []string
	watched := *s
	store.Watch(&watched, func(query string) { statements = append(statements, query) })
	ctx := t.Context()
	from := store.Key{At: time.Date(2026, 11, 1, 5, 0, 0, 0, time.UTC), ID: 1000}
	for name, run := range map[string]func() error{
		"batches":    func() error { _, err := watched.PageBatches(ctx, "", from, 50); return err },
		"by name":    func() error { _, err := watched.PageBatches(ctx, "1", from, 50); return err },
		"running":    func() error { _, err := watched.PageRunningBatches(ctx, 8); return err },
		"jobs":       func() error { _, err := watched.PageJobs(ctx, 7, 0, 20); return err },
		"items":      func() error { _, err := watched.PageItems(ctx, 7, store.ItemFailed, 3, 50); return err },
		"job":        func() error { _, err := watched.PageJob(ctx, 7); return err },
		"job items":  func() error { _, err := watched.PageJobItems(ctx, 7, 3, 50); return err },
		"item":       func() error { _, err := watched.PageItem(ctx, 7); return err },
		"rejected":   func() error { _, err := watched.PageRejected(ctx, 7, 1, 50); return err },
		"deliveries": func() error { _, err := watched.PageDeliveries(ctx, store.DeliveryFilter{}, from, 50); return err },
		"refused": func() error {
			_, err := watched.PageDeliveries(ctx, store.DeliveryFilter{Verdict: store.VerdictRefused}, from, 50)
			return err
		},
		"failures": func() error { _, err := watched.PageFailures(ctx, store.Failed{}, from, 50); return err },
		"code":     func() error { _, err := watched.PageFailures(ctx, store.Failed{Code: "TIMEOUT"}, from, 50); return err },
		"codes": func() error {
			for _, standing := range append(store.FailureStandings(), "") {
				if _, err := watched.PageFailureCodes(ctx, standing); err != nil {
					return err
				}
			}
			return nil
		},
		"runs":       func() error { _, err := watched.PageRuns(ctx, from, 50); return err },
		"count":      func() error { _, err := watched.CountFailures(ctx, store.Failed{}); return err },
		"count jobs": func() error { _, err := watched.CountJobs(ctx, 7); return err },
		"refused of": func() error { _, err := watched.PageRefused(ctx, []int64{1}, from.At); return err },
		"usual":      func() error { _, err := watched.PageUsual(ctx); return err },
		"oldest":     func() error { _, err := watched.PageOldestOpen(ctx, 7, from.At); return err },
		"happenings": func() error { _, err := watched.PageHappenings(ctx, 10); return err },
		"troubles":   func() error { _, err := watched.PageLastTroubles(ctx); return err },
		"faulty":     func() error { _, err := watched.PageFaultyRuns(ctx, 3, time.Minute); return err },
		"on time":    func() error { _, err := watched.PagePunctuality(ctx, 50, time.Minute, time.Now()); return err },
	} {
		statements = nil
		if err := run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, statement := range statements {
			if plan := planOf(t, s, statement); wholeTable.MatchString(plan) {
				t.Errorf("%s: %s\n%s", name, statement, plan)
			}
		}
	}
}

// wholeTable finds a scan or a sort of all of a growing table in a plan.
var wholeTable = regexp.MustCompile(`Seq Scan on (batches|jobs|items|job_items|job_events|results|deliveries|reconcile_runs|rejected_lines|crawl_pages|processed_events|sync_calls|replay_jobs)`)

// planOf asks for a statement's plan, with whole scans made dear: on the
// test's small tables they'd be right.
func planOf(t *testing.T, s *store.Store, statement string) string {
	t.Helper()
	tx, err := s.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "SET LOCAL enable_seqscan = off"); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.QueryContext(t.Context(), "EXPLAIN "+statement)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

func TestListen(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	heard, lost := make(chan string, 10), make(chan error, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Listen(ctx, store.ChannelBatch, func(payload string) { heard <- payload }, func(err error) { lost <- err })
	}()
	if got := receive(t, heard); got != "" {
		t.Fatalf("first: got %q, want the news that it listens", got)
	}
	if err := s.Notify(t.Context(), 42); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, heard); got != "42" {
		t.Errorf("got %q, want 42", got)
	}
	exec(t, s, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
	if err := receive(t, lost); err == nil {
		t.Error("no reason for the loss")
	}
	if got := receive(t, heard); got != "" {
		t.Errorf("again: got %q, want the news that it listens", got)
	}
	if err := s.Notify(t.Context(), 43); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, heard); got != "43" {
		t.Errorf("got %q, want 43", got)
	}
	cancel()
	<-ended
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
