package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// clock estimates how far the vendor's clock is ahead of ours, from the Date
// headers of its answers, which are good to a second.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
	heard  bool          // The vendor has said a time.
	noted  time.Duration // The offset that was written down last; none yet is like none at all.
	at     time.Time     // When it was.
}

// noteEvery is how often an offset is written down at most: the vendor may
// answer by several clocks.
const noteEvery = time.Second

// note takes a time of the vendor's. It reports that the offset has become
// another than was written down last: the caller writes it down, and says so to
// unnoted if that fails.
func (c *clock) note(vendor, ours time.Time) bool {
	if vendor.IsZero() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset, c.heard = vendor.Sub(ours), true
	if (c.offset-c.noted).Abs() <= clockNoise || ours.Sub(c.at).Abs() < noteEvery {
		return false
	}
	c.noted, c.at = c.offset, ours
	return true
}

// unnoted has one of the next answers write the offset down.
func (c *clock) unnoted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noted = c.offset - 2*clockNoise
}

// hearClock notes the time of an answer. That the clock has jumped is written
// down for whoever looks for a call that was lost meanwhile.
func (p *Pipeline) hearClock(ctx context.Context, vendor time.Time) {
	now := p.now()
	if !p.clock.note(vendor, now) {
		return
	}
	if err := p.store.NoteVendorClock(ctx, now, vendor.Sub(now)); err != nil {
		p.clock.unnoted()
		p.log.WarnContext(ctx, "not written down that the vendor's clock has jumped", slog.Any("error", err))
	}
}

// ahead is how far the vendor's clock is ahead of ours, as far as is known.
func (c *clock) ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// clockNoise is how far apart clocks may look that agree: Date headers carry
// full seconds, and answers take their time.
const clockNoise = 2 * time.Second

// ourTime is one of the vendor's times by our clock; zero stays zero, as does
// what no database can hold, and clocks that seem to agree are taken to.
func (c *clock) ourTime(t time.Time) time.Time {
	if ahead := c.ahead(); !t.IsZero() && ahead.Abs() > clockNoise {
		t = t.Add(-ahead)
	}
	if !usable(t) {
		return time.Time{}
	}
	return t
}

// vendorTime is one of our times as the vendor's clock shows it.
func (c *clock) vendorTime(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.Add(c.offset)
}
