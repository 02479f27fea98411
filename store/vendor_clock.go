package store

import (
	"context"
	"fmt"
	"time"
)

// clocksKept is how long it is known how far the vendor's clock was ahead.
const clocksKept = 48 * time.Hour

// NoteVendorClock writes down that the vendor's clock was found to be ahead by
// another time than before, and forgets what is older than two days.
func (q Queries) NoteVendorClock(ctx context.Context, at time.Time, ahead time.Duration) error {
	_, err := q.db.NewRaw(`WITH old AS (DELETE FROM vendor_clock WHERE at < ?)
		INSERT INTO vendor_clock (at, ahead_ms) VALUES (?, ?)`, at.Add(-clocksKept), at, ahead.Milliseconds()).Exec(ctx)
	return translate(err)
}

// VendorClock is how far the vendor's clock was ahead since a time, at least and
// at most, the last that was noted before it included; false when nothing was.
func (q Queries) VendorClock(ctx context.Context, since time.Time) (time.Duration, time.Duration, bool, error) {
	var least, most *int64
	err := q.db.NewRaw(`SELECT min(ahead_ms), max(ahead_ms) FROM vendor_clock
		WHERE at >= coalesce((SELECT max(at) FROM vendor_clock WHERE at < ?0), ?0)`, since).Scan(ctx, &least, &most)
	if err != nil {
		return 0, 0, false, fmt.Errorf("how far the vendor's clock was ahead: %w", translate(err))
	}
	if least == nil || most == nil {
		return 0, 0, false, nil
	}
	return time.Duration(*least) * time.Millisecond, time.Duration(*most) * time.Millisecond, true, nil
}
