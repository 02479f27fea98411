package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"rollcall/store"
)

// pruneGroup is how many items, jobs or lines one transaction deletes, and how
// many batches are marked at once.
const pruneGroup = 500

// pruneFaults is after how many batches in a row that can't be removed a run
// ends: it is hardly their own fault then.
const pruneFaults = 10

// prune removes items, jobs, results and rejected lines of batches whose time is
// over, in small groups with a transaction of its own each. A batch is marked
// first, from when on nothing of it becomes outstanding again; its row stays,
// with the counters that the roll call sums. Where a run ends the next one goes
// on, on whichever replica: what is marked is found again. A batch that can't be
// removed keeps none of the others.
func (p *Pipeline) prune(ctx context.Context, now time.Time, k *Kept) error {
	if err := p.beginPruning(ctx, now); err != nil {
		return err
	}
	failed, inRow := map[int64]error{}, 0
	for {
		ids, err := p.store.PruningBatches(ctx, pruneGroup)
		if err != nil {
			return errors.Join(err, joined(failed))
		}
		ended := k.Batches
		for _, id := range ids {
			if failed[id] != nil {
				continue
			}
			inRow++
			if err := p.pruneBatch(ctx, id, k); err != nil {
				failed[id] = fmt.Errorf("batch %d: %w", id, err)
			} else {
				inRow = 0
			}
			if ctx.Err() != nil || inRow == pruneFaults {
				return joined(failed)
			}
		}
		// What can't end now stays at the front: the next run looks at it again.
		if len(ids) < pruneGroup || k.Batches == ended {
			return joined(failed)
		}
	}
}

// joined is what went wrong with each batch, by id.
func joined(failed map[int64]error) error {
	var all []error
	for _, id := range slices.Sorted(maps.Keys(failed)) {
		all = append(all, failed[id])
	}
	return errors.Join(all...)
}

// beginPruning marks the batches whose time is over. A call in doubt is looked
// for among the vendor's jobs of its time, where those that are recorded here
// are known not to be it: batches that ended later than its call stay. Those
// that somebody holds just then are left for the next run, which the log says.
func (p *Pipeline) beginPruning(ctx context.Context, now time.Time) error {
	before, ends := since(now, p.cfg.KeepBatches)
	if !ends {
		return nil
	}
	claim, err := p.store.OldestClaim(ctx)
	if err != nil {
		return err
	}
	if claim != nil && claim.Add(-adoptSlack).Before(before) {
		before = claim.Add(-adoptSlack)
	}
	for {
		n, err := inTx(ctx, p.store, func(ctx context.Context, tx store.Tx) (int64, error) {
			return tx.BeginPruning(ctx, before, now, pruneGroup)
		})
		if err != nil {
			return err
		}
		if n < pruneGroup {
			break
		}
	}
	left, err := p.store.RipeBatches(ctx, before, now, pruneGroup)
	if left > 0 {
		p.log.InfoContext(ctx, "batches whose time is over are held by something else, the next run tries them again", slog.Int64("batches", left))
	}
	return err
}

// holdWhole keeps a batch from being pruned until the transaction ends. One of
// which that has begun is *InvalidSubmission for the field that names it.
func holdWhole(ctx context.Context, tx store.Tx, id int64, field string) error {
	pruned, err := tx.HoldBatch(ctx, id)
	if err == nil && pruned {
		return &InvalidSubmission{Fields: []FieldError{{field, removedItems(id)}}}
	}
	return err
}

// removedItems says why a batch whose time is over is good for nothing but its
// counts.
func removedItems(id int64) string {
	return fmt.Sprintf("the items of batch %d were removed, since its time was over", id)
}

// pruneBatch removes a batch that is marked, down to its row.
func (p *Pipeline) pruneBatch(ctx context.Context, id int64, k *Kept) error {
	items, err := inGroups(ctx, func(ctx context.Context) (int64, error) {
		return inTx(ctx, p.store, func(ctx context.Context, tx store.Tx) (int64, error) { return tx.PruneItems(ctx, id, pruneGroup) })
	})
	k.Items += items
	if err != nil {
		return err
	}
	jobs, err := inGroups(ctx, func(ctx context.Context) (int64, error) {
		return inTx(ctx, p.store, func(ctx context.Context, tx store.Tx) (int64, error) {
			return tx.PruneJobs(ctx, id, pruneGroup, p.now())
		})
	})
	k.Jobs += jobs
	if err != nil {
		return err
	}
	_, err = inGroups(ctx, func(ctx context.Context) (int64, error) { return p.store.PruneLines(ctx, id, pruneGroup) })
	if err != nil {
		return err
	}
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		gone, err := tx.EndPruning(ctx, id, p.now())
		if gone {
			k.Batches++
		}
		return err
	})
}

// forget removes what is noted of our own work and is too old: events of
// foreign and of pruned jobs, runs, statistics, and the audit log.
func (p *Pipeline) forget(ctx context.Context, now time.Time, k *Kept) error {
	for _, part := range []struct {
		keep time.Duration
		n    *int
		step func(ctx context.Context, before time.Time) (int64, error)
	}{
		{p.cfg.KeepEvents, &k.Events, func(ctx context.Context, before time.Time) (int64, error) {
			return p.store.ForgetEvents(ctx, before, retainGroup)
		}},
		{p.cfg.KeepRuns, &k.Runs, func(ctx context.Context, before time.Time) (int64, error) {
			return p.store.ForgetRuns(ctx, before, retainGroup)
		}},
		{p.cfg.KeepRuns, &k.Runs, func(ctx context.Context, before time.Time) (int64, error) {
			return p.store.ForgetReplays(ctx, before, now, retainGroup)
		}},
		{p.cfg.KeepStats, &k.Stats, func(ctx context.Context, _ time.Time) (int64, error) {
			return p.store.ForgetStats(ctx, p.statsSince(now), retainGroup)
		}},
		{p.cfg.KeepAudit, &k.Audit, func(ctx context.Context, before time.Time) (int64, error) {
			return inTx(ctx, p.store, func(ctx context.Context, tx store.Tx) (int64, error) {
				return tx.ForgetAudit(ctx, before, retainGroup)
			})
		}},
	} {
		before, ends := since(now, part.keep)
		if !ends {
			continue
		}
		n, err := inGroups(ctx, func(ctx context.Context) (int64, error) { return part.step(ctx, before) })
		*part.n += n
		if err != nil {
			return err
		}
	}
	return nil
}

// statsSince is the first hour whose statistics are kept; the zero time when
// all are. What is older is not counted again.
func (p *Pipeline) statsSince(now time.Time) time.Time {
	before, ends := since(now, p.cfg.KeepStats)
	if !ends {
		return time.Time{}
	}
	return before.UTC().Truncate(time.Hour)
}

// inGroups repeats a step that deletes a few rows until none are left.
func inGroups(ctx context.Context, step func(context.Context) (int64, error)) (int, error) {
	for gone := 0; ; {
		n, err := step(ctx)
		gone += int(n)
		if err != nil || n == 0 {
			return gone, err
		}
	}
}

// inTx runs a step in a transaction of its own and returns what it did.
func inTx(ctx context.Context, s *store.Store, step func(context.Context, store.Tx) (int64, error)) (int64, error) {
	n := int64(0)
	err := s.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		n, err = step(ctx, tx)
		return err
	})
	return n, err
}
