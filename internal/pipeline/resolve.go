package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"rollcall/store"
)

// resolvedFacts are the failures that a person resolved, and why.
type resolvedFacts struct {
	manyFacts
	Note string `json:"note,omitempty"`
}

// Resolve has failures wait for nobody, with a note why: those of the items that
// had failed by the given time and wait for a person. They stay failed in the
// roll call. Doing it twice does it once. It returns how many it resolved.
func (p *Pipeline) Resolve(ctx context.Context, itemIDs []int64, note string, before time.Time) (int64, error) {
	return p.standAnew(ctx, itemIDs, "item.resolve", note, func(ctx context.Context, tx store.Tx, ids []int64) ([]store.Resolved, error) {
		return tx.Resolve(ctx, ids, note, before, p.now())
	})
}

// Unresolve has resolved failures wait for a person again. It returns how many.
func (p *Pipeline) Unresolve(ctx context.Context, itemIDs []int64) (int64, error) {
	return p.standAnew(ctx, itemIDs, "item.unresolve", "", func(ctx context.Context, tx store.Tx, ids []int64) ([]store.Resolved, error) {
		return tx.Unresolve(ctx, ids)
	})
}

type moving func(ctx context.Context, tx store.Tx, ids []int64) ([]store.Resolved, error)

// standAnew gives failures their other standing, in transactions of bounded size.
func (p *Pipeline) standAnew(ctx context.Context, ids []int64, what, note string, move moving) (int64, error) {
	var total int64
	for len(ids) > 0 {
		some := ids[:min(len(ids), resubmitGroup)]
		ids = ids[len(some):]
		var done []store.Resolved
		err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
			var err error
			if done, err = move(ctx, tx, some); err != nil || len(done) == 0 {
				return err
			}
			return p.tellStanding(ctx, tx, what, note, done)
		})
		if err != nil {
			return total, fmt.Errorf("%s: %w", what, err)
		}
		total += int64(len(done))
	}
	p.log.InfoContext(ctx, "failures resolved or unresolved by a person", slog.String("what", what), slog.Int64("items", total))
	return total, nil
}

// tellStanding writes the line of the audit log and has the batches' pages ask
// again.
func (p *Pipeline) tellStanding(ctx context.Context, tx store.Tx, what, note string, done []store.Resolved) error {
	ids, batches := make([]int64, len(done)), map[int64]bool{}
	for i, each := range done {
		ids[i] = each.ID
		batches[each.BatchID] = true
	}
	c := store.Change{What: what, Kind: "item", After: resolvedFacts{many(ids), note}}
	if len(ids) == 1 {
		c.ID = strconv.FormatInt(ids[0], 10)
	}
	if err := tx.Audit(ctx, p.now(), c); err != nil {
		return err
	}
	for id := range batches {
		if err := tx.Notify(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
