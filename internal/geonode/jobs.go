package geonode

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxJobID is the most characters a vendor job id may have.
const MaxJobID = 200

// Page sizes the vendor allows.
const (
	// MaxResultPage is the most items of a batch or crawl read at once.
	MaxResultPage = 50
	// MaxListPage is the most rows of a list read at once.
	MaxListPage = 100
)

// ErrJobID says that a job or webhook id can't be used.
var ErrJobID = errors.New("unusable id")

// ValidJobID checks a vendor's id: 1 to 200 printable characters, not assumed a UUID.
// The error, ErrJobID, doesn't repeat the id.
func ValidJobID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: empty", ErrJobID)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: not UTF-8", ErrJobID)
	case utf8.RuneCountInString(id) > MaxJobID:
		return fmt.Errorf("%w: over %d characters", ErrJobID, MaxJobID)
	case strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%w: holds a character that can't be printed", ErrJobID)
	}
	return nil
}

// pathID checks an id that goes into a path. Beyond ValidJobID it refuses "jobs", which
// would reach the list of jobs instead of a job, and the dots that mean a folder.
func pathID(id string) error {
	if err := ValidJobID(id); err != nil {
		return err
	}
	if id == "jobs" || id == "." || id == ".." {
		return fmt.Errorf("%w: %q would reach another route", ErrJobID, id)
	}
	return nil
}

// Status is the state of a job or item in the vendor's words. Other words can come:
// they mean "not finished".
type Status string

// The published states.
const (
	StatusQueued     Status = "queued"
	StatusProcessing Status = "processing"
	StatusCompleted  Status = "completed"
	StatusFailed     Status = "failed"
	StatusCancelled  Status = "cancelled"
)

// Terminal is true for completed, failed and cancelled, and for nothing else.
func (s Status) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Known is true for the published states.
func (s Status) Known() bool {
	return s.Terminal() || s == StatusQueued || s == StatusProcessing
}

// Reply tells of the HTTP answer behind a result.
type Reply struct {
	// Status is the HTTP status, a 2xx.
	Status int
	// Date is the vendor's clock from the Date header; zero if absent or unreadable.
	Date time.Time
	// Elapsed is how long the call took by the client's clock.
	Elapsed time.Duration
	// Raw is the body as sent, kept for accepted submits, usage and health; else nil.
	Raw []byte
}

// Page picks a page of a job's items: zero values mean page 1 and 50 items.
type Page struct {
	// Number counts from 1.
	Number int
	// Size is 1 to MaxResultPage.
	Size int
}

// Content is a page as extracted. A format that wasn't asked for is nil.
type Content struct {
	Markdown Text  `json:"markdown"`
	HTML     Text  `json:"html"`
	Links    Links `json:"links"`
}

// Empty is true when there is neither Markdown nor HTML, not even an empty page.
func (c *Content) Empty() bool { return c == nil || (c.Markdown == nil && c.HTML == nil) }

// TokenSummary is the vendor's account of a batch or crawl; a token is one request.
type TokenSummary struct {
	Charged  Count `json:"tokens_charged_total"`
	Reserved Count `json:"tokens_reserved"`
}

// JobConfig is the vendor's echo of a job's options. A nil member wasn't sent.
type JobConfig struct {
	RenderJS          *bool       `json:"render_js"`
	Formats           []Format    `json:"formats"`
	Proxy             *Proxy      `json:"proxy"`
	Headers           Headers     `json:"headers"`
	Wait              *WaitConfig `json:"wait_config"`
	SameDomainOnly    *bool       `json:"same_domain_only"`
	IncludeSubdomains *bool       `json:"include_subdomains"`
}

// Metadata tells how one page was extracted.
type Metadata struct {
	// URL is the address the vendor reports. It can differ from the one sent: never join on it.
	URL           string `json:"url"`
	HTTPStatus    Count  `json:"http_status"`
	DurationMS    Count  `json:"duration_ms"`
	RetryCount    Count  `json:"retry_count"`
	TokensCharged Count  `json:"tokens_charged"`
	// Config is the echo of the options, sent with single extractions only.
	Config JobConfig `json:"-"`
	// Raw is the whole object as sent, without its headers member, which may be secret.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads what it can; metadata never costs a page its content.
func (m *Metadata) UnmarshalJSON(b []byte) error {
	type plain Metadata
	var p plain
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &members) != nil {
		*m = Metadata{}
		return nil //nolint:nilerr // Not an object: there is no metadata to read.
	}
	// A member of the wrong type leaves its field empty and the others filled.
	_ = json.Unmarshal(b, &p)
	_ = json.Unmarshal(b, &p.Config)
	for name := range members {
		if strings.EqualFold(name, "headers") {
			delete(members, name)
		}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	p.Raw = raw
	*m = Metadata(p)
	return nil
}

// ItemError is why one page has no content: flat in items, an object in extractions.
type ItemError struct {
	Code    string
	Message string
	// RetryableSent is the vendor's flag; nil when it wasn't sent, as in items.
	RetryableSent *bool
	// Details are the extraction error's further members as sent, if any.
	Details json.RawMessage
}

// checkID is for the id in an answer about a job that was asked for by id. Ids are
// compared without case, for a UUID may come back in the other case.
func checkID(asked, got string) error {
	if err := ValidJobID(got); err != nil {
		return malformed("job id: %w", err)
	}
	if !strings.EqualFold(asked, got) {
		return malformed("the answer is about another job")
	}
	return nil
}

// checkAccepted is for the answer to a submit.
func checkAccepted(id string) error {
	if err := ValidJobID(id); err != nil {
		return malformed("job id: %w", err)
	}
	return nil
}

// checkJob is for the state of a job: its id as checkID, and a status in any words.
func checkJob(asked, got string, status Status) error {
	if status == "" {
		return malformed("no status")
	}
	return checkID(asked, got)
}
