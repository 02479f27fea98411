package web

import (
	"context"
	"net/http"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// Pipeline is what the pages ask of rollcall/internal/pipeline: everything
// that changes a job, an item or a webhook goes through it.
type Pipeline interface {
	webhookKeeper
	preflighter
	statsTeller
	runKeeper
	// Submit writes a batch, or returns *pipeline.InvalidSubmission and writes nothing.
	Submit(ctx context.Context, s pipeline.Submission) (pipeline.Submitted, error)
	// TryNow writes a batch of one URL that is asked for in one call, under the
	// same rules as Submit; it doesn't wait for the answer.
	TryNow(ctx context.Context, s pipeline.Submission) (pipeline.Submitted, error)
	// PlanCancelBatch and PlanCancelJobs say what a cancel would do;
	// CancelBatch and CancelJobs do it and say what they did.
	PlanCancelBatch(ctx context.Context, batchID int64) (pipeline.CancelPlan, error)
	PlanCancelJobs(ctx context.Context, jobIDs []int64) (pipeline.CancelPlan, error)
	CancelBatch(ctx context.Context, batchID int64) (pipeline.CancelPlan, error)
	CancelJobs(ctx context.Context, jobIDs []int64) (pipeline.CancelPlan, error)
	// Resubmit sends failed or cancelled items again that still stand as planned.
	Resubmit(ctx context.Context, itemIDs []int64, as store.AsPlanned) (pipeline.Resubmitted, error)
	// Resolve has failures wait for nobody, with a note why; Unresolve has them
	// wait again.
	Resolve(ctx context.Context, itemIDs []int64, note string, before time.Time) (int64, error)
	Unresolve(ctx context.Context, itemIDs []int64) (int64, error)
	// URLsPerJob is how many URLs of a batch one job carries at most.
	URLsPerJob() int
	// KnownEndpoint reports whether an endpoint is one of ours, from memory as
	// far as it can.
	KnownEndpoint(ctx context.Context, endpoint string) (bool, error)
	// Receive takes a delivery up; it commits before it answers 2xx.
	Receive(ctx context.Context, in pipeline.Incoming) pipeline.Answer
	// RefuseUnread records a delivery that was refused before its body was read.
	RefuseUnread(ctx context.Context, endpoint string, header http.Header, source string, status int, reason string)
	// SettleNow wakes a job for an operator.
	SettleNow(ctx context.Context, jobID int64) error
	// PlanReplay freezes what was picked; the moves of a replay report false when
	// somebody was first.
	PlanReplay(ctx context.Context, req pipeline.ReplayRequest) (*store.Replay, error)
	RunReplay(ctx context.Context, id int64, refetch bool) (bool, error)
	PauseReplay(ctx context.Context, id int64) (bool, error)
	ResumeReplay(ctx context.Context, id int64) (bool, error)
	CancelReplay(ctx context.Context, id int64) (bool, error)
	// ReplayTakes is about how long a replay of so many vendor calls takes.
	ReplayTakes(calls int64) time.Duration
	// ReplaceResult puts what a replay fetched in place of what is stored.
	ReplaceResult(ctx context.Context, replayID, itemID int64) (bool, error)
	// Export has a file made in the background; CancelExport and DeleteExport
	// report false when somebody was first.
	Export(ctx context.Context, req pipeline.ExportRequest) (*store.Export, error)
	CancelExport(ctx context.Context, id int64) (bool, error)
	DeleteExport(ctx context.Context, id int64) (bool, error)
	// CompareBatches has the pages of two batches compared.
	CompareBatches(ctx context.Context, a, b int64) error
	// ReconcileNow queues a reconcile run for a person.
	ReconcileNow(ctx context.Context) error
	// ReadLogNow queues a reading of each webhook's delivery log for a person, and
	// says how many there are.
	ReadLogNow(ctx context.Context) (int, error)
	// ResumeDispatch opens a gate that a 401 or 402 paused.
	ResumeDispatch(ctx context.Context) error
	// Rotate begins to change a webhook's secret, or joins the change under way.
	Rotate(ctx context.Context, webhookID int64, emergency bool) (*store.Rotation, error)
	// CheckRequest finds the form of signature that a captured request shows;
	// SignatureHeader is where it should be.
	CheckRequest(c pipeline.Captured) pipeline.Checked
	SignatureHeader() string
	// VerifyStored verifies the stored bytes of a delivery again; TakeUpAgain
	// takes up those refused ones that are good today.
	VerifyStored(ctx context.Context, deliveryID int64) (pipeline.Verification, error)
	TakeUpAgain(ctx context.Context, deliveryIDs []int64) (pipeline.TakenUp, error)
	// WebhooksTrusted reports whether jobs are expected home by webhook now.
	WebhooksTrusted(ctx context.Context) (bool, error)
	// StandsStill tells since when work is due of which none is done; zero when all moves.
	StandsStill(ctx context.Context) (time.Time, error)
	// WorkersHealthy says what keeps the background work from running.
	WorkersHealthy() error
}

var _ Pipeline = (*pipeline.Pipeline)(nil)
