package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/riverqueue/river"

	"rollcall/store"
)

// Bounds of a rotation.
const (
	rotateCall   = 12 * time.Second // One call: a task's time must hold it and the storing.
	rotateLease  = 25 * time.Second // Longer than the call and the storing together.
	rotateLook   = 5 * time.Second  // A look at the vendor's list after a call, within the lease too.
	rotateGap    = time.Second      // Before a call after a lost answer; it doubles.
	rotateGapMax = time.Minute
	// rotateGiveUp ends a rotation that the vendor never took up. One whose
	// answer was lost goes on: the vendor may sign with a secret nobody saw.
	rotateGiveUp = time.Hour
)

// ErrNotRotatable reports a webhook that has no secret at the vendor to be
// changed.
var ErrNotRotatable = errors.New("this webhook is not registered at the vendor any more, so its secret can't be rotated")

// Rotate begins to change a webhook's secret, or joins the change under way:
// a second press makes no second secret. From the commit on, deliveries whose
// signature is not known are answered 503, so that the vendor tries again. In
// an emergency every older secret ends as soon as the new one is stored; a
// change under way becomes one.
func (p *Pipeline) Rotate(ctx context.Context, webhookID int64, emergency bool) (*store.Rotation, error) {
	var out *store.Rotation
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		w, err := tx.LockWebhook(ctx, webhookID)
		if err != nil {
			return err
		}
		if err := tx.Audit(ctx, p.now(), store.Change{
			What: "webhook.rotate", Kind: "webhook", ID: strconv.FormatInt(webhookID, 10), After: map[string]bool{"emergency": emergency},
		}); err != nil {
			return err
		}
		out, err = tx.OpenRotation(ctx, webhookID)
		if errors.Is(err, store.ErrNotFound) {
			out, err = p.beginRotation(ctx, tx, w, emergency)
			return err
		}
		if err != nil || !emergency || out.Emergency {
			return err
		}
		return p.hurryRotation(ctx, tx, out)
	})
	if err != nil {
		return nil, fmt.Errorf("rotate webhook %d: %w", webhookID, err)
	}
	p.mode.forget()
	return out, nil
}

func (p *Pipeline) beginRotation(ctx context.Context, tx store.Tx, w *store.Webhook, emergency bool) (*store.Rotation, error) {
	r := &store.Rotation{
		WebhookID: w.ID, Emergency: emergency, StartedBy: store.ActorOf(ctx).Name, State: store.RotationCalling,
		WebhookWas: w.State, StartedAt: p.now(),
	}
	switch w.State {
	case store.WebhookLive, store.WebhookPaused, store.WebhookInactive, store.WebhookMoved:
	case store.WebhookRotating, store.WebhookSecretUnknown:
		r.WebhookWas = store.WebhookLive // An earlier change that came to nothing.
	case store.WebhookRegistering, store.WebhookGone, store.WebhookRemoved:
		return nil, ErrNotRotatable
	}
	if w.VendorWebhookID == nil {
		return nil, ErrNotRotatable
	}
	if err := tx.InsertRotation(ctx, r); err != nil {
		return nil, err
	}
	if _, err := tx.MoveWebhook(ctx, w.ID, w.State, store.WebhookRotating, p.now()); err != nil {
		return nil, err
	}
	return r, p.queue.rotate(ctx, tx, r.ID)
}

// hurryRotation makes the change under way an emergency.
func (p *Pipeline) hurryRotation(ctx context.Context, tx store.Tx, r *store.Rotation) error {
	if _, err := tx.HurryRotation(ctx, r.ID); err != nil {
		return err
	}
	r.Emergency = true
	if r.Version == nil {
		return nil // Storing the new one ends the others.
	}
	return p.endOlder(ctx, tx, r, *r.Version)
}

// rotateArgs asks that a rotation be taken a step further. Running twice is
// harmless: a call is claimed first, and every step is noted by a guarded
// update once it is done.
type rotateArgs struct {
	RotationID int64 `json:"rotation_id" river:"unique"`
}

// Kind implements river.JobArgs.
func (rotateArgs) Kind() string { return "rotate" }

type rotateWorker struct {
	river.WorkerDefaults[rotateArgs]
	p *Pipeline
}

// Work implements river.Worker.
func (w *rotateWorker) Work(ctx context.Context, task *river.Job[rotateArgs]) error {
	return ofTask(w.p.rotateStep(ctx, task.Args.RotationID), "rotation", task.Args.RotationID)
}

// FollowRotation takes a rotation to its end in this process, beside whatever
// server works on it too, and returns it as it ended.
func (p *Pipeline) FollowRotation(ctx context.Context, id int64) (*store.Rotation, error) {
	for {
		r, err := p.store.Rotation(ctx, id)
		if err != nil || !r.Open() {
			return r, err
		}
		wait := rotateGap
		err = p.rotateStep(ctx, id)
		if snooze, ok := errors.AsType[*river.JobSnoozeError](err); ok {
			wait = snooze.Duration
		} else if err != nil {
			p.log.WarnContext(ctx, "rotation step failed, trying again", slog.Int64("rotation_id", id), slog.Any("error", err))
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// rotateStep does the next thing of a rotation. Each has a run of its own, so
// that none is cut short by the time that another took.
func (p *Pipeline) rotateStep(ctx context.Context, id int64) error {
	r, err := p.store.Rotation(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case !r.Open():
		return nil
	case r.State != store.RotationStored:
		err = p.callRotate(ctx, id)
	case r.VerifiedAt == nil:
		err = p.lookThrough(ctx, r)
	case r.LogReadAt == nil:
		err = p.readRefusals(ctx, r)
	default:
		return p.endRotation(ctx, r)
	}
	if err != nil {
		return err
	}
	return again()
}

// lookThrough verifies again what was quarantined, now that the new secret is
// known. What one stretch does not reach, tasks of their own do: a flood must
// not keep a rotation open.
func (p *Pipeline) lookThrough(ctx context.Context, r *store.Rotation) error {
	got, err := p.takeUpQuarantine(ctx, r.WebhookID, 0)
	if err != nil {
		return err
	}
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := p.lookOn(ctx, tx, r.WebhookID, got); err != nil {
			return err
		}
		return tx.RotationLooked(ctx, r.ID, got.still(), p.now())
	})
}

// endRotation looks through the quarantine once more, for what came while the
// log was read, and counts what nothing can verify any more.
func (p *Pipeline) endRotation(ctx context.Context, r *store.Rotation) error {
	got, err := p.takeUpQuarantine(ctx, r.WebhookID, 0)
	if err != nil {
		return err
	}
	now, ended := p.now(), false
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if r.Lost > 0 {
			if _, err := tx.MarkSecretLost(ctx, r.ID, r.StartedAt, now); err != nil {
				return err
			}
		}
		var err error
		if ended, err = tx.EndRotation(ctx, r.ID, store.RotationDone, "", now); err != nil || !ended {
			return err
		}
		return p.lookOn(ctx, tx, r.WebhookID, got)
	})
	if err != nil || !ended {
		return err
	}
	p.log.InfoContext(ctx, "webhook secret rotated", slog.Int64("webhook_id", r.WebhookID), slog.Int64("rotation_id", r.ID),
		slog.Int("lost_answers", r.Lost), slog.Duration("took", now.Sub(r.StartedAt)))
	return nil
}
