package store

import (
	"context"

	"github.com/uptrace/bun"
)

// DeliveryRow is a delivery in a list, with our job when its vendor's id is
// known; zero when not. Headers and body are left out.
type DeliveryRow struct {
	Delivery
	JobID int64
}

// PageDeliveries lists deliveries, newest first. An event narrows it among the
// next 10,000 of the verdict.
func (q Queries) PageDeliveries(ctx context.Context, f DeliveryFilter, from Key, limit int64) ([]DeliveryRow, error) {
	var found []Delivery
	near := after(q.db.NewSelect().Model((*Delivery)(nil)).ExcludeColumn("headers", "body"), "received_at", from).
		Order("received_at DESC", "id DESC")
	if f.Verdict != "" {
		near = near.Where("d.verdict = ?", f.Verdict)
	}
	if f.Verdict != "" && f.Verdict != VerdictAccepted {
		// Said in the index's own words, or the planner can't use it.
		near = near.Where("d.verdict <> 'accepted'")
	}
	query := q.db.NewSelect().Model(&found).ExcludeColumn("headers", "body")
	if f.Event == "" {
		query = query.ModelTableExpr("(?) AS d", near.Limit(limit))
	} else {
		query = query.ModelTableExpr("(?) AS d", near.Limit(searchDepth)).Where("d.event_type = ?", f.Event)
	}
	if err := query.Order("received_at DESC", "id DESC").Limit(limit).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	return q.withJobs(ctx, found)
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
	if len(vendorIDs) == 0 {
		return rows, nil
	}
	var jobs []struct {
		ID          int64
		VendorJobID string
	}
	err := q.db.NewRaw("SELECT id, vendor_job_id FROM jobs WHERE vendor_job_id IN (?)", bun.List(vendorIDs)).Scan(ctx, &jobs)
	if err != nil {
		return nil, translate(err)
	}
	known := make(map[string]int64, len(jobs))
	for _, job := range jobs {
		known[job.VendorJobID] = job.ID
	}
	for i := range rows {
		rows[i].JobID = known[rows[i].VendorJobID]
	}
	return rows, nil
}

// DeliveryStory is one delivery, whole, with our job and its webhook.
type DeliveryStory struct {
	DeliveryRow
	Webhook *Webhook // nil when it came to no webhook of ours
}

// PageDelivery is one delivery; ErrNotFound when there is none.
func (q Queries) PageDelivery(ctx context.Context, id int64) (*DeliveryStory, error) {
	d := new(Delivery)
	if err := q.db.NewSelect().Model(d).Where("d.id = ?", id).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	rows, err := q.withJobs(ctx, []Delivery{*d})
	if err != nil {
		return nil, err
	}
	story := &DeliveryStory{DeliveryRow: rows[0]}
	if d.WebhookID == nil {
		return story, nil
	}
	story.Webhook = new(Webhook)
	err = q.db.NewSelect().Model(story.Webhook).Where("w.id = ?", *d.WebhookID).Scan(ctx)
	return story, translate(err)
}
