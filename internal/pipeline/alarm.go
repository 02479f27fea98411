package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// alarmEvery is how often an alarm that goes on is raised again.
const alarmEvery = 30 * time.Second

// alarms keeps what is raised by many jobs at once to one line now and then.
type alarms struct {
	mu sync.Mutex
	at time.Time
}

// raise tells people, by the overview and the log, that something is wrong
// with the account or the vendor as a whole, for which nothing is failed.
func (p *Pipeline) raise(ctx context.Context, reason string) error {
	now := p.now()
	p.alarms.mu.Lock()
	due := p.alarms.at.IsZero() || now.Sub(p.alarms.at) >= alarmEvery
	if due {
		p.alarms.at = now
	}
	p.alarms.mu.Unlock()
	if !due {
		return nil
	}
	p.log.ErrorContext(ctx, "alarm", slog.String("reason", reason))
	return p.store.RaiseAlarm(ctx, reason, now)
}
