package pipeline

import (
	"sync"
	"time"
)

// health remembers how the last reads ended, to tell a job that is gone from
// an account or a vendor that is not itself.
type health struct {
	mu   sync.Mutex
	ring [50]bool
	n    int
}

// leastReads is how few reads say nothing about the vendor as a whole.
const leastReads = 10

func (h *health) note(lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ring[h.n%len(h.ring)] = lost
	h.n++
}

// alarming reports that more than a fifth of the last reads were refused or
// not found.
func (h *health) alarming() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := min(h.n, len(h.ring))
	lost := 0
	for _, l := range h.ring[:seen] {
		if l {
			lost++
		}
	}
	return seen >= leastReads && lost*5 > seen
}

// clock estimates how far the vendor's clock is ahead of ours, from the Date
// headers of its answers, which are good to a second.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) note(vendor, ours time.Time) {
	if vendor.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = vendor.Sub(ours)
}

// vendorTime is one of our times as the vendor's clock shows it.
func (c *clock) vendorTime(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.Add(c.offset)
}
