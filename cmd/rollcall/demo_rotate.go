package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"rollcall/store"
)

// rotateEvery changes the secrets of all webhooks again and again until ctx ends or what it returns is called, which
// waits for the last change to end and says what went wrong.
func (d *demo) rotateEvery(ctx context.Context, every time.Duration) func() error {
	if every == 0 {
		return func() error { return nil }
	}
	ctx, stop := context.WithCancel(ctx)
	var turning sync.WaitGroup
	var err error
	turning.Go(func() { err = d.keepRotating(ctx, every) })
	return func() error {
		stop()
		turning.Wait()
		return err
	}
}

func (d *demo) keepRotating(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// One that has begun is seen to its end: its deliveries count.
		if err := d.rotateAll(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

// rotateTimeout bounds one change of all secrets.
const rotateTimeout = 5 * time.Minute

func (d *demo) rotateAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rotateTimeout)
	defer cancel()
	hooks, err := d.store.Webhooks(ctx)
	if err != nil {
		return fmt.Errorf("look at the webhooks: %w", err)
	}
	var begun []*store.Rotation
	for _, w := range hooks {
		r, err := d.pipeline.Rotate(ctx, w.ID, false)
		if err != nil {
			return err
		}
		begun = append(begun, r)
	}
	var errs []error
	for _, r := range begun {
		if _, err := d.pipeline.FollowRotation(ctx, r.ID); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
