package pipeline_test

import (
	"testing"
	"time"

	"rollcall/internal/pipeline"
)

// TestOldNotesAreForgotten: of what is noted of our own work only what is old
// goes: of replays those that ended, of the mode all but the last change. The
// audit log goes by its own setting, and still lets nobody else take a row away.
func TestOldNotesAreForgotten(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: func(c *pipeline.Config) { c.KeepAudit = 1000 * 24 * time.Hour }})
	for _, days := range []int{1, 100, 1001} {
		at := time.Now().UTC().Add(-time.Duration(days) * 24 * time.Hour)
		r.exec(`INSERT INTO audit_log (at, who, what) VALUES ($1, 'x', 'x')`, at)
		r.exec(`INSERT INTO reconcile_runs (trigger, started_at, window_start, window_end) VALUES ('timer', $1, $1, $1)`, at)
		r.exec(`INSERT INTO call_counts (hour, kind, n) VALUES (date_trunc('hour', $1::timestamptz, 'UTC'), 'list', 1)`, at)
	}
	long := time.Now().Add(-100 * 24 * time.Hour)
	r.exec(`INSERT INTO mode_changes (id, at, mode, reason) VALUES (1, $1, 'poll', 'x'), (2, $1, 'webhook', 'x')`, long)
	r.exec(`WITH b AS (INSERT INTO batches (name, kind, options, created_at) VALUES ('b', 'batch', '{}', now()) RETURNING id),
			j AS (INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at)
				SELECT id, 'batch', 'settled', 'submit', '\x00', 1, now() FROM b RETURNING id),
			p AS (INSERT INTO replays (state, picked, planned_by, planned_at, ended_at) VALUES
				('done', 'x', 'x', $1, $1), ('paused', 'x', 'x', $1, NULL), ('planned', 'x', 'x', $1, NULL), ('done', 'x', 'x', $1, now()) RETURNING id)
		INSERT INTO replay_jobs (replay_id, job_id, calls) SELECT p.id, j.id, 1 FROM p, j`, long)
	if got, want := r.retain(), (pipeline.Kept{Runs: 6, Stats: 1, Audit: 1}); got != want {
		t.Errorf("removed %+v, want %+v", got, want)
	}
	for query, want := range map[string]int64{
		`SELECT count(*) FROM audit_log`:                           2,
		`SELECT count(*) FROM reconcile_runs`:                      1,
		`SELECT count(*) FROM call_counts`:                         2,
		`SELECT count(*) FROM mode_changes WHERE mode = 'webhook'`: 1,
		`SELECT count(*) FROM replay_jobs`:                         3,
		`SELECT count(*) FROM replays WHERE state = 'cancelled'`:   1, // The plan that nobody ran.
	} {
		if got := r.number(query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	if _, err := r.eyes.ExecContext(t.Context(), `DELETE FROM audit_log`); err == nil {
		t.Error("anybody may empty the audit log")
	}
	if got := r.retain(); got != (pipeline.Kept{}) {
		t.Errorf("again: %+v", got)
	}
}
