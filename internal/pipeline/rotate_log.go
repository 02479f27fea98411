package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// Bounds of reading the log at the end of a rotation.
const (
	logCall     = 12 * time.Second // All pages of one look; a task's time must hold it.
	logGap      = 5 * time.Second  // Before another look when one failed.
	logPatience = 5 * time.Minute  // After that the reconciler does it: a rotation must end.
)

// readRefusals looks in the vendor's delivery log for what was refused since
// the rotation began, and wakes the jobs of ours among it: what nothing can
// verify any more settles all the same.
func (p *Pipeline) readRefusals(ctx context.Context, r *store.Rotation) error {
	ids, refused, err := p.refusedSince(ctx, r)
	if err != nil {
		return p.logUnread(ctx, r, err)
	}
	known, err := p.store.KnownVendorIDs(ctx, ids)
	if err != nil {
		return err
	}
	var wake []int64
	for _, job := range known {
		if unsettled(job) {
			wake = append(wake, job.ID)
		}
	}
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := p.wake(ctx, tx, wake, store.NetReplay, "its delivery was refused while the webhook's secret changed"); err != nil {
			return err
		}
		return tx.RotationRead(ctx, r.ID, refused, len(wake), "", p.now())
	})
}

// logUnread tries again later, for a while.
func (p *Pipeline) logUnread(ctx context.Context, r *store.Rotation, cause error) error {
	p.log.WarnContext(ctx, "delivery log not read after a rotation", slog.Int64("webhook_id", r.WebhookID), slog.Any("error", cause))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	wait, account, err := p.gates.failed(ctx, store.GateRead, cause)
	if err != nil {
		return err
	}
	if p.now().Sub(*r.StoredAt) > logPatience {
		return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
			return tx.RotationRead(ctx, r.ID, 0, 0, "the vendor's delivery log could not be read; the next reconcile run looks at it", p.now())
		})
	}
	if !account {
		wait = logGap
	}
	return river.JobSnooze(wait)
}

// refusedSince reads the jobs of refused attempts, and how many of those there
// were, from the webhook's log.
func (p *Pipeline) refusedSince(ctx context.Context, r *store.Rotation) ([]string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, logCall)
	defer cancel()
	w, err := p.store.Webhook(ctx, r.WebhookID)
	if err != nil {
		return nil, 0, err
	}
	var ids []string
	refused := 0
	// An attempt that is pending will be tried again by the vendor itself.
	for _, status := range []geonode.DeliveryStatus{geonode.DeliveryFailed, geonode.DeliveryAbandoned} {
		got, n, err := p.refusedPages(ctx, *w.VendorWebhookID, status, p.clock.vendorTime(r.StartedAt))
		if err != nil {
			return nil, 0, fmt.Errorf("read the %s rows: %w", status, err)
		}
		ids, refused = append(ids, got...), refused+n
	}
	return ids, refused, nil
}

func (p *Pipeline) refusedPages(ctx context.Context, webhook string, status geonode.DeliveryStatus, since time.Time) ([]string, int, error) {
	var ids []string
	refused := 0
	for page := 1; page <= refusalPages; page++ {
		got, err := p.vendor.ListDeliveries(ctx, webhook, geonode.DeliveryParams{Page: page, Status: status})
		if err != nil {
			return nil, 0, err
		}
		for i := range got.Items {
			d := &got.Items[i]
			// The event may be older: it is the attempts since then that count.
			if last := d.CreatedAt.Time; !last.IsZero() && last.Before(since) && (d.DeliveredAt.IsZero() || d.DeliveredAt.Before(since)) {
				continue
			}
			refused++
			if d.JobID != "" {
				ids = append(ids, d.JobID)
			}
		}
		if lastPage(got.ListPage, page, len(got.Items)) {
			break
		}
	}
	return ids, refused, nil
}
