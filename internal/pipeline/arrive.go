package pipeline

import (
	"context"
	"log/slog"
	"strings"

	"rollcall/store"
)

// newArrivals makes deliveries that come together share a commit.
func newArrivals(p *Pipeline) *groupCommit[*store.Arrival] {
	return &groupCommit[*store.Arrival]{
		what: "delivery", most: p.cfg.GroupRows, committers: p.cfg.Committers, log: p.log,
		size:    func(a *store.Arrival) int { return len(a.Body) },
		compare: func(a, b *store.Arrival) int { return strings.Compare(a.VendorJobID, b.VendorJobID) },
		write:   p.arrive, queue: make(chan waiting[*store.Arrival], groupQueue),
	}
}

// arrive commits deliveries, processed events, wakes and settle tasks together
// and fills in the verdicts. After the commit it looks for jobs whose 202 was
// recorded meanwhile.
func (p *Pipeline) arrive(ctx context.Context, arrivals []*store.Arrival) error {
	p.noteMicros(arrivals)
	if p.cfg.PlainArrivals {
		return p.arrivePlainly(ctx, arrivals)
	}
	woken, err := p.store.Arrive(ctx, arrivals, settleTask(), p.now())
	if err != nil {
		return err
	}
	if len(woken) > 0 {
		p.queue.tell()
	}
	p.claimArrived(ctx, arrivals)
	return nil
}

// arrivePlainly is arrive as a transaction that adds the tasks as everybody
// else adds theirs: what arrive is measured against.
func (p *Pipeline) arrivePlainly(ctx context.Context, arrivals []*store.Arrival) error {
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		woken, err := tx.Arrive(ctx, arrivals, p.now())
		if err != nil {
			return err
		}
		return p.queue.settle(ctx, tx, woken)
	})
	if err != nil {
		return err
	}
	p.claimArrived(ctx, arrivals)
	return nil
}

// noteMicros notes how long each was on its way here.
func (p *Pipeline) noteMicros(arrivals []*store.Arrival) {
	now := p.now()
	for _, a := range arrivals {
		a.Micros = now.Sub(a.ReceivedAt).Microseconds()
	}
}

// claimArrived is the receiver's half of the meeting with dispatch. The
// deliveries are committed already, so a failure here is only logged: the sweep
// repeats it.
func (p *Pipeline) claimArrived(ctx context.Context, arrivals []*store.Arrival) {
	var unknown []string
	for _, a := range arrivals {
		if a.KnownJob == 0 {
			unknown = append(unknown, a.VendorJobID)
		}
	}
	if err := p.claimHeld(ctx, unknown); err != nil {
		p.log.WarnContext(ctx, "held events not looked at", slog.Any("error", err))
	}
}
