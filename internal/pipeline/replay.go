package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"time"

	"rollcall/store"
)

// ReplayRequest is what a person or a command wants replayed.
type ReplayRequest struct {
	// Picks are the lines that were picked: a filter, or rows.
	Picks store.ReplayPicks
	// Picked says the same for a reader, and Address shows the list it was picked
	// from; empty is none.
	Picked, Address string
	// Token is the form's own: the same plan with it is the first. Empty is none.
	Token string
	// DryRun works the plan out and keeps nothing; its ID names nothing.
	DryRun bool
}

// token tells a form that is sent twice. The filters are told by their words and
// address: as of which moment they are read is no part of the form.
func (r ReplayRequest) token(ctx context.Context) (*string, error) {
	rows, err := json.Marshal([]any{r.Picks.LogRows, r.Picks.DeliveryIDs, r.Picks.JobIDs})
	if err != nil {
		return nil, fmt.Errorf("what was picked: %w", err)
	}
	who := store.ActorOf(ctx).UserID
	return formToken(r.Token, &who, r.Picked, r.Address, string(rows)), nil
}

// errDryRun undoes a plan that was to be worked out only.
var errDryRun = errors.New("a dry run")

// PlanReplay freezes what was picked into an exact set of our jobs, and of
// refused deliveries, that nothing moves any more; it wakes nothing. Jobs of
// the vendor's that are not ours are counted and left alone, and so are those of
// batches that were removed.
func (p *Pipeline) PlanReplay(ctx context.Context, req ReplayRequest) (*store.Replay, error) {
	now := p.now()
	plan := &store.Replay{
		State: store.ReplayPlanned, Picked: store.CleanText(clip(req.Picked, 500)), Address: store.CleanText(req.Address),
		PlannedBy: store.CleanText(store.ActorOf(ctx).Name), PlannedAt: now,
	}
	var err error
	if plan.SubmitToken, err = req.token(ctx); err != nil {
		return nil, err
	}
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		// The jobs that it freezes keep their batches from being pruned from its commit on.
		if err := errors.Join(tx.HoldBatches(ctx), tx.InsertReplay(ctx, plan)); err != nil {
			return err
		}
		var err error
		if plan.Frozen, err = tx.FreezeReplay(ctx, plan.ID, req.Picks); err != nil {
			return err
		}
		if req.DryRun {
			return errDryRun
		}
		return tx.Audit(ctx, now, store.Change{
			What: "replay.plan", Kind: "replay", ID: strconv.FormatInt(plan.ID, 10),
			After: map[string]any{
				"state": plan.State, "picked": plan.Picked, "lines": plan.Lines, "jobs": plan.Jobs, "refused_deliveries": plan.Deliveries, "calls": plan.Calls,
			},
		})
	})
	switch {
	case errors.Is(err, errDryRun):
		return plan, nil
	case errors.Is(err, store.ErrTaken) && plan.SubmitToken != nil:
		return p.store.ReplayOfToken(ctx, *plan.SubmitToken)
	case err != nil:
		return nil, fmt.Errorf("plan a replay: %w", err)
	}
	p.log.InfoContext(ctx, "replay planned", slog.Int64("replay_id", plan.ID), slog.Int64("jobs", plan.Jobs), slog.Int64("settled", plan.SettledBefore))
	return plan, nil
}

// ReplayTakes is about how long a replay of so many vendor calls takes, with
// nothing else to do.
func (p *Pipeline) ReplayTakes(calls int64) time.Duration {
	return time.Duration(float64(calls) / p.cfg.ReplayRPS * float64(time.Second))
}

// RunReplay has a plan run. It reports false when it was run, or cancelled,
// before: nobody starts a plan twice. With refetch settled jobs are fetched once
// more and compared; they change nothing all the same.
func (p *Pipeline) RunReplay(ctx context.Context, id int64, refetch bool) (bool, error) {
	return p.moveReplay(ctx, "replay.run", id, map[string]any{"refetch": refetch}, func(ctx context.Context, tx store.Tx, now time.Time) (bool, error) {
		return tx.RunReplay(ctx, id, refetch, store.ActorOf(ctx).Name, now)
	})
}

// PauseReplay keeps a running replay from beginning with more jobs. Those under
// way end, and are counted. It reports false when it is not running.
func (p *Pipeline) PauseReplay(ctx context.Context, id int64) (bool, error) {
	return p.moveReplay(ctx, "replay.pause", id, nil, func(ctx context.Context, tx store.Tx, _ time.Time) (bool, error) {
		return tx.PauseReplay(ctx, id)
	})
}

// ResumeReplay has a paused replay go on. It reports false when it is not
// paused.
func (p *Pipeline) ResumeReplay(ctx context.Context, id int64) (bool, error) {
	return p.moveReplay(ctx, "replay.resume", id, nil, func(ctx context.Context, tx store.Tx, now time.Time) (bool, error) {
		return tx.ResumeReplay(ctx, id, now)
	})
}

// CancelReplay ends a replay for good; jobs under way end by themselves. It
// reports false when it has ended already.
func (p *Pipeline) CancelReplay(ctx context.Context, id int64) (bool, error) {
	return p.moveReplay(ctx, "replay.cancel", id, nil, func(ctx context.Context, tx store.Tx, now time.Time) (bool, error) {
		return tx.CancelReplay(ctx, id, now)
	})
}

// moveReplay moves a replay, writes down who did, and has its runner look: also
// one that was paused or cancelled has jobs under way that end.
func (p *Pipeline) moveReplay(ctx context.Context, what string, id int64, after map[string]any, move func(context.Context, store.Tx, time.Time) (bool, error)) (bool, error) {
	now, moved := p.now(), false
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		was, err := tx.LockReplay(ctx, id)
		if err != nil {
			return err
		}
		if moved, err = move(ctx, tx, now); err != nil || !moved {
			return err
		}
		is, err := tx.LockReplay(ctx, id)
		if err != nil {
			return err
		}
		changed := map[string]any{"state": is.State}
		maps.Copy(changed, after)
		err = tx.Audit(ctx, now, store.Change{
			What: what, Kind: "replay", ID: strconv.FormatInt(id, 10), Before: map[string]any{"state": was.State}, After: changed,
		})
		if err != nil || was.State == store.ReplayPlanned && what == "replay.cancel" {
			return err
		}
		return p.queue.replay(ctx, tx, id)
	})
	if err != nil {
		return false, fmt.Errorf("%s %d: %w", what, id, err)
	}
	return moved, nil
}

func replaceChange(replayID, itemID int64, version int) store.Change {
	return store.Change{
		What: "replay.replace", Kind: "item", ID: strconv.FormatInt(itemID, 10),
		Before: map[string]any{"version": version}, After: map[string]any{"version": version + 1, "replay": replayID},
	}
}

// FollowReplay waits until a replay is over and nothing of it is under way, and
// returns it. It only looks: this process or another must run replays.
func (p *Pipeline) FollowReplay(ctx context.Context, id int64) (*store.Replay, error) {
	for {
		r, err := p.store.Replay(ctx, id)
		if err != nil {
			return nil, err
		}
		under, err := p.store.CountReplayUnder(ctx, id)
		if err != nil {
			return nil, err
		}
		if r.Over() && under == 0 {
			return r, nil
		}
		if err := sleep(ctx, replayGap); err != nil {
			return nil, err
		}
	}
}
