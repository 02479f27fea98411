package store

import (
	"context"

	"github.com/uptrace/bun"
)

// LogEntry is an attempt of the vendor's log in a list, with what it comes to
// here.
type LogEntry struct {
	LogRow
	Standing Standing
	JobID    int64     // Ours; zero when not known.
	Delivery *Delivery // What came in here, without headers and body; nil when nothing did, or it has gone.
}

// PageLog lists the attempts of the vendor's delivery log that fit a filter,
// newest first.
func (q Queries) PageLog(ctx context.Context, f LogFilter, from Key, limit int64) ([]LogEntry, error) {
	var found []LogRow
	fits := f.narrow(q.db.NewSelect().Model((*LogRow)(nil)))
	query := q.db.NewSelect().Model(&found).ModelTableExpr(asFound(f.few(), "dl"), fits)
	query = after(query, "created_at", from)
	if err := query.Order("created_at DESC", "id DESC").Limit(limit).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	return q.asEntries(ctx, found)
}

// CountLog counts those that fit a filter, up to one more than CountLimit. It
// reports false when the database didn't count in time.
func (s *Store) CountLog(ctx context.Context, f LogFilter) (int64, bool, error) {
	return s.countInTime(ctx, countTime, func(q Queries) *bun.SelectQuery {
		return f.narrow(q.db.NewSelect().Model((*LogRow)(nil)))
	})
}

// asEntries looks up what attempts come to.
func (q Queries) asEntries(ctx context.Context, found []LogRow) ([]LogEntry, error) {
	here, err := q.deliveriesOf(ctx, found)
	if err != nil {
		return nil, err
	}
	vendorIDs := make([]string, 0, len(found))
	for i := range found {
		if id := found[i].VendorJobID; id != "" {
			vendorIDs = append(vendorIDs, id)
		}
	}
	jobs, err := q.jobsOf(ctx, vendorIDs)
	if err != nil {
		return nil, err
	}
	entries := make([]LogEntry, len(found))
	for i := range found {
		e := LogEntry{LogRow: found[i], JobID: jobs[found[i].VendorJobID]}
		if id := found[i].DeliveryID; id != nil {
			e.Delivery = here[*id]
		}
		refused := e.Delivery != nil && (e.Delivery.Verdict == VerdictRefused || e.Delivery.Verdict == VerdictUnreadable)
		e.Standing = standingOf(found[i].Status, found[i].DeliveryID != nil, refused)
		entries[i] = e
	}
	return entries, nil
}

func (q Queries) deliveriesOf(ctx context.Context, found []LogRow) (map[int64]*Delivery, error) {
	ids := make([]int64, 0, len(found))
	for i := range found {
		if id := found[i].DeliveryID; id != nil {
			ids = append(ids, *id)
		}
	}
	here := make(map[int64]*Delivery, len(ids))
	if len(ids) == 0 {
		return here, nil
	}
	var rows []Delivery
	err := q.db.NewSelect().Model(&rows).ExcludeColumn("headers", "body").Where("d.id IN (?)", bun.List(ids)).Scan(ctx)
	for i := range rows {
		here[rows[i].ID] = &rows[i]
	}
	return here, translate(err)
}

// LogReading is a webhook whose log is read, and how far it was.
type LogReading struct {
	LogRead
	EventType string
}

// PageLogReadings says of each webhook that the vendor knows how far its log
// was read.
func (q Queries) PageLogReadings(ctx context.Context) ([]LogReading, error) {
	var out []LogReading
	err := q.db.NewRaw(`SELECT w.id AS webhook_id, w.event_type, coalesce(lr.next_page, 0) AS next_page, coalesce(lr.whole, false) AS whole,
			lr.started_at, lr.read_at, lr.whole_at, coalesce(lr.newest_first, false) AS newest_first, coalesce(lr.pages, 0) AS pages,
			coalesce(lr.added, 0) AS added, coalesce(lr.changed, 0) AS changed, coalesce(lr.note, '') AS note, lr.asked_at
		FROM webhooks AS w LEFT JOIN delivery_log_reads AS lr ON lr.webhook_id = w.id
		WHERE w.vendor_webhook_id IS NOT NULL AND w.state NOT IN ('gone', 'removed') ORDER BY w.id`).Scan(ctx, &out)
	return out, translate(err)
}
