package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/riverqueue/river"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// Bounds of one run of settle; what is left goes on in the next run, which may
// be a second later.
const (
	slicePages = 5
	// mostPages are those of a job of 1,000 URLs: so many a run reads while
	// nobody waits for its turn.
	mostPages = 20
	sliceTime = 8 * time.Second
	// completeReads is how many whole reads must miss an item before it fails.
	completeReads = 2
	// forgottenReads is how many 404s in a row it takes to believe them.
	forgottenReads = 3
)

type settleWorker struct {
	river.WorkerDefaults[settleArgs]
	p *Pipeline
}

// Work implements river.Worker.
func (w *settleWorker) Work(ctx context.Context, task *river.Job[settleArgs]) error {
	return w.p.settle(ctx, task)
}

// Timeout implements river.Worker, as dispatch's.
func (w *settleWorker) Timeout(*river.Job[settleArgs]) time.Duration { return taskTimeout + turnWait }

// settling is one look at one job. Its last transaction also completes the
// task, so that a wake from then on adds a task of its own; see finish.
type settling struct {
	*Pipeline
	job  *store.Job
	net  store.Net
	task *river.Job[settleArgs]
	// heardAt is when the vendor answered last, by its clock; zero until it says.
	heardAt time.Time
	// vendorEnd is when the job ended, as the vendor wrote it; zero until it says.
	vendorEnd time.Time
	// leave gives the place at the vendor to the next, when nothing more is asked.
	leave func()
}

// settle asks the vendor what became of a job and carries that into items and
// results. It is the only writer of outcomes. A wake that comes while it runs
// moves wake_seq, which its closing compare sees, and it looks again at once.
func (p *Pipeline) settle(ctx context.Context, task *river.Job[settleArgs]) error {
	leave, err := p.turnAtVendor(ctx, p.looks, task.JobRow)
	if err != nil {
		return err
	}
	defer leave()
	job, err := p.store.Job(ctx, task.Args.JobID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("settle job %d: %w", task.Args.JobID, err)
	}
	if job.VendorJobID == nil || (job.State != store.JobAccepted && job.State != store.JobGivenUp) {
		return nil
	}
	s := &settling{Pipeline: p, job: job, net: store.NetPoll, task: task, leave: leave}
	if job.WakeNet != nil {
		s.net = *job.WakeNet
	}
	if err := s.look(ctx); err != nil {
		if _, snoozed := errors.AsType[*river.JobSnoozeError](err); snoozed {
			return err
		}
		err = fmt.Errorf("settle job %d: %w", job.ID, err)
		return s.stuck(ctx, err)
	}
	return nil
}

// stuck passes on why a look failed on our side, which is tried again; past the
// deadline, what fails again and again is given up, or it would stay open for
// ever. A database that is away or late, or a process that stops, is no reason.
func (s *settling) stuck(ctx context.Context, cause error) error {
	if s.task.Attempt < leastTries || !s.tooOld(s.now()) || store.IsAway(cause) || passing(cause) {
		return cause
	}
	s.log.ErrorContext(ctx, "job given up: its answer cannot be taken up", slog.Int64("job_id", s.job.ID), slog.Any("error", cause))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return s.giveUp(ctx, "GAVE_UP", "the vendor's answer could not be taken up in time")
}

// passing reports that a look ended for want of time or room of ours.
func passing(err error) bool {
	return errors.Is(err, context.Canceled) || store.IsLate(err) || errors.Is(err, errStopped) || errors.Is(err, errBusy)
}

func (s *settling) look(ctx context.Context) error {
	wait, err := s.gates.wait(ctx, store.GateRead)
	if err != nil {
		return err
	}
	if wait > 0 {
		return river.JobSnooze(wait)
	}
	switch s.job.Kind {
	case store.KindExtract:
		return s.extract(ctx)
	case store.KindCrawl:
		return s.through(ctx, s.crawlPages)
	case store.KindBatch, store.KindMixed, store.KindSync:
	}
	return s.through(ctx, s.batchPages)
}

// through reads a job of many results with the pager of its kind.
func (s *settling) through(ctx context.Context, open func(context.Context) (*pager, error)) error {
	read, err := open(ctx)
	if err != nil {
		return err
	}
	return s.pages(ctx, read)
}

// shutOut ends a look that the vendor refused. Throttling does not move a job's
// deadline; an account that is paused does, since that is ours. A look that a
// closed gate put off is none: nobody asked, so nothing is given up for it.
func (s *settling) shutOut(ctx context.Context, wait time.Duration, throttled bool) error {
	late, err := s.late(ctx, s.now())
	if err != nil {
		return err
	}
	if !throttled || !late {
		return river.JobSnooze(wait)
	}
	return s.giveUp(ctx, "GAVE_UP", "the vendor kept refusing to be asked about it")
}

// again asks for another look at once. The task stays under way meanwhile, so
// nothing can slip between the two.
func again() error { return river.JobSnooze(0) }

// notYet ends the look at a job that still runs: the poller asks next.
func (s *settling) notYet(ctx context.Context, status geonode.Status, reports json.RawMessage) error {
	now := s.now()
	if s.tooOld(now) {
		return s.giveUp(ctx, "GAVE_UP", fmt.Sprintf("the vendor had not finished it after %s", s.cfg.GiveUpAfter))
	}
	next := s.nextPoll(ctx, s.job, now)
	return s.putOff(ctx, func(ctx context.Context, tx store.Tx) (bool, error) {
		noted, err := tx.NoteReading(ctx, store.Reading{
			JobID: s.job.ID, SeenSeq: s.job.WakeSeq, VendorStatus: store.CleanText(string(status)), Reports: reports,
			NextPollAt: next, Overdue: s.overdue(s.job, now),
		})
		if err != nil || !noted || sameReports(reports, s.job.VendorReports) {
			return noted, err
		}
		// Pages show them: until the job ends they are all that moves.
		return true, tx.Notify(ctx, s.job.BatchID)
	})
}

// sameReports tells that a reading brought no news. The database writes the
// same counters in another order.
func sameReports(read, kept json.RawMessage) bool {
	var a, b map[string]int64
	return len(read) == 0 ||
		json.Unmarshal(read, &a) == nil && json.Unmarshal(kept, &b) == nil && maps.Equal(a, b)
}

// putOff runs a compare that ends the look, and the task with it; when a wake
// came since the look began, it looks again instead.
func (s *settling) putOff(ctx context.Context, compare func(context.Context, store.Tx) (bool, error)) error {
	ended := false
	err := s.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		if ended, err = compare(ctx, tx); err != nil || !ended {
			return err
		}
		return finish(ctx, tx, s.task)
	})
	if err != nil {
		return err
	}
	if !ended {
		return again()
	}
	return nil
}

// callFailed ends a look that the vendor did not answer. That is written down
// even when the task's own time ran out over it: a vendor that hangs must not
// keep a job open for ever.
func (s *settling) callFailed(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	wait, account, err := s.gates.failed(ctx, store.GateRead, cause)
	if err != nil {
		return err
	}
	if account {
		if errors.Is(cause, geonode.ErrUnauthorized) {
			s.health.note(s.job.ID, true)
		}
		return s.shutOut(ctx, wait, errors.Is(cause, geonode.ErrThrottled))
	}
	if errors.Is(cause, geonode.ErrNotFound) {
		s.health.note(s.job.ID, true)
		return s.notFound(ctx)
	}
	s.log.DebugContext(ctx, "vendor not read", slog.Int64("job_id", s.job.ID), slog.Any("error", cause))
	now := s.now()
	late, err := s.late(ctx, now)
	if err != nil {
		return err
	}
	if late {
		return s.giveUp(ctx, "GAVE_UP", "the vendor could not be asked about it in time")
	}
	next := s.nextPoll(ctx, s.job, now)
	return s.putOff(ctx, func(ctx context.Context, tx store.Tx) (bool, error) {
		return tx.PutOff(ctx, s.job.ID, s.job.WakeSeq, store.LookNoAnswer, next)
	})
}

func (s *settling) tooOld(now time.Time) bool {
	return s.job.State == store.JobAccepted && s.job.AcceptedAt != nil && now.Sub(*s.job.AcceptedAt) > s.cfg.GiveUpAfter
}

// late is tooOld without the time in which the account was paused: for looks
// that the vendor did not answer.
func (s *settling) late(ctx context.Context, now time.Time) (bool, error) {
	if !s.tooOld(now) {
		return false, nil
	}
	return s.gates.late(ctx, store.GateRead, *s.job.AcceptedAt, now)
}

// notFound counts a 404. It is believed after three over half an hour, unless
// the account changed or too many other jobs are not found either: then
// something else is wrong, and nothing is failed.
func (s *settling) notFound(ctx context.Context) error {
	now := s.now()
	next := s.nextPoll(ctx, s.job, now)
	late, err := s.late(ctx, now)
	if err != nil {
		return err
	}
	ended, code, alarm := false, "", ""
	err = s.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		n, first, err := tx.NoteNotFound(ctx, s.job.ID, now)
		if err != nil {
			return err
		}
		if ended, err = tx.PutOff(ctx, s.job.ID, s.job.WakeSeq, store.LookNotFound, next); err != nil || !ended {
			return err
		}
		if n < forgottenReads || now.Sub(first) < s.cfg.ForgottenAfter || s.job.State != store.JobAccepted {
			return finish(ctx, tx, s.task)
		}
		if code, alarm, err = s.believed(ctx, tx, late); err != nil || code != "" {
			return err
		}
		return finish(ctx, tx, s.task)
	})
	switch {
	case err != nil:
		return err
	case !ended:
		return again()
	case alarm != "":
		return s.raise(ctx, alarm)
	case code == "":
		return nil
	}
	return s.giveUp(ctx, code, "the vendor does not know the job any more")
}

// believed is the code under which a job that is not found often enough is
// given up, or "" while that is not believed, and the alarm to raise for it.
// Past the job's deadline it is, whatever else is wrong: nothing waits for
// ever, and what still comes is stored.
func (s *settling) believed(ctx context.Context, tx store.Tx, late bool) (string, string, error) {
	if late {
		return "GAVE_UP", "", nil
	}
	// A process that has just begun knows nothing of the other jobs yet.
	open, err := tx.CountOpen(ctx, leastJobs)
	if err != nil || s.health.seen() < open {
		return "", "", err
	}
	if s.job.Account != s.cfg.Account {
		return "", "jobs that were made with another API key are not found; they wait until that key is back or their time is up", nil
	}
	if s.health.alarming() {
		return "", "the vendor refuses or does not know more than a fifth of the jobs it is asked about; none is failed for that", nil
	}
	return "VENDOR_FORGOT", "", nil
}

// giveUp stops asking about a job and fails what it left open. A result that
// comes later by another net is still stored; one that a wake announced since
// the look began is looked at first.
func (s *settling) giveUp(ctx context.Context, code, message string) error {
	now, given := s.now(), false
	err := s.inTx(ctx, func(ctx context.Context, tx store.Tx) error {
		carried, err := tx.Carried(ctx, s.job.ID)
		if err != nil {
			return err
		}
		if given, err = tx.GiveUpJob(ctx, s.job.ID, s.job.WakeSeq, code, message, now); err != nil || !given {
			return err
		}
		var ends []store.Ending
		for _, c := range carried {
			if c.Current && c.State == store.ItemOutstanding {
				ends = append(ends, store.Ending{ItemID: c.ItemID, Code: code, Message: message, Retryable: true})
			}
		}
		if err := finish(ctx, tx, s.task); err != nil {
			return err
		}
		return s.failAll(ctx, tx, s.job, ends, "given_up", code+": "+message, now)
	})
	if err == nil && !given {
		return again()
	}
	return err
}

// answered notes what every readable answer about a job tells.
func (s *settling) answered(ctx context.Context, r geonode.Reply) error {
	s.heardAt = r.Date
	s.health.note(s.job.ID, false)
	return s.heard(ctx, r)
}

// heard notes what every readable answer tells: the account works, and how far
// the vendor's clock is from ours.
func (p *Pipeline) heard(ctx context.Context, r geonode.Reply) error {
	p.hearClock(ctx, r.Date)
	return p.gates.passed(ctx, store.GateRead)
}
