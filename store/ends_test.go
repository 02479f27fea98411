package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// twoCrawls is a batch whose seed was sent again while its first crawl still
// ran: the first job has nothing left to say, the second the given items.
func twoCrawls(t *testing.T, s *store.Store, outstanding int) (int64, []int64) {
	t.Helper()
	var jobs []int64
	batch := one(t, s, `INSERT INTO batches (name, kind, options, created_at, submitted, accepted, failed)
		VALUES ('c', 'crawl', '{}', now(), 1, 1, $1) RETURNING id`, 1-outstanding)
	for i := range 2 {
		jobs = append(jobs, one(t, s, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id)
			VALUES ($1, 'crawl', 'accepted', 'submit', '\x01', 1, now(), $2) RETURNING id`, batch, fmt.Sprint("vendor-", i)))
	}
	return batch, jobs
}

// TestTwoCrawlsThatEndTogetherEndTheirBatch: neither transaction sees that the
// other's crawl has ended, since neither has committed; yet whoever comes second
// must end the batch.
func TestTwoCrawlsThatEndTogetherEndTheirBatch(t *testing.T) {
	t.Parallel()
	now := time.Now()
	end := func(ctx context.Context, tx store.Tx, batch int64) error { return tx.EndBatch(ctx, batch, now) }
	count := func(ctx context.Context, tx store.Tx, batch int64) error {
		return tx.AddCounts(ctx, batch, store.Counts{Net: store.NetPoll, Failed: 1}, now)
	}
	type last = func(context.Context, store.Tx, int64) error
	for name, c := range map[string]struct {
		outstanding   int
		first, second last
	}{
		"neither has an item left": {0, end, end},
		"the first has":            {1, count, end},
		"the second has":           {1, end, count},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			batch, jobs := twoCrawls(t, s, c.outstanding)
			ended := make(chan error, 1)
			inTx(t, s, func(ctx context.Context, tx store.Tx) error {
				if _, err := tx.SettleJob(ctx, jobs[0], store.NetPoll, time.Time{}, now); err != nil {
					return err
				}
				if err := c.first(ctx, tx, batch); err != nil {
					return err
				}
				settled := make(chan struct{})
				go func() {
					ended <- s.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
						_, err := tx.SettleJob(ctx, jobs[1], store.NetPoll, time.Time{}, now)
						close(settled)
						if err != nil {
							return err
						}
						return c.second(ctx, tx, batch)
					})
				}()
				<-settled
				return waits(t, s, ended) //nolint:contextcheck // It looks from outside the transaction.
			})
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if n := one(t, s, `SELECT count(*) FROM batches WHERE ended_at IS NOT NULL`); n != 1 {
				t.Error("both crawls are settled, nothing is outstanding, and the batch has not ended")
			}
		})
	}
}

// waits returns once a transaction waits for another's lock, or has ended.
func waits(t *testing.T, s *store.Store, ended chan error) error {
	t.Helper()
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		select {
		case err := <-ended:
			ended <- err
			return nil
		default:
		}
		if waiting(t, s) > 0 {
			return nil
		}
	}
}
