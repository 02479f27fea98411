package pipeline_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"rollcall/internal/export"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// longAgo makes a batch of stored items with one job, that ended before the time
// for which batches are kept. It returns both.
func (r *rig) longAgo(name, jobState string, items int) (int64, int64) {
	r.t.Helper()
	at := time.Now().Add(-200 * 24 * time.Hour)
	id := r.number(`INSERT INTO batches (name, kind, options, created_at, ended_at, submitted, accepted, stored_poll)
		VALUES ($1, 'batch', '{}', $2, $2, $3, $3, $3) RETURNING id`, name, at, items)
	job := r.number(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, called_at, vendor_job_id)
		VALUES ($1, 'batch', $2, 'submit', '\x00', $4, $3, $3, $5) RETURNING id`, id, jobState, at, items, "v-"+name)
	r.exec(`WITH i AS (INSERT INTO items (batch_id, position, url, url_hash, state, net, current_job_id, created_at, ended_at)
			SELECT $1, g, 'https://a.example/' || g, '\x00', 'stored', 'poll', $2, $3, $3 FROM generate_series(1, $4::int) g RETURNING id, position)
		INSERT INTO job_items (job_id, input_index, item_id, outcome) SELECT $2, position - 1, id, 'stored' FROM i`, id, job, at, items)
	return id, job
}

// marks begins to prune and returns how many batches that marked.
func (r *rig) marks(ctx context.Context, limit int) int64 {
	r.t.Helper()
	var n int64
	err := r.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		n, err = tx.BeginPruning(ctx, time.Now().Add(-100*24*time.Hour), time.Now(), limit)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// held wants nothing to be marked while something is there that needs all
// batches, or the one that could be, and the log to tell of who only holds it.
func (r *rig) held(batch int64, log *logged) {
	r.t.Helper()
	for what, each := range map[string][2]string{
		"a file of all batches": {`INSERT INTO exports (made_by, created_at, state, name, picked, filter, choices, expires_at, held)
			VALUES ('x', now(), 'running', 'x', 'x', '{}', '{}', now(), $1::bigint > 0)`, `DELETE FROM exports`},
		"a file that is sent": {`INSERT INTO exports (made_by, created_at, state, name, picked, filter, choices, expires_at, direct, held)
			VALUES ('x', now(), 'running', 'x', 'x', jsonb_build_object('filter', jsonb_build_object('batch', $1::bigint)), '{}', now(), true, false)`, `DELETE FROM exports`},
		"a comparison": {`INSERT INTO comparisons (a_batch_id, b_batch_id, state, asked_at) SELECT $1, max(id), 'waiting', now() FROM batches`, `DELETE FROM comparisons`},
	} {
		r.exec(each[0], batch)
		if n := r.marks(r.t.Context(), 10); n != 0 {
			r.t.Errorf("with %s: %d marked", what, n)
		}
		r.exec(each[1])
	}
	err := r.store.InTx(r.t.Context(), func(ctx context.Context, tx store.Tx) error {
		if err := tx.HoldBatches(ctx); err != nil {
			return err
		}
		if n := r.marks(ctx, 10); n != 0 {
			r.t.Errorf("while batches are held: %d marked", n)
		}
		r.leaves(ctx, log, "while batches are held")
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	locked, err := r.eyes.BeginTx(r.t.Context(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = locked.Rollback() }()
	if _, err := locked.ExecContext(r.t.Context(), `SELECT FROM batches WHERE id = $1 FOR UPDATE`, batch); err != nil {
		r.t.Fatal(err)
	}
	r.leaves(r.t.Context(), log, "while its row is locked")
}

// leaves wants a run of retention that marks nothing to say so, once.
func (r *rig) leaves(ctx context.Context, log *logged, what string) {
	r.t.Helper()
	before := len(log.lines("the next run tries them again", "batches=1"))
	if got, err := r.pipe.Retain(ctx); err != nil || got != (pipeline.Kept{}) {
		r.t.Errorf("%s: %+v, %v", what, got, err)
	}
	if n := len(log.lines("the next run tries them again", "batches=1")) - before; n != 1 {
		r.t.Errorf("%s: the log says so %d times", what, n)
	}
}

// wantWhole wants everything that needs a batch whole to be refused for one that
// is going, and what is of all batches to leave it out.
func (r *rig) wantWhole(going, job, whole int64) {
	r.t.Helper()
	t, ctx := r.t, r.t.Context()
	request := pipeline.ExportRequest{Filter: store.ItemFilter{Batch: going}, Choices: export.Default(export.CSV)}
	for what, do := range map[string]func() error{
		"export": func() error { _, err := r.pipe.Export(ctx, request); return err },
		"direct": func() error { _, err := pipeline.BeginExport(ctx, r.store, time.Now, request); return err },
		"before": func() error { return r.pipe.CompareBatches(ctx, going, whole) },
		"after":  func() error { return r.pipe.CompareBatches(ctx, whole, going) },
		"again":  func() error { _, err := r.pipe.Rerun(ctx, pipeline.Again{BatchID: going}); return err },
		"schedule": func() error {
			_, err := r.pipe.AddSchedule(ctx, pipeline.ScheduleForm{BatchID: going, Cron: "0 6 * * *", Zone: "UTC"})
			return err
		},
	} {
		err := do()
		if invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err); !ok || !strings.Contains(invalid.Error(), "were removed") {
			t.Errorf("%s of a batch that is going: got %v", what, err)
		}
	}
	if n := r.number(`SELECT (SELECT count(*) FROM exports) + (SELECT count(*) FROM comparisons) + (SELECT count(*) FROM schedules WHERE template_batch_id = $1)`, going); n != 0 {
		t.Errorf("%d rows were written all the same", n)
	}
	if plan := r.planOf(store.ReplayPicks{JobIDs: []int64{job}}); plan.Frozen != (store.Frozen{Lines: 1, PrunedJobs: 1}) {
		t.Errorf("a replay of its job: %+v", plan.Frozen)
	}
	if m := r.direct(io.Discard, 0, export.CSV); m.Rows != r.number(`SELECT count(*) FROM items WHERE batch_id <> $1`, going) || m.Rows == 0 {
		t.Errorf("a file of all batches has %d rows", m.Rows)
	}
	// Asked for by a process of an earlier release.
	r.exec(`INSERT INTO comparisons (a_batch_id, b_batch_id, state, asked_at) VALUES ($1, $2, 'waiting', now())`, whole, going)
	if err := r.pipe.WorkOutComparison(ctx, r.number(`SELECT id FROM comparisons`)); err != nil {
		t.Error(err)
	}
	if got := r.text(`SELECT state || ': ' || reason FROM comparisons`); !strings.HasPrefix(got, "failed: the items of batch") {
		t.Errorf("a comparison that waited: %s", got)
	}
}

// TestWhatIsStillNeededIsNotPruned: a batch stays, however old, while something
// of it is outstanding or at the vendor, a schedule runs it again, a replay has
// its jobs before it, a file of it is being made, a comparison waits, or a call
// is in doubt that was made before its end. What began to go is good for nothing
// else, and ends, also after an interruption, whatever becomes of those beside it.
func TestWhatIsStillNeededIsNotPruned(t *testing.T) {
	t.Parallel()
	log := new(logged)
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: func(c *pipeline.Config) { pruning(c); log.into(c) }})
	free, freeJob := r.longAgo("free", "settled", 1203)
	template, _ := r.longAgo("template", "settled", 1)
	r.exec(`INSERT INTO schedules (name, template_batch_id, cron, zone, created_at) VALUES ('s', $1, '0 0 1 1 *', 'UTC', now())`, template)
	replayed, _ := r.longAgo("replayed", "settled", 1)
	replay := r.number(`WITH p AS (INSERT INTO replays (state, picked, planned_by, planned_at, started_at, beat_at) VALUES ('paused', 'x', 'x', now(), now(), now()) RETURNING id),
		j AS (INSERT INTO replay_jobs (replay_id, job_id, calls) SELECT p.id, j.id, 1 FROM p, jobs j WHERE j.batch_id = $1) SELECT id FROM p`, replayed)
	open, _ := r.longAgo("open", "accepted", 1)
	claimed, _ := r.longAgo("claimed", "uncertain", 1) // In doubt since before all of them ended.
	if got := r.retain(); got.Batches != 0 {
		t.Fatalf("with a call in doubt: %+v", got)
	}
	r.exec(`UPDATE jobs SET called_at = now() WHERE batch_id = $1`, claimed)
	r.held(free, log)
	kept := map[int64]string{template: "1 1 0 0 ", replayed: "1 1 0 0 ", open: "1 1 0 0 ", claimed: "1 1 0 0 "}
	r.goes(free, freeJob, template)
	r.wantRows(kept)

	// A replay that nobody runs any more needs nothing; one batch can't be removed.
	r.exec(`UPDATE replays SET state = 'cancelled', ended_at = now() WHERE id = $1`, replay)
	stuck, _ := r.longAgo("stuck", "settled", 1)
	r.exec(`UPDATE batches SET pruned_at = now() - interval '1 hour' WHERE id = $1`, stuck)
	r.failing(`BEFORE DELETE ON items FOR EACH ROW WHEN (OLD.batch_id = ` + strconv.FormatInt(stuck, 10) + `)`)
	done, err := r.pipe.Retain(t.Context())
	if err == nil || !strings.Contains(err.Error(), "batch "+strconv.FormatInt(stuck, 10)) || done != (pipeline.Kept{Items: 1, Jobs: 1, Batches: 1}) {
		t.Errorf("beside one that can't be removed: %+v, %v", done, err)
	}
	kept[replayed], kept[stuck] = "0 0 0 0 ", "1 1 0 0 "
	r.wantRows(kept)
	r.exec(`DROP FUNCTION fails CASCADE`)
	if got := r.retain(); got != (pipeline.Kept{Items: 1, Jobs: 1, Batches: 1}) {
		t.Errorf("when it can be: %+v", got)
	}
	if got := r.retain(); got != (pipeline.Kept{}) {
		t.Errorf("again: %+v", got)
	}
}

// goes begins to remove a batch of 1,203 items, stops after a group, and lets it
// end.
func (r *rig) goes(free, job, whole int64) {
	r.t.Helper()
	t := r.t
	givenUp, _ := r.longAgo("given up", "given_up", 1)
	// A file of another batch keeps only that.
	r.exec(`INSERT INTO exports (made_by, created_at, state, name, picked, filter, choices, expires_at, held)
		VALUES ('x', now(), 'running', 'x', 'x', jsonb_build_object('filter', jsonb_build_object('batch', $1::bigint)), '{}', now(), true)`, whole)
	if n := r.marks(r.t.Context(), 1); n != 1 {
		t.Fatalf("began %d", n)
	}
	err := r.store.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
		_, err := tx.PruneItems(ctx, free, 500)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = r.store.InTx(t.Context(), func(ctx context.Context, tx store.Tx) error {
		return tx.AddCounts(ctx, free, store.Counts{Accepted: 1}, time.Now())
	})
	if err == nil {
		t.Error("something of a batch that is going became outstanding")
	}
	r.exec(`DELETE FROM exports`)
	r.wantWhole(free, job, whole)
	if got := r.retain(); got != (pipeline.Kept{Items: 704, Jobs: 2, Batches: 2}) {
		t.Errorf("the next run: %+v", got)
	}
	r.wantRows(map[int64]string{free: "0 0 0 0 ", givenUp: "0 0 0 0 "})
	if n := r.number(`SELECT count(*) FROM batches WHERE id IN ($1, $2) AND prune_ended_at IS NOT NULL`, free, givenUp); n != 2 {
		t.Errorf("%d of 2 say that they ended", n)
	}
}

// wantRows compares what is left of batches.
func (r *rig) wantRows(want map[int64]string) {
	r.t.Helper()
	for id, rows := range want {
		if got := r.rowsOf(id); got != rows {
			r.t.Errorf("batch %d: %s left, want %s", id, got, rows)
		}
	}
}

// TestDeliveryOfAJobThatIsBeingRemoved: who takes up a delivery has its event
// and asks for the job behind it. Whoever removes that job waits for the event,
// and doesn't keep the job from the other meanwhile.
func TestDeliveryOfAJobThatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: pruning})
	batch, job := r.longAgo("late", "settled", 0)
	if n := r.marks(r.t.Context(), 1); n != 1 {
		t.Fatalf("began %d", n)
	}
	delivery, err := r.eyes.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = delivery.Rollback() }()
	_, err = delivery.ExecContext(t.Context(), `INSERT INTO processed_events (vendor_job_id, event_type, received_at, state) VALUES ('v-late', 'x', now(), 'held')`)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := r.pipe.Retain(context.Background()); ended <- err }()
	eventually(t, "the other to wait for the event", func() bool {
		return r.number(`SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database()`) == 1
	})
	_, err = delivery.ExecContext(t.Context(), `WITH j AS (SELECT id FROM jobs WHERE id = $1 FOR NO KEY UPDATE)
		UPDATE processed_events SET state = 'claimed', job_id = j.id FROM j WHERE vendor_job_id = 'v-late'`, job)
	if err != nil {
		t.Fatalf("the delivery: %v", err)
	}
	if err := delivery.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("who removes it: %v", err)
	}
	if got := r.rowsOf(batch) + r.text(`SELECT state FROM processed_events`); got != "0 0 0 0 pruned" {
		t.Errorf("left: %s", got)
	}
}
