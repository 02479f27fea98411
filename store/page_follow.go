package store

import "context"

// Stamp is the present state of something in a text that differs whenever its
// page would. Ended says that it changes no more by itself.
type Stamp struct {
	Text  string
	Ended bool
}

// PageItemStamp looks at an item and its current job; ErrNotFound when there is
// no such item.
func (q Queries) PageItemStamp(ctx context.Context, id int64) (Stamp, error) {
	var s Stamp
	err := q.db.NewRaw(`SELECT concat_ws(' ', i.state, i.error_code, i.current_job_id, j.state, j.wake_seq, sc.called_at, sc.ended_at) AS text,
			i.state <> 'outstanding' AND (j.id IS NULL OR j.state IN ('settled', 'refused', 'withdrawn', 'split', 'given_up')) AS ended
		FROM items i LEFT JOIN jobs j ON j.id = i.current_job_id LEFT JOIN sync_calls sc ON sc.item_id = i.id
		WHERE i.id = ?`, id).Scan(ctx, &s)
	return s, translate(err)
}

// PageJobStamp looks at a job and what was written down of it last; ErrNotFound
// when there is no such job. A job that was given up may still be settled by a
// person, and a settled one doesn't change.
func (q Queries) PageJobStamp(ctx context.Context, id int64) (Stamp, error) {
	var s Stamp
	err := q.db.NewRaw(`SELECT concat_ws(' ', j.state, j.wake_seq, j.polls, j.vendor_status, j.settle_page, j.settle_passes, j.not_found,
				j.cancel_requested_at, md5(j.vendor_reports::text),
				(SELECT max(e.id) FROM job_events e WHERE e.job_id = j.id AND e.at = (SELECT max(at) FROM job_events WHERE job_id = j.id))) AS text,
			j.state IN ('settled', 'refused', 'withdrawn', 'split') AS ended
		FROM jobs j WHERE j.id = ?`, id).Scan(ctx, &s)
	return s, translate(err)
}
