package store_test

import (
	"context"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// locking is one statement that locks jobs or items to move them. It reports
// whether it found its row.
type locking struct {
	name string
	job  store.JobState
	item store.ItemState
	run  func(ctx context.Context, tx store.Tx, job, item int64) (bool, error)
}

// TestMovesDoNotWaitForThoseWhoOnlyRefer: whoever writes a row that refers to a
// job or an item, an event say, holds its key until the commit. Moves that
// waited for that would deadlock with one that then moves the row itself.
func TestMovesDoNotWaitForThoseWhoOnlyRefer(t *testing.T) {
	t.Parallel()
	for _, m := range append(lockingJobs(), lockingItems()...) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			job := oneJob(t, s, m.job)
			item := one(t, s, `SELECT item_id FROM job_items WHERE job_id = $1`, job)
			exec(t, s, `UPDATE items SET state = $2, ended_at = CASE WHEN $2 <> 'outstanding' THEN now() END, error_code = 'X' WHERE id = $1`, item, string(m.item))
			inTx(t, s, func(ctx context.Context, refers store.Tx) error {
				if _, err := refers.SQL().ExecContext(ctx, `WITH j AS (SELECT FROM jobs WHERE id = $1 FOR KEY SHARE),
					i AS (SELECT FROM items WHERE id = $2 FOR KEY SHARE) SELECT (SELECT count(*) FROM j), (SELECT count(*) FROM i)`, job, item); err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				return s.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
					found, err := m.run(ctx, tx, job, item)
					if err == nil && !found {
						t.Error("the row was not found")
					}
					return err
				})
			})
		})
	}
}

func lockingJobs() []locking {
	now := time.Now()
	ids := func(got []int64, err error) (bool, error) { return len(got) == 1, err }
	return []locking{
		{"WakeJobs", store.JobAccepted, store.ItemOutstanding, func(ctx context.Context, tx store.Tx, job, _ int64) (bool, error) {
			return ids(tx.WakeJobs(ctx, []int64{job}, store.NetReplay))
		}},
		{"WakeByWebhook", store.JobAccepted, store.ItemOutstanding, func(ctx context.Context, tx store.Tx, job, _ int64) (bool, error) {
			return ids(tx.WakeByWebhook(ctx, []int64{job}, now))
		}},
		{"WakeDue", store.JobAccepted, store.ItemOutstanding, func(ctx context.Context, tx store.Tx, _, _ int64) (bool, error) {
			due, err := tx.WakeDue(ctx, now, now.Add(time.Hour), 100)
			return len(due) > 0, err
		}},
		{"WakeListed", store.JobAccepted, store.ItemOutstanding, func(ctx context.Context, tx store.Tx, job, _ int64) (bool, error) {
			return ids(tx.WakeListed(ctx, []int64{job}, now, now.Add(time.Hour)))
		}},
		{"FlagJobs", store.JobCalling, store.ItemOutstanding, func(ctx context.Context, tx store.Tx, job, _ int64) (bool, error) {
			got, err := tx.FlagJobs(ctx, store.Scope{JobIDs: []int64{job}}, 0, 10, now)
			return len(got) == 1, err
		}},
		{"WithdrawJobs", store.JobIntended, store.ItemOutstanding, func(ctx context.Context, tx store.Tx, job, _ int64) (bool, error) {
			got, err := tx.WithdrawJobs(ctx, store.Scope{JobIDs: []int64{job}}, "x", 10, now)
			return len(got) == 1, err
		}},
		{"PollSoon", store.JobAccepted, store.ItemOutstanding, func(ctx context.Context, tx store.Tx, _, _ int64) (bool, error) {
			n, err := tx.PollSoon(ctx, now, now.Add(-time.Hour), time.Second, 1000)
			return n > 0, err
		}},
		{"SettleJob", store.JobAccepted, store.ItemOutstanding, func(ctx context.Context, tx store.Tx, job, _ int64) (bool, error) {
			return tx.SettleJob(ctx, job, store.NetPoll, time.Time{}, now)
		}},
	}
}

func lockingItems() []locking {
	now := time.Now()
	return []locking{
		{"StoreItems", store.JobAccepted, store.ItemFailed, func(ctx context.Context, tx store.Tx, job, item int64) (bool, error) {
			_, stored, err := tx.StoreItems(ctx, job, store.NetPoll, []*store.Result{{ItemID: item, JobID: &job, Net: store.NetPoll, StoredAt: now}}, now)
			return stored[item], err
		}},
		{"FailItems", store.JobAccepted, store.ItemOutstanding, func(ctx context.Context, tx store.Tx, job, item int64) (bool, error) {
			got, err := tx.FailItems(ctx, job, []store.Ending{{ItemID: item, Code: "X"}}, now)
			return len(got) == 1, err
		}},
		{"CancelItemsOf", store.JobWithdrawn, store.ItemOutstanding, func(ctx context.Context, tx store.Tx, job, _ int64) (bool, error) {
			got, err := tx.CancelItemsOf(ctx, []int64{job}, "X", "x", now)
			return len(got) == 1, err
		}},
		{"LockEnded", store.JobSettled, store.ItemFailed, func(ctx context.Context, tx store.Tx, _, item int64) (bool, error) {
			got, err := tx.LockEnded(ctx, []int64{item}, store.AsPlanned{})
			return len(got) == 1, err
		}},
		{"MoveItems", store.JobSplit, store.ItemOutstanding, func(ctx context.Context, tx store.Tx, job, item int64) (bool, error) {
			_, err := tx.SQL().ExecContext(ctx, `WITH n AS (INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at)
				SELECT batch_id, kind, 'intended', 'split', request_hash, 1, created_at FROM jobs WHERE id = $1 RETURNING id)
				INSERT INTO job_items (job_id, input_index, item_id) SELECT id, 0, $2 FROM n`, job, item)
			if err != nil {
				return false, err
			}
			var to int64
			if err := tx.SQL().QueryRowContext(ctx, `SELECT max(id) FROM jobs`).Scan(&to); err != nil {
				return false, err
			}
			n, err := tx.MoveItems(ctx, job, to, false)
			return n == 1, err
		}},
	}
}

// TestMovesOfOneRowAtOnceEachEnd: several ask for the same while the row is
// being updated. Each gets its turn, and nobody waits for one who waits.
func TestMovesOfOneRowAtOnceEachEnd(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, m := range map[string]struct {
		state store.JobState
		run   func(ctx context.Context, tx store.Tx, job int64) error
	}{
		"FlagJobs": {store.JobAccepted, func(ctx context.Context, tx store.Tx, job int64) error {
			_, err := tx.FlagJobs(ctx, store.Scope{JobIDs: []int64{job}}, 0, 10, now)
			return err
		}},
		"WithdrawJobs": {store.JobIntended, func(ctx context.Context, tx store.Tx, job int64) error {
			_, err := tx.WithdrawJobs(ctx, store.Scope{JobIDs: []int64{job}}, "x", 10, now)
			return err
		}},
		"CancelItemsOf": {store.JobWithdrawn, func(ctx context.Context, tx store.Tx, job int64) error {
			_, err := tx.CancelItemsOf(ctx, []int64{job}, "X", "x", now)
			return err
		}},
		"WakeByWebhook": {store.JobAccepted, func(ctx context.Context, tx store.Tx, job int64) error {
			_, err := tx.WakeByWebhook(ctx, []int64{job}, now)
			return err
		}},
		"StoreItems": {store.JobAccepted, func(ctx context.Context, tx store.Tx, job int64) error {
			_, _, err := tx.StoreItems(ctx, job, store.NetPoll, itemOf(job), now)
			return err
		}},
		"FailItems": {store.JobAccepted, func(ctx context.Context, tx store.Tx, job int64) error {
			_, err := tx.FailItems(ctx, job, []store.Ending{{ItemID: itemOf(job)[0].ItemID, Code: "X"}}, now)
			return err
		}},
		"MoveItems": {store.JobSplit, func(ctx context.Context, tx store.Tx, job int64) error {
			_, err := tx.MoveItems(ctx, job, job, true)
			return err
		}},
		"WakeJobs": {store.JobAccepted, func(ctx context.Context, tx store.Tx, job int64) error {
			_, err := tx.WakeJobs(ctx, []int64{job}, store.NetReplay)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			job := oneJob(t, s, m.state)
			const callers = 5
			ended := make(chan error, callers)
			refers, err := s.SQL().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = refers.Rollback() }()
			if _, err := refers.ExecContext(t.Context(), `SELECT FROM jobs j JOIN items i ON i.current_job_id = j.id WHERE j.id = $1 FOR KEY SHARE`, job); err != nil {
				t.Fatal(err)
			}
			updates, err := s.SQL().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = updates.Rollback() }()
			if _, err := updates.ExecContext(t.Context(), `WITH j AS (UPDATE jobs SET polls = polls + 1 WHERE id = $1)
				UPDATE items SET retries = retries + 1 WHERE current_job_id = $1`, job); err != nil {
				t.Fatal(err)
			}
			for range callers {
				go func() {
					ended <- s.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error { return m.run(ctx, tx, job) })
				}()
			}
			for tick := time.NewTicker(5 * time.Millisecond); waiting(t, s) < callers; <-tick.C {
			}
			if err := updates.Commit(); err != nil {
				t.Fatal(err)
			}
			for range callers {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// itemOf is an answer for the one item of the one job of a new database.
func itemOf(job int64) []*store.Result {
	return []*store.Result{{ItemID: job, JobID: &job, Net: store.NetPoll, StoredAt: time.Now()}}
}

// waiting is how many transactions wait for another's lock.
func waiting(t *testing.T, s *store.Store) int64 {
	t.Helper()
	return one(t, s, `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database()`)
}
