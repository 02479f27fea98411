package pipeline

import (
	"context"
	"log/slog"

	"rollcall/store"
)

// activeBits are active as River writes them.
const activeBits = 1<<0 | 1<<4 | 1<<6 | 1<<7

// settleTask is the task that settle adds, for a statement that adds it itself.
// Once that is committed its caller says so to tell.
func settleTask() store.JobTask {
	return store.JobTask{Kind: settleArgs{}.Kind(), Queue: queueSettle, MaxAttempts: maxAttempts, States: activeBits}
}

// tell has the workers told of settle tasks that are committed.
func (q *queue) tell() {
	select {
	case q.added <- struct{}{}:
	default: // They are about to be.
	}
}

// tellLoop tells the workers of all processes of tasks that settleTask made, as
// River tells them of its own: at once, and then not before a cooldown is over.
// They would look by themselves, but only each second.
func (p *Pipeline) tellLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.queue.added:
		}
		_, err := p.queue.db.ExecContext(ctx, `SELECT pg_notify(current_schema() || '.river_insert', $1)`, `{"queue": "`+queueSettle+`"}`)
		if err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "workers not told of new tasks, they look by themselves", slog.Any("error", err))
		}
		if sleep(ctx, fetchCooldown) != nil {
			return
		}
	}
}
