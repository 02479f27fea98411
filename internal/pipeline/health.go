package pipeline

import (
	"slices"
	"sync"
)

// health remembers how the last read of each of the last jobs ended, to tell a
// job that is gone from an account or a vendor that is not itself. It counts
// jobs and not reads: one job that is gone is asked about again and again.
type health struct {
	mu   sync.Mutex
	jobs []int64 // The one read longest ago first.
	lost map[int64]bool
}

const (
	// healthJobs is how many jobs are remembered.
	healthJobs = 50
	// leastJobs is how few jobs say nothing about the vendor as a whole.
	leastJobs = 10
)

// note remembers whether the job was refused or not found.
func (h *health) note(job int64, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil {
		h.lost = map[int64]bool{}
	}
	if at := slices.Index(h.jobs, job); at >= 0 {
		h.jobs = slices.Delete(h.jobs, at, at+1)
	} else if len(h.jobs) >= healthJobs {
		delete(h.lost, h.jobs[0])
		h.jobs = slices.Delete(h.jobs, 0, 1)
	}
	h.jobs = append(h.jobs, job)
	h.lost[job] = lost
}

// seen is how many jobs are remembered.
func (h *health) seen() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.jobs)
}

// alarming reports that more than a fifth of the last jobs were refused or
// not found.
func (h *health) alarming() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	lost := 0
	for _, l := range h.lost {
		if l {
			lost++
		}
	}
	return len(h.jobs) >= leastJobs && lost*5 > len(h.jobs)
}
