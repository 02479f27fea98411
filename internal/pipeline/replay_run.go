package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"rollcall/store"
)

// Bounds of a replay's runner.
const (
	// replaySlice is how long one run of the task goes on by itself.
	replaySlice = 5 * time.Second
	// replayGap lies between two looks at what is under way.
	replayGap = 500 * time.Millisecond
	// replayInFlight bounds the jobs that a replay has under way.
	replayInFlight = 50
	// replaySettled is how many jobs one transaction looks through for settled ones.
	replaySettled = 2000
	// replayBurst is how far back unused calls count.
	replayBurst = 2 * time.Second
	// replayPatience is how long one job may be under way while the vendor can be
	// asked; its task goes on after that.
	replayPatience = 10 * time.Minute
	// replayDead is how long the runner of a running replay may be silent.
	replayDead = 15 * time.Second
	// replayVerify is how many refused deliveries are verified at a time.
	replayVerify = 100
)

type replayWorker struct {
	river.WorkerDefaults[replayArgs]
	p *Pipeline
}

// Work implements river.Worker.
func (w *replayWorker) Work(ctx context.Context, task *river.Job[replayArgs]) error {
	return ofTask(w.p.replay(ctx, task), "replay", task.Args.ReplayID)
}

// replay takes a replay further, a slice a run: it looks which of the jobs under
// way have ended, writes their outcomes, and begins with more. All of its
// progress is in rows, so whoever runs next goes on from there.
func (p *Pipeline) replay(ctx context.Context, task *river.Job[replayArgs]) error {
	for began := p.now(); ; {
		next, err := p.replayStep(ctx, task)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil
		case err != nil:
			return err
		case next == stepEnded:
			return nil
		case next == stepWaits:
			return river.JobSnooze(replayGap)
		case p.now().Sub(began) > replaySlice:
			return again()
		}
	}
}

// step is what comes after one turn of a runner.
type step int

const (
	stepMore  step = iota // There is more to do at once.
	stepWaits             // What is under way, or the share of calls, must come on.
	stepEnded             // Nothing is left for this task, which is completed.
)

// replayStep is one turn: a look without a lock, then one transaction.
func (p *Pipeline) replayStep(ctx context.Context, task *river.Job[replayArgs]) (step, error) {
	id := task.Args.ReplayID
	if err := p.replayDeliveries(ctx, id); err != nil {
		return stepWaits, err
	}
	gate, err := p.gates.see(ctx, store.GateRead)
	if err != nil {
		return stepWaits, err
	}
	now := p.now()
	shut := gate.PausedAt != nil || gate.ClosedUntil != nil && gate.ClosedUntil.After(now)
	ends, left, err := p.replayLook(ctx, id, now, shut)
	if err != nil {
		return stepWaits, err
	}
	next := stepWaits
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		t := &replayTurn{Pipeline: p, tx: tx, task: task, now: now, shut: shut, inFlight: left}
		next, err = t.run(ctx, ends)
		return err
	})
	return next, err
}

// replayTurn is the writing half of a turn, under the lock on the replay's row.
type replayTurn struct {
	*Pipeline
	tx       store.Tx
	task     *river.Job[replayArgs]
	now      time.Time
	shut     bool
	inFlight int
}

func (t *replayTurn) run(ctx context.Context, ends []store.ReplayEnd) (step, error) {
	id := t.task.Args.ReplayID
	r, err := t.tx.LockReplay(ctx, id)
	if err != nil {
		return stepWaits, err
	}
	if err := t.tx.EndReplayJobs(ctx, id, ends, t.now); err != nil {
		return stepWaits, err
	}
	if err := t.tx.BeatReplay(ctx, id, t.now, t.shut); err != nil {
		return stepWaits, err
	}
	if r.State != store.ReplayRunning {
		return t.drained(ctx)
	}
	passed := 0
	if !r.Refetch {
		if passed, err = t.tx.EndSettledJobs(ctx, id, replaySettled, t.now); err != nil {
			return stepWaits, err
		}
	}
	begun, err := t.begin(ctx, r)
	if err != nil {
		return stepWaits, err
	}
	if passed > 0 {
		return stepMore, nil // The next ones may be settled, too.
	}
	if begun > 0 {
		return stepWaits, nil
	}
	done, err := t.tx.DoneReplay(ctx, id, t.now)
	if err != nil || !done {
		return stepWaits, err
	}
	t.log.InfoContext(ctx, "replay done", slog.Int64("replay_id", id))
	return stepEnded, finish(ctx, t.tx, t.task)
}

// drained ends the task of a replay that does not run, once nothing of it is
// under way. Inside the transaction, so that a resume finds no task and adds one.
func (t *replayTurn) drained(ctx context.Context) (step, error) {
	if t.inFlight > 0 {
		return stepWaits, nil
	}
	return stepEnded, finish(ctx, t.tx, t.task)
}

// begin starts with as many waiting jobs as may be under way and as the share
// of calls allows, and returns how many those were.
func (t *replayTurn) begin(ctx context.Context, r *store.Replay) (int, error) {
	room := replayInFlight - t.inFlight
	if t.shut || room <= 0 {
		return 0, nil
	}
	jobs, err := t.tx.ReplayWaiting(ctx, r.ID, room)
	if err != nil || len(jobs) == 0 {
		return 0, err
	}
	spent, sharers, err := t.tx.ReplaySpent(ctx)
	if err != nil {
		return 0, err
	}
	if floor := t.now.Add(-replayBurst); spent.Before(floor) {
		spent = floor
	}
	jobs, spent = affords(jobs, spent, t.now, t.cfg.ReplayRPS, sharers)
	if len(jobs) == 0 {
		return 0, nil
	}
	if err := t.tx.SpendReplay(ctx, r.ID, spent); err != nil {
		return 0, err
	}
	return len(jobs), t.wake(ctx, r, jobs)
}

// affords is the beginning of jobs that the share of calls pays for, and
// until when it is spent then. A job of many calls is begun with the first, and
// the next ones wait for the rest.
func affords(jobs []store.ReplayJob, spent, now time.Time, rps float64, sharers int) ([]store.ReplayJob, time.Time) {
	each := time.Duration(float64(time.Second) / rps)
	mine := spent.Add(now.Sub(spent) / time.Duration(max(1, sharers)))
	if sharers > 1 && mine.Sub(spent) < each {
		mine = now // Less than one call each: whoever comes first has it.
	}
	n := 0
	for n < len(jobs) && mine.Sub(spent) >= each {
		spent = spent.Add(time.Duration(jobs[n].Calls) * each)
		n++
	}
	return jobs[:n], spent
}

// wake begins with the jobs: open ones are woken behind live work, settled ones
// fetched once more if that is wanted, and whatever else is none of the vendor's.
func (t *replayTurn) wake(ctx context.Context, r *store.Replay, jobs []store.ReplayJob) error {
	var ids, settled []int64
	for i := range jobs {
		if jobs[i].JobState == store.JobSettled && r.Refetch {
			settled = append(settled, jobs[i].JobID)
		} else {
			ids = append(ids, jobs[i].JobID)
		}
	}
	woken, err := t.tx.WakeJobs(ctx, ids, store.NetReplay)
	if err != nil {
		return err
	}
	if err := t.noteWoken(ctx, t.tx, woken, store.NetReplay, fmt.Sprintf("replay %d", r.ID)); err != nil {
		return err
	}
	if err := t.queue.settleBehind(ctx, t.tx, woken); err != nil {
		return err
	}
	if err := t.tx.BeginReplayJobs(ctx, r.ID, woken, store.ReplayJobWoken, t.now); err != nil {
		return err
	}
	if err := t.tx.BeginReplayJobs(ctx, r.ID, settled, store.ReplayJobRefetching, t.now); err != nil {
		return err
	}
	if err := t.queue.refetch(ctx, t.tx, r.ID, settled); err != nil {
		return err
	}
	return t.tx.EndReplayJobs(ctx, r.ID, t.unwoken(jobs, woken, settled), t.now)
}

// unwoken are the outcomes of jobs that nothing could be done about. One that
// was settled since it was read is passed over like any other.
func (t *replayTurn) unwoken(jobs []store.ReplayJob, begun ...[]int64) []store.ReplayEnd {
	under := map[int64]bool{}
	for _, ids := range begun {
		for _, id := range ids {
			under[id] = true
		}
	}
	var ends []store.ReplayEnd
	for i := range jobs {
		if under[jobs[i].JobID] {
			continue
		}
		end := replayEnd(&jobs[i])
		if jobs[i].JobState == store.JobSettled || jobs[i].JobState == store.JobAccepted || jobs[i].JobState == store.JobGivenUp {
			end.Outcome, end.Detail = store.ReplayAlreadySettled, ""
		}
		ends = append(ends, end)
	}
	return ends
}

// replayDeliveries verifies refused deliveries of a running replay again. That
// commits by itself and does nothing twice, so it needs no lock.
func (p *Pipeline) replayDeliveries(ctx context.Context, id int64) error {
	r, err := p.store.Replay(ctx, id)
	if err != nil || r.State != store.ReplayRunning || r.Recovered+r.Refused == r.Deliveries {
		return err
	}
	rows, err := p.store.ReplayDeliveries(ctx, id, replayVerify)
	if err != nil || len(rows) == 0 {
		return err
	}
	var tried, others []int64
	for _, d := range rows {
		if d.Again() {
			tried = append(tried, d.ID)
		} else {
			others = append(others, d.ID)
		}
	}
	if len(tried) > 0 {
		if _, err := p.TakeUpAgain(ctx, tried); err != nil {
			return fmt.Errorf("verify refused deliveries again: %w", err)
		}
	}
	return p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if _, err := tx.LockReplay(ctx, id); err != nil {
			return err
		}
		return tx.EndReplayDeliveries(ctx, id, tried, others)
	})
}

// sweepReplays gives running replays a task again whose runner died with its
// process.
func (p *Pipeline) sweepReplays(ctx context.Context, now time.Time) error {
	still, err := p.store.StillReplays(ctx, now.Add(-replayDead))
	if err != nil {
		return fmt.Errorf("look for replays that stand still: %w", err)
	}
	for _, id := range still {
		err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
			return p.queue.replayAnew(ctx, tx, id, now.Add(-replayDead), now)
		})
		if err != nil {
			return fmt.Errorf("carry on with replay %d: %w", id, err)
		}
	}
	return nil
}
