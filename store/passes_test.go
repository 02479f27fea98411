package store_test

import (
	"context"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// TestPassesOfServersWhoseClocksDisagree: two reads count both only when they
// are a gap apart by the reader's clock and by the vendor's.
func TestPassesOfServersWhoseClocksDisagree(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	job := oneJob(t, s, store.JobAccepted)
	start := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	const gap, silent = 30 * time.Second, time.Duration(-1)
	for _, read := range []struct {
		name         string
		ours, vendor time.Duration // Since the start.
		want         int
	}{
		{"by a server that is behind", -40 * time.Second, 0, 1},
		{"right after it, by one that isn't", time.Second, time.Second, 1},
		{"by the vendor's clock alone", -15 * time.Second, gap, 1},
		{"a gap later by both", 2 * gap, gap, 2},
		{"with no word of the vendor's", 3 * gap, silent, 3},
		{"whatever it said before", 4 * gap, 0, 4},
		{"set back for long", 40 * gap, -time.Hour, 5},
	} {
		p := store.Pass{JobID: job, At: start.Add(read.ours), Vendor: start.Add(read.vendor), Gap: gap, Next: start}
		if read.vendor == silent {
			p.Vendor = time.Time{}
		}
		inTx(t, s, func(ctx context.Context, tx store.Tx) error {
			got, err := tx.NotePass(ctx, p)
			if got != read.want {
				t.Errorf("%s: got %d reads that count, want %d", read.name, got, read.want)
			}
			return err
		})
	}
}
