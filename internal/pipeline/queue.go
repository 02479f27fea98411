package pipeline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivertype"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// The queues. Maintenance has its own, so that a full settle queue never
// keeps the reconciler waiting.
const (
	queueDispatch    = "dispatch"
	queueSettle      = "settle"
	queueMaintenance = "maintenance"
	// queueSync has people waiting at it, and queueCancel nobody's results.
	queueSync   = "sync"
	queueCancel = "cancel"
	// queueUpkeep is for what may take minutes and waits for nobody.
	queueUpkeep = "upkeep"
	// queueRotate must not wait: deliveries are refused meanwhile.
	queueRotate = "rotate"
	// queueIndex makes results findable, behind everything else.
	queueIndex = "index"
)

// Task bounds. A rescue comes after nearly every task has ended that still runs,
// and within the 90 s in which a killed process's work must resume. One that
// waits for a commit beyond that runs twice, which changes nothing.
const (
	taskTimeout      = 20 * time.Second
	rescueAfter      = 30 * time.Second
	reconcileTimeout = 10 * time.Minute
	fetchCooldown    = 10 * time.Millisecond // Workers of settle are free again after as long.
	maxAttempts      = 10_000                // Tasks are never given up: their rows would be stuck.
	maxRetryGap      = 30 * time.Second
)

// dispatchArgs asks that an intended job be called for. Running twice is
// harmless: the claim is a guarded update that only one run wins.
type dispatchArgs struct {
	JobID int64 `json:"job_id" river:"unique"`
}

// Kind implements river.JobArgs.
func (dispatchArgs) Kind() string { return "dispatch" }

// settleArgs asks that a job be settled. Running twice is harmless: items are
// moved by guarded updates and the close counts for one run only.
type settleArgs struct {
	JobID int64 `json:"job_id" river:"unique"`
}

// Kind implements river.JobArgs.
func (settleArgs) Kind() string { return "settle" }

// adoptArgs asks that an uncertain job be looked for in the vendor's lists.
// Running twice is harmless: a vendor id can be recorded once only.
type adoptArgs struct {
	JobID int64 `json:"job_id" river:"unique"`
}

// Kind implements river.JobArgs.
func (adoptArgs) Kind() string { return "adopt" }

// reconcileArgs asks for a reconcile run. Two at once would be waste but do no
// harm: they only wake.
type reconcileArgs struct {
	Trigger string `json:"trigger"`
}

// Kind implements river.JobArgs.
func (reconcileArgs) Kind() string { return "reconcile" }

// active are the states in which a task counts for uniqueness. A retryable one
// does not: a wake must not wait for another's retry gap.
func active() []rivertype.JobState {
	return []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}
}

// unended are active and retryable: of what the sweep asks for every few
// seconds, tasks that wait for their retry would pile up.
func unended() []rivertype.JobState { return append(active(), rivertype.JobStateRetryable) }

// queue is River behind the few verbs the pipeline needs.
type queue struct {
	client *river.Client[*sql.Tx]
	db     *sql.DB
	added  chan struct{} // Somebody else than River added tasks of which the workers were not told yet.
}

func newQueue(p *Pipeline) (*queue, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &dispatchWorker{p: p})
	river.AddWorker(workers, &settleWorker{p: p})
	river.AddWorker(workers, &adoptWorker{p: p})
	river.AddWorker(workers, &reconcileWorker{p: p})
	river.AddWorker(workers, &syncWorker{p: p})
	river.AddWorker(workers, &cancelWorker{p: p})
	river.AddWorker(workers, &diagnoseWorker{p: p})
	river.AddWorker(workers, &replayWorker{p: p})
	river.AddWorker(workers, &refetchWorker{p: p})
	river.AddWorker(workers, &mirrorWorker{p: p})
	river.AddWorker(workers, &retainWorker{p: p})
	river.AddWorker(workers, &diskWorker{p: p})
	river.AddWorker(workers, &rotateWorker{p: p})
	river.AddWorker(workers, &reverifyWorker{p: p})
	river.AddWorker(workers, &exportWorker{p: p})
	river.AddWorker(workers, &clearWorker{p: p})
	river.AddWorker(workers, &compareWorker{p: p})
	river.AddWorker(workers, &indexWorker{p: p})
	river.AddWorker(workers, &rollUpWorker{p: p})
	river.AddWorker(workers, &usageWorker{p: p})
	cfg := &river.Config{
		Workers: workers, Logger: quiet(p.log), JobTimeout: taskTimeout, RescueStuckJobsAfter: rescueAfter,
		FetchCooldown: fetchCooldown, MaxAttempts: maxAttempts, RetryPolicy: retryPolicy{now: p.now},
		CompletedJobRetentionPeriod: time.Hour, SoftStopTimeout: p.cfg.SoftStop, ReindexerIndexNames: reindexed(),
	}
	if !p.cfg.OnlySubmit {
		cfg.Queues = map[string]river.QueueConfig{
			queueDispatch:    {MaxWorkers: p.cfg.VendorConcurrency + min(besideCalls, int(p.cfg.VendorRPS))},
			queueSettle:      {MaxWorkers: p.cfg.VendorConcurrency + besideCalls},
			queueMaintenance: {MaxWorkers: 2}, queueUpkeep: {MaxWorkers: 1}, queueSync: {MaxWorkers: p.cfg.VendorConcurrency}, queueCancel: {MaxWorkers: 2},
			queueRotate: {MaxWorkers: geonode.MaxWebhooks}, queueReplay: {MaxWorkers: 1}, queueExport: {MaxWorkers: 1}, queueCompare: {MaxWorkers: 1},
			queueIndex: {MaxWorkers: 1},
		}
		if p.cfg.OnlyReplay {
			cfg.Queues = map[string]river.QueueConfig{queueSettle: {MaxWorkers: p.cfg.VendorConcurrency + besideCalls}, queueReplay: {MaxWorkers: 1}}
		}
		if !p.cfg.NoReconcile && !p.cfg.OnlyReplay {
			cfg.PeriodicJobs = []*river.PeriodicJob{river.NewPeriodicJob(everyFull(p.cfg.ReconcileEvery),
				func() (river.JobArgs, *river.InsertOpts) {
					return reconcileArgs{Trigger: "timer"}, reconcileOpts()
				}, &river.PeriodicJobOpts{ID: "reconcile"})}
		}
		if !p.cfg.OnlyReplay {
			cfg.PeriodicJobs = append(cfg.PeriodicJobs, rollUpOften(), p.retainOften(), diskOften(), clearOften(), usageOften())
		}
	}
	client, err := river.NewClient(riverdatabasesql.NewWithPgxListener(p.store.SQL(), p.store.Pool()), cfg)
	if err != nil {
		return nil, fmt.Errorf("make the queue: %w", err)
	}
	return &queue{client: client, db: p.store.SQL(), added: make(chan struct{}, 1)}, nil
}

// reindexed are the indexes of tasks that River builds anew each night: those
// that it makes, without the two that migration 32 drops, and ours.
func reindexed() []string {
	return append(slices.DeleteFunc(river.ReindexerIndexNamesDefault(), func(name string) bool {
		return name == "river_job_args_index" || name == "river_job_metadata_index"
	}), "river_job_about_idx")
}

// everyFull is a schedule of the full multiples of an interval, such as each
// full ten minutes. An interval that began anew with each process that leads
// the queue would never be over where one is replaced sooner.
type everyFull time.Duration

// Next implements river.PeriodicSchedule.
func (e everyFull) Next(now time.Time) time.Time {
	return now.Truncate(time.Duration(e)).Add(time.Duration(e))
}

// quiet keeps River's notes of every task out of the log.
func quiet(log *slog.Logger) *slog.Logger {
	return slog.New(levelHandler{Handler: log.Handler(), min: slog.LevelWarn})
}

// levelHandler passes records from a level on.
type levelHandler struct {
	slog.Handler
	min slog.Level
}

// Enabled implements slog.Handler.
func (h levelHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.min && h.Handler.Enabled(ctx, l)
}

// retryPolicy grows to half a minute and no further: a task that fails is one
// whose database or vendor is away, and both come back.
type retryPolicy struct{ now func() time.Time }

// NextRetry implements river.ClientRetryPolicy.
func (r retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	gap := doubling(time.Second, maxRetryGap, len(job.Errors))
	return r.now().Add(gap/2 + jitter(gap/2))
}

func (q *queue) start(ctx context.Context) error { return q.client.Start(ctx) }

// stop ends the queue: tasks in flight get SoftStop, then their context
// ends, and what they left undone is done again by the next process.
func (q *queue) stop(ctx context.Context) error {
	if err := q.client.Stop(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop the queue: %w", err)
	}
	return nil
}

// dispatch adds the dispatch tasks of new jobs, for at or, when that is zero,
// for now.
func (q *queue) dispatch(ctx context.Context, tx store.Tx, jobs []*store.Job, at time.Time) error {
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		params[i] = river.InsertManyParams{Args: dispatchArgs{JobID: j.ID}, InsertOpts: &river.InsertOpts{
			Queue: queueDispatch, ScheduledAt: at, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: active()},
		}}
	}
	return q.insert(ctx, tx, params)
}

// settle adds a settle task for each woken job that has none under way.
func (q *queue) settle(ctx context.Context, tx store.Tx, jobIDs []int64) error {
	return q.settleLive(ctx, tx, forEach(jobIDs, queueSettle, active(), func(id int64) river.JobArgs { return settleArgs{JobID: id} }))
}

// sync adds the tasks that make items' sync calls.
func (q *queue) sync(ctx context.Context, tx store.Tx, itemIDs []int64) error {
	return q.insert(ctx, tx, forEach(itemIDs, queueSync, unended(), func(id int64) river.JobArgs { return syncArgs{ItemID: id} }))
}

// cancel adds a task for each job that the vendor is to be asked to cancel.
func (q *queue) cancel(ctx context.Context, tx store.Tx, jobIDs []int64) error {
	return q.insert(ctx, tx, forEach(jobIDs, queueCancel, unended(), func(id int64) river.JobArgs { return cancelArgs{JobID: id} }))
}

// rotate adds the task that takes a rotation further.
func (q *queue) rotate(ctx context.Context, tx store.Tx, rotationIDs ...int64) error {
	return q.insert(ctx, tx, forEach(rotationIDs, queueRotate, unended(), func(id int64) river.JobArgs { return rotateArgs{RotationID: id} }))
}

// reverify adds the task that verifies again what is quarantined of a webhook:
// one more each time, since one under way may have looked before the secret
// came.
func (q *queue) reverify(ctx context.Context, tx store.Tx, webhookID int64) error {
	return q.reverifyAfter(ctx, tx, webhookID, 0)
}

// reverifyAfter is reverify for what came after a delivery.
func (q *queue) reverifyAfter(ctx context.Context, tx store.Tx, webhookID, after int64) error {
	return q.insert(ctx, tx, []river.InsertManyParams{{
		Args: reverifyArgs{WebhookID: webhookID, After: after}, InsertOpts: &river.InsertOpts{Queue: queueRotate},
	}})
}

// forEach is a task for each of the ids, unless it has one in one of the states.
func forEach(ids []int64, queue string, states []rivertype.JobState, args func(int64) river.JobArgs) []river.InsertManyParams {
	params := make([]river.InsertManyParams, len(ids))
	for i, id := range ids {
		params[i] = river.InsertManyParams{Args: args(id), InsertOpts: &river.InsertOpts{
			Queue: queue, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: states},
		}}
	}
	return params
}

func (q *queue) insert(ctx context.Context, tx store.Tx, params []river.InsertManyParams) error {
	if len(params) == 0 {
		return nil
	}
	if _, err := q.client.InsertManyTx(ctx, tx.SQL(), params); err != nil {
		return fmt.Errorf("add tasks: %w", err)
	}
	return nil
}

// adopt asks that uncertain jobs be looked for. The tasks need no transaction:
// the sweep asks again for as long as the jobs are uncertain.
func (q *queue) adopt(ctx context.Context, jobIDs []int64) error {
	if len(jobIDs) == 0 {
		return nil
	}
	_, err := q.client.InsertMany(ctx, forEach(jobIDs, queueMaintenance, unended(), func(id int64) river.JobArgs { return adoptArgs{JobID: id} }))
	return err
}

func reconcileOpts() *river.InsertOpts {
	return &river.InsertOpts{
		Queue: queueMaintenance, MaxAttempts: 1,
		UniqueOpts: river.UniqueOpts{ByState: active()},
	}
}

// stranded lists intended jobs, made before the time, whose dispatch task is
// gone.
func (q *queue) stranded(ctx context.Context, before time.Time, limit int) ([]int64, error) {
	return q.without(ctx, `SELECT j.id FROM jobs j
		WHERE j.state = 'intended' AND j.created_at <= $1 AND NOT EXISTS (SELECT FROM river_job t
			WHERE t.kind = 'dispatch' AND t.finalized_at IS NULL AND (t.args->>'job_id')::bigint = j.id)
		ORDER BY j.id LIMIT $2`, before, limit)
}

// strandedSync is stranded for items whose sync call has not ended.
func (q *queue) strandedSync(ctx context.Context, before time.Time, limit int) ([]int64, error) {
	return q.without(ctx, `SELECT c.item_id FROM sync_calls c
		WHERE c.ended_at IS NULL AND c.created_at <= $1 AND NOT EXISTS (SELECT FROM river_job t
			WHERE t.kind = 'sync' AND t.state NOT IN ('completed', 'cancelled', 'discarded')
			  AND (t.args->>'item_id')::bigint = c.item_id)
		ORDER BY c.item_id LIMIT $2`, before, limit)
}

// without reads the ids of what has no task.
func (q *queue) without(ctx context.Context, query string, before time.Time, limit int) ([]int64, error) {
	rows, err := q.db.QueryContext(ctx, query, before, limit)
	if err != nil {
		return nil, fmt.Errorf("look for what has no task: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("look for what has no task: %w", err)
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// standstill finds the work that brings results home and was due before then,
// when none of it has been done since: zero when some has, or none was due.
func (q *queue) standstill(ctx context.Context, before time.Time) (time.Time, error) {
	var since sql.NullTime
	err := q.db.QueryRowContext(ctx, `SELECT created_at FROM river_job
		WHERE state IN ('available', 'running', 'retryable') AND queue IN ($2, $3, $4) AND created_at <= $1
		  AND NOT EXISTS (SELECT FROM river_job WHERE state = 'completed' AND finalized_at > $1 AND queue IN ($2, $3, $4))
		LIMIT 1`, before, queueDispatch, queueSettle, queueSync).Scan(&since)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("look whether work stands still: %w", err)
	}
	return since.Time, nil
}

// hurry has tasks that were put off done now. It may be called at any time: a
// task that is too early still puts itself off again.
func (q *queue) hurry(ctx context.Context) error {
	// The time is one that has passed by River's clock, whatever ours says.
	_, err := q.db.ExecContext(ctx, `UPDATE river_job SET state = 'available', scheduled_at = created_at
		WHERE state = 'scheduled' AND metadata ? 'snoozes'`)
	if err != nil {
		return fmt.Errorf("have what was put off done now: %w", err)
	}
	return nil
}

// reconcile asks for a run; while one waits or runs, it joins that.
func (q *queue) reconcile(ctx context.Context, tx store.Tx, trigger string) error {
	_, err := q.client.InsertTx(ctx, tx.SQL(), reconcileArgs{Trigger: trigger}, reconcileOpts())
	return err
}

// finish completes a running task inside tx, so that a wake that comes after
// the commit finds no task under way and adds its own. Without it a wake
// between the commit and River's own mark would be lost.
func finish[T river.JobArgs](ctx context.Context, tx store.Tx, task *river.Job[T]) error {
	if _, err := river.JobCompleteTx[*riverdatabasesql.Driver](ctx, tx.SQL(), task); err != nil {
		return fmt.Errorf("complete the task: %w", err)
	}
	return nil
}

// finishAll is finish for many running tasks.
func finishAll(ctx context.Context, tx store.Tx, tasks []int64, now time.Time) error {
	_, err := tx.SQL().ExecContext(ctx, `UPDATE river_job SET state = $3, finalized_at = $2 WHERE id = ANY ($1) AND state = $4`,
		tasks, now, string(rivertype.JobStateCompleted), string(rivertype.JobStateRunning))
	if err != nil {
		return fmt.Errorf("complete %d tasks: %w", len(tasks), err)
	}
	return nil
}

// ofTask says which task an error comes from; a snooze is none, and stays what
// it is.
func ofTask(err error, what string, id int64) error {
	if _, snoozed := errors.AsType[*river.JobSnoozeError](err); err == nil || snoozed {
		return err
	}
	return fmt.Errorf("%s %d: %w", what, id, err)
}
