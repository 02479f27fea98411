package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"rollcall/store"
)

// resubmitGroup bounds the items of one transaction.
const resubmitGroup = 1000

// Resubmitted is what became of a resubmission.
type Resubmitted struct {
	Items, Jobs int64
	BatchID     int64 // Of all of them; 0 when they are of several.
	// Sealed are the batches whose custom headers this key doesn't open. They are
	// never sent without them, so their items stay as they are.
	Sealed []int64
}

// Resubmit sends failed or cancelled items again that still stand as planned, in
// new jobs that join their lineage, and leaves any other alone: doing it twice
// does it once. What an earlier job still brings home is stored all the same. A
// batch that cannot be sent keeps no other from being.
func (p *Pipeline) Resubmit(ctx context.Context, itemIDs []int64, as store.AsPlanned) (Resubmitted, error) {
	var done Resubmitted
	for len(itemIDs) > 0 {
		n := min(len(itemIDs), resubmitGroup)
		if err := p.resubmitGroup(ctx, itemIDs[:n], as, &done); err != nil {
			return done, err
		}
		itemIDs = itemIDs[n:]
	}
	p.log.InfoContext(ctx, "resubmitted at a person's word", slog.Int64("items", done.Items), slog.Int64("jobs", done.Jobs))
	return done, nil
}

// reopening is one batch's items on their way to new jobs.
type reopening struct {
	call      *call
	parts     []part
	from      []*int64 // The job that each part's items come from, if it is one.
	items     []store.ReopenedItem
	failed    int64
	cancelled int64
}

// resubmitGroup sends some items again in one transaction.
func (p *Pipeline) resubmitGroup(ctx context.Context, ids []int64, as store.AsPlanned, done *Resubmitted) error {
	var items, jobs int64
	var all []*reopening
	var sealed []int64
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		items, jobs, all, sealed = 0, 0, nil, nil
		locked, err := tx.LockEnded(ctx, ids, as)
		if err != nil {
			return err
		}
		for len(locked) > 0 {
			n := 1
			for n < len(locked) && locked[n].BatchID == locked[0].BatchID {
				n++
			}
			r, err := p.reopen(ctx, tx, locked[:n])
			switch {
			case errors.Is(err, ErrSealed):
				sealed = append(sealed, locked[0].BatchID)
			case err != nil:
				return err
			default:
				items, jobs, all = items+int64(n), jobs+int64(len(r.parts)), append(all, r)
			}
			locked = locked[n:]
		}
		if err := p.auditResubmit(ctx, tx, all, jobs); err != nil {
			return err
		}
		return countReopened(ctx, tx, all, p.now())
	})
	if err != nil {
		return fmt.Errorf("resubmit: %w", err)
	}
	for _, r := range all {
		if done.Items == 0 && r == all[0] {
			done.BatchID = r.call.batch.ID
		} else if done.BatchID != r.call.batch.ID {
			done.BatchID = 0
		}
	}
	done.Items += items
	done.Jobs += jobs
	for _, id := range sealed {
		if !slices.Contains(done.Sealed, id) {
			done.Sealed = append(done.Sealed, id)
		}
	}
	return nil
}

// countReopened moves the counters last, batch by batch in one order.
func countReopened(ctx context.Context, tx store.Tx, all []*reopening, now time.Time) error {
	for _, r := range all {
		if err := tx.UnflagBatch(ctx, r.call.batch.ID); err != nil {
			return err
		}
		counts := store.Counts{Net: store.NetPoll, Failed: -r.failed, Cancelled: -r.cancelled}
		if err := tx.AddCounts(ctx, r.call.batch.ID, counts, now); err != nil {
			return err
		}
	}
	return nil
}

// reopen makes one batch's items outstanding, carried by new jobs. It returns
// ErrSealed, having written nothing, when the batch's headers do not open.
func (p *Pipeline) reopen(ctx context.Context, tx store.Tx, items []store.ReopenedItem) (*reopening, error) {
	now := p.now()
	b, err := tx.Batch(ctx, items[0].BatchID)
	if err != nil {
		return nil, err
	}
	r := &reopening{call: &call{batch: b}, items: items}
	if r.call.options, r.call.headers, err = p.readOptions(b); err != nil {
		return nil, err
	}
	r.plan(p.cfg.URLsPerJob)
	jobs := make([]*store.Job, len(r.parts))
	for i, what := range r.parts {
		jobs[i] = newJob(r.call, what, store.OriginResubmit, now)
		jobs[i].ParentJobID = r.from[i]
	}
	if err := insertCarrying(ctx, tx, jobs, r.parts); err != nil {
		return nil, err
	}
	var ids, current []int64
	for i, what := range r.parts {
		for _, it := range what.items {
			ids, current = append(ids, it.ItemID), append(current, jobs[i].ID)
		}
	}
	if err := tx.Reopen(ctx, ids, current); err != nil {
		return nil, err
	}
	if err := tx.InsertEvents(ctx, intendedEvents(jobs, "resubmitted by a person")); err != nil {
		return nil, err
	}
	return r, p.queue.dispatch(ctx, tx, jobs, time.Time{})
}

// plan cuts the items into jobs of the kind that carried them last: a batch's
// together, a crawl's seed as a crawl, everything else by itself.
func (r *reopening) plan(urlsPerJob int) {
	for i := range r.items {
		it := &r.items[i]
		if it.State == store.ItemFailed {
			r.failed++
		} else {
			r.cancelled++
		}
		r.add(it, urlsPerJob)
	}
}

func (r *reopening) add(it *store.ReopenedItem, urlsPerJob int) {
	kind := kindAgain(it)
	send := store.SendItem{ItemID: it.ID, URL: it.URL}
	last := len(r.parts) - 1
	if kind == store.KindBatch && last >= 0 && r.parts[last].kind == kind && len(r.parts[last].items) < urlsPerJob {
		r.parts[last].items = append(r.parts[last].items, send)
		if r.from[last] == nil || it.JobID == nil || *r.from[last] != *it.JobID {
			r.from[last] = nil // They come from several jobs.
		}
		return
	}
	r.parts = append(r.parts, part{kind: kind, items: []store.SendItem{send}})
	r.from = append(r.from, it.JobID)
}

// kindAgain is the kind of job that an item is sent again in.
func kindAgain(it *store.ReopenedItem) store.Kind {
	switch {
	case it.JobKind == nil:
		return store.KindExtract
	case *it.JobKind == store.KindBatch:
		return store.KindBatch
	case *it.JobKind == store.KindCrawl && it.InputIndex != nil && *it.InputIndex == 0:
		return store.KindCrawl
	}
	return store.KindExtract
}

// URLsPerJob is how many URLs of a batch one job carries at most.
func (p *Pipeline) URLsPerJob() int { return p.cfg.URLsPerJob }
