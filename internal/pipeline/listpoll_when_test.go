package pipeline_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
)

// TestWindowIsByTheVendorsClock, which the first answer shows to be ahead.
func TestWindowIsByTheVendorsClock(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.ahead = 10 * time.Minute
	s.open(12, 10*time.Second, "processing", "processing")
	if got := s.sweep(s.r.pipe); got != 0 {
		t.Errorf("got %d woken, want none", got)
	}
	s.wantLists("processing 1", "processing 1")
}

// TestRarerLooksAtOlderJobs: a young one stays due; an older one is looked at
// every 5, 10 and 30 s, and past the longest wait it is flagged.
func TestRarerLooksAtOlderJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		age     time.Duration
		least   time.Duration
		most    time.Duration
		overdue bool
	}{
		{"young", 40 * time.Second, -time.Hour, 0, false},
		{"a minute", time.Minute, 2500 * time.Millisecond, 7500 * time.Millisecond, false},
		{"three minutes", 3 * time.Minute, 5 * time.Second, 15 * time.Second, false},
		{"overdue", 31 * time.Minute, 15 * time.Second, 45 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.open(40, c.age, "processing", "processing")
			now := s.clock.now()
			s.sweep(s.r.pipe)
			// Of the old ones one in twenty is read in its turn.
			const listed = `FROM jobs WHERE polls = 0 AND `
			if got := s.r.number(`SELECT count(*) `+listed+`next_poll_at BETWEEN $1 AND $2`, now.Add(c.least), now.Add(c.most+time.Second)); got < 38 {
				t.Errorf("got %d jobs to be looked at in %s to %s, want them all", got, c.least, c.most)
			}
			if got := s.r.number(`SELECT count(DISTINCT next_poll_at) ` + listed + `true`); got != 1 {
				t.Errorf("got %d times of the next look, want one for all", got)
			}
			if got := s.r.number(`SELECT count(*) FROM jobs WHERE overdue`); (got == 40) != c.overdue {
				t.Errorf("got %d overdue jobs, want all: %v", got, c.overdue)
			}
		})
	}
}

// TestOldJobIsReadNowAndThen, whatever the list says of it, and one past its
// deadline at once: settle alone gives up.
func TestOldJobIsReadNowAndThen(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.open(4, 15*time.Minute, "processing", "processing")
	reads := 0
	for range 20 {
		reads += s.sweep(s.r.pipe)
		s.r.exec(`UPDATE jobs SET next_poll_at = accepted_at`)
		s.clock.forward(30 * time.Second)
	}
	if reads != 4 {
		t.Errorf("got %d reads in twenty looks at four jobs, want one of each", reads)
	}
	s.open(4, 73*time.Hour, "processing", "processing")
	s.r.exec(`UPDATE list_sweeps SET next_at = NULL, singly_until = NULL`)
	s.sweep(s.r.pipe)
	if got := s.r.number(`SELECT count(*) FROM jobs WHERE state = 'given_up'`); got != 4 {
		t.Errorf("got %d given up, want the four past their deadline", got)
	}
}

// TestJobsOfAnotherAccountAreAskedAboutSingly: no list of this one shows them.
func TestJobsOfAnotherAccountAreAskedAboutSingly(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.open(12, 10*time.Second, "processing", "processing")
	s.r.exec(`UPDATE jobs SET account = 'earlier' WHERE id <= 5`)
	if got := s.sweep(s.r.pipe); got != 5 {
		t.Errorf("got %d woken, want 5", got)
	}
	s.wantRead(5)
}

// TestOneReplicaSweepsAtATime, and when it dies in its turn another takes over
// within seconds.
func TestOneReplicaSweepsAtATime(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.open(12, 10*time.Second, "processing", "processing")
	other := s.r.newPipeline(setup{pipeline: func(c *pipeline.Config) {
		c.OnlySubmit, c.Mode, c.Now = true, pipeline.ModePoll, s.clock.now
	}})
	reading := newOnce()
	t.Cleanup(reading.release)
	s.r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		reading.hold()
		s.serve(w, req, next)
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if n, err := s.r.pipe.ListPoll(t.Context()); err != nil || n != 0 {
			t.Errorf("got %d, %v of the sweep that lost its turn, want nothing", n, err)
		}
	}()
	await(t, "the first sweep", reading.began)
	s.sweep(other)
	s.wantLists()
	s.clock.forward(16 * time.Second)
	s.sweep(other)
	s.wantLists("processing 1")
	turn := s.r.number(`SELECT turn FROM list_sweeps`)
	at := s.r.text(`SELECT ended_at FROM list_sweeps`)
	reading.release()
	await(t, "the end of the first sweep", ended)
	if got := s.r.text(`SELECT ended_at FROM list_sweeps WHERE turn = $1`, turn); got != at {
		t.Errorf("the turn that passed on was ended by who had lost it: %s, was %s", got, at)
	}
}

// TestNoPollNoLists: a net that is switched off is off.
func TestNoPollNoLists(t *testing.T) {
	t.Parallel()
	var turns atomic.Int64
	s := newShelf(t, func(c *pipeline.Config) {
		now := c.Now
		c.PollTick, c.Now = time.Millisecond, func() time.Time {
			turns.Add(1)
			return now()
		}
	})
	s.open(12, 10*time.Second, "processing", "processing")
	before := turns.Load()
	eventually(t, "some hundred turns of the loops", func() bool { return turns.Load() > before+300 })
	s.wantLists()
	s.wantRead(0)
}
