package pipeline_test

import (
	"io"
	"testing"
	"time"

	"rollcall/internal/export"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestWritersOfExportsAreKnownAsAlive: while one query takes for ever, both who
// makes a file and who sends one tell that they go on; and one who was believed
// to have broken off still says how it ended.
func TestWritersOfExportsAreKnownAsAlive(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: asleep})
	batch := r.stored(3, 64)
	made := r.exportOf(batch, export.CSV)
	sent, err := pipeline.BeginExport(t.Context(), r.store, time.Now, pipeline.ExportRequest{
		Filter: store.ItemFilter{Batch: batch}, Choices: export.Default(export.JSONL),
	})
	if err != nil {
		t.Fatal(err)
	}
	sent.BeatEvery(20 * time.Millisecond)
	lock, err := r.eyes.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback() }()
	if _, err := lock.ExecContext(t.Context(), `LOCK TABLE results`); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- r.pipe.MakeExport(t.Context(), made.ID, 20*time.Millisecond) }()
	go func() {
		_, err := sent.Send(t.Context(), io.Discard, func() error { return nil })
		ended <- err
	}()
	eventually(t, "both to wait", func() bool {
		return r.number(`SELECT count(*) FROM exports WHERE state = 'running'`) == 2 &&
			r.number(`SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'results'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == 2
	})
	r.exec(`UPDATE exports SET beat_at = beat_at - interval '1 hour'`)
	eventually(t, "both to tell that they go on", func() bool {
		return r.number(`SELECT count(*) FROM exports WHERE beat_at > now() - interval '10 min'`) == 2
	})
	r.exec(`UPDATE exports SET state = 'failed', reason = 'it was broken off', ended_at = now() WHERE direct`)
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if got := r.text(`SELECT string_agg(state || reason || ' ' || rows, ', ') FROM exports`); got != "done 3, done 3" {
		t.Errorf("got %q, want both done", got)
	}
}

// TestExportThatFailsEnds: a file that can't be made doesn't keep its turn, and
// is given up after some claims, be it that they fail or that their processes die.
func TestExportThatFailsEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: asleep})
	batch := r.stored(1, 64)
	fails, dies := r.exportOf(batch, export.CSV), r.exportOf(batch, export.JSONL)
	r.exec(`ALTER TABLE results RENAME TO away`)
	for claim := range pipeline.ExportClaims {
		err := r.pipe.MakeExport(t.Context(), fails.ID, time.Hour)
		want := "waiting"
		if claim == pipeline.ExportClaims-1 {
			want = "failed"
		}
		if got := r.text(`SELECT state FROM exports WHERE id = $1`, fails.ID); got != want || (err == nil) != (want == "failed") {
			t.Fatalf("claim %d: got %s, %v, want it %s", claim+1, got, err, want)
		}
	}
	r.exec(`UPDATE exports SET state = 'running', claim = $1 WHERE id = $2`, pipeline.ExportClaims, dies.ID)
	if err := r.pipe.MakeExport(t.Context(), dies.ID, time.Hour); err != nil {
		t.Error(err)
	}
	if n := r.number(`SELECT count(*) FROM exports WHERE state = 'failed' AND reason <> '' AND ended_at IS NOT NULL AND NOT held`); n != 2 {
		t.Errorf("%d ended for a reason, want both", n)
	}
}
