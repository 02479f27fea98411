package pipeline_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestManyExtractJobsSettleByTheList: without webhooks the vendor's list tells
// which of many jobs have ended, and only these are fetched.
func TestManyExtractJobsSettleByTheList(t *testing.T) {
	t.Parallel()
	const jobs = 150
	r := newRig(t, setup{
		noWebhooks: true,
		sandbox:    func(c *sandbox.Config) { c.RunTime, c.Parallelism = 300*time.Millisecond, 60 },
		pipeline:   func(c *pipeline.Config) { c.Mode = pipeline.ModePoll },
	})
	id := r.submit(store.KindExtract, sandbox.MadeURLs(jobs, 5)...)
	r.wantBatch(r.ended(id), jobs, 0, 0)
	r.balanced(id)
	calls := r.sandbox.Books().Calls
	t.Logf("%d status calls, %d list calls", calls["extract.status"].Total, calls["extract.list"].Total)
	if got := calls["extract.status"].Total; got > jobs*5/4 {
		t.Errorf("got %d status calls for %d jobs, want hardly more than one each", got, jobs)
	}
	if got := calls["extract.list"].Total; got == 0 || got > jobs {
		t.Errorf("got %d list calls, want some and far fewer than one a job", got)
	}
}

// TestSweepWakesWhatIsNoLongerListed and nothing that is.
func TestSweepWakesWhatIsNoLongerListed(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	ids := s.open(12, 10*time.Second, "processing", "processing")
	if got := s.sweep(s.r.pipe); got != 0 {
		t.Errorf("got %d woken while all run, want none", got)
	}
	s.wantLists("processing 1")
	s.wantRead(0)
	s.end(ids[:5]...)
	if got := s.sweep(s.r.pipe); got != 0 {
		t.Errorf("got %d woken before the next sweep is due, want none", got)
	}
	s.wantLists()
	s.clock.forward(2 * time.Second)
	if got := s.sweep(s.r.pipe); got != 5 {
		t.Errorf("got %d woken, want the five that ended", got)
	}
	s.wantLists("processing 1")
	s.wantRead(5)
	if got := s.settled(); got != 5 {
		t.Errorf("got %d settled, want 5", got)
	}
	if got := s.r.number(`SELECT count(*) FROM jobs WHERE settle_net = 'poll'`); got != 5 {
		t.Errorf("got %d settled by poll, want 5", got)
	}
}

// TestFewDueJobsAreAskedAboutSingly: a list would save no call.
func TestFewDueJobsAreAskedAboutSingly(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.open(2, 10*time.Second, "processing", "processing")
	s.sweep(s.r.pipe)
	s.wantLists()
	if n, err := s.r.pipe.Poll(t.Context()); err != nil || n != 2 {
		t.Errorf("got %d, %v, want both woken", n, err)
	}
	s.quiet()
	s.wantRead(2)
	s.open(3, 10*time.Second, "processing", "processing")
	if n, err := s.r.pipe.Poll(t.Context()); err != nil || n != 0 {
		t.Errorf("got %d, %v, want three left to the list", n, err)
	}
	s.sweep(s.r.pipe)
	s.wantLists("processing 1")
	s.wantRead(0)
}

// TestQueuedJobsAreNotFetched: what was never seen running may be queued, which
// the list of queued jobs tells.
func TestQueuedJobsAreNotFetched(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	queued := s.open(20, 10*time.Second, "queued", "queued")
	s.open(10, 10*time.Second, "queued", "processing")
	ended := s.open(4, 10*time.Second, "queued", "completed")
	for range 3 {
		s.sweep(s.r.pipe)
		s.wantLists("processing 1", "queued 1")
		s.clock.forward(2 * time.Second)
	}
	s.wantRead(len(ended))
	if got := s.r.number(`SELECT count(*) FROM jobs WHERE vendor_status = 'processing'`); got != 10 {
		t.Errorf("got %d noted as running, want 10", got)
	}
	// With two that may be queued a list of their own saves nothing.
	s.end(queued[2:]...)
	s.sweep(s.r.pipe)
	s.clock.forward(2 * time.Second)
	s.wantRead(18)
	s.change(func() { s.lists = nil })
	s.sweep(s.r.pipe)
	s.wantLists("processing 1")
	s.wantRead(2)
}

// TestListThatTakesNoNoticeOfTheStatus shows those that ended, as such.
func TestListThatTakesNoNoticeOfTheStatus(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.unfiltered = true
	s.open(6, 10*time.Second, "queued", "queued")
	s.open(6, 10*time.Second, "queued", "completed")
	if got := s.sweep(s.r.pipe); got != 6 {
		t.Errorf("got %d woken, want 6", got)
	}
	s.wantLists("processing 1")
	s.wantRead(6)
}

// TestListWithoutACountIsReadToItsEnd, which is an empty page.
func TestListWithoutACountIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.uncounted = true
	s.open(150, 10*time.Second, "processing", "processing")
	if got := s.sweep(s.r.pipe); got != 0 {
		t.Errorf("got %d woken, want none", got)
	}
	s.wantLists("processing 1", "processing 2", "processing 3")
}

// TestLongListIsReadFromItsEnd once its length is known: rows move to earlier
// pages while it is read.
func TestLongListIsReadFromItsEnd(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.open(250, 10*time.Second, "processing", "processing")
	s.sweep(s.r.pipe)
	if got := len(s.lists); got != 3 || s.lists[0] != "processing 1" {
		t.Errorf("got the lists %v, want the first page and then the others", s.lists)
	}
	s.clock.forward(2 * time.Second)
	s.sweep(s.r.pipe)
	if got := s.r.number(`SELECT pages FROM list_sweeps`); got != 3 {
		t.Errorf("got %d pages, want 3", got)
	}
	s.wantRead(0)
}

// TestListOfOthersJobsIsOfNoUse: a list that takes more calls than asking singly
// is left alone for a while.
func TestListOfOthersJobsIsOfNoUse(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.open(12, 10*time.Second, "processing", "processing")
	s.foreign = 500
	s.sweep(s.r.pipe)
	s.wantLists("processing 1")
	s.clock.forward(2 * time.Second)
	s.sweep(s.r.pipe)
	s.wantLists()
	if n, err := s.r.pipe.Poll(t.Context()); err != nil || n != 12 {
		t.Errorf("got %d, %v, want all 12 woken singly", n, err)
	}
	s.quiet()
	s.wantRead(12)
	s.change(func() { s.foreign = 0 })
	s.clock.forward(time.Minute)
	s.sweep(s.r.pipe)
	s.wantLists("processing 1")
}

// TestListThatLacksWhatRuns misleads a few times and then no more.
func TestListThatLacksWhatRuns(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.open(10, 10*time.Second, "processing", "")
	for range 2 {
		if got := s.sweep(s.r.pipe); got != 10 {
			t.Errorf("got %d woken, want 10", got)
		}
		s.clock.forward(40 * time.Second)
	}
	if got := s.sweep(s.r.pipe); got != 0 {
		t.Errorf("got %d woken by a list that was wrong before, want none", got)
	}
	if n, err := s.r.pipe.Poll(t.Context()); err != nil || n != 10 {
		t.Errorf("got %d, %v, want all 10 woken singly", n, err)
	}
}

// TestListThatErrs is tried again later, and meanwhile jobs are asked about
// singly.
func TestListThatErrs(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.open(12, 10*time.Second, "processing", "processing")
	s.refuse = http.StatusUnprocessableEntity
	poll := func(want int) {
		t.Helper()
		if n, err := s.r.pipe.Poll(t.Context()); err != nil || n != want {
			t.Errorf("got %d, %v, want %d woken singly", n, err, want)
		}
		s.quiet()
	}
	fail := func() {
		t.Helper()
		if _, err := s.r.pipe.ListPoll(t.Context()); err == nil {
			t.Error("got no error of a list that errs")
		}
	}
	fail()
	poll(0)
	s.clock.forward(2 * time.Second)
	fail()
	s.wantLists("processing 1", "processing 1")
	poll(12)
	s.wantRead(12)
	s.change(func() { s.refuse = 0 })
	s.clock.forward(time.Minute)
	s.sweep(s.r.pipe)
	s.wantLists("processing 1")
	if got := s.r.number(`SELECT failures FROM list_sweeps`); got != 0 {
		t.Errorf("got %d failures after a sweep that went well, want 0", got)
	}
}

// TestBusyListIsReadAgainInTheSameSweep when the vendor says that it may be.
func TestBusyListIsReadAgainInTheSameSweep(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.open(12, 10*time.Second, "processing", "processing")
	first := newOnce()
	first.release()
	s.r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if first.hold() {
			answerJSON(w, http.StatusServiceUnavailable, refusal("BUSY", true), "")
			return
		}
		s.serve(w, req, next)
	})
	s.sweep(s.r.pipe)
	s.wantLists("processing 1")
	if got := s.r.number(`SELECT pages FROM list_sweeps`); got != 2 {
		t.Errorf("got %d calls, want 2", got)
	}
}

// TestThrottledListClosesTheReadGate, and the next sweep waits for it.
func TestThrottledListClosesTheReadGate(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.open(12, 10*time.Second, "processing", "processing")
	s.refuse = http.StatusTooManyRequests
	s.sweep(s.r.pipe)
	s.wantLists("processing 1")
	if got := s.r.number(`SELECT count(*) FROM gates WHERE name = 'read' AND closed_until > $1`, s.clock.now()); got != 1 {
		t.Error("the read gate is open after a 429")
	}
	s.sweep(s.r.pipe)
	s.wantLists()
	if got := s.r.number(`SELECT failures FROM list_sweeps`); got != 0 {
		t.Errorf("got %d failures, want none: the list is not to blame", got)
	}
	s.change(func() { s.refuse = 0 })
	s.clock.forward(time.Minute)
	s.sweep(s.r.pipe)
	s.wantLists("processing 1")
}

// TestUnreadableRowsWakeFew: who is absent may be one of them.
func TestUnreadableRowsWakeFew(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.open(190, 10*time.Second, "processing", "processing")
	s.unreadable = 45
	if got := s.sweep(s.r.pipe); got != 50 {
		t.Errorf("got %d woken for 90 rows that could not be read, want 50", got)
	}
	s.clock.forward(40 * time.Second)
	s.change(func() { s.unreadable = 100 })
	if n, err := s.r.pipe.ListPoll(t.Context()); err == nil || n != 0 {
		t.Errorf("got %d, %v, want a list that is nothing but holes to wake nobody", n, err)
	}
}

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
