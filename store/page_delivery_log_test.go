package store_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// noon is when the first row of fillLog was made.
func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// fillLog makes n attempts, a second each, of two webhooks, and the deliveries
// that most of them are here.
func fillLog(t *testing.T, s *store.Store, n int) {
	t.Helper()
	exec(t, s, `INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at, vendor_webhook_id)
		SELECT 'endpoint-of-a-test-' || g, CASE g WHEN 1 THEN 'extract_completed' ELSE 'batch_completed' END, 'https://desk.example/' || g, 'live', $1, $1, 'wh-' || g
		FROM generate_series(1, 2) g`, noon())
	exec(t, s, `INSERT INTO batches (name, kind, options, created_at) SELECT 'batch ' || g, 'extract', '{}', $1 FROM generate_series(1, 3) g`, noon())
	exec(t, s, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id)
		SELECT 1 + g % 3, 'extract', 'settled', 'submit', '\x00', 1, $1, 'vendor-' || g FROM generate_series(0, 29) g`, noon())
	exec(t, s, `INSERT INTO deliveries (webhook_id, received_at, verdict, status, event_type, vendor_job_id, vendor_delivery_id, headers, body, body_size)
		SELECT 1 + g % 2, $1::timestamptz + g * interval '1 s', CASE g % 10 WHEN 3 THEN 'refused' WHEN 4 THEN 'duplicate' WHEN 5 THEN 'unreadable' ELSE 'accepted' END,
			CASE g % 10 WHEN 3 THEN CASE WHEN g % 20 = 3 THEN 401 ELSE 503 END WHEN 5 THEN 400 ELSE 200 END,
			CASE g % 2 WHEN 0 THEN 'extract_completed' ELSE 'batch_completed' END, 'vendor-' || g % 60, 'delivery-' || g, '', 'x', 1
		FROM generate_series(0, $2::int - 1) g`, noon(), n)
	exec(t, s, `INSERT INTO delivery_log (webhook_id, vendor_id, attempt, event_type, vendor_job_id, status, http_status, created_at, seen_at, delivery_id)
		SELECT d.webhook_id, d.vendor_delivery_id, 1 + g % 3, d.event_type, d.vendor_job_id,
			CASE g % 10 WHEN 3 THEN 'failed' WHEN 5 THEN 'failed' WHEN 6 THEN 'failed' WHEN 7 THEN 'abandoned' WHEN 8 THEN 'pending' ELSE 'success' END,
			CASE WHEN g % 10 BETWEEN 6 AND 8 THEN NULL ELSE d.status END, d.received_at, d.received_at, CASE WHEN g % 10 < 6 THEN d.id END
		FROM deliveries d, LATERAL (SELECT d.id - 1 AS g) n`)
	exec(t, s, "ANALYZE")
}

// TestListsOfDeliveriesWalkTies: 5,000 rows of one moment, walked in pages, are
// shown each once, with a filter and without.
func TestListsOfDeliveriesWalkTies(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fillLog(t, s, 5000)
	exec(t, s, "UPDATE deliveries SET received_at = $1", noon())
	exec(t, s, "UPDATE delivery_log SET created_at = $1", noon())
	// The reader's zone, and the cursor's, are no matter.
	far := time.FixedZone("far", 14*3600)
	for name, list := range map[string]pageList{
		"received": {5000, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			from.At = from.At.In(far)
			rows, err := s.PageDeliveries(ctx, store.DeliveryFilter{}, from, 333)
			return keys(rows, func(r store.DeliveryRow) store.Key { return store.Key{At: r.ReceivedAt, ID: r.ID} }), err
		}},
		"received of a batch": {837, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			rows, err := s.PageDeliveries(ctx, store.DeliveryFilter{Batch: 2}, from, 100)
			return keys(rows, func(r store.DeliveryRow) store.Key { return store.Key{At: r.ReceivedAt, ID: r.ID} }), err
		}},
		"log": {5000, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			from.At = from.At.In(far)
			rows, err := s.PageLog(ctx, store.LogFilter{}, from, 333)
			return keys(rows, func(r store.LogEntry) store.Key { return store.Key{At: r.CreatedAt, ID: r.ID} }), err
		}},
		"refused": {1000, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			rows, err := s.PageLog(ctx, store.LogFilter{Standing: store.StandingRefused}, from, 77)
			return keys(rows, func(r store.LogEntry) store.Key { return store.Key{At: r.CreatedAt, ID: r.ID} }), err
		}},
	} {
		if got := walkList(t, list.page); got != list.want {
			t.Errorf("%s: got %d rows, want %d", name, got, list.want)
		}
	}
}

func logFilters() map[string]store.LogFilter {
	filters := map[string]store.LogFilter{
		"none": {}, "webhook": {Webhook: 2}, "event": {Event: "batch_completed"}, "status": {Status: "failed"}, "class": {Class: 5},
		"http": {HTTPStatus: 401}, "attempt": {Attempt: 2}, "first attempts": {Attempt: 1}, "job": {Job: "vendor-7"}, "our job": {Job: "8"},
		"batch": {Batch: 3}, "time": {From: noon().Add(100 * time.Second), Until: noon().Add(200 * time.Second)}, "nothing": {Status: "parked"},
		"several": {Webhook: 2, Status: "failed", Standing: store.StandingRefused, Batch: 1},
	}
	for _, each := range store.Standings() {
		filters["standing "+string(each)] = store.LogFilter{Standing: each}
	}
	return filters
}

// fits says in Go what a filter says in SQL.
func fits(f store.LogFilter, e *store.LogEntry) bool {
	http := 0
	if e.HTTPStatus != nil {
		http = *e.HTTPStatus
	}
	batchOf := func(job int64) int64 { return 1 + (job-1)%3 }
	return (f.Webhook == 0 || e.WebhookID == f.Webhook) && (f.Event == "" || e.EventType == f.Event) && (f.Status == "" || e.Status == f.Status) &&
		(f.Class == 0 || http/100 == f.Class) && (f.HTTPStatus == 0 || http == f.HTTPStatus) && (f.Attempt == 0 || e.Attempt == f.Attempt) &&
		(f.Job == "" || e.VendorJobID == f.Job || strconv.FormatInt(e.JobID, 10) == f.Job) && (f.Batch == 0 || e.JobID > 0 && batchOf(e.JobID) == f.Batch) &&
		(f.Standing == "" || e.Standing == f.Standing) && (f.From.IsZero() || !e.CreatedAt.Before(f.From)) && (f.Until.IsZero() || e.CreatedAt.Before(f.Until))
}

// TestLogFilters: each filter finds what fits it, all of it, and counts as much.
func TestLogFilters(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fillLog(t, s, 600)
	all, err := s.PageLog(t.Context(), store.LogFilter{}, store.Key{}, 1000)
	if err != nil || len(all) != 600 {
		t.Fatalf("got %d attempts, %v", len(all), err)
	}
	for name, filter := range logFilters() {
		want := []int64{}
		for i := range all {
			if fits(filter, &all[i]) {
				want = append(want, all[i].ID)
			}
		}
		rows, err := s.PageLog(t.Context(), filter, store.Key{}, 1000)
		got := make([]int64, len(rows))
		for i := range rows {
			got[i] = rows[i].ID
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %d rows, %v, want %d", name, len(got), err, len(want))
		}
		if n, known, err := s.CountLog(t.Context(), filter); n != int64(len(want)) || !known || err != nil {
			t.Errorf("%s: counted %d, %v, %v, want %d", name, n, known, err, len(want))
		}
		if len(want) == 0 && name != "nothing" {
			t.Errorf("%s: no row fits, so nothing is tested", name)
		}
	}
}

// TestDeliveryFilters: as TestLogFilters, for what was received.
func TestDeliveryFilters(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fillLog(t, s, 600)
	for name, tc := range map[string]struct {
		filter store.DeliveryFilter
		where  string
	}{
		"none":       {store.DeliveryFilter{}, "true"},
		"webhook":    {store.DeliveryFilter{Webhook: 1}, "webhook_id = 1"},
		"event":      {store.DeliveryFilter{Event: "extract_completed"}, "event_type = 'extract_completed'"},
		"accepted":   {store.DeliveryFilter{Verdict: store.VerdictAccepted}, "verdict = 'accepted'"},
		"refused":    {store.DeliveryFilter{Verdict: store.VerdictRefused}, "verdict = 'refused'"},
		"class":      {store.DeliveryFilter{Class: 4}, "status / 100 = 4"},
		"well":       {store.DeliveryFilter{Class: 2}, "status / 100 = 2"},
		"status":     {store.DeliveryFilter{Status: 503}, "status = 503"},
		"answered":   {store.DeliveryFilter{Status: 200}, "status = 200"},
		"class both": {store.DeliveryFilter{Class: 4, Status: 401}, "status = 401"},
		"job":        {store.DeliveryFilter{Job: "vendor-7"}, "vendor_job_id = 'vendor-7'"},
		"our job":    {store.DeliveryFilter{Job: "8"}, "vendor_job_id = 'vendor-7'"},
		"batch":      {store.DeliveryFilter{Batch: 2}, "vendor_job_id IN (SELECT vendor_job_id FROM jobs WHERE batch_id = 2)"},
		"time":       {store.DeliveryFilter{From: noon().Add(time.Minute), Until: noon().Add(2 * time.Minute)}, "received_at >= '2026-11-20 12:01Z' AND received_at < '2026-11-20 12:02Z'"},
		"several":    {store.DeliveryFilter{Webhook: 2, Verdict: store.VerdictUnreadable, Class: 4, Batch: 3}, "webhook_id = 2 AND verdict = 'unreadable' AND vendor_job_id IN (SELECT vendor_job_id FROM jobs WHERE batch_id = 3)"},
	} {
		var want int64
		if err := s.SQL().QueryRowContext(t.Context(), "SELECT count(*) FROM deliveries WHERE "+tc.where).Scan(&want); err != nil || want == 0 {
			t.Fatalf("%s: %d, %v", name, want, err)
		}
		rows, err := s.PageDeliveries(t.Context(), tc.filter, store.Key{}, 1000)
		if int64(len(rows)) != want || err != nil {
			t.Errorf("%s: got %d rows, %v, want %d", name, len(rows), err, want)
		}
		if n, known, err := s.CountDeliveries(t.Context(), tc.filter); n != want || !known || err != nil {
			t.Errorf("%s: counted %d, %v, %v, want %d", name, n, known, err, want)
		}
	}
}

// TestCountsOfDeliveriesStop at the limit, and when the database doesn't answer
// in time: then the number is not known.
func TestCountsOfDeliveriesStop(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fillLog(t, s, store.CountLimit+500)
	if n, known, err := s.CountLog(t.Context(), store.LogFilter{}); n != store.CountLimit+1 || !known || err != nil {
		t.Errorf("log: counted %d, %v, %v, want one more than the limit", n, known, err)
	}
	if n, known, err := s.CountDeliveries(t.Context(), store.DeliveryFilter{}); n != store.CountLimit+1 || !known || err != nil {
		t.Errorf("received: counted %d, %v, %v, want one more than the limit", n, known, err)
	}
	tx, err := s.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "LOCK TABLE delivery_log, deliveries"); err != nil {
		t.Fatal(err)
	}
	if n, known, err := s.CountLog(t.Context(), store.LogFilter{}); known || err != nil {
		t.Errorf("log, with the table locked: counted %d, %v, want it not known", n, err)
	}
	if n, known, err := s.CountDeliveries(t.Context(), store.DeliveryFilter{}); known || err != nil {
		t.Errorf("received, with the table locked: counted %d, %v, want it not known", n, err)
	}
}

// rareFilters are filters that few of fillLog's rows fit, once most are alike.
func rareFilters(ctx context.Context, s *store.Store, from store.Key) map[string]func() error {
	return map[string]func() error{
		"webhook": func() error { _, err := s.PageLog(ctx, store.LogFilter{Webhook: 2}, from, 50); return err },
		"event": func() error {
			_, err := s.PageLog(ctx, store.LogFilter{Event: "batch_completed"}, from, 50)
			return err
		},
		"status":  func() error { _, err := s.PageLog(ctx, store.LogFilter{Status: "failed"}, from, 50); return err },
		"class":   func() error { _, err := s.PageLog(ctx, store.LogFilter{Class: 5}, from, 50); return err },
		"http":    func() error { _, err := s.PageLog(ctx, store.LogFilter{HTTPStatus: 401}, from, 50); return err },
		"attempt": func() error { _, err := s.PageLog(ctx, store.LogFilter{Attempt: 3}, from, 50); return err },
		"job":     func() error { _, err := s.PageLog(ctx, store.LogFilter{Job: "vendor-99"}, from, 50); return err },
		"our job": func() error { _, err := s.PageLog(ctx, store.LogFilter{Job: "3"}, from, 50); return err },
		"refused": func() error {
			_, err := s.PageLog(ctx, store.LogFilter{Standing: store.StandingRefused}, from, 50)
			return err
		},
		"absent": func() error {
			_, err := s.PageLog(ctx, store.LogFilter{Standing: store.StandingAbsent}, from, 50)
			return err
		},
		"lost": func() error {
			_, err := s.PageLog(ctx, store.LogFilter{Standing: store.StandingLost}, from, 50)
			return err
		},
		"given up": func() error {
			_, err := s.PageLog(ctx, store.LogFilter{Standing: store.StandingGivenUp}, from, 50)
			return err
		},
		"in time": func() error {
			_, err := s.PageLog(ctx, store.LogFilter{From: noon(), Until: noon().Add(time.Minute)}, from, 50)
			return err
		},
		"count": func() error { _, _, err := s.CountLog(ctx, store.LogFilter{Status: "failed"}); return err },
		"received webhook": func() error {
			_, err := s.PageDeliveries(ctx, store.DeliveryFilter{Webhook: 2}, from, 50)
			return err
		},
		"received event": func() error {
			_, err := s.PageDeliveries(ctx, store.DeliveryFilter{Event: "batch_completed"}, from, 50)
			return err
		},
		"received class": func() error {
			_, err := s.PageDeliveries(ctx, store.DeliveryFilter{Class: 4}, from, 50)
			return err
		},
		"received status": func() error {
			_, err := s.PageDeliveries(ctx, store.DeliveryFilter{Status: 503}, from, 50)
			return err
		},
		"received job": func() error {
			_, err := s.PageDeliveries(ctx, store.DeliveryFilter{Job: "vendor-9"}, from, 50)
			return err
		},
		"received refused": func() error {
			_, err := s.PageDeliveries(ctx, store.DeliveryFilter{Verdict: store.VerdictRefused}, from, 50)
			return err
		},
		"received count": func() error { _, _, err := s.CountDeliveries(ctx, store.DeliveryFilter{Status: 401}); return err },
	}
}

// TestFiltersOfDeliveriesUseIndexes: a filter that few rows fit is answered by
// an index, never by going through a table or along the newest until some fit.
func TestFiltersOfDeliveriesUseIndexes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fillLog(t, s, 20_000)
	// What the filters look for is rare.
	exec(t, s, `UPDATE delivery_log SET status = 'success', http_status = 200, attempt = 1, webhook_id = 1, event_type = 'extract_completed', delivery_id = id WHERE id > 20`)
	exec(t, s, `UPDATE deliveries SET verdict = 'accepted', status = 200, webhook_id = 1, event_type = 'extract_completed' WHERE id > 20`)
	exec(t, s, "VACUUM ANALYZE")
	var statements []string
	watched := *s
	store.Watch(&watched, func(query string) { statements = append(statements, query) })
	from := store.Key{At: noon().Add(5 * time.Hour), ID: 18_000}
	ctx := t.Context()
	for name, run := range rareFilters(ctx, &watched, from) {
		statements = nil
		if err := run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, statement := range statements {
			if !strings.HasPrefix(statement, "SELECT") {
				continue
			}
			if plan := planOf(t, s, statement); wholeTable.MatchString(plan) || strings.Contains(plan, "Seq Scan on delivery_log") ||
				name != "in time" && (strings.Contains(plan, "delivery_log_newest_idx") || strings.Contains(plan, "deliveries_received_idx")) {
				t.Errorf("%s: %s\n%s", name, statement, plan)
			}
		}
	}
}

// TestMirrorLogIsNotOverwrittenByAnOlderReading, tells new rows from changed
// ones, and finds for each attempt the delivery that it is here.
func TestMirrorLogIsNotOverwrittenByAnOlderReading(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fillLog(t, s, 0)
	for i, d := range []store.Delivery{
		{Verdict: store.VerdictRefused, Status: 401}, {Verdict: store.VerdictAccepted, Status: 200}, {Verdict: store.VerdictRefused, Status: 401},
	} {
		exec(t, s, `INSERT INTO deliveries (webhook_id, received_at, verdict, status, vendor_delivery_id, headers, body, body_size) VALUES (1, $1, $2, $3, 'shared', '', '', 0)`,
			noon().Add(time.Duration(i)*time.Minute), string(d.Verdict), d.Status)
	}
	mirror := func(seen time.Duration, rows ...store.LogRow) string {
		t.Helper()
		added, changed := 0, 0
		for i := range rows {
			rows[i].WebhookID, rows[i].VendorID, rows[i].CreatedAt, rows[i].SeenAt = 1, "shared", noon().Add(time.Duration(rows[i].Attempt)*time.Minute), noon().Add(seen)
		}
		err := s.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
			var err error
			added, changed, err = tx.MirrorLog(ctx, rows)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(added, changed)
	}
	if got := mirror(time.Hour, store.LogRow{Attempt: 0, Status: "failed", HTTPStatus: new(401)}, store.LogRow{Attempt: 1, Status: "pending"}); got != "2 0" {
		t.Errorf("the first time: got %s", got)
	}
	if got := mirror(2*time.Hour, store.LogRow{Attempt: 1, Status: "success", HTTPStatus: new(200)}); got != "0 1" {
		t.Errorf("changed: got %s", got)
	}
	if got := mirror(time.Hour, store.LogRow{Attempt: 1, Status: "pending"}); got != "0 0" {
		t.Errorf("an older reading: got %s", got)
	}
	if got := mirror(3*time.Hour, store.LogRow{Attempt: 1, Status: "success", HTTPStatus: new(200)}, store.LogRow{Attempt: 2, Status: "failed", HTTPStatus: new(401)},
		store.LogRow{Attempt: 3, Status: "failed"}, store.LogRow{Attempt: 4, Status: "failed", HTTPStatus: new(502)}); got != "3 0" {
		t.Errorf("more: got %s", got)
	}
	rows, err := s.PageLog(t.Context(), store.LogFilter{}, store.Key{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows {
		at := "-"
		if row.Delivery != nil {
			at = row.Delivery.ReceivedAt.Sub(noon()).String()
		}
		got = append(got, fmt.Sprint(row.Attempt, " ", row.Standing, " ", at))
	}
	// Of several that were answered alike, the nearest in time; one without an
	// answer is none that another attempt notes.
	want := []string{"4 lost -", "3 lost -", "2 refused 2m0s", "1 received 1m0s", "0 refused 0s"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	mirrorTwice(t, s)
}

// mirrorTwice reads of one attempt that came twice: it is the delivery that came
// first, though the other is nearer in time, and both show it.
func mirrorTwice(t *testing.T, s *store.Store) {
	t.Helper()
	for id, d := range map[int]store.Verdict{101: store.VerdictAccepted, 102: store.VerdictDuplicate} {
		exec(t, s, `INSERT INTO deliveries (id, webhook_id, received_at, verdict, status, vendor_delivery_id, headers, body, body_size)
			OVERRIDING SYSTEM VALUE VALUES ($1, 1, $2, $3, 200, 'twice', '', '', 0)`, id, noon().Add(time.Duration(id)*time.Second), string(d))
	}
	line := store.LogRow{WebhookID: 1, VendorID: "twice", Attempt: 1, Status: "success", HTTPStatus: new(200), CreatedAt: noon().Add(103 * time.Second), SeenAt: noon().Add(time.Hour)}
	err := s.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
		_, _, err := tx.MirrorLog(ctx, []store.LogRow{line})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []int64{101, 102} {
		story, err := s.PageDelivery(t.Context(), id, 10)
		if err != nil || story.Attempt == nil || story.Attempt.DeliveryID == nil || *story.Attempt.DeliveryID != 101 {
			t.Errorf("delivery %d: got %+v, %v, want the line of the first", id, story, err)
		}
	}
}
