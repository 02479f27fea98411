package pipeline

import (
	"context"
	"fmt"

	"github.com/riverqueue/river"
)

// idleEvents holds the ends of tasks that come while Idle counts.
const idleEvents = 10_000

// Idle waits until no dispatch or settle task waits or runs. It is for
// measurements that own the clock and the database: they must know that all
// that a turn caused has happened before the time goes on. The pipeline must
// have been started, not only to submit.
func (p *Pipeline) Idle(ctx context.Context) error {
	ends, done := p.queue.client.SubscribeConfig(&river.SubscribeConfig{ChanSize: idleEvents, Kinds: []river.EventKind{
		river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed, river.EventKindJobSnoozed,
	}})
	defer done()
	for {
		left, err := p.queue.unended(ctx)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ends:
		}
		for len(ends) > 0 {
			<-ends
		}
	}
}

// unended counts the dispatch and settle tasks that are still to be done.
func (q *queue) unended(ctx context.Context) (int, error) {
	var n int
	err := q.db.QueryRowContext(ctx, `SELECT count(*) FROM river_job WHERE queue IN ($1, $2)
		AND state IN ('available', 'pending', 'running', 'scheduled', 'retryable')`, queueDispatch, queueSettle).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count the tasks: %w", err)
	}
	return n, nil
}
