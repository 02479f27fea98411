package sandbox

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"rollcall/internal/geonode/contracttest"
)

// clock is a clock that stands still until it is told to move.
type clock struct {
	mu    sync.Mutex
	start time.Time
	at    time.Time
}

func newClock() *clock {
	start := time.Date(2026, 9, 14, 8, 0, 0, 0, time.UTC)
	return &clock{start: start, at: start}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// request is a call with another key; an empty one is not sent.
func (r *rig) request(method, path, key string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, bytes.NewReader(nil))
	if err != nil {
		r.t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	} else {
		req.Header.Set(contracttest.DeliberateHeader, "no key")
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{r.t, resp.StatusCode, resp.Header, raw}
}
