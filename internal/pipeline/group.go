package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"rollcall/store"
)

// Bounds of a group.
const (
	groupBytes     = 1 << 20 // Bytes of bodies of one commit.
	groupQueue     = 2048    // Deliveries that wait; more are answered 503.
	groupTimeout   = 10 * time.Second
	answerDeadline = 14 * time.Second
)

// errBusy reports that more deliveries wait than can be taken up in time.
var errBusy = errors.New("too many deliveries wait")

// errStopped reports that this process takes up no more deliveries.
var errStopped = errors.New("this process is stopping")

// waiting is a delivery on its way into a commit.
type waiting struct {
	arrival *store.Arrival
	done    chan error
}

// groupCommit makes deliveries that arrive together share a commit: a
// committer takes what queued up while the last commit ran.
type groupCommit struct {
	p     *Pipeline
	queue chan waiting
	mu    sync.RWMutex // Held for reading while sending, for writing to close.
	ended bool
}

func newGroupCommit(p *Pipeline) *groupCommit {
	return &groupCommit{p: p, queue: make(chan waiting, groupQueue)}
}

func (g *groupCommit) start(loops *sync.WaitGroup) {
	for range g.p.cfg.Committers {
		loops.Go(g.run)
	}
}

// stop takes no more deliveries; those that wait are still committed.
func (g *groupCommit) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.ended = true
		close(g.queue)
	}
}

// commit waits until the delivery is committed. It fills in the verdict. The
// sender going away does not take the delivery out of its group.
func (g *groupCommit) commit(ctx context.Context, a *store.Arrival) error {
	w := waiting{arrival: a, done: make(chan error, 1)}
	if err := g.enqueue(w); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerDeadline)
	defer cancel()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		// It may yet be committed; the vendor's next try is then a duplicate.
		return fmt.Errorf("wait for the commit: %w", ctx.Err())
	}
}

func (g *groupCommit) enqueue(w waiting) error {
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

func (g *groupCommit) run() {
	for first := range g.queue {
		g.settle(g.gather(first))
	}
}

// gather takes what has queued, up to the bounds, without waiting for more.
func (g *groupCommit) gather(first waiting) []waiting {
	group, size := []waiting{first}, len(first.arrival.Body)
	for len(group) < g.p.cfg.GroupRows && size < groupBytes {
		select {
		case next, ok := <-g.queue:
			if !ok {
				return group
			}
			group = append(group, next)
			size += len(next.arrival.Body)
		default:
			return group
		}
	}
	return group
}

// settle commits the group and answers each of its deliveries. When the group
// does not commit, each is tried alone: one bad row refuses itself only.
func (g *groupCommit) settle(group []waiting) {
	// One order for all groups, so that two with ids in common don't deadlock.
	slices.SortStableFunc(group, func(a, b waiting) int {
		return strings.Compare(a.arrival.VendorJobID, b.arrival.VendorJobID)
	})
	err := g.write(group)
	if errors.Is(err, store.ErrDeadlock) {
		err = g.write(group)
	}
	// Time running out is the database's trouble and no row's: trying each
	// alone would only take that long for each.
	if err == nil || len(group) == 1 || errors.Is(err, context.DeadlineExceeded) {
		answer(group, err)
		return
	}
	g.p.log.Warn("group of deliveries not committed, each is tried alone",
		slog.Int("deliveries", len(group)), slog.Any("error", err))
	for i := range group {
		one := group[i : i+1]
		answer(one, g.write(one))
	}
}

func answer(group []waiting, err error) {
	for _, w := range group {
		w.done <- err
	}
}

// write commits deliveries, processed events, wakes and settle tasks together.
// After the commit it looks for jobs whose 202 was recorded meanwhile.
func (g *groupCommit) write(group []waiting) error {
	ctx, cancel := context.WithTimeout(context.Background(), groupTimeout)
	defer cancel()
	arrivals := make([]*store.Arrival, len(group))
	for i, w := range group {
		arrivals[i] = w.arrival
		w.arrival.Micros = g.p.now().Sub(w.arrival.ReceivedAt).Microseconds()
	}
	err := g.p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		woken, err := tx.Arrive(ctx, arrivals, g.p.now())
		if err != nil {
			return err
		}
		return g.p.queue.settle(ctx, tx, woken)
	})
	if err != nil {
		return fmt.Errorf("commit %d deliveries: %w", len(group), err)
	}
	g.claim(ctx, arrivals)
	return nil
}

// claim is the receiver's half of the meeting with dispatch. The deliveries
// are committed already, so a failure here is only logged: the sweep repeats
// it.
func (g *groupCommit) claim(ctx context.Context, arrivals []*store.Arrival) {
	var unknown []string
	for _, a := range arrivals {
		if a.KnownJob == 0 {
			unknown = append(unknown, a.VendorJobID)
		}
	}
	if err := g.p.claimHeld(ctx, unknown); err != nil {
		g.p.log.WarnContext(ctx, "held events not looked at", slog.Any("error", err))
	}
}
