package pipeline

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"rollcall/internal/preflight"
	"rollcall/store"
)

// SealSecret seals a webhook's secret as the pipeline does.
func (p *Pipeline) SealSecret(webhookID int64, version int, secret string) []byte {
	return p.sealer.seal(secretPlace(webhookID, version), []byte(secret))
}

// GroupQueue is how many deliveries may wait for a commit.
const GroupQueue = groupQueue

// SeatWait sets how long a preflight waits to be read.
func (p *Pipeline) SeatWait(d time.Duration) { p.seats.setWait(d) }

// TurnWait sets how long a task waits for its turn to read from the vendor, and
// with it how long those wait that give way.
func (p *Pipeline) TurnWait(d time.Duration) { p.looks.setWait(d) }

// LooksAhead is how many wait for their turn to read from the vendor, without
// those that give way.
func (p *Pipeline) LooksAhead() int { return p.looks.waiting() }

// CallsAhead is how many wait for their turn to submit to the vendor.
func (p *Pipeline) CallsAhead() int { return p.calls.waiting() }

func (s *seats) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ahead)
}

// Seats are the places of those who read from the vendor, or of preflights.
type Seats struct{ s *seats }

// NewSeats are n places.
func NewSeats(n int, wait time.Duration) Seats { return Seats{newSeats(n, wait)} }

// Take waits for a place.
func (s Seats) Take(ctx context.Context) (func(), error) { return s.s.take(ctx) }

// GiveWay is Take behind all others.
func (s Seats) GiveWay(ctx context.Context) (func(), error) { return s.s.giveWay(ctx) }

// SetWait sets how long they wait.
func (s Seats) SetWait(d time.Duration) { s.s.setWait(d) }

// Waiting is how many wait.
func (s Seats) Waiting() int {
	s.s.mu.Lock()
	defer s.s.mu.Unlock()
	return len(s.s.ahead) + len(s.s.behind)
}

func (s *seats) setWait(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait = d
}

// MaxKeptCells bounds the cells of a preflight.
const MaxKeptCells = maxKeptCells

// KeepCells takes a line with cells behind so many others.
func KeepCells(ctx context.Context, before int, cells ...string) error {
	r := &lineReading{cells: before}
	return r.take(ctx, preflight.Line{Number: 1, Verdict: preflight.Invalid, Extra: cells})
}

// EveryFull is the schedule of the reconcile timer.
type EveryFull = everyFull

// RefusedBytes is what refused deliveries take up that wait to be kept.
func (p *Pipeline) RefusedBytes() int64 { return p.refused.bytes.Load() }

// MaskEndpoints hides the endpoints of ours in what the vendor says.
func MaskEndpoints(text string) string { return maskEndpoints(text) }

// Queued is how many deliveries wait for a commit.
func (p *Pipeline) Queued() int { return len(p.arrivals.queue) }

// ReceiveAlone is Receive with a transaction of its own for the delivery, of
// several statements: what the group commit is measured against.
func (p *Pipeline) ReceiveAlone(ctx context.Context, in Incoming) Answer {
	e, err := p.secrets.get(ctx, in.Endpoint)
	if err != nil {
		return Answer{Status: http.StatusNotFound}
	}
	version, f, ok := e.verify(p.signed(in), p.cfg.Signature, p.now())
	if !ok {
		return Answer{Status: http.StatusUnauthorized}
	}
	env, err := p.cfg.Fields.readEnvelope(in.Body)
	if err != nil {
		return Answer{Status: http.StatusBadRequest}
	}
	a := &store.Arrival{Delivery: *p.delivery(in, &e.webhook.ID)}
	a.SecretVersion, a.SignatureForm, a.Status = &version, f.String(), http.StatusOK
	a.VendorJobID, a.EventType, a.VendorDeliveryID = env.jobID, env.event, env.deliveryID
	if err := p.arrivePlainly(context.WithoutCancel(ctx), []*store.Arrival{a}); err != nil {
		return Answer{Status: http.StatusServiceUnavailable, Message: err.Error()}
	}
	p.noteUse(ctx, e, f)
	return Answer{Status: a.Status, Verdict: a.Verdict}
}

// Look is a job to be looked at, and the task that does.
type Look struct{ Job, Task int64 }

// SettleTogether looks at jobs at once, which must have completed, and has all
// they come to committed in one group. The pipeline must not be started.
func (p *Pipeline) SettleTogether(ctx context.Context, looks ...Look) []error {
	errs := make([]error, len(looks))
	var looking, committing sync.WaitGroup
	var back atomic.Int64
	for i, each := range looks {
		task := &river.Job[settleArgs]{JobRow: &rivertype.JobRow{ID: each.Task, State: rivertype.JobStateRunning}, Args: settleArgs{JobID: each.Job}}
		looking.Go(func() {
			defer back.Add(1)
			errs[i] = p.settle(ctx, task)
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(p.completions.queue)+int(back.Load()) < len(looks) {
		<-tick.C
	}
	p.completions.start(&committing)
	looking.Wait()
	p.completions.stop()
	committing.Wait()
	return errs
}

// AcceptTogether records that the vendor accepted the jobs' calls under the ids,
// all in one group. The pipeline must not be started.
func (p *Pipeline) AcceptTogether(ctx context.Context, ids map[int64]string) map[int64]error {
	var answering, committing sync.WaitGroup
	var mu sync.Mutex
	errs := map[int64]error{}
	for id, vendorID := range ids {
		answering.Go(func() {
			job, err := p.store.Job(ctx, id)
			if err == nil {
				err = p.recordAccepted(ctx, job, accepted{id: vendorID, status: "queued"})
			}
			mu.Lock()
			defer mu.Unlock()
			errs[id] = err
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(p.acceptances.queue) < len(ids) {
		<-tick.C
	}
	p.acceptances.start(&committing)
	answering.Wait()
	p.acceptances.stop()
	committing.Wait()
	return errs
}
