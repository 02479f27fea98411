package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// Bounds of a call that submits.
const (
	// recordTimeout is for writing down an answer that came: it is written
	// even when the task's own time is up.
	recordTimeout = 10 * time.Second
	// maxSplits bounds how often a job is halved: 1,000 URLs end at 8.
	maxSplits = 7
	// leastTries is how many tries a job past its deadline has had when it is
	// given up: the time may have passed while nobody could try.
	leastTries = 3
	// toldCalls is how many declined calls each have a line in the timeline;
	// of the later ones only those whose number is a power of two.
	toldCalls = 8
	// patience is how long a task waits for its turn before it goes back to
	// the queue.
	patience = 2 * time.Second
)

type dispatchWorker struct {
	river.WorkerDefaults[dispatchArgs]
	p *Pipeline
}

// Work implements river.Worker.
func (w *dispatchWorker) Work(ctx context.Context, task *river.Job[dispatchArgs]) error {
	return w.p.dispatch(ctx, task)
}

// Timeout implements river.Worker: what waits for its turn has as long to call
// as what need not.
func (w *dispatchWorker) Timeout(*river.Job[dispatchArgs]) time.Duration {
	return taskTimeout + turnWait + patience
}

// call is a claimed job with everything its request needs.
type call struct {
	job     *store.Job
	batch   *store.Batch
	options Options
	headers map[string]string
	items   []store.SendItem
	normal  map[string]bool // The items' URLs as normalURL spells them, once they are asked for.
	at      span            // When the vendor may have taken it, once it is looked for.
}

// dispatch calls the vendor for one intended job. The claim is committed
// before the call and the answer recorded after it, each by a guarded update;
// there is no idempotency key, so an ambiguous answer makes the job uncertain
// and nothing here calls for it again.
func (p *Pipeline) dispatch(ctx context.Context, task *river.Job[dispatchArgs]) error {
	id := task.Args.JobID
	job, err := p.store.Job(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("dispatch job %d: %w", id, err)
	}
	switch job.State {
	case store.JobIntended:
		return p.callFor(ctx, job, task.JobRow)
	case store.JobCalling:
		return p.holderGone(ctx, job)
	case store.JobUncertain, store.JobAccepted, store.JobSettled, store.JobGivenUp, store.JobRefused,
		store.JobWithdrawn, store.JobSplit:
	}
	return p.nothingToCall(ctx, task)
}

// nothingToCall ends a task that came too early or too late, under the job's
// lock. Adoption may give the job back at the same moment, and adds no second
// task while this one is under way: then it is this one that calls.
func (p *Pipeline) nothingToCall(ctx context.Context, task *river.Job[dispatchArgs]) error {
	back := false
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		job, err := tx.LockJob(ctx, task.Args.JobID)
		if err != nil {
			return err
		}
		if back = job.State == store.JobIntended; back {
			return nil
		}
		return finish(ctx, tx, task)
	})
	if err != nil {
		return fmt.Errorf("dispatch job %d: %w", task.Args.JobID, err)
	}
	if back {
		return again()
	}
	return nil
}

// holderGone is a rerun that finds the claim of a run that died, or still
// calls: only time can tell which.
func (p *Pipeline) holderGone(ctx context.Context, job *store.Job) error {
	now := p.now()
	if job.LeaseUntil != nil && job.LeaseUntil.After(now) {
		return river.JobSnooze(job.LeaseUntil.Sub(now) + time.Second)
	}
	expired, err := p.store.ExpireClaim(ctx, job.ID, now)
	if err != nil || !expired {
		return err
	}
	return p.queue.adopt(ctx, []int64{job.ID})
}

func (p *Pipeline) callFor(ctx context.Context, job *store.Job, task *rivertype.JobRow) error {
	leave, err := p.turnAtVendor(ctx, p.calls, task)
	if err != nil {
		return err
	}
	defer leave()
	if err := p.throughGate(ctx); err != nil {
		return err
	}
	c, err := p.prepare(ctx, job)
	if errors.Is(err, errHeadersLost) {
		_, _, err := p.withdraw(ctx, store.Scope{JobIDs: []int64{job.ID}}, "withdrawn", errHeadersLost.Error())
		return err
	}
	if err != nil {
		return fmt.Errorf("prepare job %d: %w", job.ID, err)
	}
	if why := c.needless(); why != "" {
		_, _, err := p.withdraw(ctx, store.Scope{JobIDs: []int64{job.ID}}, "withdrawn", why)
		return err
	}
	now := p.now()
	vendorNow := p.clock.vendorTime(now)
	claimed, err := p.store.ClaimJob(ctx, job.ID, now, vendorNow, now.Add(p.cfg.ClaimLease))
	if err != nil || !claimed {
		return err
	}
	job.CallNo++
	job.CalledAt, job.CalledVendorAt = &now, &vendorNow
	if p.now().Sub(now) > p.cfg.ClaimLease/2 {
		// The process slept between the claim and the call: by the time the
		// call ends somebody else may own the job.
		_, err := p.store.ReleaseJob(ctx, job.ID, job.CallNo)
		return errors.Join(err, river.JobSnooze(0))
	}
	yes, callErr := p.submitCall(ctx, c)
	recordCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if callErr != nil {
		return p.declined(recordCtx, c, callErr)
	}
	leave() // Only now: who comes next is to see a gate that a refusal closes.
	return p.recordAccepted(recordCtx, job, yes)
}

// throughGate waits for the gate and for the rate, or goes back to the queue. Whoever
// asks has a place at the vendor already: a gate that was open before the wait
// for one may have closed meanwhile.
func (p *Pipeline) throughGate(ctx context.Context) error {
	wait, err := p.gates.wait(ctx, store.GateSubmit)
	if err != nil {
		return err
	}
	if wait > 0 {
		return river.JobSnooze(wait)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := p.limiter.Wait(limited); err != nil {
		return river.JobSnooze(patience/2 + jitter(patience))
	}
	return nil
}

func (p *Pipeline) prepare(ctx context.Context, job *store.Job) (*call, error) {
	c := &call{job: job}
	var err error
	if c.batch, err = p.store.Batch(ctx, job.BatchID); err != nil {
		return nil, err
	}
	if c.options, c.headers, err = p.readOptions(c.batch); err != nil {
		return nil, err
	}
	c.items, err = p.store.SendList(ctx, job.ID)
	if err == nil && len(c.items) == 0 {
		err = errors.New("the job carries no item")
	}
	return c, err
}

// needless is why the job is not to be called for after all, or "".
func (c *call) needless() string {
	if c.job.CancelRequestedAt != nil || c.batch.CancelRequestedAt != nil {
		return cancelledMessage
	}
	if !slices.ContainsFunc(c.items, func(it store.SendItem) bool { return it.Open }) {
		return "what it carries was answered before it was called for"
	}
	return ""
}

// readOptions opens what Submit wrote.
func (p *Pipeline) readOptions(b *store.Batch) (Options, map[string]string, error) {
	var o Options
	if err := json.Unmarshal(b.Options, &o); err != nil {
		return o, nil, fmt.Errorf("options of batch %d: %w", b.ID, err)
	}
	if b.HeadersSealed == nil {
		return o, nil, nil
	}
	plain, err := p.sealer.open(headersPlace, b.HeadersSealed)
	if err != nil {
		return o, nil, err
	}
	if len(plain) == 0 {
		return o, nil, fmt.Errorf("batch %d: %w", b.ID, errHeadersLost)
	}
	var headers map[string]string
	if err := json.Unmarshal(plain, &headers); err != nil {
		return o, nil, fmt.Errorf("headers of batch %d: %w", b.ID, err)
	}
	return o, headers, nil
}

func (p *Pipeline) submitCall(ctx context.Context, c *call) (accepted, error) {
	switch c.job.Kind {
	case store.KindExtract:
		return p.submitExtract(ctx, c)
	case store.KindCrawl:
		return p.submitCrawl(ctx, c)
	case store.KindBatch, store.KindMixed, store.KindSync:
	}
	return p.submitBatch(ctx, c)
}

func (p *Pipeline) submitExtract(ctx context.Context, c *call) (accepted, error) {
	yes, err := p.vendor.SubmitExtract(ctx, c.extractRequest())
	if err != nil {
		return accepted{}, err
	}
	return accepted{id: yes.JobID, status: string(yes.Status), date: yes.Reply.Date}, nil
}

// extractRequest asks for the job's one URL by itself.
func (c *call) extractRequest() geonode.ExtractRequest {
	o := c.options.forKind(store.KindExtract)
	return geonode.ExtractRequest{URL: c.items[0].URL, Options: o.vendorOptions(c.headers), ExtractLinks: o.ExtractLinks}
}

func (p *Pipeline) submitBatch(ctx context.Context, c *call) (accepted, error) {
	urls := make([]string, len(c.items))
	for i, it := range c.items {
		urls[i] = it.URL
	}
	yes, err := p.vendor.SubmitBatch(ctx, geonode.BatchRequest{URLs: urls, Options: c.options.vendorOptions(c.headers)})
	if err != nil {
		return accepted{}, err
	}
	return accepted{id: yes.JobID, status: string(yes.Status), invalid: yes.InvalidURLs, date: yes.Reply.Date}, nil
}

// split halves a job that is too big for the plan.
func (p *Pipeline) split(ctx context.Context, c *call, e *geonode.Error) error {
	now, half := p.now(), len(c.items)/2
	err := p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		ok, err := tx.EndJob(ctx, c.job.ID, c.job.CallNo, store.JobSplit, store.CleanText(vendorCode(e)), store.CleanText(vendorMessage(e)), now)
		if err != nil || !ok {
			return err
		}
		// Read again: a cancel may have come since the claim.
		if c.job, err = tx.Job(ctx, c.job.ID); err != nil {
			return err
		}
		parts := []part{{c.job.Kind, c.items[:half]}, {c.job.Kind, c.items[half:]}}
		return p.succeed(ctx, tx, c, parts, store.OriginSplit, now, time.Time{})
	})
	if err != nil {
		return fmt.Errorf("split job %d: %w", c.job.ID, err)
	}
	return nil
}
