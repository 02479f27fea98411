package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rollcall/store"
)

// verdicts is what a sweep's lists say of the jobs that were due.
type verdicts struct {
	s     *listSweep
	hooks bool
	next  time.Time // With trusted webhooks, the one next look at all of them.

	sure    []int64               // Surely to be asked about: shown as ended, or past a deadline.
	absent  []int64               // In none of the lists.
	misled  int                   // Absent ones found running before, more than once.
	noted   map[string][]int64    // Running with a status not yet noted.
	later   map[time.Time][]int64 // Running, by when to look again.
	overdue []int64               // Running and looked at again at once, but newly overdue.
}

func newVerdicts(s *listSweep, hooks bool) *verdicts {
	half := s.cfg.WebhookFallback / 2
	return &verdicts{
		s: s, hooks: hooks, next: s.began.Add(half + jitter(half)),
		noted: map[string][]int64{}, later: map[time.Time][]int64{},
	}
}

// sort takes down the verdict on one job.
func (v *verdicts) sort(d *store.DueJob) {
	age := v.s.began.Sub(d.AcceptedAt)
	status, listed := v.s.list.rows[d.VendorJobID]
	switch {
	case d.Account != v.s.cfg.Account, age > v.s.cfg.GiveUpAfter, listed && status.Terminal():
		v.sure = append(v.sure, d.ID)
	case !listed:
		v.absent = append(v.absent, d.ID)
		if d.Polls >= 2 {
			v.misled++
		}
	case age > oldAge && v.readNow(d):
		v.sure = append(v.sure, d.ID)
	default:
		if string(status) != d.VendorStatus {
			v.noted[string(status)] = append(v.noted[string(status)], d.ID)
		}
		v.again(d, age)
	}
}

// readNow picks one in looksPerRead looks at an old job, another for each job.
func (v *verdicts) readNow(d *store.DueJob) bool {
	look := v.s.began.Unix() / int64(max(1, v.s.spacing(oldAge)/time.Second))
	return (look+d.ID)%looksPerRead == 0
}

// again says when to look at a running job again. A young one stays due: the
// sweeps' own spacing is enough, and saves a write each.
func (v *verdicts) again(d *store.DueJob, age time.Duration) {
	late := age > v.s.cfg.PollMaxWait
	switch {
	case v.hooks && !late:
		v.later[v.next] = append(v.later[v.next], d.ID)
	case age >= youngAge:
		next := onGrid(v.s.began, v.s.spacing(age))
		v.later[next] = append(v.later[next], d.ID)
	case late && !d.Overdue:
		v.overdue = append(v.overdue, d.ID)
	}
}

// spacing is how long to wait between two looks at a job of this age: 2, 5, 10
// and 30 s, unless the sweeps have another spacing than 2 s.
func (p *Pipeline) spacing(age time.Duration) time.Duration {
	switch {
	case age < youngAge:
		return p.cfg.ListEvery
	case age < grownAge:
		return p.cfg.ListEvery * 5 / 2
	case age < oldAge:
		return p.cfg.ListEvery * 5
	}
	return p.cfg.ListEvery * 15
}

// onGrid is about a gap from now, and the same moment for all that ask near
// each other: jobs that are due together cost one list.
func onGrid(now time.Time, gap time.Duration) time.Time {
	return now.Add(gap * 3 / 2).Truncate(gap)
}

// wake is whom to wake, the sure ones first. Where rows could not be read, who
// is absent may be one of these, so that few are woken for it at a time.
func (v *verdicts) wake() []int64 {
	absent := v.absent
	if v.s.list.unreadable > 0 {
		absent = absent[:min(len(absent), doubtMost)]
	}
	ids := slices.Concat(v.sure, absent)
	return ids[:min(len(ids), wakeMost)]
}

// write notes what was seen of the jobs that run.
func (v *verdicts) write(ctx context.Context) error {
	p, now := v.s.Pipeline, v.s.began
	for status, ids := range v.noted {
		if err := p.store.NoteListed(ctx, ids, status); err != nil {
			return fmt.Errorf("note what runs: %w", err)
		}
	}
	overdue := now.Add(-p.cfg.PollMaxWait)
	for next, ids := range v.later {
		if err := p.store.PutOffListed(ctx, ids, &next, overdue, now); err != nil {
			return fmt.Errorf("put off what runs: %w", err)
		}
	}
	if err := p.store.PutOffListed(ctx, v.overdue, nil, overdue, now); err != nil {
		return fmt.Errorf("flag what is overdue: %w", err)
	}
	return nil
}
