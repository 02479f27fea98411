package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// EndedIDs are those of the items that have failed or are cancelled, and still
// stand as planned, in the order of their ids.
func (q Queries) EndedIDs(ctx context.Context, itemIDs []int64, as AsPlanned) ([]int64, error) {
	if len(itemIDs) == 0 {
		return nil, nil
	}
	var ids []int64
	err := q.ended(itemIDs, as).Column("id").Order("i.id").Scan(ctx, &ids)
	return ids, translate(err)
}

// Resolved is a failure that a person resolved or unresolved, and its batch.
type Resolved struct {
	ID, BatchID int64
}

// Resolve has failures wait for nobody, with a note why: those of the items that
// had failed by the given time and wait for a person. They stay failed. It
// returns which it did.
func (t Tx) Resolve(ctx context.Context, ids []int64, note string, before, now time.Time) ([]Resolved, error) {
	locked, err := t.lockStanding(ctx, ids, FailureWaiting, before)
	if err != nil || len(locked) == 0 {
		return nil, err
	}
	_, err = t.db.NewRaw(`UPDATE items SET resolved_at = ?, resolved_by = nullif(?, 0), resolved_note = ? WHERE id IN (?)`,
		now, ActorOf(ctx).UserID, CleanText(note), bun.List(idsOf(locked))).Exec(ctx)
	return locked, translate(err)
}

// Unresolve has resolved failures wait for a person again. It returns
// which it did.
func (t Tx) Unresolve(ctx context.Context, ids []int64) ([]Resolved, error) {
	locked, err := t.lockStanding(ctx, ids, FailureResolved, time.Time{})
	if err != nil || len(locked) == 0 {
		return nil, err
	}
	_, err = t.db.NewRaw(`UPDATE items SET resolved_at = NULL, resolved_by = NULL, resolved_note = '' WHERE id IN (?)`,
		bun.List(idsOf(locked))).Exec(ctx)
	return locked, translate(err)
}

// lockStanding locks those of the items that are failures of the standing, in
// the order that every writer of items takes.
func (t Tx) lockStanding(ctx context.Context, ids []int64, standing FailureStanding, before time.Time) ([]Resolved, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var locked []Resolved
	rows := standing.narrow(t.db.NewSelect().Model((*Item)(nil)).Column("id", "batch_id").Where("i.id IN (?)", bun.List(ids)))
	if !before.IsZero() {
		rows = rows.Where("i.ended_at <= ?", before)
	}
	err := rows.Order("i.id").For("NO KEY UPDATE").Scan(ctx, &locked)
	return locked, translate(err)
}

func idsOf(rows []Resolved) []int64 {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	return ids
}
