package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

const (
	// turnWait is how long a task waits for its turn at the vendor before it goes
	// back to the queue: a call of usual length still fits into its time.
	turnWait = 3 * time.Second
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

// ErrBusy reports that no place came free in time for what only a few may do at
// once, such as reading a preflight, and that nothing was done.
var ErrBusy = errors.New("as many are at it as may be at once: try again in a moment")

// seats are places that a few can take at once. Who waits gets one in the order
// of coming, those who give way after all others.
type seats struct {
	ended chan struct{} // Closed once nobody gets a place any more.
	end   func()

	mu     sync.Mutex
	wait   time.Duration
	free   int
	ahead  []chan struct{}
	behind []chan struct{} // Of those who give way.
}

func newSeats(n int, wait time.Duration) *seats {
	ended := make(chan struct{})
	return &seats{free: n, wait: wait, ended: ended, end: sync.OnceFunc(func() { close(ended) })}
}

// take waits for a place, and returns how it is left again, which may be done
// twice. ErrBusy says that none came free in time, or that none will.
func (s *seats) take(ctx context.Context) (func(), error) {
	return s.takeFrom(ctx, &s.ahead, s.patience())
}

// giveWay is take for one who lets all others go first, and waits only shortly.
func (s *seats) giveWay(ctx context.Context) (func(), error) {
	return s.takeFrom(ctx, &s.behind, s.patience()/behindPart)
}

// behindPart is how many times shorter those wait who give way: each time they
// come again they may be among the others.
const behindPart = 3

func (s *seats) takeFrom(ctx context.Context, queue *[]chan struct{}, wait time.Duration) (func(), error) {
	select {
	case <-s.ended:
		return nil, ErrBusy
	default:
	}
	turn := s.enqueue(queue)
	late := time.NewTimer(wait)
	defer late.Stop()
	err := error(nil)
	select {
	case <-turn:
	case <-s.ended:
		err = ErrBusy
	case <-late.C:
		err = ErrBusy
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil && s.unqueue(queue, turn) {
		return nil, err
	}
	return sync.OnceFunc(s.leave), nil
}

func (s *seats) patience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wait
}

// crowded tells that somebody waits for a place.
func (s *seats) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ahead)+len(s.behind) > 0
}

// enqueue returns what is closed once the place is there: at once when one is
// free, as nobody waits then.
func (s *seats) enqueue(queue *[]chan struct{}) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := make(chan struct{})
	if s.free > 0 {
		s.free--
		close(turn)
		return turn
	}
	*queue = append(*queue, turn)
	return turn
}

// unqueue waits no longer; false says that the place came meanwhile.
func (s *seats) unqueue(queue *[]chan struct{}, turn chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(*queue, turn)
	if at >= 0 {
		*queue = slices.Delete(*queue, at, at+1)
	}
	return at >= 0
}

// leave gives the place to the next.
func (s *seats) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range []*[]chan struct{}{&s.ahead, &s.behind} {
		if len(*queue) > 0 {
			close((*queue)[0])
			*queue = slices.Delete(*queue, 0, 1)
			return
		}
	}
	s.free++
}

// turnAtVendor takes one of the places of those who call the vendor; when none
// comes free, the task goes back to the queue. What a replay asks for gives way
// to live work.
func (p *Pipeline) turnAtVendor(ctx context.Context, places *seats, task *rivertype.JobRow) (func(), error) {
	take, later := places.take, turnWait
	if task.Priority > river.PriorityDefault {
		take, later = places.giveWay, turnWait/behindPart
	}
	leave, err := take(ctx)
	if errors.Is(err, ErrBusy) {
		return nil, river.JobSnooze(later/2 + jitter(later))
	}
	if err != nil {
		return nil, fmt.Errorf("wait for a turn at the vendor: %w", err)
	}
	return leave, nil
}
