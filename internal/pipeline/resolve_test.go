package pipeline_test

import (
	"testing"
	"time"

	"rollcall/store"
)

// TestResolvedFailuresStayFailed: they leave what waits and nothing else, with
// a line in the audit log; they come back by a person's word, and sending them
// again forgets the note.
func TestResolvedFailuresStayFailed(t *testing.T) {
	t.Parallel()
	r, b := failedBatch(t, store.KindExtract, 4)
	ids := r.itemIDs(b.ID)
	before := time.Now().Add(time.Hour)
	if n, err := r.pipe.Resolve(t.Context(), ids[:3], "nothing to be done", before); n != 3 || err != nil {
		t.Fatalf("resolved %d, %v, want 3", n, err)
	}
	if n, err := r.pipe.Resolve(t.Context(), ids, "again", before); n != 1 || err != nil {
		t.Errorf("resolved %d, %v, want the one that was left", n, err)
	}
	if n := r.number(`SELECT count(*) FROM audit_log WHERE what = 'item.resolve' AND after->>'note' = 'nothing to be done' AND (after->>'count')::int = 3`); n != 1 {
		t.Errorf("%d lines of the audit log, want one", n)
	}
	if got := r.number(`SELECT failed FROM batches WHERE id = $1`, b.ID); got != 4 {
		t.Errorf("the roll call says %d failed, want 4", got)
	}
	if n, err := r.pipe.Unresolve(t.Context(), ids[:1]); n != 1 || err != nil {
		t.Errorf("put back %d, %v, want 1", n, err)
	}
	waiting, err := r.store.FailedItems(t.Context(), store.Failed{Standing: store.FailureWaiting}, 10)
	if err != nil || len(waiting) != 1 || waiting[0] != ids[0] {
		t.Errorf("waiting are %v, %v", waiting, err)
	}
	r.noFaults()
	// Of a plan of what waits, or of anything, from before: nothing of it still stands so.
	for _, as := range []store.AsPlanned{{Before: before, Standing: store.FailureWaiting}, {Before: time.Now().Add(-time.Hour)}} {
		if done, err := r.pipe.Resubmit(t.Context(), ids[1:], as); err != nil || done.Items != 0 {
			t.Errorf("planned as %+v: sent again %+v, %v, want what was resolved since left alone", as, done, err)
		}
	}
	if done, err := r.pipe.Resubmit(t.Context(), ids, store.AsPlanned{}); err != nil || done.Items != 4 || done.BatchID != b.ID {
		t.Fatalf("sent again %+v, %v", done, err)
	}
	r.wantBatch(r.ended(b.ID), 4, 0, 0)
	if n := r.number(`SELECT count(*) FROM items WHERE resolved_at IS NOT NULL OR resolved_note <> ''`); n != 0 {
		t.Errorf("%d stored items still carry a note", n)
	}
	if n := r.number(`SELECT sum(ended) FROM batch_pace WHERE batch_id = $1`, b.ID); n != 8 {
		t.Errorf("the batch's pace counts %d ends, want four twice", n)
	}
	r.balanced(b.ID)
}
