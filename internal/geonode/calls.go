package geonode

import (
	"strings"
	"sync"
	"time"
)

// What a call is for, as calls are counted.
const (
	CallSubmit   = "submit"   // A job is asked for.
	CallSync     = "sync"     // One URL is asked for in one call.
	CallStatus   = "status"   // A job is asked about; the answer may hold its first results.
	CallPage     = "page"     // A further page of a job's results.
	CallList     = "list"     // A page of a list of jobs.
	CallCancel   = "cancel"   // A job is to be cancelled.
	CallWebhooks = "webhooks" // Webhooks are listed, made, changed, rotated or removed.
	CallLog      = "log"      // A page of a webhook's delivery log.
	CallUsage    = "usage"    // The account's usage and statistics, and whether the vendor is up.
)

// Calls is how many calls of a kind were sent in an hour of UTC.
type Calls struct {
	Hour time.Time
	Kind string
	N    int64
}

// callCounter counts calls until somebody takes the counts. Its zero value is ready.
type callCounter struct {
	mu sync.Mutex
	n  map[Calls]int64 // By hour and kind.
}

// add counts n more.
func (c *callCounter) add(at time.Time, kind string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[Calls]int64)
	}
	c.n[Calls{Hour: at.UTC().Truncate(time.Hour), Kind: kind}] += n
}

// TakeCalls returns the calls that were sent since they were last taken. Each is
// counted once, when it was sent, whatever came back; one that never found a
// connection is none. Who can't keep them gives them back.
func (c *Client) TakeCalls() []Calls {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	out := make([]Calls, 0, len(c.calls.n))
	for key, n := range c.calls.n {
		key.N = n
		out = append(out, key)
	}
	c.calls.n = nil
	return out
}

// GiveBackCalls has calls that were taken counted again.
func (c *Client) GiveBackCalls(calls []Calls) {
	for _, each := range calls {
		c.calls.add(each.Hour, each.Kind, each.N)
	}
}

// kind is what a call is counted as.
func (in call) kind() string {
	verb, what, _ := strings.Cut(in.op, " ")
	switch {
	case strings.Contains(what, "webhook"), what == "secret":
		return CallWebhooks
	case what == "deliveries":
		return CallLog
	case what == "usage", what == "statistics", what == "health":
		return CallUsage
	case what == "sync":
		return CallSync
	case verb == "get" && in.query.Has("page") && in.query.Get("page") != "1":
		return CallPage
	case verb == "get":
		return CallStatus
	}
	return verb // submit, list, cancel.
}
