package pipeline

import (
	"context"
	"errors"
	"time"
)

const (
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
