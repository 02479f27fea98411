package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

const (
	// listAtOnce is how many pages are read at the same time. The longer a list
	// takes to read, the more its pages shift meanwhile.
	listAtOnce = 4
	// listRetries is how many pages of a list may fail and be read again, and one
	// more for every other page.
	listRetries = 3
	listPause   = 200 * time.Millisecond
)

// listRead is what the vendor's list of extract jobs showed in one sweep.
type listRead struct {
	s          *listSweep
	rows       map[string]geonode.Status
	pages      int // Calls made.
	unreadable int
	unfiltered bool // The vendor did not filter by the status asked for.
}

func newListRead(s *listSweep) *listRead {
	return &listRead{s: s, rows: map[string]geonode.Status{}}
}

func (l *listRead) has(d *store.DueJob) bool {
	_, ok := l.rows[d.VendorJobID]
	return ok
}

// affordable is how many pages may be read in place of asking singly: each look
// at a job by list comes sooner than one by itself would.
func affordable(jobs int) int { return min(listPages, 1+jobs/10) }

// listPass is the reading of one list to its end.
type listPass struct {
	*listRead
	params  geonode.ListParams
	most    int
	todo    []int // Pages to read, in this order.
	highest int   // Of the pages read or to be read.
	count   int   // Of pages, as the vendor says; -1 while unknown.
	retries int
}

// pageAnswer is what became of one page.
type pageAnswer struct {
	page int
	got  *geonode.ExtractList
	err  error
}

// read reads the whole list of a status in the window in which the jobs were
// made. What ends meanwhile makes the rows behind it move to earlier pages, so
// the pages are read from the last to the first where their number is known.
func (l *listRead) read(ctx context.Context, status geonode.Status, jobs []store.DueJob) error {
	pass := &listPass{listRead: l, params: l.window(status, jobs), most: affordable(len(jobs)), count: -1}
	pass.plan(max(1, min(l.s.lists.last(status), pass.most)))
	pass.retries = listRetries + pass.highest/2
	for len(pass.todo) > 0 {
		if err := pass.wave(ctx); err != nil {
			return err
		}
	}
	l.s.lists.note(status, pass.count)
	if l.unreadable > len(l.rows) {
		return errHoles
	}
	return nil
}

// window is where the jobs are in the list. A job is made between its call and
// its acceptance.
func (l *listRead) window(status geonode.Status, jobs []store.DueJob) geonode.ListParams {
	start, end := jobs[0].CalledAt, jobs[0].AcceptedAt
	for i := range jobs {
		if jobs[i].CalledAt.Before(start) {
			start = jobs[i].CalledAt
		}
		if jobs[i].AcceptedAt.After(end) {
			end = jobs[i].AcceptedAt
		}
	}
	return geonode.ListParams{
		Status: status,
		Start:  l.s.clock.vendorTime(start).Add(-adoptSlack), End: l.s.clock.vendorTime(end).Add(adoptSlack),
	}
}

// plan adds the pages up to highest that are not planned yet, the last first.
func (p *listPass) plan(highest int) {
	for page := highest; page > p.highest; page-- {
		p.todo = append(p.todo, page)
	}
	p.highest = max(p.highest, highest)
}

// wave reads a few pages at once and plans what they show to be left.
func (p *listPass) wave(ctx context.Context) error {
	if err := p.permitted(ctx); err != nil {
		return err
	}
	n := min(len(p.todo), listAtOnce)
	answers := p.ask(ctx, p.todo[:n])
	p.todo = p.todo[n:]
	p.pages += n
	failed := false
	for _, a := range answers {
		if a.err != nil {
			failed = true
		}
		if err := p.take(ctx, a); err != nil {
			return err
		}
	}
	if failed {
		return sleep(ctx, listPause/2+jitter(listPause))
	}
	return nil
}

// permitted makes sure of the turn and of the read gate.
func (p *listPass) permitted(ctx context.Context) error {
	s := p.s
	kept, err := s.store.KeepSweep(ctx, s.row.Kind, s.row.Turn, s.now().Add(sweepLease))
	if err != nil {
		return err
	}
	if !kept {
		return errTurnLost
	}
	wait, err := s.gates.wait(ctx, store.GateRead)
	if err == nil && wait > 0 {
		s.putOff, err = wait, errPutOff
	}
	return err
}

// errPutOff reports a sweep that the read gate put off.
var errPutOff = errors.New("the read gate is closed")

func (p *listPass) ask(ctx context.Context, pages []int) []pageAnswer {
	ctx, cancel := context.WithTimeout(ctx, sweepCall)
	defer cancel()
	answers := make([]pageAnswer, len(pages))
	var calls sync.WaitGroup
	for i, page := range pages {
		calls.Go(func() {
			params := p.params
			params.Page = page
			got, err := p.s.vendor.ListExtracts(ctx, geonode.ExtractListParams{ListParams: params})
			answers[i] = pageAnswer{page: page, got: got, err: err}
		})
	}
	calls.Wait()
	return answers
}

// take adds the rows of one page, or sees to its being read again.
func (p *listPass) take(ctx context.Context, a pageAnswer) error {
	if a.err != nil {
		return p.failed(ctx, a)
	}
	if err := p.s.heard(ctx, a.got.Reply); err != nil {
		return err
	}
	for _, row := range a.got.Jobs {
		p.rows[row.JobID] = row.Status
		p.unfiltered = p.unfiltered || row.Status.Terminal() ||
			row.Status == geonode.StatusQueued && p.params.Status != geonode.StatusQueued
	}
	p.unreadable += a.got.Unreadable
	rows := len(a.got.Jobs) + a.got.Unreadable
	if a.got.PageCount.Known {
		return p.counted(int(min(a.got.PageCount.N, listPages+1)))
	}
	if rows > 0 && a.page == p.highest {
		return p.counted(p.highest + 1)
	}
	return nil
}

// counted plans the pages that the list turns out to have, and drops those it
// hasn't.
func (p *listPass) counted(pages int) error {
	if pages > p.most {
		return fmt.Errorf("%w: it has %d pages for %d jobs", errUseless, pages, len(p.s.due))
	}
	p.count = max(p.count, pages)
	kept := p.todo[:0]
	for _, page := range p.todo {
		if page <= p.count || page == 1 {
			kept = append(kept, page)
		}
	}
	p.todo = kept
	p.plan(p.count)
	return nil
}

// failed closes the gate, plans the page anew, or gives the sweep up.
func (p *listPass) failed(ctx context.Context, a pageAnswer) error {
	wait, account, err := p.s.gates.failed(ctx, store.GateRead, a.err)
	if err != nil {
		return err
	}
	if account {
		p.s.putOff = wait
		return errPutOff
	}
	var e *geonode.Error
	if !errors.As(a.err, &e) || !e.Retryable() || p.retries == 0 || ctx.Err() != nil {
		return a.err
	}
	p.retries--
	p.todo = append(p.todo, a.page)
	return nil
}

// listSizes remembers how many pages each list had when it was last read. It is
// a hint for reading from the end and no more.
type listSizes struct {
	mu    sync.Mutex
	pages map[geonode.Status]int
}

func (l *listSizes) last(status geonode.Status) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pages[status]
}

func (l *listSizes) note(status geonode.Status, pages int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pages == nil {
		l.pages = map[geonode.Status]int{}
	}
	l.pages[status] = pages
}
