package pipeline

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/riverqueue/river"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// Bounds of reading the log at the end of a rotation.
const (
	logTime     = 12 * time.Second // One stretch; a task's time must hold it.
	logGap      = 5 * time.Second  // Before another look when one failed.
	logPatience = 5 * time.Minute  // After that the reconciler does it: a rotation must end.
)

// readRefusals reads the vendor's delivery log whole and wakes the jobs of ours
// whose deliveries were refused since the rotation began: what nothing can
// verify any more settles all the same.
func (p *Pipeline) readRefusals(ctx context.Context, r *store.Rotation) error {
	more, err := p.readLogFor(ctx, r)
	if err != nil {
		return p.logUnread(ctx, r, err)
	}
	late := p.now().Sub(*r.StoredAt) > logPatience
	if more && !late {
		return nil // The next step goes on with it.
	}
	note := ""
	if more {
		note = "the vendor's delivery log did not come to an end in time; the next reconcile run goes on with it"
	}
	refused, wake, err := p.refusedSince(ctx, r)
	if err != nil {
		return err
	}
	for group := range slices.Chunk(wake, refusalGroup) {
		err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
			return p.wake(ctx, tx, group, store.NetReplay, "its delivery was refused while the webhook's secret changed")
		})
		if err != nil {
			return err
		}
	}
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		return tx.RotationRead(ctx, r.ID, refused, len(wake), note, p.now())
	})
}

// readLogFor reads a stretch of the webhook's log, from its beginning for each
// rotation, and reports whether there is more.
func (p *Pipeline) readLogFor(ctx context.Context, r *store.Rotation) (bool, error) {
	w, err := p.store.Webhook(ctx, r.WebhookID)
	if err != nil {
		return false, err
	}
	state, err := p.store.LogReadOf(ctx, w.ID)
	if err != nil {
		return false, err
	}
	// A reading that others begin meanwhile ends where nothing is new.
	begun := state.Whole && state.StartedAt != nil && !state.StartedAt.Before(*r.StoredAt)
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	got, err := p.MirrorLog(ctx, w, !begun)
	return got.Cut, err
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

// refusedSince counts the attempts that failed since the rotation began, and
// names the jobs of ours among them that are not settled.
func (p *Pipeline) refusedSince(ctx context.Context, r *store.Rotation) (int, []int64, error) {
	refused := 0
	var wake []int64
	// The vendor's clock is known to a second, and so are some of its times.
	from := store.Key{At: p.clock.vendorTime(r.StartedAt).Add(-dateSlack)}
	for {
		rows, err := p.store.Unarrived(ctx, from, refusalGroup)
		if err != nil {
			return 0, nil, err
		}
		for i := range rows {
			// An attempt that is pending will be tried again by the vendor itself.
			if rows[i].WebhookID != r.WebhookID || geonode.DeliveryStatus(rows[i].Status) == geonode.DeliveryPending {
				continue
			}
			refused++
			if job := rows[i].JobID; job != nil {
				wake = append(wake, *job)
			}
		}
		if len(rows) < refusalGroup {
			slices.Sort(wake)
			return refused, slices.Compact(wake), nil
		}
		last := &rows[len(rows)-1]
		from = store.Key{At: last.CreatedAt, ID: last.ID}
	}
}
