package pipeline

import (
	"context"
	"errors"
	"time"
)

// beating runs do and, at each tick beside it, beat: who writes a file stays known
// as alive however long one query or one slow reader takes. Once beat says that
// the file isn't this writer's any more, do's context ends and the error is
// errNotMine; a beat that fails is left to the next one.
func beating(ctx context.Context, tick <-chan time.Time, beat func(context.Context) (bool, error), do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			if mine, err := beat(ctx); err == nil && !mine {
				cancel(errNotMine)
			}
		}
	}()
	defer func() {
		cancel(nil)
		<-stopped
	}()
	err := do(ctx)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errNotMine) {
		err = errNotMine
	}
	return err
}
