package store_test

import (
	"context"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// checkPlans looks for a whole table being read in the plan of every statement
// of some queries.
func checkPlans(t *testing.T, s *store.Store, queries map[string]func(*store.Store) error) {
	t.Helper()
	var statements []string
	watched := *s
	store.Watch(&watched, func(query string) { statements = append(statements, query) })
	for name, run := range queries {
		statements = nil
		if err := run(&watched); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, statement := range statements {
			if plan := planOf(t, s, statement); wholeTable.MatchString(plan) {
				t.Errorf("%s: %s\n%s", name, statement, plan)
			}
		}
	}
}

// TestForeignWalksWhole: foreign jobs are listed by time, those of one moment
// by their ids, with what was delivered of each.
func TestForeignWalksWhole(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	exec(t, s, `INSERT INTO processed_events (vendor_job_id, event_type, received_at, state)
		SELECT 'v' || g, 'extract_completed', timestamptz '2026-11-01' + (g / 40) * interval '1 min', CASE WHEN g % 10 = 0 THEN 'held' WHEN g % 2 = 0 THEN 'claimed' ELSE 'foreign' END
		FROM generate_series(1, 2000) g`)
	exec(t, s, `INSERT INTO deliveries (received_at, verdict, status, event_type, vendor_job_id, headers, body, body_size)
		SELECT now(), 'accepted', 200, 'extract_completed', 'v' || g % 100, '', 'x', 1 FROM generate_series(1, 300) g`)
	exec(t, s, "ANALYZE")
	ctx := t.Context()
	for state, want := range map[store.EventState]int{store.EventForeign: 1000, store.EventHeld: 200} {
		seen, from := map[string]store.EventRow{}, store.EventKey{}
		for {
			rows, err := s.PageEvents(ctx, state, from, 70)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 {
				break
			}
			for _, row := range rows {
				if _, twice := seen[row.VendorJobID]; twice || from.VendorJobID != "" && row.ReceivedAt.After(from.At) {
					t.Fatalf("%s is shown twice or out of order", row.VendorJobID)
				}
				seen[row.VendorJobID], from = row, store.EventKey{At: row.ReceivedAt, VendorJobID: row.VendorJobID}
			}
		}
		if n, err := s.CountEvents(ctx, state); len(seen) != want || n != int64(want) || err != nil {
			t.Errorf("%s: got %d listed and %d counted, %v, want %d", state, len(seen), n, err, want)
		}
		if state == store.EventForeign && (seen["v7"].Deliveries != 3 || seen["v7"].DeliveryID == 0 || seen["v777"].DeliveryID != 0) {
			t.Errorf("deliveries: got %+v and %+v, want three and none", seen["v7"], seen["v777"])
		}
	}
	checkPlans(t, s, map[string]func(*store.Store) error{
		"foreign": func(w *store.Store) error {
			_, err := w.PageEvents(ctx, store.EventForeign, store.EventKey{At: time.Now(), VendorJobID: "v1"}, 50)
			return err
		},
		"held": func(w *store.Store) error {
			_, err := w.PageEvents(ctx, store.EventHeld, store.EventKey{}, 50)
			return err
		},
		"count": func(w *store.Store) error { _, err := w.CountEvents(ctx, store.EventForeign); return err },
	})
}

// TestFailuresByBatchAndHost: both filters, alone and together, by index.
func TestFailuresByBatchAndHost(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	fill(t, s)
	exec(t, s, `UPDATE items SET url = 'HTTPS://Shop.example:8443/' || id WHERE state = 'failed' AND batch_id % 100 = 7`)
	exec(t, s, "ANALYZE items")
	ctx := t.Context()
	for name, tc := range map[string]struct {
		filter store.Failed
		want   int
	}{
		"batch":                {store.Failed{BatchID: 7}, 5},
		"host":                 {store.Failed{Host: "shop.example"}, 100},
		"host and code":        {store.Failed{Host: "shop.example", Code: "TIMEOUT"}, 40},
		"all three":            {store.Failed{Host: "shop.example", Code: "TIMEOUT", BatchID: 107}, 2},
		"a part of a host":     {store.Failed{Host: "shop"}, 0},
		"a host of no failure": {store.Failed{Host: "b.example", BatchID: 7}, 0},
	} {
		got := walkList(t, func(ctx context.Context, from store.Key) ([]store.Key, error) {
			rows, err := s.PageFailures(ctx, tc.filter, from, 7)
			return keys(rows, func(r store.FailureRow) store.Key { return store.Key{At: *r.EndedAt, ID: r.ID} }), err
		})
		if n, err := s.CountFailed(ctx, tc.filter, 1000); got != tc.want || n != int64(tc.want) || err != nil {
			t.Errorf("%s: got %d listed and %d counted, %v, want %d", name, got, n, err, tc.want)
		}
	}
	if n, err := s.CountFailed(ctx, store.Failed{}, 300); n != 301 || err != nil {
		t.Errorf("more than counted: got %d, %v, want one more than the limit", n, err)
	}
	checkPlans(t, s, map[string]func(*store.Store) error{
		"batch": func(w *store.Store) error {
			_, err := w.PageFailures(ctx, store.Failed{BatchID: 7}, store.Key{}, 50)
			return err
		},
		"host": func(w *store.Store) error {
			_, err := w.PageFailures(ctx, store.Failed{Host: "shop.example"}, store.Key{}, 50)
			return err
		},
		"count": func(w *store.Store) error {
			_, err := w.CountFailed(ctx, store.Failed{Host: "shop.example"}, 20_000)
			return err
		},
		"again": func(w *store.Store) error { _, err := w.PageAgain(ctx, []int64{4, 8}, time.Now(), 100); return err },
		"all again": func(w *store.Store) error {
			_, err := w.PageAgainMatching(ctx, store.Failed{BatchID: 7}, 20_000, 100)
			return err
		},
	})
}

// TestAgain: what sending again comes to, by the kind of job that each item had.
func TestAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx := t.Context()
	root := s.id("SELECT min(id) FROM items")
	page := s.page(seedURL+"page", seedURL, 2)
	other := s.id(`INSERT INTO batches (name, kind, options, created_at, submitted, accepted) VALUES ('list', 'batch', '{}', now(), 5, 5) RETURNING id`)
	job := s.id(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at)
		VALUES ($1, 'batch', 'settled', 'submit', '\x00', 5, now()) RETURNING id`, other)
	exec(t, s.Store, `INSERT INTO items (batch_id, position, url, url_hash, current_job_id, created_at)
		SELECT $1, g, 'https://b.example/' || g, '\x00', $2, now() FROM generate_series(1, 5) g`, other, job)
	exec(t, s.Store, `UPDATE items SET state = 'failed', error_code = CASE WHEN position = 1 THEN 'GAVE_UP' ELSE 'TIMEOUT' END, error_retryable = position > 1, ended_at = timestamptz '2026-11-01'`)
	var ids []int64
	for id := root; id <= page+5; id++ {
		ids = append(ids, id)
	}
	at := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	// The seed, its page, and five URLs in jobs of two.
	want := store.Again{Items: 7, Final: 2, Lost: 2, Seeds: 1, Limits: 500, Jobs: 5}
	if got, err := s.PageAgain(ctx, ids, at, 2); got != want || err != nil {
		t.Errorf("picked: got %+v, %v, want %+v", got, err, want)
	}
	if got, err := s.PageAgain(ctx, []int64{1 << 60}, at, 2); got != (store.Again{}) || err != nil {
		t.Errorf("nothing: got %+v, %v", got, err)
	}
	if got, err := s.PageAgainMatching(ctx, store.Failed{}, 100, 2); got != want || err != nil {
		t.Errorf("matching: got %+v, %v, want %+v", got, err, want)
	}
	exec(t, s.Store, `UPDATE items SET state = 'cancelled' WHERE id = $1`, page)
	exec(t, s.Store, `UPDATE items SET ended_at = timestamptz '2026-11-03' WHERE id = $1`, root)
	rows, err := s.PageEnded(ctx, ids, at)
	if err != nil || len(rows) != 6 || rows[0].ID != page {
		t.Errorf("ended by then: got %d, %v, want six without the seed", len(rows), err)
	}
	if got, err := s.PageAgain(ctx, ids, at, 2); err != nil || got.Items != 6 || got.Seeds != 0 {
		t.Errorf("by then: got %+v, %v, want the cancelled page and not the seed", got, err)
	}
}
