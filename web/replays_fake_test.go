package web

import (
	"context"
	"errors"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// fakeReplays moves replays as the pipeline does and runs nothing: what a run
// comes to, a test writes itself.
type fakeReplays struct{ rows *store.Store }

func (f *fakeReplays) PlanReplay(ctx context.Context, req pipeline.ReplayRequest) (*store.Replay, error) {
	plan := &store.Replay{
		State: store.ReplayPlanned, Picked: req.Picked, Address: req.Address, PlannedBy: store.ActorOf(ctx).Name, PlannedAt: time.Now(),
		SubmitToken: &req.Token,
	}
	err := f.rows.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := tx.InsertReplay(ctx, plan); err != nil {
			return err
		}
		var err error
		plan.Frozen, err = tx.FreezeReplay(ctx, plan.ID, req.Picks)
		return err
	})
	if errors.Is(err, store.ErrTaken) {
		return f.rows.ReplayOfToken(ctx, req.Token)
	}
	return plan, err
}

func (f *fakeReplays) move(ctx context.Context, id int64, move func(context.Context, store.Tx) (bool, error)) (bool, error) {
	moved := false
	err := f.rows.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.LockReplay(ctx, id)
		if err == nil {
			moved, err = move(ctx, tx)
		}
		return err
	})
	return moved, err
}

func (f *fakeReplays) RunReplay(ctx context.Context, id int64, refetch bool) (bool, error) {
	return f.move(ctx, id, func(ctx context.Context, tx store.Tx) (bool, error) {
		return tx.RunReplay(ctx, id, refetch, store.ActorOf(ctx).Name, time.Now())
	})
}

func (f *fakeReplays) PauseReplay(ctx context.Context, id int64) (bool, error) {
	return f.move(ctx, id, func(ctx context.Context, tx store.Tx) (bool, error) { return tx.PauseReplay(ctx, id) })
}

func (f *fakeReplays) ResumeReplay(ctx context.Context, id int64) (bool, error) {
	return f.move(ctx, id, func(ctx context.Context, tx store.Tx) (bool, error) { return tx.ResumeReplay(ctx, id, time.Now()) })
}

func (f *fakeReplays) CancelReplay(ctx context.Context, id int64) (bool, error) {
	return f.move(ctx, id, func(ctx context.Context, tx store.Tx) (bool, error) { return tx.CancelReplay(ctx, id, time.Now()) })
}

func (f *fakeReplays) ReplayTakes(calls int64) time.Duration {
	return time.Duration(calls) * time.Second / 10
}

func (f *fakeReplays) ReplaceResult(ctx context.Context, replayID, itemID int64) (bool, error) {
	done := false
	err := f.rows.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		_, done, err = tx.ReplaceResult(ctx, replayID, itemID, store.ActorOf(ctx).Name, time.Now())
		return err
	})
	return done, err
}
