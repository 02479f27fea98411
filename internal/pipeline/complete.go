package pipeline

import (
	"cmp"
	"context"
	"slices"

	"rollcall/store"
)

// completeGroup is how many completed jobs share a commit at most.
const completeGroup = 256

// completing is a look at a job of one URL that found its page. It needs
// nothing but the write, in which it is like many others.
type completing struct {
	look    *settling
	page    *readPage
	carried store.CarriedItem
}

// newCompletions makes jobs that complete at the same time share a commit.
// Each by itself waits for the others of its batch: whoever counts holds the
// batch's row until it is committed.
func newCompletions(p *Pipeline) *groupCommit[*completing] {
	return &groupCommit[*completing]{
		what: "completed job", most: completeGroup, committers: 1, log: p.log,
		size:    (*completing).size,
		compare: func(a, b *completing) int { return cmp.Compare(a.look.job.ID, b.look.job.ID) },
		write:   p.complete, queue: make(chan waiting[*completing], groupQueue),
	}
}

func (c *completing) size() int { return c.page.results[0].Size() }

// complete settles completed jobs, each with its task and its timeline, in one
// transaction; the counters come last, as they lock the batches.
func (p *Pipeline) complete(ctx context.Context, group []*completing) error {
	now, tasks := p.now(), make([]int64, len(group))
	for i, c := range group {
		tasks[i] = c.look.task.ID
	}
	// A job whose task was rescued while it ran may be there twice.
	group = slices.CompactFunc(group, func(a, b *completing) bool { return a.look.job.ID == b.look.job.ID })
	rows := make([]*store.Completion, len(group))
	for i, c := range group {
		rows[i] = c.row()
	}
	return p.inTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.LockCompletions(ctx, rows); err != nil {
			return err
		}
		sums := judgeAll(group, rows)
		if err := tx.Complete(ctx, rows, now); err != nil {
			return err
		}
		if err := finishAll(ctx, tx, tasks, now); err != nil {
			return err
		}
		for _, s := range sums {
			if err := tx.CountLast(ctx, s.batch, s.counts, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *completing) row() *store.Completion {
	job := c.look.job
	return &store.Completion{
		JobID: job.ID, BatchID: job.BatchID, Result: c.page.results[0],
		VendorStatus: string(c.page.status), VendorEnd: c.look.clock.ourTime(c.look.vendorEnd),
	}
}

// batchSum is what a group adds to the counters of one batch by one net.
type batchSum struct {
	batch  int64
	counts store.Counts
}

// judgeAll decides what becomes of each of a group and sums that up for each
// batch, in the order in which all lock batches.
func judgeAll(group []*completing, rows []*store.Completion) []*batchSum {
	var sums []*batchSum
	taken := map[int64]bool{} // Items that an earlier one of the group stored.
	for i, row := range rows {
		at := slices.IndexFunc(sums, func(s *batchSum) bool { return s.batch == row.BatchID && s.counts.Net == row.Result.Net })
		if at < 0 {
			at = len(sums)
			sums = append(sums, &batchSum{batch: row.BatchID, counts: store.Counts{Net: row.Result.Net}})
		}
		group[i].judge(row, &sums[at].counts, taken)
	}
	slices.SortStableFunc(sums, func(a, b *batchSum) int { return cmp.Compare(a.batch, b.batch) })
	return sums
}

// judge decides what becomes of one, as write does for a page.
func (c *completing) judge(row *store.Completion, counts *store.Counts, taken map[int64]bool) {
	item, stored, before := row.Result.ItemID, map[int64]bool{}, counts.Charged
	if row.Was != "" && row.Was != store.ItemStored && !taken[item] {
		row.Store, taken[item], stored[item] = true, true, true
		counts.Store(row.Was)
	}
	var fresh []int64
	if row.Was != "" && (row.Had == nil || *row.Had != store.OutcomeStored && *row.Had != store.OutcomeSuperseded) {
		fresh = []int64{item}
	}
	c.page.reported = nil
	row.Superseded = c.page.countCharges(counts, stored, fresh)
	row.Charged = counts.Charged - before
	said := c.carried
	said.Outcome = row.Had
	if len(c.page.reported) > 0 {
		row.Outcome = c.page.reported[0].Outcome
		said.Outcome = &row.Outcome
	}
	row.Detail = summary(c.page.status, []store.CarriedItem{said})
}
