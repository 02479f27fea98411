package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"rollcall/store"
)

// holdGrace is how long a reconcile task may be under way before its run must
// be held.
const holdGrace = 5 * time.Second

// reconcileHeld is a run that holds its task, so that others see whether it
// goes on: a run may take minutes, and for as long as its task is under way
// nobody starts another.
func (p *Pipeline) reconcileHeld(ctx context.Context, task *river.Job[reconcileArgs]) error {
	release, err := p.store.HoldRun(ctx, task.ID)
	if err != nil {
		return err
	}
	defer release()
	if _, err := p.Reconcile(ctx, task.Args.Trigger); err != nil {
		return err
	}
	// Before it is let go of, or it would be taken for dead.
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error { return finish(ctx, tx, task) })
}

// sweepRuns runs reconcile anew for tasks that are under way and whose process
// died: the queue itself would see that only when their time is up. Two runs
// where one lives after all would be waste but do no harm.
func (p *Pipeline) sweepRuns(ctx context.Context, now time.Time) error {
	running, err := p.queue.reconciling(ctx, now.Add(-holdGrace))
	if err != nil {
		return err
	}
	for _, task := range running {
		err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
			dead, err := tx.RunLetGo(ctx, task.id)
			if err != nil || !dead {
				return err
			}
			p.log.WarnContext(ctx, "reconcile run died with its process, running anew", slog.Int64("task", task.id))
			return p.queue.reconcileAnew(ctx, tx, task, now)
		})
		if err != nil {
			return fmt.Errorf("replace reconcile task %d: %w", task.id, err)
		}
	}
	return nil
}

// reconcileTask is a reconcile task under way.
type reconcileTask struct {
	id      int64
	trigger string
}

// reconciling lists the reconcile tasks that are under way since before then.
func (q *queue) reconciling(ctx context.Context, before time.Time) ([]reconcileTask, error) {
	rows, err := q.db.QueryContext(ctx, `SELECT id, args->>'trigger' FROM river_job
		WHERE kind = 'reconcile' AND state = 'running' AND attempted_at <= $1`, before)
	if err != nil {
		return nil, fmt.Errorf("look for reconcile tasks: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	var tasks []reconcileTask
	for rows.Next() {
		var t reconcileTask
		if err := rows.Scan(&t.id, &t.trigger); err != nil {
			return nil, fmt.Errorf("look for reconcile tasks: %w", err)
		}
		tasks = append(tasks, t)
	}
	return tasks, rows.Err()
}

// reconcileAnew ends a dead task and asks for another like it.
func (q *queue) reconcileAnew(ctx context.Context, tx store.Tx, task reconcileTask, now time.Time) error {
	res, err := tx.SQL().ExecContext(ctx, `UPDATE river_job SET state = 'discarded', finalized_at = $2
		WHERE id = $1 AND state = 'running'`, task.id, now)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = q.client.InsertTx(ctx, tx.SQL(), reconcileArgs{Trigger: task.trigger}, reconcileOpts())
	return err
}
