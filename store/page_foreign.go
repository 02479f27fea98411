package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// EventRow is a vendor's job that deliveries spoke of and that isn't, or
// isn't yet, known to be ours.
type EventRow struct {
	VendorJobID string
	EventType   string
	ReceivedAt  time.Time // The first delivery.
	Deliveries  int64     // That are still kept.
	DeliveryID  int64     // The first of them; zero when none is.
}

// EventKey is where a list of them goes on: after the row that has both. The
// zero key is the beginning.
type EventKey struct {
	At          time.Time
	VendorJobID string
}

// PageEvents lists the jobs of events that are held or foreign, the latest
// first.
func (q Queries) PageEvents(ctx context.Context, state EventState, from EventKey, limit int64) ([]EventRow, error) {
	var rows []EventRow
	query := eventsIn(q.db.NewSelect().Model((*ProcessedEvent)(nil)), state).
		Column("vendor_job_id", "event_type", "received_at")
	if from.VendorJobID != "" {
		query = query.Where("(pe.received_at, pe.vendor_job_id) < (?, ?)", from.At, from.VendorJobID)
	}
	err := query.Order("pe.received_at DESC", "pe.vendor_job_id DESC").Limit(limit).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return nil, translate(err)
	}
	return rows, q.eventsDelivered(ctx, rows)
}

// CountEvents counts them up to one more than CountLimit.
func (q Queries) CountEvents(ctx context.Context, state EventState) (int64, error) {
	return q.countUpTo(ctx, eventsIn(q.db.NewSelect().Model((*ProcessedEvent)(nil)), state))
}

// eventsIn says the state in the words of its index.
func eventsIn(q *bun.SelectQuery, state EventState) *bun.SelectQuery {
	if state == EventHeld {
		return q.Where("pe.state = 'held'")
	}
	return q.Where("pe.state = 'foreign'")
}

func (q Queries) eventsDelivered(ctx context.Context, rows []EventRow) error {
	ids, place := make([]string, len(rows)), make(map[string]int, len(rows))
	for i := range rows {
		ids[i] = rows[i].VendorJobID
		place[ids[i]] = i
	}
	var counts []struct {
		VendorJobID string
		Deliveries  int64
		First       int64
	}
	err := q.db.NewRaw(`SELECT vendor_job_id, count(*) AS deliveries, min(id) AS first FROM deliveries
		WHERE vendor_job_id IN (?) AND vendor_job_id <> '' GROUP BY vendor_job_id`, bun.List(ids)).Scan(ctx, &counts)
	for _, count := range counts {
		row := &rows[place[count.VendorJobID]]
		row.Deliveries, row.DeliveryID = count.Deliveries, count.First
	}
	return translate(err)
}
