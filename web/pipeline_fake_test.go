package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// fakePipeline notes what it is asked and answers what a test wants; the real
// one has its own tests, and needs a vendor.
type fakePipeline struct {
	fakeWebhooks
	fakeLogs
	fakeSignatures
	fakeReplays
	fakeRuns
	fakeStats
	distrust   atomic.Bool // Of webhooks.
	busy       atomic.Bool // No more preflights are read.
	mu         sync.Mutex
	submitted  []pipeline.Submission
	received   []pipeline.Incoming
	refused    []int
	settled    []int64
	runs       int
	resumes    int
	tried      []pipeline.Submission
	cancelled  []int64 // Batches; jobs negative.
	resent     [][]int64
	resentTo   int64   // The batch that all of them are of.
	sealed     []int64 // Batches that are left for their headers.
	resolves   []resolveCall
	cancelPlan pipeline.CancelPlan
	sick       error
	still      time.Time // Since when work is due of which none is done.
	unknown    string
	lookUp     error
	rotated    []string
	// unrotatable is what Rotate answers.
	unrotatable error
	silent      bool // Nothing answers a look-up.
	submit      func(pipeline.Submission) (pipeline.Submitted, error)
	answer      func(pipeline.Incoming) pipeline.Answer
	receiveCtx  func(context.Context)
}

func newFakePipeline() *fakePipeline {
	return &fakePipeline{
		submit: func(pipeline.Submission) (pipeline.Submitted, error) { return pipeline.Submitted{BatchID: 1}, nil },
		answer: func(pipeline.Incoming) pipeline.Answer {
			return pipeline.Answer{Status: http.StatusOK, Verdict: store.VerdictAccepted, Message: "accepted"}
		},
	}
}

func (f *fakePipeline) Submit(_ context.Context, s pipeline.Submission) (pipeline.Submitted, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.submitted = append(f.submitted, s)
	return f.submit(s)
}

func (f *fakePipeline) TryNow(_ context.Context, s pipeline.Submission) (pipeline.Submitted, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried = append(f.tried, s)
	return f.submit(s)
}

func (f *fakePipeline) PlanCancelBatch(context.Context, int64) (pipeline.CancelPlan, error) {
	return f.cancelPlan, nil
}

func (f *fakePipeline) PlanCancelJobs(context.Context, []int64) (pipeline.CancelPlan, error) {
	return f.cancelPlan, nil
}

func (f *fakePipeline) CancelBatch(_ context.Context, id int64) (pipeline.CancelPlan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancelled = append(f.cancelled, id)
	return f.cancelPlan, nil
}

func (f *fakePipeline) CancelJobs(_ context.Context, ids []int64) (pipeline.CancelPlan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		f.cancelled = append(f.cancelled, -id)
	}
	return f.cancelPlan, nil
}

func (f *fakePipeline) Resubmit(_ context.Context, ids []int64, _ store.AsPlanned) (pipeline.Resubmitted, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resent = append(f.resent, ids)
	return pipeline.Resubmitted{Items: int64(len(ids)), Jobs: 1, BatchID: f.resentTo, Sealed: f.sealed}, nil
}

// resolveCall is a press of Resolve, or without a note of Unresolve.
type resolveCall struct {
	ids    []int64
	note   string
	before time.Time
}

func (f *fakePipeline) Resolve(_ context.Context, ids []int64, note string, before time.Time) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resolves = append(f.resolves, resolveCall{ids, note, before})
	return int64(len(ids)), nil
}

func (f *fakePipeline) Unresolve(_ context.Context, ids []int64) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resolves = append(f.resolves, resolveCall{ids: ids})
	return int64(len(ids)), nil
}

func (f *fakePipeline) URLsPerJob() int { return 1000 }

func (f *fakePipeline) KnownEndpoint(ctx context.Context, endpoint string) (bool, error) {
	if f.silent {
		<-ctx.Done()
		return false, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return endpoint != f.unknown, f.lookUp
}

func (f *fakePipeline) WebhooksTrusted(context.Context) (bool, error) { return !f.distrust.Load(), nil }

func (f *fakePipeline) Receive(ctx context.Context, in pipeline.Incoming) pipeline.Answer {
	if f.receiveCtx != nil {
		f.receiveCtx(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.received = append(f.received, in)
	return f.answer(in)
}

func (f *fakePipeline) RefuseUnread(_ context.Context, _ string, _ http.Header, _ string, status int, _ string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = append(f.refused, status)
}

func (f *fakePipeline) SettleNow(_ context.Context, id int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settled = append(f.settled, id)
	return nil
}

func (f *fakePipeline) ReconcileNow(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs++
	return nil
}

func (f *fakePipeline) ResumeDispatch(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resumes++
	return nil
}

func (f *fakePipeline) StandsStill(context.Context) (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.still, nil
}

func (f *fakePipeline) WorkersHealthy() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sick
}

var errSick = errors.New("workers stuck on purpose")
