package store_test

import (
	"context"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// TestTurnToSweep goes to one at a time, when it is due, and passes on when its
// lease ends; who lost it can't end another's.
func TestTurnToSweep(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ctx, now := t.Context(), time.Now().UTC().Truncate(time.Microsecond)
	take := func(at time.Time) *store.ListSweep {
		t.Helper()
		turn, err := s.TakeSweep(ctx, store.KindExtract, at, at.Add(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return turn
	}
	first := take(now)
	if first == nil || take(now) != nil {
		t.Fatal("the turn went to two at once, or to none")
	}
	if kept, err := s.KeepSweep(ctx, store.KindExtract, first.Turn, now.Add(20*time.Second)); err != nil || !kept {
		t.Errorf("got %v, %v, want the lease to be made longer", kept, err)
	}
	if take(now.Add(15*time.Second)) != nil {
		t.Error("the turn passed on within its lease")
	}
	second := take(now.Add(20 * time.Second))
	if second == nil {
		t.Fatal("the turn did not pass on after its lease")
	}
	if kept, err := s.KeepSweep(ctx, store.KindExtract, first.Turn, now.Add(time.Hour)); err != nil || kept {
		t.Errorf("got %v, %v, want a lost turn not to be kept", kept, err)
	}
	if ended, err := s.EndSweep(ctx, first); err != nil || ended {
		t.Errorf("got %v, %v, want a lost turn not to be ended", ended, err)
	}
	next := now.Add(time.Minute)
	second.NextAt, second.EndedAt, second.Due, second.Failures, second.Note = &next, &now, 12, 2, "a\x00b"
	if ended, err := s.EndSweep(ctx, second); err != nil || !ended {
		t.Errorf("got %v, %v, want the turn ended", ended, err)
	}
	if take(next.Add(-time.Second)) != nil {
		t.Error("the turn was given before it was due")
	}
	third := take(next)
	if third == nil || third.Failures != 2 {
		t.Errorf("got %+v, want the next turn to know of the failures", third)
	}
	if got, err := s.Sweep(ctx, store.KindExtract); err != nil || got.Due != 12 || got.LeaseUntil == nil {
		t.Errorf("got %+v, %v, want the last turn's figures", got, err)
	}
}

// TestPollSingly while few extract jobs are due, or while the list is of no use.
func TestPollSingly(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	now := time.Now().UTC()
	want := func(singly bool) {
		t.Helper()
		if got, err := s.PollSingly(t.Context(), now, 3); err != nil || got != singly {
			t.Errorf("got %v, %v, want %v", got, err, singly)
		}
	}
	want(true)
	exec(t, s, `INSERT INTO batches (name, kind, options, created_at) VALUES ('b', 'extract', '{}', now())`)
	exec(t, s, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, accepted_at, next_poll_at, vendor_job_id)
		SELECT 1, CASE WHEN n <= 3 THEN 'extract' ELSE 'batch' END, 'accepted', 'submit', '', 1, now(), now(), now() - interval '1 min', 'v' || n
		FROM generate_series(1, 9) n`)
	want(false)
	exec(t, s, `UPDATE list_sweeps SET singly_until = now() + interval '1 min'`)
	want(true)
	exec(t, s, `UPDATE list_sweeps SET singly_until = now() - interval '1 min'`)
	want(false)
	var woken []int64
	inTx(t, s, func(ctx context.Context, tx store.Tx) error {
		var err error
		woken, err = tx.WakeDueOthers(ctx, now, now.Add(time.Minute), 100)
		return err
	})
	if len(woken) != 6 {
		t.Errorf("got %d woken, want all but the extract jobs", len(woken))
	}
	exec(t, s, `UPDATE jobs SET next_poll_at = now() + interval '1 min' WHERE id = 1`)
	want(true)
}
