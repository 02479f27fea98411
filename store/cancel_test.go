package store_test

import (
	"context"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// TestCancelOfALargeBatch names no more ids in a statement than in one of a
// smaller batch, and cancels all of it.
func TestCancelOfALargeBatch(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	const many = 2_500
	batch := one(t, s, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted) VALUES ('b', 'extract', '{}', now(), $1, $1) RETURNING id`, many)
	exec(t, s, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, call_no, lease_until)
		SELECT $1, 'extract', 'calling', 'submit', '\x00', 1, now(), 1, now() FROM generate_series(1, $2::int)`, batch, many)
	exec(t, s, `INSERT INTO items (batch_id, position, url, url_hash, state, current_job_id, created_at)
		SELECT batch_id, id, 'https://a.example/' || id, '\x00', 'outstanding', id, now() FROM jobs`)
	job := one(t, s, `SELECT min(id) FROM jobs`)
	exec(t, s, `UPDATE items SET current_job_id = $1`, job)
	longest := 0
	watched := *s
	store.Watch(&watched, func(query string) { longest = max(longest, len(query)) })
	inTx(t, &watched, func(ctx context.Context, tx store.Tx) error {
		flagged, after := 0, int64(0)
		for some := []store.FlaggedJob{{}}; len(some) > 0; {
			var err error
			if some, err = tx.FlagJobs(ctx, store.Scope{BatchID: batch}, after, 1000, time.Now()); err != nil {
				return err
			}
			flagged += len(some)
			for _, j := range some {
				after = j.ID
			}
		}
		ended, err := tx.CancelItemsOf(ctx, []int64{job}, "X", "x", time.Now())
		if flagged != many || ended[batch] != many {
			t.Errorf("%d jobs are flagged and %d items ended, want %d of each", flagged, ended[batch], many)
		}
		return err
	})
	if longest > 8_000 {
		t.Errorf("a statement of %d characters", longest)
	}
}
