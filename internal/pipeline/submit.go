package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"rollcall/store"
)

// Submission is what a person or a program wants fetched.
type Submission struct {
	Name string
	// Kind is extract, batch, mixed or crawl; empty picks extract for one URL or
	// when links are asked for, else batch.
	Kind store.Kind
	// Text holds the URLs, a line each; blank lines are skipped. A crawl has one,
	// its seed.
	Text    string
	Options Options
	// Headers go with the vendor's requests for the pages. They are sealed.
	Headers map[string]string
	// LeaveOutBad submits the good lines although some are bad.
	LeaveOutBad bool
	// KeepDuplicates submits a URL as often as it is in the text.
	KeepDuplicates bool
	CreatedBy      *int64 // A user; nil for the command line.
	// Token is the form's own: a second submission of the same with it makes
	// nothing and is answered with the first. Empty is none.
	Token string
}

// Submitted is what became of a submission.
type Submitted struct {
	BatchID, Submitted, Invalid, Duplicate, Accepted int64
	// ItemID is the first item.
	ItemID int64
}

// FieldError is one field that cannot be right, in words for a person.
type FieldError struct{ Field, Message string }

// BadLine is one line that is no URL, counted from 1.
type BadLine struct {
	Number int
	Text   string
	Reason string
}

// InvalidSubmission reports why nothing was written.
type InvalidSubmission struct { //nolint:errname // What is wrong is the submission; the pages read it as its form.
	Fields []FieldError
	Lines  []BadLine
}

// linesTold is how many bad lines the text of the error names; Lines has all.
const linesTold = 10

// Error implements error.
func (e *InvalidSubmission) Error() string {
	var parts []string
	for _, f := range e.Fields {
		parts = append(parts, f.Field+": "+f.Message)
	}
	for _, l := range e.Lines[:min(len(e.Lines), linesTold)] {
		parts = append(parts, fmt.Sprintf("line %d %q %s", l.Number, clip(l.Text, 80), l.Reason))
	}
	if more := len(e.Lines) - linesTold; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d lines more", more))
	}
	return strings.Join(parts, "; ")
}

// maxName is the longest name of a batch, in characters.
const maxName = 200

// Submit writes a batch with its items, its intended jobs and a dispatch task
// for each, in one transaction. It returns *InvalidSubmission, having written
// nothing, when a field or line is wrong.
func (p *Pipeline) Submit(ctx context.Context, s Submission) (Submitted, error) {
	if s.Kind == store.KindSync {
		return p.TryNow(ctx, s)
	}
	s = s.withDefaults()
	lines, err := check(ctx, s)
	if err != nil {
		return Submitted{}, err
	}
	plan := p.planJobs(s, lines.urls)
	b, err := p.newBatch(s, lines)
	if err != nil {
		return Submitted{}, err
	}
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := p.writeBatch(ctx, tx, b, lines, plan); err != nil {
			return err
		}
		return p.auditSubmit(ctx, tx, "batch.submit", b)
	})
	if errors.Is(err, store.ErrTaken) && b.SubmitToken != nil {
		return p.submittedBefore(ctx, *b.SubmitToken)
	}
	if err != nil {
		return Submitted{}, fmt.Errorf("write the batch: %w", err)
	}
	p.log.InfoContext(ctx, "batch submitted", slog.Int64("batch_id", b.ID), slog.Int64("accepted", b.Accepted),
		slog.Int("jobs", len(plan)))
	return submitted(b, lines), nil
}

func submitted(b *store.Batch, lines *read) Submitted {
	return Submitted{
		BatchID: b.ID, Submitted: b.Submitted, Invalid: b.Invalid, Duplicate: b.Duplicate, Accepted: b.Accepted,
		ItemID: lines.first,
	}
}

// submittedBefore is what the form made when it was sent the first time.
func (p *Pipeline) submittedBefore(ctx context.Context, token string) (Submitted, error) {
	b, first, err := p.store.BatchOfToken(ctx, token)
	if err != nil {
		return Submitted{}, fmt.Errorf("look for what the form made before: %w", err)
	}
	return submitted(b, &read{first: first}), nil
}

// withDefaults fills in what was left open.
func (s Submission) withDefaults() Submission {
	if s.Kind == store.KindCrawl && s.Options.Crawl == nil {
		s.Options.Crawl = &CrawlOptions{}
	}
	s.Options = s.Options.withDefaults()
	return s
}

// planned is one job to be made: its kind and the items it carries, as a
// range of the submission's URLs.
type planned struct {
	kind     store.Kind
	from, to int
	hash     []byte
}

// planJobs cuts the URLs into jobs.
func (p *Pipeline) planJobs(s Submission, urls []string) []planned {
	kind := s.Kind
	if kind == "" {
		kind = store.KindBatch
		if len(urls) == 1 || s.Options.ExtractLinks {
			kind = store.KindExtract
		}
	}
	out := p.cutJobs(kind, len(urls))
	for i := range out {
		j := &out[i]
		j.hash = requestHash(j.kind, s.Options, s.Headers, urls[j.from:j.to])
	}
	return out
}

// cutJobs says which jobs carry so many URLs of a batch of the kind.
func (p *Pipeline) cutJobs(kind store.Kind, urls int) []planned {
	if kind == store.KindCrawl {
		return []planned{{kind: kind, to: 1}}
	}
	singles := 0
	switch kind {
	case store.KindExtract:
		singles = urls
	case store.KindMixed:
		singles = urls / 2
	case store.KindBatch, store.KindCrawl, store.KindSync:
	}
	var out []planned
	for i := range singles {
		out = append(out, planned{kind: store.KindExtract, from: i, to: i + 1})
	}
	for from := singles; from < urls; from += p.cfg.URLsPerJob {
		out = append(out, planned{kind: store.KindBatch, from: from, to: min(from+p.cfg.URLsPerJob, urls)})
	}
	return out
}

func (p *Pipeline) newBatch(s Submission, lines *read) (*store.Batch, error) {
	options, err := json.Marshal(s.Options)
	if err != nil {
		return nil, fmt.Errorf("encode the options: %w", err)
	}
	b := &store.Batch{
		Name: strings.TrimSpace(store.CleanText(s.Name)), Kind: s.Kind, Options: options,
		CreatedBy: s.CreatedBy, CreatedAt: p.now(), Submitted: lines.total, Invalid: int64(len(lines.bad)),
		Duplicate: lines.duplicates, Accepted: int64(len(lines.urls)),
	}
	if b.Name == "" {
		b.Name = defaultName(lines.urls)
	}
	b.SubmitToken = tokenOf(s, options)
	if b.Kind == "" {
		b.Kind = store.KindBatch
		if len(lines.urls) == 1 || s.Options.ExtractLinks {
			b.Kind = store.KindExtract
		}
	}
	if len(s.Headers) > 0 {
		plain, err := json.Marshal(s.Headers)
		if err != nil {
			return nil, fmt.Errorf("encode the headers: %w", err)
		}
		b.HeadersSealed = p.sealer.seal(headersPlace, plain)
	}
	return b, nil
}

// tokenOf tells a form that is sent twice by its token and all that is in it: a
// form that a person went back to, and changed, is another.
func tokenOf(s Submission, options []byte) *string {
	all := []string{string(s.Kind), s.Name, s.Text, string(options), strconv.FormatBool(s.LeaveOutBad), strconv.FormatBool(s.KeepDuplicates)}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		all = append(all, name, s.Headers[name])
	}
	return formToken(s.Token, s.CreatedBy, all...)
}

// formToken is what is kept of a form's token: a hash of it, of who sends the
// form, and of all that it says. nil when it has none.
func formToken(token string, by *int64, all ...string) *string {
	if token == "" {
		return nil
	}
	sum, who := sha256.New(), ""
	if by != nil {
		who = strconv.FormatInt(*by, 10)
	}
	put(sum, token, who)
	put(sum, all...)
	kept := hex.EncodeToString(sum.Sum(nil))
	return &kept
}

// defaultName names a batch after its first page's host.
func defaultName(urls []string) string {
	host := "batch"
	if u, err := url.Parse(urls[0]); err == nil {
		host = u.Hostname()
	}
	if len(urls) == 1 {
		return clipRunes(host, maxName)
	}
	return fmt.Sprintf("%s and %d more", clipRunes(host, maxName/2), len(urls)-1)
}

// writeBatch writes everything a submission makes. Jobs come before items, so
// that an item is written once, with the job that carries it.
func (p *Pipeline) writeBatch(ctx context.Context, tx store.Tx, b *store.Batch, lines *read, plan []planned) error {
	if err := tx.InsertBatch(ctx, b); err != nil {
		return err
	}
	for i := range lines.rejected {
		lines.rejected[i].BatchID = b.ID
	}
	if err := tx.InsertRejectedLines(ctx, lines.rejected); err != nil {
		return err
	}
	jobs := make([]*store.Job, len(plan))
	for i, j := range plan {
		jobs[i] = &store.Job{
			BatchID: b.ID, Kind: j.kind, State: store.JobIntended, Origin: store.OriginSubmit,
			RequestHash: j.hash, URLCount: j.to - j.from, CreatedAt: b.CreatedAt,
		}
	}
	if err := tx.InsertJobs(ctx, jobs); err != nil {
		return err
	}
	if err := writeItems(ctx, tx, b, lines, plan, jobs); err != nil {
		return err
	}
	if err := tx.InsertEvents(ctx, intendedEvents(jobs, "submitted with the batch")); err != nil {
		return err
	}
	return p.queue.dispatch(ctx, tx, jobs, time.Time{})
}

func writeItems(ctx context.Context, tx store.Tx, b *store.Batch, lines *read, plan []planned, jobs []*store.Job) error {
	current := make([]*int64, len(lines.urls))
	for i, j := range plan {
		for at := j.from; at < j.to; at++ {
			current[at] = &jobs[i].ID
		}
	}
	items := itemsOf(b, lines.urls, current)
	for i, extra := range lines.extras {
		items[i].Extra = extra
	}
	for i, from := range lines.sources {
		items[i].Line, items[i].Original = from.line, from.original
	}
	if err := tx.InsertItems(ctx, items); err != nil {
		return err
	}
	lines.first = items[0].ID
	rows := make([]store.JobItem, 0, len(items))
	for i, j := range plan {
		for at := j.from; at < j.to; at++ {
			rows = append(rows, store.JobItem{JobID: jobs[i].ID, InputIndex: at - j.from, ItemID: items[at].ID})
		}
	}
	return tx.InsertJobItems(ctx, rows)
}

// itemsOf are the items of the URLs, in order, each with the job that carries
// it; without jobs, nobody does.
func itemsOf(b *store.Batch, urls []string, jobs []*int64) []*store.Item {
	items := make([]*store.Item, len(urls))
	for i, u := range urls {
		sum := sha256.Sum256([]byte(u))
		items[i] = &store.Item{
			BatchID: b.ID, Position: i + 1, URL: u, URLHash: sum[:], State: store.ItemOutstanding, CreatedAt: b.CreatedAt,
		}
		if jobs != nil {
			items[i].CurrentJobID = jobs[i]
		}
	}
	return items
}

func intendedEvents(jobs []*store.Job, why string) []store.JobEvent {
	out := make([]store.JobEvent, len(jobs))
	for i, j := range jobs {
		out[i] = store.JobEvent{JobID: j.ID, At: j.CreatedAt, Kind: "intended", Detail: fmt.Sprintf("%s: %s", why, countURLs(j.URLCount))}
	}
	return out
}

func countURLs(n int) string {
	if n == 1 {
		return "1 URL"
	}
	return fmt.Sprintf("%d URLs", n)
}
