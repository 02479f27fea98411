package pipeline_test

import (
	"testing"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

func TestBatchOfEachKindComesHome(t *testing.T) {
	t.Parallel()
	for _, kind := range []store.Kind{store.KindExtract, store.KindBatch, store.KindMixed} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{})
			urls := sandbox.MadeURLs(60, 1)
			id := r.submit(kind, urls...)
			b := r.ended(id)
			if b.Stored() != 60 || b.Failed != 0 {
				t.Errorf("got %d stored, %d failed, want 60, 0\n%s", b.Stored(), b.Failed, r.describe(id))
			}
			var byJobs int64
			if err := r.eyes.QueryRowContext(t.Context(), "SELECT sum(charged) FROM jobs WHERE batch_id = $1", id).Scan(&byJobs); err != nil {
				t.Fatal(err)
			}
			if b.Charged != 60 || byJobs != 60 {
				t.Errorf("got %d charged on the batch and %d on its jobs, want 60", b.Charged, byJobs)
			}
			r.balanced(id)
		})
	}
}

func TestDefaultFaultsComeHome(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sandbox: func(c *sandbox.Config) { c.Faults = sandbox.DefaultFaults() }})
	id := r.submit(store.KindMixed, sandbox.MadeURLs(100, 2)...)
	r.ended(id)
	r.balanced(id)
}
