package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// SyncCall is the one call that a "try one URL" item makes. It stands in for
// the claim of a job, which a sync call does not have.
type SyncCall struct {
	bun.BaseModel `bun:"table:sync_calls,alias:sc"`
	ItemID        int64 `bun:",pk"`
	CreatedAt     time.Time
	CalledAt      *time.Time // Written before the call; who finds it never calls again.
	LeaseUntil    *time.Time // When the call has ended one way or another.
	EndedAt       *time.Time
	Note          string
}

// InsertSyncCall writes the call that is to be made for an item.
func (t Tx) InsertSyncCall(ctx context.Context, itemID int64, now time.Time) error {
	_, err := t.db.NewRaw(`INSERT INTO sync_calls (item_id, created_at) VALUES (?, ?)`, itemID, now).Exec(ctx)
	return translate(err)
}

// SyncCall returns the sync call of an item.
func (q Queries) SyncCall(ctx context.Context, itemID int64) (*SyncCall, error) {
	c := &SyncCall{}
	err := q.db.NewSelect().Model(c).Where("item_id = ?", itemID).Scan(ctx)
	return c, translate(err)
}

// ClaimSync marks an item's sync call as made, before it is. It reports false
// when it was made already.
func (q Queries) ClaimSync(ctx context.Context, itemID int64, now, lease time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE sync_calls SET called_at = ?, lease_until = ?
		WHERE item_id = ? AND called_at IS NULL AND ended_at IS NULL`, now, lease, itemID).Exec(ctx))
	return n == 1, err
}

// ReleaseSync gives back the claim of a call that the vendor certainly did not
// take.
func (q Queries) ReleaseSync(ctx context.Context, itemID int64) error {
	_, err := q.db.NewRaw(`UPDATE sync_calls SET called_at = NULL, lease_until = NULL
		WHERE item_id = ? AND ended_at IS NULL`, itemID).Exec(ctx)
	return translate(err)
}

// EndSync notes how an item's sync call ended.
func (t Tx) EndSync(ctx context.Context, itemID int64, note string, now time.Time) error {
	_, err := t.db.NewRaw(`UPDATE sync_calls SET ended_at = ?, note = ? WHERE item_id = ?`,
		now, CleanText(note), itemID).Exec(ctx)
	return translate(err)
}

// Item returns one item.
func (q Queries) Item(ctx context.Context, id int64) (*Item, error) {
	it := &Item{}
	err := q.db.NewSelect().Model(it).Where("id = ?", id).Scan(ctx)
	return it, translate(err)
}
