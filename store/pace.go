package store

import (
	"context"
	"time"
)

// A batch's pace is kept in a ring of slots: what ended in each, so that every
// replica reads the same and nothing has to be cleared.
const (
	// PaceSlot is the length of one slot.
	PaceSlot = 15 * time.Second
	paceRing = 60
)

// PacePart is how many items of a batch ended in one slot that began then.
type PacePart struct {
	Began  time.Time
	Ended  int64
	LastAt time.Time // When the last of them did.
}

// paceSQL notes in the ring what AddCounts counts. Its batch's row is locked
// already, so nobody else is at the ring; a clock that is behind another's
// never writes over the later slot.
const paceSQL = `INSERT INTO batch_pace (batch_id, slot, began, ended, last_at)
	SELECT id, ?slot, ?began, ?ended, ?now FROM changed WHERE ?ended > 0
	ON CONFLICT (batch_id, slot) DO UPDATE SET began = excluded.began, last_at = greatest(batch_pace.last_at, excluded.last_at),
		ended = excluded.ended + CASE WHEN batch_pace.began = excluded.began THEN batch_pace.ended ELSE 0 END
	WHERE batch_pace.began <= excluded.began`

// ended is how many items ended by the change, however they did.
func (c *Counts) ended() int64 { return max(0, c.Stored+c.Failed+c.Cancelled) }

// paceSlot is where in the ring a moment belongs, and when that slot began.
func paceSlot(now time.Time) (int64, time.Time) {
	began := now.Truncate(PaceSlot)
	return began.Unix() / int64(PaceSlot/time.Second) % paceRing, began
}

// PagePace lists what is left of a batch's ring, the oldest first. It may hold
// slots from long ago when little has moved since.
func (q Queries) PagePace(ctx context.Context, batchID int64) ([]PacePart, error) {
	var parts []PacePart
	err := q.db.NewRaw(`SELECT began, ended, last_at FROM batch_pace WHERE batch_id = ? ORDER BY began`, batchID).Scan(ctx, &parts)
	return parts, translate(err)
}
