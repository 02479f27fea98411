package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"rollcall/internal/geonode"
	"rollcall/store"
)

const (
	// adoptSlack widens the window of a call on both sides, for the vendor's
	// clock, which is known to a second or so.
	adoptSlack = 30 * time.Second
	// emptyPasses is how many looks must find nothing before a new call.
	emptyPasses = 2
	// candidateGap is when to look again at a job that may yet turn out ours.
	candidateGap = 3 * time.Second
	// contestedGap is when to look again after another job took the one found.
	contestedGap = time.Second
	// clockTries is how often a look is repeated when it corrects the clock.
	clockTries = 3
	listPages  = 200 // At most, a list; more means the vendor's counts are off.
)

type adoptWorker struct {
	river.WorkerDefaults[adoptArgs]
	p *Pipeline
}

// Work implements river.Worker.
func (w *adoptWorker) Work(ctx context.Context, task *river.Job[adoptArgs]) error {
	return ofTask(w.p.adopt(ctx, task.Args.JobID, tries(task.JobRow)), "adopt job", task.Args.JobID)
}

// candidate is how a job in the vendor's lists compares with a lost call.
type candidate int

const (
	notOurs  candidate = iota
	maybeOur           // So far it agrees, but it has not shown all yet.
	ours
)

// adopt looks for the vendor job that a lost call may have made. Only one that
// asks for the same, was made in the call's window and is recorded nowhere is
// adopted; only after two looks that found none is the call made again.
func (p *Pipeline) adopt(ctx context.Context, id int64, tries int) error {
	job, err := p.store.Job(ctx, id)
	if err != nil {
		return err
	}
	now := p.now()
	if job.State != store.JobUncertain || (job.LeaseUntil != nil && job.LeaseUntil.After(now)) {
		return nil
	}
	wait, err := p.gates.wait(ctx, store.GateRead)
	if err != nil {
		return err
	}
	if wait > 0 {
		return river.JobSnooze(wait)
	}
	// While the same request is being called for, its job could be taken for
	// this one's.
	if n, err := p.store.CallingWithHash(ctx, job.RequestHash); err != nil || n > 0 {
		return err
	}
	c, err := p.prepare(ctx, job)
	if err != nil {
		return err
	}
	id2, verdict, err := p.find(ctx, c)
	late, lateErr := p.gates.late(ctx, store.GateRead, calledAt(job), now)
	if lateErr != nil {
		return lateErr
	}
	if late && tries >= leastTries && undecided(verdict, err) {
		return p.refuse(ctx, job, "GAVE_UP", "the vendor did not show in time whether it took the call", true)
	}
	if err != nil {
		return p.lookFailed(ctx, err)
	}
	return p.decide(ctx, c, id2, verdict)
}

// undecided reports a look that may bring no more the next time. An account
// that is refused is ours to mend and no reason to give up.
func undecided(verdict candidate, err error) bool {
	if err != nil {
		return !errors.Is(err, geonode.ErrUnauthorized) && !errors.Is(err, geonode.ErrBalance)
	}
	return verdict == maybeOur
}

// tries is how often a task ran, counting this time.
func tries(task *rivertype.JobRow) int {
	var meta struct {
		Snoozes int `json:"snoozes"`
	}
	if err := json.Unmarshal(task.Metadata, &meta); err != nil {
		return task.Attempt // Not River's: then only its attempts count.
	}
	return task.Attempt + meta.Snoozes
}

// lookFailed puts the look off when the vendor cannot be asked: a look that
// was not whole counts for nothing.
func (p *Pipeline) lookFailed(ctx context.Context, cause error) error {
	wait, account, err := p.gates.failed(ctx, store.GateRead, cause)
	if err != nil {
		return err
	}
	if account {
		return river.JobSnooze(wait)
	}
	if _, ok := errors.AsType[*geonode.Error](cause); ok || errors.Is(cause, errHoles) || errors.Is(cause, errClock) {
		return river.JobSnooze(time.Second + jitter(4*time.Second))
	}
	return cause
}

func (p *Pipeline) decide(ctx context.Context, c *call, vendorID string, verdict candidate) error {
	now := p.now()
	switch verdict {
	case ours:
		p.log.InfoContext(ctx, "lost answer found", slog.Int64("job_id", c.job.ID), slog.String("vendor_job_id", vendorID))
		return p.recordAdopted(ctx, c.job, accepted{id: vendorID, status: string(geonode.StatusQueued)})
	case maybeOur:
		return river.JobSnooze(candidateGap)
	case notOurs:
	}
	passes, err := p.store.AdoptPass(ctx, c.job.ID, c.job.CallNo, now, now.Add(p.cfg.AdoptGap))
	if err != nil || passes < emptyPasses {
		return err
	}
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		ok, err := tx.ReleaseJob(ctx, c.job.ID, c.job.CallNo)
		if err != nil || !ok {
			return err
		}
		event := store.JobEvent{JobID: c.job.ID, At: now, Kind: "not_found_at_vendor", Detail: "the lost call made no job; calling again"}
		if err := tx.InsertEvents(ctx, []store.JobEvent{event}); err != nil {
			return err
		}
		return p.queue.dispatch(ctx, tx, []*store.Job{c.job}, time.Time{})
	})
}

// errClock reports that each look showed another time at the vendor.
var errClock = errors.New("the vendor's clock cannot be told")

// find looks through the list of the job's kind for the call's window. The
// window is by the vendor's clock, which the answer itself may show to be
// another than was thought: a look in the wrong window is no look.
func (p *Pipeline) find(ctx context.Context, c *call) (string, candidate, error) {
	for range clockTries {
		ahead := p.clock.ahead()
		id, verdict, err := p.findIn(ctx, c)
		if err != nil || verdict == ours || (p.clock.ahead()-ahead).Abs() < adoptSlack/2 {
			return id, verdict, err
		}
	}
	return "", notOurs, errClock
}

// calledAt is when the job's call was made.
func calledAt(job *store.Job) time.Time {
	if job.CalledAt != nil {
		return *job.CalledAt
	}
	return job.CreatedAt
}

// span is from a time to a later one, by the vendor's clock.
type span struct{ first, last time.Time }

// with is the span and a moment.
func (s span) with(at time.Time) span {
	if at.Before(s.first) {
		s.first = at
	}
	if at.After(s.last) {
		s.last = at
	}
	return s
}

// vendorCalledAt is when the vendor may have taken the job's call, by its own
// clock: as the caller knew that clock then, as it is known now, and as anybody
// knew it in between. Either clock may have been put right since, ours or the
// vendor's, and more than once.
func (p *Pipeline) vendorCalledAt(ctx context.Context, job *store.Job) (span, error) {
	at := calledAt(job)
	now := p.clock.vendorTime(at)
	between := span{now, now}.with(*cmp.Or(job.CalledVendorAt, &now))
	least, most, known, err := p.store.VendorClock(ctx, at.Add(-adoptSlack))
	if err != nil || !known {
		return between, err
	}
	return between.with(at.Add(least)).with(at.Add(most)), nil
}

func (p *Pipeline) findIn(ctx context.Context, c *call) (string, candidate, error) {
	var err error
	if c.at, err = p.vendorCalledAt(ctx, c.job); err != nil {
		return "", notOurs, err
	}
	window := geonode.ListParams{Start: c.at.first.Add(-adoptSlack), End: c.at.last.Add(p.cfg.ClaimLease + adoptSlack)}
	list, compare := p.listBatches, p.compareBatch
	switch c.job.Kind {
	case store.KindExtract:
		list, compare = p.listExtracts, p.compareExtract
	case store.KindCrawl:
		list, compare = p.listCrawls, p.compareCrawl
	case store.KindBatch, store.KindMixed, store.KindSync:
	}
	return p.findListed(ctx, c, window, list, compare)
}

// found is what one page of a list holds: the candidates that agree by their
// row, and how the list goes on.
type found struct {
	ids []string
	// nearest says that the ids are in the order of how likely they are ours: one
	// that has not shown all yet keeps those behind it from being taken.
	nearest bool
	rows    int
	page    geonode.ListPage
	reply   geonode.Reply
}

type (
	lister   func(ctx context.Context, c *call, window geonode.ListParams) (*found, error)
	comparer func(ctx context.Context, c *call, id string) (candidate, error)
)

// findListed goes through a list, page by page, until it holds what is ours.
func (p *Pipeline) findListed(ctx context.Context, c *call, window geonode.ListParams, list lister, compare comparer) (string, candidate, error) {
	best, bestID := notOurs, ""
	for page := 1; page <= listPages; page++ {
		window.Page = page
		got, err := list(ctx, c, window)
		if err == nil {
			err = p.heard(ctx, got.reply)
		}
		if err != nil {
			return "", notOurs, err
		}
		id, verdict, err := p.firstOf(ctx, got, func(id string) (candidate, error) { return compare(ctx, c, id) })
		if err != nil || verdict == ours {
			return id, verdict, err
		}
		if verdict > best {
			best, bestID = verdict, id
		}
		if err := whole(got.page); err != nil {
			return "", notOurs, err
		}
		if lastPage(got.page, page, got.rows) {
			break
		}
	}
	return bestID, best, nil
}

func (p *Pipeline) listExtracts(ctx context.Context, c *call, window geonode.ListParams) (*found, error) {
	got, err := p.vendor.ListExtracts(ctx, geonode.ExtractListParams{ListParams: window, URL: c.items[0].URL})
	if err != nil {
		return nil, err
	}
	n := len(got.Jobs)
	rows := slices.DeleteFunc(got.Jobs, func(row geonode.ExtractSummary) bool {
		return !sameURL(c.items[0].URL, row.URL) || !sameFormats(c.options.Formats, row.Output)
	})
	out := &found{page: got.ListPage, rows: n, reply: got.Reply, nearest: true}
	for _, row := range nearestFirst(rows, c.at) {
		out.ids = append(out.ids, row.JobID)
	}
	return out, nil
}

// nearestFirst sorts by how far from the call a job was made: where the vendor
// lists a batch's or crawl's pages as jobs, an earlier one looks the same.
func nearestFirst(rows []geonode.ExtractSummary, call span) []geonode.ExtractSummary {
	away := func(row geonode.ExtractSummary) time.Duration {
		return min(row.CreatedAt.Sub(call.first).Abs(), row.CreatedAt.Sub(call.last).Abs())
	}
	slices.SortStableFunc(rows, func(a, b geonode.ExtractSummary) int { return cmp.Compare(away(a), away(b)) })
	return rows
}

func (p *Pipeline) listBatches(ctx context.Context, c *call, window geonode.ListParams) (*found, error) {
	got, err := p.vendor.ListBatches(ctx, window)
	if err != nil {
		return nil, err
	}
	out := &found{page: got.ListPage, rows: len(got.Jobs), reply: got.Reply}
	for i := range got.Jobs {
		row := &got.Jobs[i]
		if row.Accepted.Or(int64(len(c.items))) <= int64(len(c.items)) && sameOptions(c, row.Config) {
			out.ids = append(out.ids, row.JobID)
		}
	}
	return out, nil
}

// firstOf compares candidates that are recorded nowhere and stops at ours.
func (p *Pipeline) firstOf(ctx context.Context, got *found, compare func(string) (candidate, error)) (string, candidate, error) {
	known, err := p.store.KnownVendorIDs(ctx, got.ids)
	if err != nil {
		return "", notOurs, err
	}
	best, bestID := notOurs, ""
	for _, id := range got.ids {
		if _, taken := known[id]; taken {
			continue
		}
		verdict, err := compare(id)
		if err != nil {
			return "", notOurs, err
		}
		if verdict > best {
			best, bestID = verdict, id
		}
		if verdict == ours || (got.nearest && verdict == maybeOur) {
			break
		}
	}
	return bestID, best, nil
}

// errHoles reports a list with rows that could not be read: the job looked for
// may be among them, so it is no proof that there is none.
var errHoles = errors.New("the vendor's list holds rows that cannot be read")

func whole(p geonode.ListPage) error {
	if p.Unreadable > 0 {
		return errHoles
	}
	return nil
}

// lastPage reports that a list has no page after this one: it is empty, or
// the vendor's count says so.
func lastPage(p geonode.ListPage, page, rows int) bool {
	return rows == 0 || (p.PageCount.Known && int64(page) >= p.PageCount.N)
}
