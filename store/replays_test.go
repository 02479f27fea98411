package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// seedLog makes a webhook, a batch of settled and open jobs, and log rows: of
// each eight one is a success, one names no job, one a job of somebody else, and
// the others failed, two for each of our jobs.
func seedLog(t *testing.T, s *store.Store, rows int) int64 {
	t.Helper()
	hook := one(t, s, `INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
		VALUES ('0123456789abcdef', 'extract_completed', 'https://a.example/', 'live', now(), now()) RETURNING id`)
	batch := one(t, s, `INSERT INTO batches (name, kind, options, created_at) VALUES ('b', 'mixed', '{}', now()) RETURNING id`)
	exec(t, s, `INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id, accepted_at)
		SELECT $1, CASE WHEN g % 100 = 0 THEN 'batch' ELSE 'extract' END, CASE WHEN g % 5 = 0 THEN 'settled' ELSE 'accepted' END,
			'submit', '\x01', CASE WHEN g % 100 = 0 THEN 120 ELSE 1 END, now(), 'v' || g, now() FROM generate_series(1, $2::int) g`, batch, rows/2)
	exec(t, s, `INSERT INTO delivery_log (webhook_id, vendor_id, attempt, event_type, vendor_job_id, status, created_at, seen_at)
		SELECT $1, 'd' || g, 1, 'extract_completed', CASE WHEN g % 8 = 1 THEN '' WHEN g % 8 = 2 THEN 'theirs' || g ELSE 'v' || g / 2 END,
			CASE WHEN g % 8 = 0 THEN 'success' ELSE 'failed' END, timestamptz '2026-11-28' + g * interval '1 s', now() FROM generate_series(2, $2::int) g`, hook, rows)
	exec(t, s, `ANALYZE jobs`)
	exec(t, s, `ANALYZE delivery_log`)
	return hook
}

// plan freezes picks into a new replay.
func plan(t *testing.T, s *store.Store, p store.ReplayPicks) (*store.Replay, store.Frozen) {
	t.Helper()
	r := &store.Replay{State: store.ReplayPlanned, Picked: "a test", PlannedBy: "alice", PlannedAt: time.Now()}
	var f store.Frozen
	inTx(t, s, func(ctx context.Context, tx store.Tx) error {
		if err := tx.InsertReplay(ctx, r); err != nil {
			return err
		}
		var err error
		f, err = tx.FreezeReplay(ctx, r.ID, p)
		return err
	})
	kept, err := s.Replay(t.Context(), r.ID)
	if err != nil || kept.Frozen != f {
		t.Fatalf("got %+v kept, %v, want %+v", kept, err, f)
	}
	return kept, f
}

// TestAllFailedOfFiftyThousandFreezes: done-when 2: the exact set, each job once,
// in one statement; and nothing that comes later is in it.
func TestAllFailedOfFiftyThousandFreezes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	const rows = 50_000
	hook := seedLog(t, s, rows)
	began := time.Now()
	r, f := plan(t, s, store.ReplayPicks{Log: &store.LogFilter{Webhook: hook, Status: "failed", From: time.Date(2026, 11, 28, 0, 0, 1, 0, time.UTC)}})
	t.Logf("froze %d jobs of %d lines in %s", f.Jobs, f.Lines, time.Since(began))
	if got := one(t, s, `SELECT count(*) FROM replay_jobs rj FULL JOIN (SELECT DISTINCT j.id FROM delivery_log l JOIN jobs j ON j.vendor_job_id = l.vendor_job_id
		WHERE l.status = 'failed') w ON w.id = rj.job_id WHERE rj.job_id IS NULL OR w.id IS NULL`); got != 0 {
		t.Errorf("%d jobs are in one set and not in the other", got)
	}
	if got := one(t, s, `SELECT count(*) FROM replay_jobs WHERE replay_id = $1`, r.ID); got != f.Jobs || f.Jobs < rows/4 {
		t.Errorf("got %d jobs frozen and %d counted", got, f.Jobs)
	}
	for what, pair := range map[string][2]int64{
		"lines":   {f.Lines, one(t, s, `SELECT count(*) FROM delivery_log WHERE status = 'failed'`)},
		"unnamed": {f.Unnamed, one(t, s, `SELECT count(*) FROM delivery_log WHERE status = 'failed' AND vendor_job_id = ''`)},
		"foreign": {f.ForeignJobs, one(t, s, `SELECT count(DISTINCT vendor_job_id) FROM delivery_log WHERE status = 'failed' AND vendor_job_id LIKE 'theirs%'`)},
		"settled": {f.SettledBefore, one(t, s, `SELECT count(*) FROM replay_jobs rj JOIN jobs j ON j.id = rj.job_id WHERE j.state = 'settled'`)},
		"calls":   {f.Calls, one(t, s, `SELECT sum(CASE WHEN j.kind = 'batch' THEN 3 ELSE 1 END) FROM replay_jobs rj JOIN jobs j ON j.id = rj.job_id WHERE j.state <> 'settled'`)},
		"refetch": {f.RefetchCalls, one(t, s, `SELECT sum(CASE WHEN j.kind = 'batch' THEN 3 ELSE 1 END) FROM replay_jobs rj JOIN jobs j ON j.id = rj.job_id WHERE j.state = 'settled'`)},
	} {
		if pair[0] != pair[1] || pair[1] == 0 {
			t.Errorf("%s: got %d, want %d", what, pair[0], pair[1])
		}
	}
	exec(t, s, `INSERT INTO delivery_log (webhook_id, vendor_id, attempt, vendor_job_id, status, created_at, seen_at)
		SELECT $1, 'late', 1, vendor_job_id, 'failed', timestamptz '2026-11-29', now() FROM jobs WHERE id NOT IN (SELECT job_id FROM replay_jobs) LIMIT 1`, hook)
	if got := one(t, s, `SELECT count(*) FROM replay_jobs WHERE replay_id = $1`, r.ID); got != f.Jobs {
		t.Errorf("got %d jobs after a later line, want %d still", got, f.Jobs)
	}
}

// TestPicksFreezeWhatTheyName: rows of either list and jobs, each job once; what
// a refused delivery says is verified before anybody believes it.
func TestPicksFreezeWhatTheyName(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	hook := seedLog(t, s, 80)
	vendor := func(id int64) string { return word(t, s, `SELECT vendor_job_id FROM jobs WHERE id = $1`, id) }
	job := func(vendorID string) int64 {
		return one(t, s, `SELECT id FROM jobs WHERE vendor_job_id = $1`, vendorID)
	}
	delivery := func(verdict, vendorID string) int64 {
		return one(t, s, `INSERT INTO deliveries (webhook_id, received_at, verdict, status, vendor_job_id, headers, body, body_size)
			VALUES ($1, now(), $2, 200, $3, '', '', 0) RETURNING id`, hook, verdict, vendorID)
	}
	accepted, refused, unreadable := delivery("accepted", vendor(job("v7"))), delivery("refused", "v8"), delivery("unreadable", "")
	delivery("refused", "v9")
	r, f := plan(t, s, store.ReplayPicks{
		LogRows:     []store.LogKey{{Webhook: hook, VendorID: "d12", Attempt: 1}, {Webhook: hook, VendorID: "d13", Attempt: 1}, {Webhook: hook, VendorID: "d99", Attempt: 1}},
		DeliveryIDs: []int64{accepted, refused, unreadable}, JobIDs: []int64{job("v7"), job("v20")},
	})
	if want := (store.Frozen{Lines: 7, Jobs: 3, SettledBefore: 1, Calls: 2, RefetchCalls: 1, Deliveries: 2}); f != want {
		t.Errorf("got %+v, want %+v", f, want)
	}
	if got, want := word(t, s, `SELECT string_agg(j.vendor_job_id, ' ' ORDER BY j.vendor_job_id) FROM replay_jobs rj JOIN jobs j ON j.id = rj.job_id WHERE rj.replay_id = $1`, r.ID), "v20 v6 v7"; got != want {
		t.Errorf("got jobs %s, want %s", got, want)
	}
	if _, all := plan(t, s, store.ReplayPicks{Received: &store.DeliveryFilter{Webhook: hook}}); all.Deliveries != 3 || all.Jobs != 1 || all.Lines != 4 {
		t.Errorf("all received: got %+v, want three to verify again and one job", all)
	}
	if _, none := plan(t, s, store.ReplayPicks{}); none != (store.Frozen{}) {
		t.Errorf("nothing picked: got %+v", none)
	}
}

// TestReplayMovesOnce: each move of a replay holds from where it may, and once.
func TestReplayMovesOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	now := time.Now()
	all := []store.ReplayState{store.ReplayPlanned, store.ReplayRunning, store.ReplayPaused, store.ReplayDone, store.ReplayCancelled}
	for _, m := range []struct {
		name string
		from []store.ReplayState
		to   store.ReplayState
		do   func(ctx context.Context, tx store.Tx, id int64) (bool, error)
	}{
		{"run", all[:1], store.ReplayRunning, func(ctx context.Context, tx store.Tx, id int64) (bool, error) {
			return tx.RunReplay(ctx, id, false, "bob", now)
		}},
		{"pause", all[1:2], store.ReplayPaused, func(ctx context.Context, tx store.Tx, id int64) (bool, error) { return tx.PauseReplay(ctx, id) }},
		{"resume", all[2:3], store.ReplayRunning, func(ctx context.Context, tx store.Tx, id int64) (bool, error) { return tx.ResumeReplay(ctx, id, now) }},
		{"cancel", all[:3], store.ReplayCancelled, func(ctx context.Context, tx store.Tx, id int64) (bool, error) { return tx.CancelReplay(ctx, id, now) }},
		{"done", all[1:2], store.ReplayDone, func(ctx context.Context, tx store.Tx, id int64) (bool, error) { return tx.DoneReplay(ctx, id, now) }},
	} {
		for _, from := range all {
			r, _ := plan(t, s, store.ReplayPicks{})
			exec(t, s, `UPDATE replays SET state = $2 WHERE id = $1`, r.ID, string(from))
			moved := 0
			inTx(t, s, func(ctx context.Context, tx store.Tx) error {
				for range 2 {
					ok, err := m.do(ctx, tx, r.ID)
					if err != nil {
						return err
					}
					if ok {
						moved++
					}
				}
				return nil
			})
			may, is := slices.Contains(m.from, from), store.ReplayState(word(t, s, `SELECT state FROM replays WHERE id = $1`, r.ID))
			if may && (moved != 1 || is != m.to) || !may && (moved != 0 || is != from) {
				t.Errorf("%s of a replay that is %s: moved %d times and is %s", m.name, from, moved, is)
			}
		}
	}
}

// TestOutcomesCountOnce: a job's outcome is written once, whoever comes with
// another, and the counters move with the rows.
func TestOutcomesCountOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	hook := seedLog(t, s, 160)
	r, f := plan(t, s, store.ReplayPicks{Log: &store.LogFilter{Webhook: hook}})
	now := time.Now()
	jobs, err := s.ReplayWaiting(t.Context(), r.ID, 1000)
	if err != nil || int64(len(jobs)) != f.Jobs {
		t.Fatalf("got %d jobs, %v, want %d", len(jobs), err, f.Jobs)
	}
	var ends []store.ReplayEnd
	outcomes := []store.ReplayOutcome{
		store.ReplaySettledNow, store.ReplayStillRunning, store.ReplayFailed, store.ReplayUnknown, store.ReplayError,
	}
	for i := range jobs {
		if jobs[i].JobState != store.JobSettled {
			ends = append(ends, store.ReplayEnd{JobID: jobs[i].JobID, Outcome: outcomes[len(ends)%5], Detail: "a \x00 detail"})
		}
	}
	inTx(t, s, func(ctx context.Context, tx store.Tx) error {
		if err := tx.BeginReplayJobs(ctx, r.ID, []int64{ends[0].JobID}, store.ReplayJobWoken, now); err != nil {
			return err
		}
		n, err := tx.EndSettledJobs(ctx, r.ID, 1000, now)
		if err == nil && int64(n) != f.SettledBefore {
			err = errors.New("not all that are settled were passed over")
		}
		for range 2 {
			err = errors.Join(err, tx.EndReplayJobs(ctx, r.ID, ends, now))
		}
		return err
	})
	got, err := s.Replay(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(len(ends))
	if got.AlreadySettled != f.SettledBefore || got.SettledNow != (n+4)/5 || got.StillRunning != (n+3)/5 || got.Failed != (n+2)/5 ||
		got.UnknownToVendor != (n+1)/5 || got.Errors != n/5 || got.Ended() != f.Jobs {
		t.Errorf("got %+v of %d", got, n)
	}
	inTx(t, s, func(ctx context.Context, tx store.Tx) error {
		done, err := tx.DoneReplay(ctx, r.ID, now)
		if done {
			err = errors.New("a plan that never ran is done")
		}
		return err
	})
}

// TestReplayQueriesReadNoWholeTable: neither the pages nor the runner's look read
// more of a large replay than they show.
func TestReplayQueriesReadNoWholeTable(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	hook := seedLog(t, s, 8000)
	r, _ := plan(t, s, store.ReplayPicks{Log: &store.LogFilter{Webhook: hook}})
	inTx(t, s, func(ctx context.Context, tx store.Tx) error {
		jobs, err := tx.ReplayWaiting(ctx, r.ID, 30)
		if err != nil {
			return err
		}
		var ids []int64
		for i := range jobs {
			ids = append(ids, jobs[i].JobID)
		}
		if err := tx.BeginReplayJobs(ctx, r.ID, ids[:20], store.ReplayJobWoken, time.Now()); err != nil {
			return err
		}
		return tx.EndReplayJobs(ctx, r.ID, []store.ReplayEnd{{JobID: ids[0], Outcome: store.ReplayFailed}}, time.Now())
	})
	exec(t, s, "ANALYZE")
	ctx := t.Context()
	queries := map[string]func(*store.Store) error{
		"replays":     func(w *store.Store) error { _, err := w.PageReplays(ctx, 0, 50); return err },
		"stamp":       func(w *store.Store) error { _, err := w.PageReplayStamp(ctx, r.ID); return err },
		"differences": func(w *store.Store) error { _, err := w.PageDifferences(ctx, r.ID, 0, 50); return err },
		"in flight":   func(w *store.Store) error { _, err := w.ReplayInFlight(ctx, r.ID, 50); return err },
		"still":       func(w *store.Store) error { _, err := w.StillReplays(ctx, time.Now()); return err },
	}
	for list, want := range map[string]int{"": 50, store.ReplayListWaiting: 50, store.ReplayListUnder: 19, "failed": 1, "error": 0} {
		queries["jobs "+list] = func(w *store.Store) error {
			rows, err := w.PageReplayJobs(ctx, r.ID, list, 0, 50)
			if len(rows) != want {
				t.Errorf("%q: got %d jobs, want %d", list, len(rows), want)
			}
			return err
		}
	}
	checkPlans(t, s, queries)
}
