package store

// Net says what woke a job, and so which net a result is credited to.
type Net string

// The nets. Sync is a "try one URL" call, which has no vendor job.
const (
	NetWebhook   Net = "webhook"
	NetPoll      Net = "poll"
	NetReconcile Net = "reconcile"
	NetReplay    Net = "replay"
	NetSync      Net = "sync"
)

// JobState is where a job stands; the moves are those that TestMovesOfAJob lists.
type JobState string

// The states of a job.
const (
	JobIntended  JobState = "intended"
	JobCalling   JobState = "calling"
	JobUncertain JobState = "uncertain"
	JobAccepted  JobState = "accepted"
	JobSettled   JobState = "settled"
	JobGivenUp   JobState = "given_up"
	JobRefused   JobState = "refused"
	JobWithdrawn JobState = "withdrawn"
	JobSplit     JobState = "split"
)

// Look is what a look at an open job found, when it did not settle it.
type Look string

// The looks. Incomplete: the job has ended at the vendor, which has not
// reported all of it yet.
const (
	LookRunning    Look = "running"
	LookNotFound   Look = "not_found"
	LookNoAnswer   Look = "no_answer"
	LookIncomplete Look = "incomplete"
)

// ReplayState is where a replay stands.
type ReplayState string

// The states of a replay: planned, then running or paused, then done or
// cancelled.
const (
	ReplayPlanned   ReplayState = "planned"
	ReplayRunning   ReplayState = "running"
	ReplayPaused    ReplayState = "paused"
	ReplayDone      ReplayState = "done"
	ReplayCancelled ReplayState = "cancelled"
)

// ReplayOutcome is what a replay came to for one job.
type ReplayOutcome string

// The outcomes: one for each job. Failed: Rollcall gave the job up. Error: the
// vendor could not be asked.
const (
	ReplayAlreadySettled ReplayOutcome = "already_settled"
	ReplaySettledNow     ReplayOutcome = "settled_now"
	ReplayStillRunning   ReplayOutcome = "still_running"
	ReplayFailed         ReplayOutcome = "failed"
	ReplayUnknown        ReplayOutcome = "unknown_to_vendor"
	ReplayError          ReplayOutcome = "error"
)

// Refetched is what fetching a settled job once more came to.
type Refetched string

// What refetching finds.
const (
	RefetchedSame    Refetched = "same"
	RefetchedDiffers Refetched = "differs"
	RefetchedUnknown Refetched = "unknown_to_vendor"
	RefetchedError   Refetched = "error"
)

// ItemState is where an item stands.
type ItemState string

// The states of an item.
const (
	ItemOutstanding ItemState = "outstanding"
	ItemStored      ItemState = "stored"
	ItemFailed      ItemState = "failed"
	ItemCancelled   ItemState = "cancelled"
)

// Kind is a kind of batch or of vendor job.
type Kind string

// The kinds. Mixed and sync are kinds of batches only.
const (
	KindExtract Kind = "extract"
	KindBatch   Kind = "batch"
	KindMixed   Kind = "mixed"
	KindCrawl   Kind = "crawl"
	KindSync    Kind = "sync"
)

// Origin says where a job came from.
type Origin string

// The origins. A retry is automatic, a resubmission a person's.
const (
	OriginSubmit   Origin = "submit"
	OriginSplit    Origin = "split"
	OriginRetry    Origin = "retry"
	OriginResubmit Origin = "resubmit"
)

// Rerun is how a batch runs another one again.
type Rerun string

// The ways to run a batch again.
const (
	RerunAll      Rerun = "all"
	RerunFailures Rerun = "failures"
	RerunSchedule Rerun = "schedule"
)

// Outcome is what a job said of an item it carried.
type Outcome string

// The outcomes. Superseded: the job's answer came after another job's.
const (
	OutcomeStored     Outcome = "stored"
	OutcomeFailed     Outcome = "failed"
	OutcomeCancelled  Outcome = "cancelled"
	OutcomeRetry      Outcome = "retry"
	OutcomeSuperseded Outcome = "superseded"
)

// Verdict is what was decided about a delivery.
type Verdict string

// The verdicts. Unreadable: signed by a known secret, but its job or event
// can't be read.
const (
	VerdictAccepted   Verdict = "accepted"
	VerdictDuplicate  Verdict = "duplicate"
	VerdictRefused    Verdict = "refused"
	VerdictUnreadable Verdict = "unreadable"
)

// WebhookState is where a vendor subscription of ours stands.
type WebhookState string

// The states of a webhook. Paused is a person's doing here; inactive, moved and
// gone are the vendor's.
const (
	WebhookRegistering   WebhookState = "registering"
	WebhookLive          WebhookState = "live"
	WebhookRotating      WebhookState = "rotating"
	WebhookSecretUnknown WebhookState = "secret_unknown"
	WebhookPaused        WebhookState = "paused"
	WebhookInactive      WebhookState = "inactive"
	WebhookMoved         WebhookState = "moved"
	WebhookGone          WebhookState = "gone"
	WebhookRemoved       WebhookState = "removed"
)

// EventState is where a processed event stands.
type EventState string

// The states of a processed event. Held: its job is not known (yet). Foreign:
// nobody here ever will. Pruned: its job was ours, and its time is over.
const (
	EventHeld    EventState = "held"
	EventClaimed EventState = "claimed"
	EventForeign EventState = "foreign"
	EventPruned  EventState = "pruned"
)

// Role is what a person may do; each includes the ones before it.
type Role string

// The roles.
const (
	RoleAnalyst  Role = "analyst"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)
