package store_test

import (
	"testing"

	"rollcall/store"
	"rollcall/store/storetest"
)

// TestLooksForExportsAreBounded: what is weighed or walked for an export looks at
// so many items at a time, by an index, however few fit; the looks together find
// all that fit, once; and what a look doesn't tell is said to be unknown.
func TestLooksForExportsAreBounded(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	exec(t, s, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted, stored_poll) VALUES ('b', 'batch', '{}', now(), 26000, 26000, 6000)`)
	exec(t, s, `INSERT INTO items (batch_id, position, url, url_hash, created_at, state, net, ended_at)
		SELECT 1, p, 'https://a.example/' || CASE WHEN p % 12990 = 3 THEN 'needle' ELSE 'hay' END, '\x00', now(),
			CASE WHEN p <= 6000 THEN 'stored' ELSE 'outstanding' END, CASE WHEN p <= 6000 THEN 'poll' END, CASE WHEN p <= 6000 THEN now() END
		FROM generate_series(1, 26000) p`)
	exec(t, s, `INSERT INTO results (item_id, net, stored_at, markdown, http_status)
		SELECT id, 'poll', now(), '1234567890', CASE WHEN position % 5999 = 1 THEN 404 ELSE 200 END FROM items WHERE position <= 6000`)
	exec(t, s, "ANALYZE")
	parts := store.ExportParts{Markdown: true}
	for name, test := range map[string]struct {
		filter store.ItemFilter
		fit    int
		size   store.ExportWeight
		looks  int
	}{
		"a batch":       {store.ItemFilter{Batch: 1}, 26_000, store.ExportWeight{Rows: 26_000, Known: true, Bytes: 260_000}, 2},
		"a state":       {store.ItemFilter{Batch: 1, State: store.ItemStored}, 6000, store.ExportWeight{Rows: 6000, Known: true, Bytes: 60_000}, 1},
		"a needle":      {store.ItemFilter{Batch: 1, URLPart: "needle"}, 3, store.ExportWeight{Rows: 2, Bytes: 10}, 2},
		"of all":        {store.ItemFilter{URLPart: "needle"}, 3, store.ExportWeight{Rows: 2, Bytes: 10}, 2},
		"of a result":   {store.ItemFilter{Batch: 1, HTTPStatus: 404}, 2, store.ExportWeight{Rows: 1, Bytes: 10}, 6},
		"all looked at": {store.ItemFilter{Batch: 1, State: store.ItemStored, URLPart: "needle"}, 1, store.ExportWeight{Rows: 1, Known: true, Bytes: 10}, 1},
		"nothing":       {store.ItemFilter{Batch: 1, State: store.ItemFailed, URLPart: "x"}, 0, store.ExportWeight{Known: true}, 1},
	} {
		if got, err := s.ExportSize(t.Context(), test.filter, parts); err != nil || got != test.size {
			t.Errorf("%s: weighed %+v, %v, want %+v", name, got, err, test.size)
		}
		if found, looks := walkExport(t, s, test.filter, parts); found != test.fit || looks != test.looks {
			t.Errorf("%s: found %d in %d looks, want %d in %d", name, found, looks, test.fit, test.looks)
		}
		checkPlans(t, s, map[string]func(*store.Store) error{
			name + ", weighed": func(w *store.Store) error { _, err := w.ExportSize(t.Context(), test.filter, parts); return err },
			name + ", reach": func(w *store.Store) error {
				_, _, err := w.ExportReach(t.Context(), test.filter, store.ExportKey{})
				return err
			},
			name + ", walked": func(w *store.Store) error {
				_, err := w.ExportItems(t.Context(), test.filter, parts, store.ExportKey{}, store.ExportKey{ID: 9, Position: 9}, 500)
				return err
			},
		})
	}
	checkPlans(t, s, map[string]func(*store.Store) error{
		"compared": func(w *store.Store) error {
			_, err := w.PageCompared(t.Context(), 1, store.ComparedChanged, 3, 51)
			return err
		},
	})
}

// walkExport goes through all that fits, and counts the looks.
func walkExport(t *testing.T, s *store.Store, f store.ItemFilter, parts store.ExportParts) (int, int) {
	t.Helper()
	seen, looks := map[int64]bool{}, 0
	for at, more := (store.ExportKey{}), true; more; looks++ {
		var reach store.ExportKey
		var err error
		if reach, more, err = s.ExportReach(t.Context(), f, at); err != nil {
			t.Fatal(err)
		}
		for {
			items, err := s.ExportItems(t.Context(), f, parts, at, reach, 3000)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range items {
				if seen[item.ID] {
					t.Fatalf("item %d is listed twice", item.ID)
				}
				seen[item.ID] = true
				at = item.ExportKey
			}
			if len(items) < 3000 {
				break
			}
		}
		at = reach
	}
	return len(seen), looks
}
