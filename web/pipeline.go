package web

import (
	"context"
	"net/http"
	"time"

	"rollcall/store"
)

// Pipeline is what the pages ask of rollcall/internal/pipeline: everything
// that changes a job, an item or a webhook goes through it.
type Pipeline interface {
	// Submit writes a batch, or returns *InvalidSubmission and writes nothing.
	Submit(ctx context.Context, s Submission) (Submitted, error)
	// Receive takes a delivery up; it commits before it answers 2xx.
	Receive(ctx context.Context, in Incoming) Answer
	// RefuseUnread records a delivery that was refused before its body was read.
	RefuseUnread(ctx context.Context, endpoint string, header http.Header, source string, status int, reason string)
	// SettleNow wakes a job for an operator.
	SettleNow(ctx context.Context, jobID int64) error
	// ReconcileNow queues a reconcile run for a person.
	ReconcileNow(ctx context.Context) error
	// ResumeDispatch opens a gate that a 401 or 402 paused.
	ResumeDispatch(ctx context.Context) error
	// WorkersHealthy says what keeps the background work from running.
	WorkersHealthy() error
}

type Options struct {
	Formats       []string `json:"formats"` // markdown, html; always sent.
	RenderJS      bool     `json:"render_js"`
	ProxyCountry  string   `json:"proxy_country,omitempty"` // Two letters.
	ProxyType     string   `json:"proxy_type,omitempty"`    // residential, datacenter.
	WaitUntil     string   `json:"wait_until,omitempty"`    // commit, domcontentloaded, load.
	WaitFor       string   `json:"wait_for,omitempty"`      // A selector.
	WaitTimeoutMS int      `json:"wait_timeout_ms,omitempty"`
	ExtractLinks  bool     `json:"extract_links,omitempty"`
}
type Submission struct {
	Name        string
	Kind        store.Kind
	Text        string
	Options     Options
	Headers     map[string]string
	LeaveOutBad bool
	CreatedBy   *int64
}
type (
	Submitted  struct{ BatchID, Submitted, Invalid, Duplicate, Accepted int64 }
	FieldError struct{ Field, Message string }
	BadLine    struct {
		Number       int
		Text, Reason string
	}
)
type InvalidSubmission struct {
	Fields []FieldError
	Lines  []BadLine
}

func (*InvalidSubmission) Error() string { return "invalid" }

type Incoming struct {
	Endpoint   string
	Header     http.Header
	Body       []byte
	Source     string
	ReceivedAt time.Time
}
type Answer struct {
	Status  int
	Verdict store.Verdict
	Message string
}
