// Package pipeline is the life of a vendor job, one verb a file: submit,
// dispatch, adopt, receive, settle, poll, reconcile, mirror, replay, rotate,
// retain. It keeps Rollcall's promise: every URL submitted is answered for
// exactly once.
//
// Poll, reconcile and the webhooks do nothing but wake a job; settle alone
// asks the vendor what became of it and writes outcomes. A row and the task
// it causes are one transaction, no network call happens inside one, every
// move of a state is a guarded update, and every task may run twice.
package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// Mode says how the ends of jobs are learned of first.
type Mode string

// The modes. Auto is webhook while webhooks arrive in time, else poll.
const (
	ModeAuto    Mode = "auto"
	ModeWebhook Mode = "webhook"
	ModePoll    Mode = "poll"
)

// Config is what a pipeline needs. Store, Vendor, Logger, Now and Key are
// required; zero values elsewhere mean the defaults named beside the members.
type Config struct {
	Store  *store.Store
	Vendor *geonode.Client
	Logger *slog.Logger
	Now    func() time.Time
	// Key seals secrets and custom headers, 32 bytes.
	Key []byte
	// Account is a fingerprint of the API key, kept with each job: ids are only
	// good for the account that made them.
	Account string
	// PublicURL is where the vendor reaches us; empty means it cannot.
	PublicURL string
	// Mode says how ends are learned of; the reconciler is always on.
	Mode Mode
	// NoPoll and NoReconcile switch a net off, for demonstrations.
	NoPoll, NoReconcile bool
	// NoIndex leaves it to others to make results findable.
	NoIndex bool
	// OnlySubmit makes a pipeline that accepts work but runs no workers.
	OnlySubmit bool
	// OnlyReplay makes a pipeline that runs replays and settles, and leaves all
	// else to the servers beside it.
	OnlyReplay bool

	PollFirst, PollCap, PollMaxWait time.Duration // 1 s, 30 s, 30 min.
	PollTick                        time.Duration // How often due jobs are looked for; 500 ms.
	ListEvery                       time.Duration // Between two sweeps of the extract list while young jobs run; 2 s.
	WebhookFallback                 time.Duration // First poll while webhooks work; 60 s.
	ReconcileEvery                  time.Duration // 10 min.
	ReconcileOlderThan              time.Duration // 2 min.
	ReconcileWindow                 time.Duration // 48 h.
	// ClaimLease is how long a call owns its job. It outlives the longest
	// submit, so that a claim past it is known to have no caller any more.
	ClaimLease        time.Duration   // 1 min.
	URLsPerJob        int             // 1000.
	GiveUpAfter       time.Duration   // 72 h.
	RetryGaps         []time.Duration // Before each retry that is not a person's, about, 0 for at once; 30 s, 2 min, 10 min.
	MissingGap        time.Duration   // Between two reads that count an item missing; 30 s.
	CancelGrace       time.Duration   // How long a cancelled job's running pages are waited for; 2 min.
	ForgottenAfter    time.Duration   // 404s over this long mean forgotten; 30 min.
	HeldFor           time.Duration   // Until a held event is foreign; 10 min.
	AdoptGap          time.Duration   // Between two looks for an uncertain job; 2 min.
	ProbeEvery        time.Duration   // Between two tries of a paused account; 60 s.
	VendorRPS         float64         // Submits a second a process; 20.
	VendorConcurrency int             // Calls at once a process, each way; 8.
	ReplayRPS         float64         // Calls a second that all replays together ask for; 10.
	GroupRows         int             // Deliveries of one commit at most; 512.
	Committers        int             // Commits of deliveries at a time; 2.
	PlainArrivals     bool            // Deliveries in transactions of several statements, as one would write them first; for measurements.
	GraceTime         time.Duration   // How long an old secret stays good; 24 h.
	QuarantineRows    int             // Refused deliveries kept a webhook; 1000, and as many again while its secret is changed.
	QuarantineBytes   int64           // Their bodies; 50 MB, and as much again.
	// How long the bodies and headers of deliveries, the deliveries, and the rows
	// of the vendor's delivery log are kept; 30, 90 and 90 days. Of these and of
	// all that follow, a negative one means for ever.
	KeepBodies, KeepDeliveries, KeepLog time.Duration
	// How long a batch that has ended keeps its items, jobs and results: for ever,
	// unless this is above zero. Its row stays.
	KeepBatches time.Duration
	KeepEvents  time.Duration // Events of foreign jobs, and the ids of pruned ones; 90 days.
	KeepRuns    time.Duration // What is noted of our own work, such as reconcile runs and replays; 90 days.
	KeepStats   time.Duration // Hours of the statistics; two years.
	KeepAudit   time.Duration // The audit log: for ever, unless this is above zero.
	RetainEvery time.Duration // 1 h.
	KeepExports time.Duration // 72 h.
	SoftStop    time.Duration // How long Stop lets tasks in flight run before it cancels them; 15 s.
	ExportSpace int64         // All files that are kept; 2 GB.
	MirrorPages int           // Of one reading of a delivery log; 2000.
	Signature   SignatureSettings
	Fields      FieldSettings
}

// setting is a time of the configuration and what it is when it was left zero.
type setting struct {
	at    *time.Duration
	value time.Duration
}

func times(c *Config) []setting {
	return []setting{
		{&c.PollFirst, time.Second},
		{&c.PollCap, 30 * time.Second},
		{&c.PollMaxWait, 30 * time.Minute},
		{&c.PollTick, 500 * time.Millisecond},
		{&c.ListEvery, 2 * time.Second},
		{&c.WebhookFallback, time.Minute},
		{&c.ReconcileEvery, 10 * time.Minute},
		{&c.ReconcileOlderThan, 2 * time.Minute},
		{&c.ReconcileWindow, 48 * time.Hour},
		{&c.ClaimLease, time.Minute},
		{&c.GiveUpAfter, 72 * time.Hour},
		{&c.MissingGap, 30 * time.Second},
		{&c.CancelGrace, 2 * time.Minute},
		{&c.ForgottenAfter, 30 * time.Minute},
		{&c.HeldFor, 10 * time.Minute},
		{&c.AdoptGap, 2 * time.Minute},
		{&c.ProbeEvery, time.Minute},
		{&c.GraceTime, 24 * time.Hour},
		{&c.KeepBodies, 30 * 24 * time.Hour},
		{&c.KeepDeliveries, 90 * 24 * time.Hour},
		{&c.KeepLog, 90 * 24 * time.Hour},
		{&c.KeepEvents, 90 * 24 * time.Hour},
		{&c.KeepRuns, 90 * 24 * time.Hour},
		{&c.KeepStats, 2 * 365 * 24 * time.Hour},
		{&c.RetainEvery, time.Hour},
		{&c.KeepExports, 72 * time.Hour},
		{&c.SoftStop, 15 * time.Second},
	}
}

// withDefaults fills in what was left zero.
func (c Config) withDefaults() Config {
	for _, d := range times(&c) {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	c.URLsPerJob = cmp.Or(c.URLsPerJob, 1000)
	c.VendorRPS = cmp.Or(c.VendorRPS, 20)
	c.ReplayRPS = cmp.Or(c.ReplayRPS, 10)
	c.VendorConcurrency = cmp.Or(c.VendorConcurrency, 8)
	c.GroupRows = cmp.Or(c.GroupRows, 512)
	// SPIKE.md section 3: two beat one and four.
	c.Committers = cmp.Or(c.Committers, 2)
	c.QuarantineRows = cmp.Or(c.QuarantineRows, 1000)
	c.QuarantineBytes = cmp.Or(c.QuarantineBytes, 50e6)
	c.ExportSpace = cmp.Or(c.ExportSpace, 2e9)
	c.MirrorPages = cmp.Or(c.MirrorPages, 2000)
	if c.RetryGaps == nil {
		c.RetryGaps = []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute}
	}
	c.Mode = cmp.Or(c.Mode, ModeAuto)
	c.Signature = c.Signature.withDefaults()
	c.Fields = c.Fields.withDefaults()
	return c
}

// Pipeline moves jobs from intended to settled. It is safe for use by many
// goroutines; make it with New, start its workers with Start.
type Pipeline struct {
	cfg         Config
	store       *store.Store
	vendor      *geonode.Client
	log         *slog.Logger
	now         func() time.Time
	sealer      *sealer
	queue       *queue
	limiter     *rate.Limiter
	gates       *gateWatch
	secrets     *secretCache
	arrivals    *groupCommit[*store.Arrival]
	acceptances *groupCommit[*accepting]
	completions *groupCommit[*completing]
	refused     *quarantine
	mode        *modeWatch
	lists       listSizes
	health      health
	clock       clock
	alarms      alarms
	seen        seenBatches
	closed      closedHours
	seats       *seats // Of those who read preflights.
	calls       *seats // Of those who submit to the vendor.
	looks       *seats // Of those who read from it.

	flushing sync.Mutex // One turn of FlushCalls at a time.

	stop    context.CancelFunc
	loops   sync.WaitGroup
	working atomic.Bool
	beat    atomic.Int64 // Unix nanoseconds of the poll loop's last turn.
}

// New prepares a pipeline; no work is done before Start, except that Submit
// and Receive may be called.
func New(cfg Config) (*Pipeline, error) {
	cfg = cfg.withDefaults()
	if cfg.Store == nil || cfg.Vendor == nil || cfg.Now == nil || cfg.Logger == nil {
		return nil, errors.New("pipeline: store, vendor, clock and logger are required")
	}
	box, err := newSealer(cfg.Key)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{
		cfg: cfg, store: cfg.Store, vendor: cfg.Vendor, log: cfg.Logger, now: cfg.Now, sealer: box,
		limiter: rate.NewLimiter(rate.Limit(cfg.VendorRPS), max(1, int(cfg.VendorRPS))),
	}
	p.seats = newSeats(preflightSeats, seatWait)
	p.calls, p.looks = newSeats(cfg.VendorConcurrency, turnWait), newSeats(cfg.VendorConcurrency, turnWait)
	p.gates = newGateWatch(p)
	p.secrets = newSecretCache(p)
	p.mode = newModeWatch(p)
	p.arrivals, p.acceptances, p.completions = newArrivals(p), newAcceptances(p), newCompletions(p)
	p.refused = newQuarantine(p)
	p.queue, err = newQueue(p)
	return p, err
}

// Start runs the committers and, unless OnlySubmit, the workers and loops. It
// returns once they run; Stop ends them.
func (p *Pipeline) Start(ctx context.Context) error {
	loopCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = cancel
	p.arrivals.start(&p.loops)
	p.acceptances.start(&p.loops)
	p.completions.start(&p.loops)
	p.refused.start(&p.loops)
	p.loops.Go(func() { p.flushLoop(loopCtx) })
	p.loops.Go(func() { p.tellLoop(loopCtx) })
	if p.cfg.OnlySubmit {
		return nil
	}
	if err := p.queue.start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start the queue: %w", err)
	}
	p.working.Store(true)
	p.beat.Store(p.now().UnixNano())
	if p.cfg.OnlyReplay {
		return nil
	}
	p.loops.Go(func() { p.pollLoop(loopCtx) })
	p.loops.Go(func() { p.listLoop(loopCtx) })
	p.loops.Go(func() { p.sweepLoop(loopCtx) })
	p.loops.Go(func() { p.scheduleLoop(loopCtx) })
	return nil
}

// Stop refuses new deliveries, finishes the tasks in flight within ctx's time
// and ends every goroutine. What was not finished is rescued by whoever runs.
func (p *Pipeline) Stop(ctx context.Context) error {
	if p.stop == nil {
		return nil
	}
	p.stop()
	// Who waits for a turn at the vendor begins nothing more.
	p.calls.end()
	p.looks.end()
	var err error
	if p.working.Swap(false) {
		err = p.queue.stop(ctx)
	}
	p.arrivals.stop()
	p.acceptances.stop()
	p.completions.stop()
	p.refused.stop()
	p.wait(ctx)
	p.flushLast(ctx)
	return err
}

// wait waits for the loops to end, for as long as ctx lets it: one that waits for
// the database has a time of its own.
func (p *Pipeline) wait(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		p.loops.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		p.log.WarnContext(ctx, "stopped without waiting any longer for what was being written")
	}
}

// staleBeat is how long the poll loop may be silent before it counts as stuck.
const staleBeat = 2 * time.Minute

// WorkersHealthy reports an error when the workers should run and don't.
func (p *Pipeline) WorkersHealthy() error {
	if p.cfg.OnlySubmit {
		return nil
	}
	if !p.working.Load() {
		return errors.New("the workers are not running")
	}
	if quiet := p.now().Sub(time.Unix(0, p.beat.Load())); quiet > staleBeat {
		return fmt.Errorf("the poll loop has been silent for %s", quiet.Round(time.Second))
	}
	return nil
}

// standsStill is how long nothing may be done while work is due.
const standsStill = 3 * time.Minute

// StandsStill tells since when some work has been due that brings results home
// while none of it is done, on any replica: there are no workers, or each of their
// tasks hangs or fails. Zero when all moves, or a gate keeps it waiting.
func (p *Pipeline) StandsStill(ctx context.Context) (time.Time, error) {
	return p.queue.standstill(ctx, p.now().Add(-standsStill))
}

// pollLoop wakes what is due until ctx ends. An error is logged and the next
// turn tries again: the due jobs are still due.
func (p *Pipeline) pollLoop(ctx context.Context) {
	p.every(ctx, p.cfg.PollTick, func(ctx context.Context) error {
		p.beat.Store(p.now().UnixNano())
		if p.cfg.NoPoll {
			return nil
		}
		_, err := p.Poll(ctx)
		return err
	})
}

// sweepLoop looks for what no task of its own looks after: claims whose holder
// died and events that were held too long.
func (p *Pipeline) sweepLoop(ctx context.Context) {
	p.every(ctx, 5*p.cfg.PollTick, p.Sweep)
}

func (p *Pipeline) every(ctx context.Context, d time.Duration, do func(context.Context) error) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "background turn failed", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// jitter is a uniform part of d: full jitter, so that jobs submitted together
// are not asked about together.
func jitter(d time.Duration) time.Duration {
	return time.Duration(rand.Float64() * float64(d)) //nolint:gosec // Spreading calls needs no secrecy.
}

// doubling is base times two to the n, at most limit.
func doubling(base, limit time.Duration, n int) time.Duration {
	if n > 30 {
		return limit
	}
	return min(limit, base<<max(0, n))
}
