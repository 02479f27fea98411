package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// refusalGroup bounds the attempts that are looked at together.
const refusalGroup = 1000

// refusals mirrors the vendor's delivery log of each webhook of ours and wakes
// the jobs of events that, as it says, did not arrive. A log that could not be
// read whole is gone through as far as it is mirrored.
func (r *reconciling) refusals(ctx context.Context) error {
	return errors.Join(r.readLogs(ctx), r.unarrived(ctx))
}

// readLogs mirrors the logs, each in its share of the time for lists, so that a
// long one leaves time for the others.
func (r *reconciling) readLogs(ctx context.Context) error {
	mine, err := r.store.Webhooks(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, w := range mine {
		if !logged(w) {
			continue
		}
		if err := r.readLog(ctx, w, listTime/time.Duration(len(mine))); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r *reconciling) readLog(ctx context.Context, w *store.Webhook, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	got, err := r.MirrorLog(ctx, w, false)
	r.run.Pages += got.Pages
	if err != nil {
		return fmt.Errorf("%s: %w", w.EventType, err)
	}
	return nil
}

// unarrived goes through the attempts inside the run's window that are not
// noted as successes, and wakes the jobs of ours among them that are not
// settled and that this run has not woken yet.
func (r *reconciling) unarrived(ctx context.Context) error {
	from := store.Key{At: r.clock.vendorTime(r.run.WindowStart)}
	for {
		rows, err := r.store.Unarrived(ctx, from, refusalGroup)
		if err != nil {
			return err
		}
		var wake []int64
		for i := range rows {
			job := rows[i].JobID
			if job != nil && !r.open[*job] && r.missed(&rows[i].LogRow) {
				wake = append(wake, *job)
				r.open[*job] = true // Attempts of one job are woken for once.
			}
		}
		r.run.Refused += len(wake)
		if err := r.wakeFor(ctx, wake, "the vendor's delivery log shows that its event did not arrive"); err != nil {
			return err
		}
		if len(rows) < refusalGroup {
			return nil
		}
		last := &rows[len(rows)-1]
		from = store.Key{At: last.CreatedAt, ID: last.ID}
	}
}

// missed reports an event that nobody took. One that is pending has time until
// a job of its age would have been found by the lists; of a status nobody has
// published, the answer that it notes decides.
func (r *reconciling) missed(d *store.LogRow) bool {
	switch geonode.DeliveryStatus(d.Status) {
	case geonode.DeliverySuccess:
		return false
	case geonode.DeliveryPending:
		return d.CreatedAt.Before(r.clock.vendorTime(r.young))
	case geonode.DeliveryFailed, geonode.DeliveryAbandoned:
		return true
	}
	took := d.HTTPStatus != nil && *d.HTTPStatus >= 200 && *d.HTTPStatus <= 299
	return !took && d.DeliveredAt == nil
}
