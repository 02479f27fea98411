package pipeline_test

import (
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// TestWatchPaysFrom: from how many jobs on watching over all of them takes fewer
// calls than asking for each.
func TestWatchPaysFrom(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		every time.Duration
		alone float64
		want  int64
	}{
		{10 * time.Minute, 30, 44}, // 1,008 calls a day, of which each job makes up for 29 - 5.76.
		{10 * time.Minute, 600, 2},
		{10 * time.Minute, 6, 0}, // What the lists cost for each is more than is saved.
		{10 * time.Minute, 1, 0},
		{time.Hour, 30, 6},
		{2 * time.Second, 30, 0},
	} {
		if got := pipeline.WatchPaysFrom(test.every, test.alone); got != test.want {
			t.Errorf("every %v, %v calls alone: got %d, want %d", test.every, test.alone, got, test.want)
		}
	}
}

// TestCallsAreWrittenDown: what the vendor was asked over a whole batch is what
// the counts come to, the last of it written as a process stops; and each job
// knows when the vendor ended it.
func TestCallsAreWrittenDown(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	r.ended(r.submit(store.KindExtract, "https://shop.sandbox.test/1", "https://shop.sandbox.test/2"))
	eventually(t, "both jobs have settled", func() bool { return r.number(`SELECT count(*) FROM jobs WHERE state = 'settled'`) == 2 })
	if n := r.number(`SELECT count(*) FROM jobs WHERE vendor_ended_at BETWEEN accepted_at - interval '3 s' AND ended_at + interval '3 s'`); n != 2 {
		t.Errorf("%d of 2 jobs know when the vendor ended them", n)
	}
	if err := r.pipe.Stop(t.Context()); err != nil { // From here on nobody asks or writes but who is told to.
		t.Fatal(err)
	}
	other := r.newPipeline(setup{pipeline: func(c *pipeline.Config) { c.OnlySubmit = true }})
	if err := other.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.ListWebhooks(t.Context(), geonode.ListParams{}); err != nil {
		t.Fatal(err)
	}
	if err := other.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	var seen int64
	for _, each := range r.sandbox.Books().Calls {
		seen += int64(each.Total)
	}
	if got := r.number(`SELECT sum(n) FROM call_counts`); got != seen || got < 5 {
		t.Errorf("%d calls are written down, the vendor saw %d", got, seen)
	}
}
