package pipeline_test

import (
	"testing"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestAJobGivenBackUnderADispatchTaskIsCalledFor: adoption gives an uncertain
// job back and adds no task, since one is under way, which at that moment finds
// the job uncertain still and has nothing to call.
func TestAJobGivenBackUnderADispatchTaskIsCalledFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	id := r.submit(store.KindExtract, sandbox.MadeURLs(1, 1)...)
	r.exec(`UPDATE jobs SET state = 'uncertain', call_no = 1, called_at = created_at, lease_until = created_at + interval '1 hour'`)
	tx, err := r.eyes.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // It is committed below.
	if _, err := tx.ExecContext(t.Context(), `UPDATE jobs SET state = 'intended', lease_until = NULL`); err != nil {
		t.Fatal(err)
	}
	r.start(setup{noWebhooks: true})
	eventually(t, "the task waits for the job", func() bool {
		return r.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	})
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r.wantBatch(r.ended(id), 1, 0, 0)
	r.balanced(id)
}
