package pipeline

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

const (
	// reconcilePasses bounds how often a list is read until two readings agree:
	// its pages shift while jobs are added.
	reconcilePasses = 3
	// reconcilePages bounds one reading of a list.
	reconcilePages = 2000
	// listTries is how often one page of a list is asked for.
	listTries = 5
	// dateSlack is how exactly the vendor's clock is known: Date headers are in
	// whole seconds. Jobs that were made after the run began stay outside, or
	// the list would grow while it is read.
	dateSlack = 2 * time.Second
)

// listed is a row of one of the vendor's job lists.
type listed struct {
	id      string
	status  geonode.Status
	created time.Time // By the vendor's clock.
}

// reading sums up one reading of a list, so that two can be compared without
// keeping what was listed: how many rows, and the sum of their ids' hashes,
// which doesn't depend on their order.
type reading struct {
	rows, foreign int
	sum           uint64
}

// same reports whether two readings saw the same rows. Which of them are
// foreign may differ: a call under way may have been written down between them.
func (o *reading) same(other reading) bool { return o.rows == other.rows && o.sum == other.sum }

// most keeps what a reading saw that came further than the one before.
func (o *reading) most(got reading) {
	if got.rows > o.rows {
		*o = got
	}
}

// list reads one list whole, again until two readings agree. Each reading
// compares every row: one that had not ended in the first may have by then.
func (r *reconciling) list(ctx context.Context, kind store.Kind) error {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	seed := maphash.MakeSeed()
	var last reading
	defer func() { r.run.Listed, r.run.ForeignJobs = r.run.Listed+last.rows, r.run.ForeignJobs+last.foreign }()
	for pass := range reconcilePasses {
		ahead := r.clock.ahead()
		got, pages, err := r.readList(ctx, kind, seed)
		if err != nil {
			r.unread[kind] = true
			last.most(got)
			return err
		}
		// One page cannot shift. A reading whose answers showed that the vendor's
		// clock is another was one of the wrong window.
		agree := pages <= 1 || pass > 0 && got.same(last)
		last = got
		if agree && (r.clock.ahead()-ahead).Abs() <= dateSlack {
			return nil
		}
	}
	return nil
}

// errLongList reports a list of which only the first pages were read.
var errLongList = errors.New("the list is longer than one run reads")

// readList reads a list from its first page to its last and wakes what has
// ended there. It returns what it saw and on how many pages.
func (r *reconciling) readList(ctx context.Context, kind store.Kind, seed maphash.Seed) (reading, int, error) {
	var got reading
	// The answers may have shown by now that the vendor's clock is another.
	params := geonode.ListParams{
		Start: r.clock.vendorTime(r.run.WindowStart), End: r.clock.vendorTime(r.run.WindowEnd).Add(dateSlack),
	}
	for page := 1; page <= reconcilePages; page++ {
		params.Page = page
		rows, meta, err := r.listPage(ctx, kind, params)
		if err != nil {
			return got, page, err
		}
		r.run.Pages++
		for _, row := range rows {
			got.rows++
			got.sum += maphash.String(seed, row.id)
		}
		foreign, err := r.compare(ctx, rows)
		if err != nil {
			return got, page, err
		}
		got.foreign += foreign
		if lastPage(meta, page, len(rows)) {
			return got, page, nil
		}
	}
	return got, reconcilePages, errLongList
}

// compare wakes the listed jobs that ended there and are open here. It returns
// how many of the listed are nobody's here.
func (r *reconciling) compare(ctx context.Context, rows []listed) (int, error) {
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.id
	}
	// Before the ids are looked for: a call that has ended by now is found there.
	certain, err := r.certain(ctx)
	if err != nil {
		return 0, err
	}
	known, err := r.store.KnownVendorIDs(ctx, ids)
	if err != nil {
		return 0, err
	}
	foreign := 0
	var wake []int64
	for _, row := range rows {
		job, ok := known[row.id]
		if !ok {
			if row.created.Before(certain) {
				foreign++
			}
			continue
		}
		if !unsettled(job) {
			continue
		}
		woken := r.open[job.ID]
		r.open[job.ID] = woken
		if !woken && row.status.Terminal() && job.AcceptedAt != nil && !job.AcceptedAt.After(r.young) {
			wake = append(wake, job.ID)
			r.open[job.ID] = true // Pages that shift may show a row twice.
		}
	}
	r.run.Missing += len(wake)
	return foreign, r.wakeFor(ctx, wake, "the vendor's list shows it ended")
}

// certain is until when, by the vendor's clock, a job must have been made to be
// nobody's here when its id is not recorded. A later one may be ours: a call is
// under way or in doubt, and the vendor's answer is not written down yet.
func (r *reconciling) certain(ctx context.Context) (time.Time, error) {
	until := r.young
	claim, err := r.store.OldestClaim(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if claim != nil && claim.Add(-adoptSlack).Before(until) {
		until = claim.Add(-adoptSlack)
	}
	return r.clock.vendorTime(until), nil
}

// unsettled reports a job that can still bring something home.
func unsettled(j store.KnownJob) bool {
	return j.State == store.JobAccepted || j.State == store.JobGivenUp
}

// listPage reads one page of a job list.
func (p *Pipeline) listPage(ctx context.Context, kind store.Kind, params geonode.ListParams) ([]listed, geonode.ListPage, error) {
	var rows []listed
	var meta geonode.ListPage
	err := p.persist(ctx, func(ctx context.Context) (geonode.Reply, error) {
		var reply geonode.Reply
		var err error
		rows, meta, reply, err = p.list(ctx, kind, params)
		return reply, err
	})
	return rows, meta, err
}

// persist reads one page of a list, and tries again a few times when the vendor
// is busy: a run would otherwise end at the first 429.
func (p *Pipeline) persist(ctx context.Context, read func(context.Context) (geonode.Reply, error)) error {
	var last error
	for range listTries {
		if err := p.readTurn(ctx); err != nil {
			return err
		}
		reply, err := read(ctx)
		if err == nil {
			return p.heard(ctx, reply)
		}
		last = err
		var e *geonode.Error
		if !errors.As(err, &e) || !e.Retryable() && !errors.Is(err, geonode.ErrThrottled) {
			return err
		}
		if _, _, err := p.gates.failed(ctx, store.GateRead, err); err != nil {
			return err
		}
		if err := sleep(ctx, time.Second/4+jitter(time.Second)); err != nil {
			return err
		}
	}
	return last
}

// readTurn waits at the read gate.
func (p *Pipeline) readTurn(ctx context.Context) error {
	for {
		wait, err := p.gates.wait(ctx, store.GateRead)
		if err != nil || wait == 0 {
			return err
		}
		if err := sleep(ctx, wait+behindLive+jitter(behindLive/2)); err != nil {
			return err
		}
	}
}

// behindLive is how long after a closed gate has opened a run waits on: tasks
// that wait for it start within a second, and would find it closed again by a
// run that asks first.
const behindLive = 1200 * time.Millisecond

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (p *Pipeline) list(ctx context.Context, kind store.Kind, params geonode.ListParams) ([]listed, geonode.ListPage, geonode.Reply, error) {
	switch kind {
	case store.KindExtract:
		got, err := p.vendor.ListExtracts(ctx, geonode.ExtractListParams{ListParams: params})
		if err != nil {
			return nil, geonode.ListPage{}, geonode.Reply{}, err
		}
		return listing(got.Jobs, func(j *geonode.ExtractSummary) listed { return listed{j.JobID, j.Status, j.CreatedAt.Time} }), got.ListPage, got.Reply, nil
	case store.KindBatch:
		got, err := p.vendor.ListBatches(ctx, params)
		if err != nil {
			return nil, geonode.ListPage{}, geonode.Reply{}, err
		}
		return listing(got.Jobs, func(j *geonode.BatchSummary) listed { return listed{j.JobID, j.Status, j.CreatedAt.Time} }), got.ListPage, got.Reply, nil
	case store.KindCrawl:
		got, err := p.vendor.ListCrawls(ctx, params)
		if err != nil {
			return nil, geonode.ListPage{}, geonode.Reply{}, err
		}
		return listing(got.Jobs, func(j *geonode.CrawlSummary) listed { return listed{j.JobID, j.Status, j.CreatedAt.Time} }), got.ListPage, got.Reply, nil
	case store.KindMixed, store.KindSync:
	}
	return nil, geonode.ListPage{}, geonode.Reply{}, fmt.Errorf("the vendor has no list of %s jobs", kind)
}

func listing[T any](rows []T, of func(*T) listed) []listed {
	out := make([]listed, len(rows))
	for i := range rows {
		out[i] = of(&rows[i])
	}
	return out
}
