package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// Bounds of a closed gate.
const (
	gateCache    = 250 * time.Millisecond // How stale a gate may be seen.
	maxGateClose = 15 * time.Minute
	gateBackoff  = time.Second // First guess when a 429 does not say how long.
	gateLimit    = time.Minute
)

// gateWatch reads the shared gates, a few times a second at most.
type gateWatch struct {
	p  *Pipeline
	mu sync.Mutex
	at time.Time
	by map[string]store.Gate
}

func newGateWatch(p *Pipeline) *gateWatch { return &gateWatch{p: p} }

// wait is how long to wait before calling through the gate; zero is open.
func (g *gateWatch) wait(ctx context.Context, name string) (time.Duration, error) {
	gate, err := g.see(ctx, name)
	if err != nil {
		return 0, err
	}
	now := g.p.now()
	if gate.PausedAt != nil {
		return g.probe(ctx, gate, now)
	}
	return closedFor(gate, now), nil
}

// shut is how long to wait before going on with what passed the gate a while
// ago; zero is open. It takes no probe: a page more is no first try.
func (g *gateWatch) shut(ctx context.Context, name string) (time.Duration, error) {
	gate, err := g.see(ctx, name)
	if err != nil {
		return 0, err
	}
	if gate.PausedAt != nil {
		return g.untilProbe(), nil
	}
	return closedFor(gate, g.p.now()), nil
}

// closedFor is how long a gate that isn't paused stays closed, and a little, so
// that not all come at once.
func closedFor(gate store.Gate, now time.Time) time.Duration {
	if gate.ClosedUntil == nil || !gate.ClosedUntil.After(now) {
		return 0
	}
	return gate.ClosedUntil.Sub(now) + jitter(gateCache)
}

// untilProbe is when to look again whether a probe has opened a paused gate.
func (g *gateWatch) untilProbe() time.Duration {
	return g.p.cfg.ProbeEvery/2 + jitter(g.p.cfg.ProbeEvery/2)
}

// probe lets one caller at a time try a paused account; the others wait. A
// probe that goes through opens the gate, see passed.
func (g *gateWatch) probe(ctx context.Context, gate store.Gate, now time.Time) (time.Duration, error) {
	mine, err := g.p.store.TakeProbe(ctx, gate.Name, now, now.Add(g.p.cfg.ProbeEvery))
	if err != nil {
		return 0, fmt.Errorf("gate %s: %w", gate.Name, err)
	}
	if mine {
		return 0, nil
	}
	return g.untilProbe(), nil
}

func (g *gateWatch) see(ctx context.Context, name string) (store.Gate, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.p.now(); g.by == nil || now.Sub(g.at) >= gateCache {
		gates, err := g.p.store.Gates(ctx)
		if err != nil {
			return store.Gate{}, fmt.Errorf("read the gates: %w", err)
		}
		g.by, g.at = map[string]store.Gate{}, now
		for _, one := range gates {
			g.by[one.Name] = *one
		}
	}
	return g.by[name], nil
}

func (g *gateWatch) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.by = nil
}

// passed notes that a call went through: what was closed or paused is open.
func (g *gateWatch) passed(ctx context.Context, name string) error {
	gate, err := g.see(ctx, name)
	if err != nil {
		return err
	}
	if gate.PausedAt != nil {
		return g.resume(ctx, name, "probe")
	}
	if gate.Closings > 0 {
		defer g.forget()
		return g.p.store.OpenGate(ctx, name, g.p.now())
	}
	return nil
}

// byPerson says that a person opened a gate, and not a call that went through.
const byPerson = "person"

// resume opens a paused gate and says so, once for each pause.
func (g *gateWatch) resume(ctx context.Context, name, by string) error {
	defer g.forget()
	gate, err := g.p.store.Gate(ctx, name)
	if err != nil {
		return fmt.Errorf("read gate %s: %w", name, err)
	}
	now := g.p.now()
	opened := false
	err = g.p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		var err error
		if opened, err = tx.ResumeGate(ctx, name, now); err != nil || !opened || by != byPerson {
			return err
		}
		return tx.Audit(ctx, now, store.Change{What: "dispatch.resume", Kind: "gate", ID: name, Before: pausedFacts(gate)})
	})
	if err != nil {
		return fmt.Errorf("resume gate %s: %w", name, err)
	}
	if opened && gate.PausedAt != nil {
		g.p.log.InfoContext(ctx, "calls resumed", slog.String("gate", name), slog.String("by", by),
			slog.Duration("paused_for", now.Sub(*gate.PausedAt)))
	}
	return nil
}

// failed closes or pauses the gate when the error is about the account and
// not about the call. It reports how long to wait and whether it was so.
func (g *gateWatch) failed(ctx context.Context, name string, cause error) (time.Duration, bool, error) {
	var e *geonode.Error
	if !errors.As(cause, &e) {
		return 0, false, nil
	}
	switch {
	case errors.Is(cause, geonode.ErrThrottled):
		d, err := g.close(ctx, name, e)
		return d, true, err
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusPaymentRequired:
		return g.p.cfg.ProbeEvery, true, g.pause(ctx, name, e)
	}
	return 0, false, nil
}

// late reports whether what began then is past its deadline. Time in which the
// account was paused is ours and does not count.
func (g *gateWatch) late(ctx context.Context, name string, began, now time.Time) (bool, error) {
	if now.Sub(began) <= g.p.cfg.GiveUpAfter {
		return false, nil
	}
	paused, err := g.p.store.GatePaused(ctx, name, began, now)
	if err != nil {
		return false, fmt.Errorf("look how long gate %s was paused: %w", name, err)
	}
	return now.Sub(began)-paused > g.p.cfg.GiveUpAfter, nil
}

// close shuts the gate for as long as the vendor asks, or a growing guess. No
// wait at all, which is what a date in the past comes to, is as good as none
// said: calls would only run against the gate.
func (g *gateWatch) close(ctx context.Context, name string, e *geonode.Error) (time.Duration, error) {
	defer g.forget()
	d, said := e.RetryAfter()
	if !said || d <= 0 {
		gate, err := g.see(ctx, name)
		if err != nil {
			return 0, err
		}
		limit := doubling(gateBackoff, gateLimit, gate.Closings)
		d = limit/2 + jitter(limit/2)
	}
	d = min(max(d, 0), maxGateClose)
	now := g.p.now()
	if err := g.p.store.CloseGate(ctx, name, now, now.Add(d)); err != nil {
		return 0, fmt.Errorf("close gate %s: %w", name, err)
	}
	return d + jitter(gateCache), nil
}

func (g *gateWatch) pause(ctx context.Context, name string, e *geonode.Error) error {
	defer g.forget()
	now := g.p.now()
	first, err := g.p.store.PauseGate(ctx, name, e.Status, pauseReason(e), now, now.Add(g.p.cfg.ProbeEvery))
	if err != nil {
		return fmt.Errorf("pause gate %s: %w", name, err)
	}
	if first {
		g.p.log.ErrorContext(ctx, "vendor account refused, calls paused", slog.String("gate", name),
			slog.Int("status", e.Status), slog.String("code", e.Code))
	}
	return nil
}

// pauseReason is for people: which refusal, in the vendor's words if it had any.
func pauseReason(e *geonode.Error) string {
	reason := "the API key was refused"
	if e.Status == http.StatusPaymentRequired {
		reason = "the balance is used up"
	}
	if e.Message != "" {
		reason += ": " + clip(e.Message, 200)
	}
	return reason
}

// ResumeDispatch opens both gates after a 401 or 402, at a person's word, and
// has what waited for the next probe done now.
func (p *Pipeline) ResumeDispatch(ctx context.Context) error {
	for _, name := range []string{store.GateSubmit, store.GateRead} {
		if err := p.gates.resume(ctx, name, byPerson); err != nil {
			return err
		}
	}
	return p.queue.hurry(ctx)
}
