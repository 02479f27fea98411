package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// groupsOf makes failures of a batch: n of each code at a host, with a message
// that differs in each.
func groupsOf(t *testing.T, s *store.Store, batch, first, n int, code, host, message string) {
	t.Helper()
	exec(t, s, `INSERT INTO items (batch_id, position, url, url_hash, state, error_code, error_message, created_at, ended_at)
		SELECT $1, g, 'https://' || $5 || '/' || g, '\x00', 'failed', $4, replace($6, '@', g::text), now(), timestamptz '2026-11-29 12:00+00' + g * interval '1 s'
		FROM generate_series($2::int, $2::int + $3::int - 1) g`, batch, first, n, code, host, message)
}

func TestFailureGroups(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	exec(t, s, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted) SELECT 'b', 'batch', '{}', now(), 99999, 99999 FROM generate_series(1, 2)`)
	groupsOf(t, s, 1, 1, 30, "TIMEOUT", "a.example", "Timed out after @ ms in job_9f@c1b7, see https://vendor.example/e/@")
	groupsOf(t, s, 1, 101, 20, "TIMEOUT", "b.example", "Timed out after @ ms in job_9f@c1b7, see https://vendor.example/e/@")
	groupsOf(t, s, 1, 201, 10, "HTTP", "a.example", "status 503")
	groupsOf(t, s, 2, 1, 12, "HTTP", "a.example", "status 404")
	groupsOf(t, s, 2, 101, 5, "TIMEOUT", "a.example", "Timed out after @ ms in job_9f@c1b7, see https://vendor.example/e/@")
	all, err := s.PageFailureGroups(t.Context(), store.Failed{Standing: store.FailureWaiting}, 3)
	if err != nil || len(all.Groups) != 3 || all.Others != 1 || all.Looked != 77 || all.Cut {
		t.Fatalf("got %+v, %v", all, err)
	}
	first := all.Groups[0]
	if first.Count != 35 || first.Code != "TIMEOUT" || first.Host != "a.example" || first.Message != "Timed out after # ms in #, see <url>" ||
		first.Last.Sub(first.First) != 104*time.Second {
		t.Errorf("the largest group: got %+v", first)
	}
	if all.Groups[1].Host != "b.example" || all.Groups[2].Message != "status 404" {
		t.Errorf("got %+v: hosts and statuses are no mere numbers", all.Groups[1:])
	}
	of := store.Failed{BatchID: 1, Group: first.Key, Standing: store.FailureWaiting}
	ids, err := s.FailedItems(t.Context(), of, 100)
	if err != nil || len(ids) != 30 {
		t.Fatalf("the batch's own: got %d, %v, want 30", len(ids), err)
	}
	resolveSome(t, s, ids, of)
	checkPlans(t, s, map[string]func(*store.Store) error{
		"groups": func(w *store.Store) error {
			_, err := w.PageFailureGroups(t.Context(), store.Failed{Standing: store.FailureWaiting}, 50)
			return err
		},
		"one group": func(w *store.Store) error {
			_, err := w.FailedItems(t.Context(), store.Failed{Group: first.Key}, 100)
			return err
		},
	})
}

// resolveSome puts failures aside and back: they leave what waits, stay failed,
// and a later failure of the same item is not the one that was resolved.
func resolveSome(t *testing.T, s *store.Store, ids []int64, of store.Failed) {
	t.Helper()
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	exec(t, s, `UPDATE items SET ended_at = '2026-12-24' WHERE id = $1`, ids[0])
	resolve := func() []store.Resolved {
		var done []store.Resolved
		inTx(t, s, func(ctx context.Context, tx store.Tx) error {
			var err error
			done, err = tx.Resolve(ctx, ids[:11], "gone \x00for good", now, now)
			return err
		})
		return done
	}
	if done := resolve(); len(done) != 10 || slices.Contains(idsResolved(done), ids[0]) {
		t.Fatalf("resolved %v, want ten, without the one that failed later", done)
	}
	if done := resolve(); len(done) != 0 {
		t.Errorf("a second time resolved %v", done)
	}
	counts := func(want ...int64) {
		t.Helper()
		for i, standing := range []store.FailureStanding{store.FailureWaiting, store.FailureResolved, ""} {
			of.Standing = standing
			if n, err := s.CountFailed(t.Context(), of, 1000); n != want[i] || err != nil {
				t.Errorf("%q: got %d, %v, want %d", standing, n, err, want[i])
			}
		}
	}
	counts(20, 10, 30)
	if n := one(t, s, `SELECT count(*) FROM items WHERE state = 'failed' AND resolved_note LIKE 'gone %for good' AND resolved_at = '2026-11-30 00:00+00'`); n != 10 {
		t.Errorf("%d carry the note, want 10", n)
	}
	inTx(t, s, func(ctx context.Context, tx store.Tx) error {
		done, err := tx.Unresolve(ctx, ids)
		if len(done) != 10 {
			t.Errorf("put back %v, want ten", done)
		}
		return err
	})
	counts(30, 0, 30)
}

func idsResolved(rows []store.Resolved) []int64 {
	var ids []int64
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}

// TestFailureGroupsBeyondTheLook: with more failures than one look goes
// through, groups are of the newest and say so, and count all of theirs.
func TestFailureGroupsBeyondTheLook(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	exec(t, s, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted) VALUES ('b', 'batch', '{}', now(), 99999, 99999)`)
	groupsOf(t, s, 1, 1, 500, "OLD", "a.example", "only older ones")
	groupsOf(t, s, 1, 1001, 3000, "BOTH", "a.example", "item @")
	groupsOf(t, s, 1, 5001, 10_400, "MANY", "a.example", "item @")
	exec(t, s, `UPDATE items SET ended_at = timestamptz '2026-11-30' WHERE error_code = 'BOTH' AND position > 3900`)
	got, err := s.PageFailureGroups(t.Context(), store.Failed{BatchID: 1, Standing: store.FailureWaiting}, 50)
	if err != nil || !got.Cut || got.Looked != 10_000 || len(got.Groups) != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if many, both := got.Groups[0], got.Groups[1]; many.Count != store.CountLimit+1 || both.Count != 3000 || !both.First.Equal(time.Date(2026, 11, 29, 12, 16, 41, 0, time.UTC)) {
		t.Errorf("got %+v", got.Groups)
	}
}
