package store

import (
	"encoding/json"
	"time"

	"github.com/uptrace/bun"
)

// Batch is what a person submitted, with its counters. Its sum holds at any
// moment: Submitted = Invalid + Duplicate + Accepted, and Accepted = Stored() +
// Failed + Cancelled + Outstanding.
type Batch struct {
	bun.BaseModel     `bun:"table:batches,alias:b"`
	ID                int64 `bun:",pk,autoincrement"`
	Name              string
	Kind              Kind
	Options           json.RawMessage `bun:"type:jsonb"`
	HeadersSealed     []byte
	CreatedBy         *int64
	CreatedAt         time.Time
	EndedAt           *time.Time
	CancelRequestedAt *time.Time
	Submitted         int64
	Invalid           int64
	Duplicate         int64
	Accepted          int64
	StoredWebhook     int64
	StoredPoll        int64
	StoredReconcile   int64
	StoredReplay      int64
	StoredSync        int64
	Failed            int64
	Cancelled         int64
	Outstanding       int64 // Computed by Postgres, never written.
	Charged           int64
	ChargedTwice      int64
	SubmitToken       *string    // Of the form it came by; no two batches have one.
	Columns           []string   `bun:",array"`     // Names of the columns beside the URL in the file; nil when there are none.
	URLColumn         string     `bun:"url_column"` // Name of the URL's own; "" when it has none.
	ParentBatchID     *int64     // The batch that this one runs again.
	Rerun             *Rerun     // How it does.
	PrunedAt          *time.Time // Its items, jobs and results began to go: only this row stays.
	PruneEndedAt      *time.Time // The last of them had gone.
}

// Stored is the number of items stored, by whatever net.
func (b *Batch) Stored() int64 {
	return b.StoredWebhook + b.StoredPoll + b.StoredReconcile + b.StoredReplay + b.StoredSync
}

// RejectedLine is a line of a submission that became no item.
type RejectedLine struct {
	bun.BaseModel `bun:"table:rejected_lines"`
	BatchID       int64 `bun:",pk"`
	Line          int   `bun:",pk"`
	Kind          string
	Text          string
	Reason        string
	Extra         []string `bun:",array"` // The other columns of the line.
	DuplicateOf   *int64   // The line of the same file that it repeats.
	StoredItem    *int64   // The item whose result it would have fetched again.
}

// Item is one URL of a batch, or one page of a crawl.
type Item struct {
	bun.BaseModel  `bun:"table:items,alias:i"`
	ID             int64 `bun:",pk,autoincrement"`
	BatchID        int64
	Position       int
	URL            string
	URLHash        []byte
	State          ItemState
	Net            *Net
	CurrentJobID   *int64
	Retries        int
	ErrorCode      string
	ErrorMessage   string
	ErrorRetryable bool
	CreatedAt      time.Time
	EndedAt        *time.Time
	Host           string     // Computed by Postgres, never written: in lower case, without a port.
	Extra          []string   `bun:",array"` // The values of the batch's columns; nil when there are none.
	Line           *int       // Where it stands in the list that was submitted, as the preflight counts; nil: there was no list.
	Original       *string    // What its line held where the URL was mended; nil: the URL as it is.
	ResolvedAt     *time.Time // A person put the failure aside.
	ResolvedBy     *int64
	ResolvedNote   string
}

// Job is one vendor job: ours before the call, known by VendorJobID after it.
type Job struct {
	bun.BaseModel     `bun:"table:jobs,alias:j"`
	ID                int64 `bun:",pk,autoincrement"`
	BatchID           int64
	Kind              Kind
	State             JobState
	Origin            Origin
	ParentJobID       *int64
	Depth             int
	RequestHash       []byte
	URLCount          int `bun:"url_count"`
	CreatedAt         time.Time
	CallNo            int
	CalledAt          *time.Time
	CalledVendorAt    *time.Time // The same moment by the vendor's clock, as far as the caller knew it.
	LeaseUntil        *time.Time
	AdoptPasses       int
	AdoptPassAt       *time.Time
	VendorJobID       *string
	Account           string
	AcceptedAt        *time.Time
	Adopted           bool
	VendorStatus      string
	VendorReports     json.RawMessage `bun:"type:jsonb"`
	VendorInvalidURLs json.RawMessage `bun:"vendor_invalid_urls,type:jsonb"`
	WakeSeq           int64
	WakeNet           *Net
	NextPollAt        *time.Time
	Polls             int
	Overdue           bool
	WebhookAt         *time.Time
	SettlePage        int
	SettlePasses      int
	SettlePassAt      *time.Time
	PageSize          int
	NotFound          int
	NotFoundAt        *time.Time
	EndedAt           *time.Time
	SettleNet         *Net
	ErrorCode         string
	ErrorMessage      string
	Superseded        bool
	Misnumbered       bool
	Charged           int64
	CancelRequestedAt *time.Time
	Look              Look // What the last look found that did not settle it.
}

// VendorID is the vendor's id for the job, or "" before it is known.
func (j *Job) VendorID() string {
	if j.VendorJobID == nil {
		return ""
	}
	return *j.VendorJobID
}

// JobItem is one step of an item's lineage.
type JobItem struct {
	bun.BaseModel `bun:"table:job_items,alias:ji"`
	JobID         int64 `bun:",pk"`
	InputIndex    int   `bun:",pk"`
	ItemID        int64
	Outcome       *Outcome
	ErrorCode     string
	ErrorMessage  string
	ReportedAt    *time.Time
}

// JobEvent is one line of a job's timeline.
type JobEvent struct {
	bun.BaseModel `bun:"table:job_events,alias:je"`
	ID            int64 `bun:",pk,autoincrement"`
	JobID         int64
	At            time.Time
	Kind          string
	Net           Net
	Detail        string
}

// Result is the stored answer for an item. Content is bytes, as it came.
type Result struct {
	bun.BaseModel  `bun:"table:results,alias:r"`
	ItemID         int64 `bun:",pk"`
	JobID          *int64
	Net            Net
	StoredAt       time.Time
	Title          string
	Markdown       []byte
	HTML           []byte `bun:"html"`
	Links          []byte
	Metadata       []byte
	HTTPStatus     *int   `bun:"http_status"`
	DurationMS     *int64 `bun:"duration_ms"`
	RetryCount     *int
	Charged        *int64
	MarkdownSHA256 []byte `bun:"markdown_sha256"`
	HTMLSHA256     []byte `bun:"html_sha256"`
	Version        int
	PageKey        []byte // Of the page that the URL names, however it is spelled; nil when it isn't known.
	Mark           Mark   // That it looks empty or blocked, though the page came back; "" when it doesn't.
	MarkReason     string
}

// Delivery is one HTTP request that reached the webhook endpoint. Body holds
// at most the kept part; BodySize is the whole.
type Delivery struct {
	bun.BaseModel    `bun:"table:deliveries,alias:d"`
	ID               int64 `bun:",pk,autoincrement"`
	WebhookID        *int64
	ReceivedAt       time.Time
	Verdict          Verdict
	Status           int
	Reason           string
	EventType        string
	VendorJobID      string
	VendorDeliveryID string
	SecretVersion    *int
	SignatureForm    string
	Source           string
	Micros           int64
	Headers          []byte
	Body             []byte
	BodySize         int64
	RecoveredAt      *time.Time // Taken up later, when the secret that signed it was known.
	Diagnosis        string     // Why it was refused, worked out after the answer.
	DiagnosedAt      *time.Time
	SecretLost       bool // Signed with a secret that nobody ever saw.
	Unsigned         bool // Refused, and carried no signature at all.
}

// ProcessedEvent is the idempotency record of a vendor job's event.
type ProcessedEvent struct {
	bun.BaseModel `bun:"table:processed_events,alias:pe"`
	VendorJobID   string `bun:",pk"`
	EventType     string
	ReceivedAt    time.Time
	State         EventState
	JobID         *int64
}

// Webhook is one vendor subscription of ours.
type Webhook struct {
	bun.BaseModel   `bun:"table:webhooks,alias:w"`
	ID              int64 `bun:",pk,autoincrement"`
	Endpoint        string
	EventType       string
	URL             string `bun:"url"`
	Description     string
	State           WebhookState
	VendorWebhookID *string
	SignatureForm   string
	CreatedAt       time.Time
	StateAt         time.Time
	CheckedAt       *time.Time
	LastDeliveryAt  *time.Time
	Adopted         bool // Registered elsewhere, and taken over with its secret.
}

// WebhookSecret is one version of a webhook's secret, sealed.
type WebhookSecret struct {
	bun.BaseModel `bun:"table:webhook_secrets,alias:ws"`
	WebhookID     int64 `bun:",pk"`
	Version       int   `bun:",pk"`
	Sealed        []byte
	ValidFrom     time.Time
	ValidUntil    *time.Time
}

// Gate is one of the two ways to the vendor that all replicas share.
type Gate struct {
	bun.BaseModel `bun:"table:gates,alias:g"`
	Name          string `bun:",pk"`
	ClosedUntil   *time.Time
	Closings      int
	PausedAt      *time.Time
	PausedStatus  *int
	PausedReason  string
	ProbeAt       *time.Time
}

// ReconcileRun is one run of the reconciler.
type ReconcileRun struct {
	bun.BaseModel `bun:"table:reconcile_runs,alias:rr"`
	ID            int64 `bun:",pk,autoincrement"`
	Trigger       string
	StartedAt     time.Time
	FinishedAt    *time.Time
	WindowStart   time.Time
	WindowEnd     time.Time
	Pages         int
	Listed        int
	Missing       int
	Woken         int
	Singly        int
	ForeignJobs   int
	Refused       int // Open jobs of which the vendor's delivery log says that an event did not arrive.
	Held          int // Held events whose job is known by now.
	Errors        int
	Note          string
}

// User is a person who may sign in.
type User struct {
	bun.BaseModel     `bun:"table:users,alias:u"`
	ID                int64 `bun:",pk,autoincrement"`
	Name              string
	Role              Role
	PasswordHash      string
	TimeZone          string
	Theme             string
	CreatedAt         time.Time
	PasswordChangedAt time.Time
	LastSignInAt      *time.Time
	DisabledAt        *time.Time
}
