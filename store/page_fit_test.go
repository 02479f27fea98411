package store_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// fitRow is an item of the batch that the filters are tried on, as plain values.
type fitRow struct {
	id, position                int64
	state, net, code, host, url string
	resolved                    bool
	http, bytes, ms             int64 // Zero without a result.
	ended                       time.Time
}

// fitBatch makes a batch of many kinds of items and reads them back.
func fitBatch(t *testing.T, s *store.Store) []fitRow {
	t.Helper()
	exec(t, s, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted) VALUES ('b', 'batch', '{}', now(), 400, 400), ('other', 'batch', '{}', now(), 1, 1)`)
	exec(t, s, `INSERT INTO items (batch_id, position, url, url_hash, state, net, error_code, error_message, created_at, ended_at, resolved_at)
		SELECT CASE WHEN p = 400 THEN 2 ELSE 1 END, p, (ARRAY['https://A.example/p_', 'http://b.example:8080/100%-', 'https://c.example/Q?x=\'])[1 + p % 3] || p, '\x00', s,
			CASE WHEN s = 'stored' THEN (ARRAY['webhook', 'poll'])[1 + p % 2] END, CASE WHEN s = 'failed' THEN (ARRAY['TIMEOUT', 'NOT_FOUND'])[1 + p % 2] ELSE '' END,
			'after ' || p || ' ms', now(), CASE WHEN s <> 'outstanding' THEN timestamptz '2026-11-29 12:00+00' + p * interval '1 min' END,
			CASE WHEN s = 'failed' AND p % 5 = 0 THEN now() END
		FROM (SELECT p, (ARRAY['stored', 'failed', 'stored', 'outstanding', 'cancelled', 'stored', 'failed'])[1 + p % 7] AS s FROM generate_series(1, 400) p) x`)
	exec(t, s, `INSERT INTO results (item_id, net, stored_at, markdown, html, http_status, duration_ms)
		SELECT id, net, ended_at, convert_to(repeat('m', position % 50), 'UTF8'), CASE WHEN position % 2 = 0 THEN convert_to(repeat('h', position), 'UTF8') END,
			(ARRAY[200, 204, 404, 503])[1 + position % 4], position % 90 FROM items WHERE state = 'stored'`)
	rows, err := s.SQL().QueryContext(t.Context(), `SELECT i.id, i.position, i.state, coalesce(i.net, ''), i.error_code, i.host, i.url, i.resolved_at IS NOT NULL,
			coalesce(r.http_status, 0), coalesce(octet_length(r.markdown), 0) + coalesce(octet_length(r.html), 0), coalesce(r.duration_ms, 0),
			coalesce(i.ended_at, '0001-01-01 00:00+00')
		FROM items i LEFT JOIN results r ON r.item_id = i.id WHERE i.batch_id = 1 ORDER BY i.position`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []fitRow
	for rows.Next() {
		var r fitRow
		if err := rows.Scan(&r.id, &r.position, &r.state, &r.net, &r.code, &r.host, &r.url, &r.resolved, &r.http, &r.bytes, &r.ms, &r.ended); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if rows.Err() != nil || len(all) != 399 {
		t.Fatalf("%d items, %v", len(all), rows.Err())
	}
	return all
}

// fits says of a plain row what the filter says in SQL.
func (r *fitRow) fits(f *store.ItemFilter) bool {
	within := func(n, least, most int64) bool { return (least == 0 || n >= least) && (most == 0 || n <= most) }
	ofResult := f.HTTPStatus+f.HTTPClass > 0 || f.MinBytes+f.MaxBytes+f.MinMS+f.MaxMS > 0
	return (f.State == "" || r.state == string(f.State)) && (f.Net == "" || r.net == string(f.Net)) && (f.Code == "" || r.code == f.Code) &&
		(f.Host == "" || r.host == f.Host) && strings.Contains(strings.ToLower(r.url), strings.ToLower(f.URLPart)) &&
		(f.Standing == "" || r.state == "failed" && r.resolved == (f.Standing == store.FailureResolved)) &&
		(f.From.IsZero() || !r.ended.IsZero() && !r.ended.Before(f.From)) && (f.Until.IsZero() || !r.ended.IsZero() && r.ended.Before(f.Until)) &&
		(!ofResult || r.state == "stored") && (f.HTTPStatus == 0 || r.http == int64(f.HTTPStatus)) && (f.HTTPClass == 0 || r.http/100 == int64(f.HTTPClass)) &&
		within(r.bytes, f.MinBytes, f.MaxBytes) && within(r.ms, f.MinMS, f.MaxMS)
}

// anyFilter draws a filter of one to three parts.
func anyFilter(random *rand.Rand) store.ItemFilter {
	f := store.ItemFilter{Batch: 1}
	for range 1 + random.IntN(3) {
		switch random.IntN(10) {
		case 0:
			f.State = []store.ItemState{store.ItemStored, store.ItemFailed, store.ItemOutstanding, store.ItemCancelled}[random.IntN(4)]
		case 1:
			f.Net = []store.Net{store.NetWebhook, store.NetPoll, store.NetSync}[random.IntN(3)]
		case 2:
			f.Code = []string{"TIMEOUT", "NOT_FOUND", "x'"}[random.IntN(3)]
		case 3:
			f.Host = []string{"a.example", "b.example", "c.example"}[random.IntN(3)]
		case 4:
			f.URLPart = []string{"P_1", "100%-", "_", `\`, "EXAMPLE/q", "9"}[random.IntN(6)]
		case 5:
			f.HTTPStatus = []int{200, 404, 999}[random.IntN(3)]
		case 6:
			f.HTTPClass = 2 + random.IntN(4)
		case 7:
			f.MinBytes, f.MaxBytes = random.Int64N(60), random.Int64N(400)
		case 8:
			f.MinMS, f.MaxMS = random.Int64N(60), random.Int64N(90)
		case 9:
			f.Standing = store.FailureStandings()[random.IntN(2)]
			f.From = time.Date(2026, 11, 29, 12, random.IntN(300), 0, 0, time.UTC)
			f.Until = f.From.Add(time.Duration(random.IntN(300)) * time.Minute)
		}
	}
	return f
}

// TestItemFiltersAreWhatTheySay: whatever a filter asks, its pages hold together
// exactly the items that a plain look at all of them finds, once and in order,
// and it counts them.
func TestItemFiltersAreWhatTheySay(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	all := fitBatch(t, s)
	random := rand.New(rand.NewPCG(5, 18))
	some := 0
	for range 120 {
		f := anyFilter(random)
		var want, got []int64
		for i := range all {
			if all[i].fits(&f) {
				want = append(want, all[i].id)
			}
		}
		for after := -1; ; {
			page, err := s.PageFitItems(t.Context(), f, after, 70)
			if err != nil {
				t.Fatalf("%+v: %v", f, err)
			}
			for i := range page.Rows {
				got, after = append(got, page.Rows[i].ID), page.Rows[i].Position
			}
			if len(page.Rows) < 70 {
				break
			}
		}
		if len(want) > 0 {
			some++
		}
		if n, err := s.CountFitItems(t.Context(), f); n != int64(len(want)) || err != nil {
			t.Errorf("%+v: counted %d, %v, want %d", f, n, err, len(want))
		}
		if !equal(got, want) {
			t.Errorf("%+v: got %v, want %v", f, got, want)
		}
	}
	if some < 60 {
		t.Errorf("only %d of the filters found anything", some)
	}
}

func equal(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestALookAtItemsEnds: a filter that fits next to nothing looks at so many
// items and says how far it came; going on from there misses nothing.
func TestALookAtItemsEnds(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	exec(t, s, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted) VALUES ('b', 'batch', '{}', now(), 60000, 60000)`)
	exec(t, s, `INSERT INTO items (batch_id, position, url, url_hash, created_at)
		SELECT 1, p, 'https://a.example/' || CASE WHEN p = 59000 THEN 'needle' ELSE 'hay' END, '\x00', now() FROM generate_series(1, 60000) p`)
	f := store.ItemFilter{Batch: 1, URLPart: "NEEDLE"}
	looks, after := 0, -1
	for {
		page, err := s.PageFitItems(t.Context(), f, after, 51)
		if err != nil {
			t.Fatal(err)
		}
		looks++
		if len(page.Rows) == 1 && page.Looked == 0 && looks == 3 {
			break
		}
		if page.Looked != f.Look() || page.LookedTo <= after || looks > 3 {
			t.Fatalf("look %d: got %+v", looks, page)
		}
		after = page.LookedTo
	}
	checkPlans(t, s, map[string]func(*store.Store) error{
		"fit": func(w *store.Store) error {
			_, err := w.PageFitItems(t.Context(), store.ItemFilter{Batch: 1, HTTPStatus: 404, URLPart: "x"}, 3, 51)
			return err
		},
	})
}
