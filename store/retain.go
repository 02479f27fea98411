package store

import (
	"context"
	"time"
)

// Retained is one step of a walk through what may be too old to keep.
type Retained struct {
	Seen int // Rows that were looked at.
	Gone int // Rows that were emptied or deleted.
	// Last is the row looked at last, Kept the first that had to stay since its
	// job has not settled; the zero Key when there is none.
	Last, Kept Key
}

// settledOf keeps, of deliveries AS old, those that nobody needs any more: their
// job has settled or isn't ours, may not turn out to be ours, and no replay is
// about to verify them again.
const settledOf = `NOT EXISTS (SELECT FROM jobs AS j WHERE j.vendor_job_id = old.vendor_job_id AND old.vendor_job_id <> '' AND j.state <> 'settled')
	AND NOT EXISTS (SELECT FROM processed_events AS pe WHERE pe.vendor_job_id = old.vendor_job_id AND old.vendor_job_id <> '' AND pe.state = 'held')`

const notReplaying = ` AND NOT EXISTS (SELECT FROM replay_deliveries AS rd WHERE rd.delivery_id = old.id AND rd.outcome IS NULL)`

// EmptyDeliveries removes headers and bodies of deliveries received before the
// time, at most limit of them, oldest first, from after the key on. What was
// decided about them stays.
func (q Queries) EmptyDeliveries(ctx context.Context, before time.Time, from Key, limit int) (Retained, error) {
	return q.retain(ctx, `WITH old AS (SELECT id, received_at AS at, vendor_job_id FROM deliveries
			WHERE received_at < ?before AND (received_at, id) > (?at, ?id) ORDER BY received_at, id LIMIT ?limit),
		fits AS (SELECT old.id FROM old WHERE `+settledOf+notReplaying+`),
		gone AS (UPDATE deliveries AS d SET headers = '', body = '' FROM fits
			WHERE d.id = fits.id AND (octet_length(d.headers) > 0 OR octet_length(d.body) > 0) RETURNING d.id)`, before, from, limit)
}

// DeleteDeliveries deletes deliveries received before the time, as
// EmptyDeliveries empties them. The attempts of refused ones go on as
// DropQuarantined says.
func (q Queries) DeleteDeliveries(ctx context.Context, before time.Time, from Key, limit int) (Retained, error) {
	return q.retain(ctx, `WITH old AS (SELECT id, received_at AS at, vendor_job_id FROM deliveries
			WHERE received_at < ?before AND (received_at, id) > (?at, ?id) ORDER BY received_at, id LIMIT ?limit),
		fits AS (SELECT old.id FROM old WHERE `+settledOf+notReplaying+`),
		gone AS (DELETE FROM deliveries AS d USING fits WHERE d.id = fits.id RETURNING d.id, d.verdict),
		unlinked AS (UPDATE delivery_log AS dl SET delivery_id = NULL FROM gone
			WHERE dl.delivery_id = gone.id AND gone.verdict IN ('refused', 'unreadable'))`, before, from, limit)
}

// DeleteLog deletes attempts of the vendor's log made before the time, as
// DeleteDeliveries deletes deliveries.
func (q Queries) DeleteLog(ctx context.Context, before time.Time, from Key, limit int) (Retained, error) {
	return q.retain(ctx, `WITH old AS (SELECT id, created_at AS at, vendor_job_id FROM delivery_log
			WHERE created_at < ?before AND (created_at, id) > (?at, ?id) ORDER BY created_at, id LIMIT ?limit),
		fits AS (SELECT old.id FROM old WHERE `+settledOf+`),
		gone AS (DELETE FROM delivery_log AS dl USING old, fits
			WHERE dl.created_at = old.at AND dl.id = old.id AND old.id = fits.id RETURNING dl.id)`, before, from, limit)
}

// retain runs a statement that makes old, fits and gone, and sums them up.
func (q Queries) retain(ctx context.Context, with string, before time.Time, from Key, limit int) (Retained, error) {
	var row struct {
		Seen, Gone     int
		LastAt, KeptAt *time.Time
		LastID, KeptID *int64
	}
	err := q.db.NewRaw(with+` SELECT (SELECT count(*) FROM old) AS seen, (SELECT count(*) FROM gone) AS gone,
			last.at AS last_at, last.id AS last_id, kept.at AS kept_at, kept.id AS kept_id
		FROM (SELECT 1) AS one
		LEFT JOIN (SELECT at, id FROM old ORDER BY at DESC, id DESC LIMIT 1) AS last ON true
		LEFT JOIN (SELECT at, id FROM old WHERE id NOT IN (SELECT id FROM fits) ORDER BY at, id LIMIT 1) AS kept ON true`,
		named{"before": before, "at": from.At, "id": from.ID, "limit": limit}).Scan(ctx, &row)
	if err != nil {
		return Retained{}, translate(err)
	}
	return Retained{Seen: row.Seen, Gone: row.Gone, Last: keyOf(row.LastAt, row.LastID), Kept: keyOf(row.KeptAt, row.KeptID)}, nil
}

func keyOf(at *time.Time, id *int64) Key {
	if at == nil || id == nil {
		return Key{}
	}
	return Key{At: *at, ID: *id}
}
