package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"rollcall/store"
)

const (
	// queueReplay has one worker a process: a replay is behind live work, and its
	// runner only looks and wakes.
	queueReplay = "replay"
	// afterLive is the priority of what a replay asks for; live work
	// has the default.
	afterLive = river.PriorityDefault + 3
)

// replayArgs asks that a replay be taken further. Running twice is harmless:
// all that a runner writes it writes under the lock on the replay's row, a job
// is begun with and ended by guarded updates, and each counts once.
type replayArgs struct {
	ReplayID int64 `json:"replay_id" river:"unique"`
}

// Kind implements river.JobArgs.
func (replayArgs) Kind() string { return "replay" }

// refetchArgs asks that a settled job be fetched once more and compared.
// Running twice is harmless: it changes nothing but what it noted itself.
type refetchArgs struct {
	ReplayID int64 `json:"replay_id" river:"unique"`
	JobID    int64 `json:"job_id" river:"unique"`
}

// Kind implements river.JobArgs.
func (refetchArgs) Kind() string { return "refetch" }

// replay adds the task that takes a replay further, unless it has one.
func (q *queue) replay(ctx context.Context, tx store.Tx, id int64) error {
	return q.insert(ctx, tx, forEach([]int64{id}, queueReplay, unended(), func(id int64) river.JobArgs { return replayArgs{ReplayID: id} }))
}

// settleBehind is settle for jobs that can wait until nothing live is left.
func (q *queue) settleBehind(ctx context.Context, tx store.Tx, jobIDs []int64) error {
	params := forEach(jobIDs, queueSettle, active(), func(id int64) river.JobArgs { return settleArgs{JobID: id} })
	return q.insert(ctx, tx, behind(params))
}

// refetch adds the tasks that fetch a replay's settled jobs once more.
func (q *queue) refetch(ctx context.Context, tx store.Tx, replayID int64, jobIDs []int64) error {
	params := forEach(jobIDs, queueSettle, unended(), func(id int64) river.JobArgs { return refetchArgs{ReplayID: replayID, JobID: id} })
	return q.insert(ctx, tx, behind(params))
}

func behind(params []river.InsertManyParams) []river.InsertManyParams {
	for i := range params {
		params[i].InsertOpts.Priority = afterLive
	}
	return params
}

// settleLive adds settle tasks, as settle does; a job that has one which waits
// behind live work has it brought forward.
func (q *queue) settleLive(ctx context.Context, tx store.Tx, params []river.InsertManyParams) error {
	if len(params) == 0 {
		return nil
	}
	added, err := q.client.InsertManyTx(ctx, tx.SQL(), params)
	if err != nil {
		return fmt.Errorf("add tasks: %w", err)
	}
	for _, each := range added {
		if !each.UniqueSkippedAsDuplicate || each.Job.Priority == river.PriorityDefault {
			continue
		}
		_, err := tx.SQL().ExecContext(ctx, `UPDATE river_job SET priority = $2 WHERE id = $1`, each.Job.ID, river.PriorityDefault)
		if err != nil {
			return fmt.Errorf("bring a task forward: %w", err)
		}
	}
	return nil
}

// underWay tells which of the jobs have a settle task, or are being fetched once
// more for the replay.
func (q *queue) underWay(ctx context.Context, replayID int64, jobIDs []int64) (map[int64]bool, error) {
	out := make(map[int64]bool, len(jobIDs))
	if len(jobIDs) == 0 {
		return out, nil
	}
	rows, err := q.db.QueryContext(ctx, `SELECT w.job FROM unnest($2::bigint[]) AS w (job)
		WHERE EXISTS (SELECT FROM river_job t WHERE (t.args->>'job_id')::bigint = w.job AND t.finalized_at IS NULL
			AND (t.kind = 'settle' OR t.kind = 'refetch' AND (t.args->>'replay_id')::bigint = $1))`, replayID, jobIDs)
	if err != nil {
		return nil, fmt.Errorf("look for tasks under way: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("look for tasks under way: %w", err)
		}
		out[id] = true
	}
	return out, rows.Err()
}

// replayAnew gives a replay a task again whose own died with its process. Two
// where one lives after all do no harm.
func (q *queue) replayAnew(ctx context.Context, tx store.Tx, id int64, before, now time.Time) error {
	_, err := tx.SQL().ExecContext(ctx, `UPDATE river_job SET state = $4, finalized_at = $3
		WHERE kind = 'replay' AND state = 'running' AND attempted_at <= $2 AND args @> jsonb_build_object('replay_id', $1::bigint)`,
		id, before, now, string(rivertype.JobStateDiscarded))
	if err != nil {
		return fmt.Errorf("end the dead task of replay %d: %w", id, err)
	}
	return q.replay(ctx, tx, id)
}
