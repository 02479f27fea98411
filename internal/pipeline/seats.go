package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/riverqueue/river"
)

const (
	// turnWait is how long a task waits for its turn at the vendor before it goes
	// back to the queue: what it asks then still fits into its time.
	turnWait = 5 * time.Second
	// besideCalls is how many more tasks run than may be calling: those that wait
	// for a commit that they share. The more of them, the fewer the commits.
	besideCalls = 64
	// preflightSeats is how many preflights a process reads or submits at once:
	// each holds its lines, or a connection to the database, for as long as it
	// takes.
	preflightSeats = 2
	// seatWait is how long a person is kept waiting for one.
	seatWait = 15 * time.Second
)

// ErrBusy reports that as many preflights are being read as are at once, and
// that nothing was done.
var ErrBusy = errors.New("as many preflights are being read as are at once: try again in a moment")

// seats are places that a few can take at once.
type seats struct {
	taken chan struct{}
	wait  time.Duration
}

func newSeats(n int, wait time.Duration) *seats {
	return &seats{taken: make(chan struct{}, n), wait: wait}
}

// take waits for a place, and returns how it is left again. ErrBusy says that
// none came free in time.
func (s *seats) take(ctx context.Context) (func(), error) {
	leave := func() { <-s.taken }
	select {
	case s.taken <- struct{}{}:
		return leave, nil
	default:
	}
	late := time.NewTimer(s.wait)
	defer late.Stop()
	select {
	case s.taken <- struct{}{}:
		return leave, nil
	case <-late.C:
		return nil, ErrBusy
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// turnAtVendor takes one of the places of those who call the vendor; when none
// comes free, the task goes back to the queue. It may be left early, and twice.
func (p *Pipeline) turnAtVendor(ctx context.Context, places *seats) (func(), error) {
	leave, err := places.take(ctx)
	if errors.Is(err, ErrBusy) {
		return nil, river.JobSnooze(turnWait/2 + jitter(turnWait))
	}
	if err != nil {
		return nil, fmt.Errorf("wait for a turn at the vendor: %w", err)
	}
	return sync.OnceFunc(leave), nil
}
