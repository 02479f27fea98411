package pipeline

import (
	"context"
	"errors"
	"fmt"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// refusalPages bounds the pages of the delivery log read for one webhook and
// one status in a run.
const refusalPages = 10

// refusals reads the vendor's delivery log of each webhook of ours for events
// that did not arrive and wakes their jobs. The log is read by status: one that
// holds thousands of successes must not hide the few others.
func (r *reconciling) refusals(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	mine, err := r.store.Webhooks(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, w := range mine {
		if w.VendorWebhookID == nil || w.State == store.WebhookGone || w.State == store.WebhookRemoved {
			continue
		}
		for _, status := range []geonode.DeliveryStatus{geonode.DeliveryFailed, geonode.DeliveryAbandoned, geonode.DeliveryPending} {
			if err := r.readLog(ctx, *w.VendorWebhookID, status); err != nil {
				errs = append(errs, fmt.Errorf("%s of %s: %w", status, w.EventType, err))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// readLog reads the rows of one status, as far as there are any inside the
// run's window: what order they come in is not published.
func (r *reconciling) readLog(ctx context.Context, webhook string, status geonode.DeliveryStatus) error {
	start := r.clock.vendorTime(r.run.WindowStart)
	for page := 1; page <= refusalPages; page++ {
		var got *geonode.DeliveryList
		err := r.persist(ctx, func(ctx context.Context) (geonode.Reply, error) {
			var err error
			if got, err = r.vendor.ListDeliveries(ctx, webhook, geonode.DeliveryParams{Page: page, Status: status}); err != nil {
				return geonode.Reply{}, err
			}
			return got.Reply, nil
		})
		if err != nil {
			return err
		}
		r.run.Pages++
		inside := 0
		var ids []string
		for i := range got.Items {
			d := &got.Items[i]
			if !d.CreatedAt.IsZero() && d.CreatedAt.Before(start) {
				continue
			}
			inside++
			if d.JobID != "" && r.missed(d) {
				ids = append(ids, d.JobID)
			}
		}
		if err := r.wakeRefused(ctx, ids); err != nil {
			return err
		}
		if inside == 0 || lastPage(got.ListPage, page, len(got.Items)) {
			return nil
		}
	}
	return nil
}

// missed reports an event that nobody took. One that is pending has time until
// a job of its age would have been found by the lists; of a status nobody has
// published, the answer that it notes decides.
func (r *reconciling) missed(d *geonode.WebhookDelivery) bool {
	switch d.Status {
	case geonode.DeliverySuccess:
		return false
	case geonode.DeliveryPending:
		return !d.CreatedAt.IsZero() && d.CreatedAt.Before(r.clock.vendorTime(r.young))
	case geonode.DeliveryFailed, geonode.DeliveryAbandoned:
		return true
	}
	took := d.HTTPStatus.Known && d.HTTPStatus.N >= 200 && d.HTTPStatus.N <= 299
	return !took && d.DeliveredAt.IsZero()
}

// wakeRefused wakes the jobs of ours among those named that are not settled
// and that this run has not woken yet.
func (r *reconciling) wakeRefused(ctx context.Context, vendorIDs []string) error {
	known, err := r.store.KnownVendorIDs(ctx, vendorIDs)
	if err != nil {
		return err
	}
	var wake []int64
	for _, job := range known {
		if unsettled(job) && !r.open[job.ID] {
			wake = append(wake, job.ID)
		}
	}
	r.run.Refused += len(wake)
	return r.wakeFor(ctx, wake, "the vendor's delivery log shows that its event did not arrive")
}
