package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"rollcall/store"
)

// Bounds of a group.
const (
	groupBytes     = 1 << 20 // Bytes of the members of one commit.
	groupQueue     = 2048    // Members that wait; more are turned away.
	groupTimeout   = 10 * time.Second
	answerDeadline = 14 * time.Second
)

// errBusy reports that more members wait than can be taken up in time.
var errBusy = errors.New("too many wait for a commit")

// errStopped reports that this process takes up nothing more.
var errStopped = errors.New("this process is stopping")

// groupCommit makes what comes at the same time share a commit: a committer
// takes what queued up while the last commit ran, and waits for nothing more.
type groupCommit[T any] struct {
	what       string                           // A member's name, for the log.
	most       int                              // Members of one commit.
	size       func(T) int                      // A member's bytes.
	compare    func(a, b T) int                 // One order for all groups, so that two with rows in common don't deadlock.
	write      func(context.Context, []T) error // Commits all of them or none.
	committers int
	log        *slog.Logger

	queue chan waiting[T]
	mu    sync.RWMutex // Held for reading while sending, for writing to close.
	ended bool
}

// waiting is a member on its way into a commit.
type waiting[T any] struct {
	member T
	done   chan error
}

func (g *groupCommit[T]) start(loops *sync.WaitGroup) {
	for range g.committers {
		loops.Go(g.run)
	}
}

// stop takes no more members; those that wait are still committed.
func (g *groupCommit[T]) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.ended = true
		close(g.queue)
	}
}

// commit waits until the member is committed. Its caller going away does not
// take it out of its group.
func (g *groupCommit[T]) commit(ctx context.Context, member T) error {
	w := waiting[T]{member: member, done: make(chan error, 1)}
	if err := g.enqueue(w); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerDeadline)
	defer cancel()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		// It may yet be committed; trying it again then changes nothing.
		return fmt.Errorf("wait for the commit: %w", ctx.Err())
	}
}

func (g *groupCommit[T]) enqueue(w waiting[T]) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.ended {
		return errStopped
	}
	select {
	case g.queue <- w:
		return nil
	default:
		return errBusy
	}
}

func (g *groupCommit[T]) run() {
	for first := range g.queue {
		g.settle(g.gather(first))
	}
}

// gather takes what has queued, up to the bounds, without waiting for more.
func (g *groupCommit[T]) gather(first waiting[T]) []waiting[T] {
	group, size := []waiting[T]{first}, g.size(first.member)
	for len(group) < g.most && size < groupBytes {
		select {
		case next, ok := <-g.queue:
			if !ok {
				return group
			}
			group = append(group, next)
			size += g.size(next.member)
		default:
			return group
		}
	}
	return group
}

// settle commits the group and answers each of its members. When the group does
// not commit, each is tried alone: one bad row refuses itself only.
func (g *groupCommit[T]) settle(group []waiting[T]) {
	slices.SortStableFunc(group, func(a, b waiting[T]) int { return g.compare(a.member, b.member) })
	err := g.together(group)
	if errors.Is(err, store.ErrDeadlock) {
		err = g.together(group)
	}
	// Time running out is the database's trouble and no row's: trying each
	// alone would only take that long for each.
	if err == nil || len(group) == 1 || store.IsLate(err) {
		answer(group, err)
		return
	}
	g.log.Warn("group not committed, each is tried alone",
		slog.String("of", g.what), slog.Int("members", len(group)), slog.Any("error", err))
	for i := range group {
		one := group[i : i+1]
		if g.stopping() {
			answer(group[i:], errStopped)
			return
		}
		if err = g.together(one); store.IsLate(err) {
			answer(group[i:], err)
			return
		}
		answer(one, err)
	}
}

// stopping reports that no more members come.
func (g *groupCommit[T]) stopping() bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.ended
}

// together writes members in one commit.
func (g *groupCommit[T]) together(group []waiting[T]) error {
	ctx, cancel := context.WithTimeout(context.Background(), groupTimeout)
	defer cancel()
	members := make([]T, len(group))
	for i, w := range group {
		members[i] = w.member
	}
	if err := g.write(ctx, members); err != nil {
		return fmt.Errorf("commit of %d, each a %s: %w", len(group), g.what, err)
	}
	return nil
}

func answer[T any](group []waiting[T], err error) {
	for _, w := range group {
		w.done <- err
	}
}
