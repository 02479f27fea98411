package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/uptrace/bun"
)

// DeliveryRow is a delivery in a list, with our job when its vendor's id is
// known; zero when not. Headers and body are left out.
type DeliveryRow struct {
	Delivery
	JobID int64
}

// PageDeliveries lists the deliveries that fit a filter, newest first.
func (q Queries) PageDeliveries(ctx context.Context, f DeliveryFilter, from Key, limit int64) ([]DeliveryRow, error) {
	var found []Delivery
	fits := f.narrow(q.db.NewSelect().Model((*Delivery)(nil)).ExcludeColumn("headers", "body"))
	query := q.db.NewSelect().Model(&found).ExcludeColumn("headers", "body").ModelTableExpr(asFound(f.few(), "d"), fits)
	query = after(query, "received_at", from)
	if err := query.Order("received_at DESC", "id DESC").Limit(limit).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	return q.withJobs(ctx, found)
}

// asFound puts a query that narrows in the place of its table. With few rows to
// be found by an index of their own it is walled off: the planner would rather
// walk the newest first until enough of them have come by.
func asFound(few bool, alias string) string {
	if few {
		return "(? OFFSET 0) AS " + alias
	}
	return "(?) AS " + alias
}

// countTime bounds how long a page waits for a number.
const countTime = 300 * time.Millisecond

// CountDeliveries counts those that fit a filter, up to one more than
// CountLimit. It reports false when the database didn't count in time.
func (s *Store) CountDeliveries(ctx context.Context, f DeliveryFilter) (int64, bool, error) {
	return s.countInTime(ctx, countTime, func(q Queries) *bun.SelectQuery {
		return f.narrow(q.db.NewSelect().Model((*Delivery)(nil)))
	})
}

// countInTime counts in a transaction of its own, which the database ends after
// a while.
func (s *Store) countInTime(ctx context.Context, most time.Duration, rows func(Queries) *bun.SelectQuery) (int64, bool, error) {
	var n int64
	err := s.InTx(ctx, func(ctx context.Context, tx Tx) error {
		// SET takes no parameters. Without an index a count may read the whole table
		// when little fits, which Postgres doesn't expect.
		if _, err := tx.db.NewRaw("SELECT set_config('statement_timeout', ?, true), set_config('enable_seqscan', 'off', true)",
			strconv.FormatInt(most.Milliseconds(), 10)).Exec(ctx); err != nil {
			return translate(err)
		}
		var err error
		n, err = tx.countUpTo(ctx, rows(tx.Queries))
		return err
	})
	if errors.Is(err, ErrTooSlow) {
		return 0, false, nil
	}
	return n, err == nil, err
}

func (q Queries) withJobs(ctx context.Context, found []Delivery) ([]DeliveryRow, error) {
	rows := make([]DeliveryRow, len(found))
	var vendorIDs []string
	for i := range found {
		rows[i].Delivery = found[i]
		if id := found[i].VendorJobID; id != "" {
			vendorIDs = append(vendorIDs, id)
		}
	}
	known, err := q.jobsOf(ctx, vendorIDs)
	for i := range rows {
		rows[i].JobID = known[rows[i].VendorJobID]
	}
	return rows, err
}

// jobsOf finds our jobs by the vendor's ids.
func (q Queries) jobsOf(ctx context.Context, vendorIDs []string) (map[string]int64, error) {
	known := make(map[string]int64, len(vendorIDs))
	if len(vendorIDs) == 0 {
		return known, nil
	}
	var jobs []struct {
		ID          int64
		VendorJobID string
	}
	err := q.db.NewRaw("SELECT id, vendor_job_id FROM jobs WHERE vendor_job_id IN (?)", bun.List(vendorIDs)).Scan(ctx, &jobs)
	for _, job := range jobs {
		known[job.VendorJobID] = job.ID
	}
	return known, translate(err)
}

// DeliveryStory is one delivery, whole, with our job, its webhook and what the
// vendor's log says of it.
type DeliveryStory struct {
	DeliveryRow
	Kept    int64    // How many bytes of the body are kept; Body may be their beginning.
	Webhook *Webhook // Nil when it came to no webhook of ours.
	Attempt *LogRow  // Nil when the log, as far as it is mirrored, doesn't show it; of a duplicate, that of the delivery it repeats.
}

// PageDelivery is one delivery with at most so many bytes of its body;
// ErrNotFound when there is none.
func (q Queries) PageDelivery(ctx context.Context, id int64, most int) (*DeliveryStory, error) {
	d := new(Delivery)
	if err := q.db.NewSelect().Model(d).ExcludeColumn("body").Where("d.id = ?", id).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	var kept int64
	err := q.db.NewRaw("SELECT substring(body FROM 1 FOR ?), octet_length(body) FROM deliveries WHERE id = ?", most, id).Scan(ctx, &d.Body, &kept)
	if err != nil {
		return nil, translate(err)
	}
	rows, err := q.withJobs(ctx, []Delivery{*d})
	if err != nil {
		return nil, err
	}
	story := &DeliveryStory{DeliveryRow: rows[0], Kept: kept}
	if story.Attempt, err = q.attemptOf(ctx, d); err != nil || d.WebhookID == nil {
		return story, err
	}
	story.Webhook, err = q.Webhook(ctx, *d.WebhookID)
	return story, err
}

// attemptOf finds a delivery in the vendor's log; nil when it isn't there. One
// attempt that came more than once has one line for all of them.
func (q Queries) attemptOf(ctx context.Context, d *Delivery) (*LogRow, error) {
	var rows []LogRow
	err := q.db.NewSelect().Model(&rows).Where("dl.delivery_id = ?", d.ID).Order("dl.id").Limit(1).Scan(ctx)
	if err == nil && len(rows) == 0 && d.WebhookID != nil && d.VendorDeliveryID != "" {
		err = q.db.NewSelect().Model(&rows).Where("dl.webhook_id = ? AND dl.vendor_id = ? AND dl.http_status = ?", *d.WebhookID, d.VendorDeliveryID, d.Status).
			Order("dl.attempt").Limit(1).Scan(ctx)
	}
	if err != nil || len(rows) == 0 {
		return nil, translate(err)
	}
	return &rows[0], nil
}

// DeliveryBody is what is kept of a delivery's bytes; ErrNotFound when there is
// no such delivery.
func (q Queries) DeliveryBody(ctx context.Context, id int64) ([]byte, error) {
	var body []byte
	err := q.db.NewRaw("SELECT body FROM deliveries WHERE id = ?", id).Scan(ctx, &body)
	return body, translate(err)
}

// WebhookName is a webhook as lists name it.
type WebhookName struct {
	ID        int64
	EventType string
	State     WebhookState
}

// PageWebhookNames are all webhooks there ever were here, the latest first.
func (q Queries) PageWebhookNames(ctx context.Context) ([]WebhookName, error) {
	var out []WebhookName
	err := q.db.NewRaw("SELECT id, event_type, state FROM webhooks ORDER BY id DESC LIMIT 200").Scan(ctx, &out)
	return out, translate(err)
}
