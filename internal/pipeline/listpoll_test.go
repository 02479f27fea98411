package pipeline_test

import (
	"net/http"
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
	const jobs = 110
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
