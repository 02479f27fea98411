package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/riverqueue/river"

	"rollcall/store"
)

const (
	// queueCompare has people waiting at it.
	queueCompare = "compare"
	// compareTime bounds the comparing of two batches.
	compareTime = 5 * time.Minute
	// compareTries is how often it is tried.
	compareTries = 3
	// keepComparisons is how long comparisons stay.
	keepComparisons = 30 * 24 * time.Hour
	// forgetAtOnce is how many go at a time: each has a row a page.
	forgetAtOnce = 1
)

// compareArgs asks that two batches be compared. Running twice is harmless: the
// first run takes the comparison out of its state, in the transaction that
// writes all of it.
type compareArgs struct {
	ComparisonID int64 `json:"comparison_id"`
}

// Kind implements river.JobArgs.
func (compareArgs) Kind() string { return "compare" }

type compareWorker struct {
	river.WorkerDefaults[compareArgs]
	p *Pipeline
}

// Timeout implements river.Worker.
func (w *compareWorker) Timeout(*river.Job[compareArgs]) time.Duration { return compareTime }

// Work implements river.Worker.
func (w *compareWorker) Work(ctx context.Context, task *river.Job[compareArgs]) error {
	err := w.p.compare(ctx, task.Args.ComparisonID)
	if err == nil || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if task.Attempt >= compareTries {
		err = errors.Join(err, w.p.store.FailComparison(ctx, task.Args.ComparisonID, "it could not be worked out", w.p.now()))
	}
	return ofTask(err, "compare", task.Args.ComparisonID)
}

func (p *Pipeline) compare(ctx context.Context, id int64) error {
	c, err := p.store.BatchComparison(ctx, id)
	if err != nil {
		return err
	}
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		// Waiting it keeps both from being pruned, unless it waited for too long.
		for _, id := range []int64{c.ABatchID, c.BBatchID} {
			if b, err := tx.Batch(ctx, id); err != nil {
				return err
			} else if b.PrunedAt != nil {
				return tx.FailComparison(ctx, c.ID, removedItems(id), p.now())
			}
		}
		_, err := tx.CompareBatches(ctx, c, p.now())
		return err
	})
	if err != nil {
		return err
	}
	_, err = p.store.ForgetComparisons(ctx, p.now().Add(-keepComparisons), forgetAtOnce)
	return err
}

// CompareBatches has the pages of two batches compared by a task, anew when they
// were before. Asked for twice at once it is one comparison. It returns
// *InvalidSubmission, having written nothing, when the items of one were removed
// or are being removed.
func (p *Pipeline) CompareBatches(ctx context.Context, a, b int64) error {
	now := p.now()
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := errors.Join(holdWhole(ctx, tx, a, "a"), holdWhole(ctx, tx, b, "b")); err != nil {
			return err
		}
		id, err := tx.AskComparison(ctx, a, b, now)
		if err != nil {
			return err
		}
		err = tx.Audit(ctx, now, store.Change{
			What: "batch.compare", Kind: "batch", ID: strconv.FormatInt(b, 10), After: map[string]int64{"with": a},
		})
		if err != nil {
			return err
		}
		// One each time: a task that runs may have read the batches already.
		return p.queue.insert(ctx, tx, []river.InsertManyParams{{Args: compareArgs{ComparisonID: id}, InsertOpts: &river.InsertOpts{Queue: queueCompare}}})
	})
	if err != nil {
		return fmt.Errorf("compare batch %d with %d: %w", b, a, err)
	}
	return nil
}
