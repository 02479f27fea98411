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
// nobody here ever will.
const (
	EventHeld    EventState = "held"
	EventClaimed EventState = "claimed"
	EventForeign EventState = "foreign"
)

// Role is what a person may do; each includes the ones before it.
type Role string

// The roles.
const (
	RoleAnalyst  Role = "analyst"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)
