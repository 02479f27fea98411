package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unicode/utf8"

	"rollcall/store"
)

// rerunGroup is how many items of the old batch are read together.
const rerunGroup = 5000

// Again is what a person or a program wants run again.
type Again struct {
	BatchID int64
	// Failures runs only what failed and was not resolved.
	Failures  bool
	Name      string // Of the new batch; "" makes one up.
	CreatedBy *int64 // A user; nil for the command line.
	// Token is the form's own, as of a Submission.
	Token string
}

// RerunPlan is what running a batch again comes to.
type RerunPlan struct {
	Batch    *store.Batch // The old one.
	Name     string       // Of the new one, unless another is typed.
	URLs     int64
	Jobs     int64
	Requests int64 // That it costs at most.
	Resolved int64 // Failures that are left out, since a person resolved them.
	// Whole reports that a batch of the kind cannot be run again in part.
	Whole bool
	// Extract reports that the new batch is fetched by jobs, and the old was not.
	Extract bool
}

// PlanRerun says what running a batch again would do, without doing it.
func (p *Pipeline) PlanRerun(ctx context.Context, batchID int64, failures bool) (RerunPlan, error) {
	b, err := p.store.Batch(ctx, batchID)
	if err != nil {
		return RerunPlan{}, err
	}
	var o Options
	if err := json.Unmarshal(b.Options, &o); err != nil {
		return RerunPlan{}, fmt.Errorf("options of batch %d: %w", b.ID, err)
	}
	plan := RerunPlan{
		Batch: b, Name: againName(b.Name, failures), URLs: b.Accepted,
		Whole: b.Kind == store.KindCrawl, Extract: b.Kind == store.KindSync,
	}
	switch {
	case plan.Whole:
		plan.URLs = 1
	case failures:
		if plan.URLs, plan.Resolved, err = p.store.CountStanding(ctx, batchID); err != nil {
			return RerunPlan{}, err
		}
	}
	plan.Requests = plan.URLs
	if plan.Whole {
		plan.Requests = int64(o.Crawl.orDefault().Limit)
	}
	plan.Jobs = int64(len(p.cutJobs(rerunKind(b.Kind), int(plan.URLs))))
	return plan, nil
}

// rerunKind is the kind of a batch that runs one of the kind again: nobody waits
// at a page that is fetched a second time.
func rerunKind(k store.Kind) store.Kind {
	if k == store.KindSync {
		return store.KindExtract
	}
	return k
}

// againName names a batch after the one that it runs again.
func againName(name string, failures bool) string {
	mark := " (again)"
	if failures {
		mark = " (failures again)"
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, " (failures again)"), " (again)")
	return clipRunes(name, maxName-utf8.RuneCountInString(mark)) + mark
}

// clipRunes shortens a text to at most n characters.
func clipRunes(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

// Rerun writes a batch that fetches again what an old one did, or its failures,
// with the same options and headers, in one transaction. The old batch stays as
// it is. It returns *InvalidSubmission, having written nothing, when that cannot
// be.
func (p *Pipeline) Rerun(ctx context.Context, a Again) (Submitted, error) {
	parent, err := p.store.Batch(ctx, a.BatchID)
	if err != nil {
		return Submitted{}, err
	}
	if utf8.RuneCountInString(a.Name) > maxName {
		return Submitted{}, &InvalidSubmission{Fields: []FieldError{{"name", fmt.Sprintf("the name is over %d characters", maxName)}}}
	}
	token := a.token()
	if done, err := p.madeBefore(ctx, token); done != nil || err != nil {
		return orNothing(done), err
	}
	r := rerunning{parent: parent, name: a.Name, by: a.CreatedBy, token: token, how: store.RerunAll}
	if a.Failures {
		r.how = store.RerunFailures
	}
	err = p.store.InTx(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := p.writeRerun(ctx, tx, &r); err != nil {
			return err
		}
		return p.auditRerun(ctx, tx, &r)
	})
	if errors.Is(err, store.ErrTaken) && token != nil {
		return p.submittedBefore(ctx, *token)
	}
	if err != nil {
		return Submitted{}, fmt.Errorf("run batch %d again: %w", a.BatchID, err)
	}
	p.log.InfoContext(ctx, "batch run again", slog.Int64("batch_id", r.made.ID), slog.Int64("parent_batch_id", parent.ID),
		slog.Int64("accepted", r.made.Accepted))
	return submitted(r.made, r.lines), nil
}

// token tells a form that is sent twice.
func (a Again) token() *string {
	how := store.RerunAll
	if a.Failures {
		how = store.RerunFailures
	}
	return formToken(a.Token, a.CreatedBy, "batch.rerun", string(how), strconv.FormatInt(a.BatchID, 10), a.Name)
}

// madeBefore is what a form made when it was sent the first time; nil when it
// was not, or has no token.
func (p *Pipeline) madeBefore(ctx context.Context, token *string) (*Submitted, error) {
	if token == nil {
		return nil, nil
	}
	done, err := p.submittedBefore(ctx, *token)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return &done, err
}

func orNothing(done *Submitted) Submitted {
	if done == nil {
		return Submitted{}
	}
	return *done
}

// rerunning is a batch on its way to being run again.
type rerunning struct {
	parent *store.Batch
	name   string // Of the new batch; "" makes one up.
	by     *int64
	token  *string
	how    store.Rerun
	// What was made.
	made  *store.Batch
	lines *read
}

// writeRerun writes the new batch through the same steps as a submission.
func (p *Pipeline) writeRerun(ctx context.Context, tx store.Tx, r *rerunning) error {
	s := Submission{Name: r.name, Kind: rerunKind(r.parent.Kind), CreatedBy: r.by}
	if strings.TrimSpace(s.Name) == "" {
		s.Name = againName(r.parent.Name, r.how == store.RerunFailures)
	}
	err := holdWhole(ctx, tx, r.parent.ID, "which")
	if err != nil {
		return err
	}
	if s.Options, s.Headers, err = p.readOptions(r.parent); err != nil {
		return err
	}
	if r.lines, err = rerunLines(ctx, tx, r.parent, r.how == store.RerunFailures); err != nil {
		return err
	}
	plan := p.planJobs(s, r.lines.urls)
	if r.made, err = p.newBatch(s, r.lines); err != nil {
		return err
	}
	b := r.made
	b.SubmitToken, b.ParentBatchID, b.Rerun = r.token, &r.parent.ID, &r.how
	b.Columns, b.URLColumn = r.parent.Columns, r.parent.URLColumn
	return p.writeBatch(ctx, tx, b, r.lines, plan)
}

// rerunLines reads what the old batch was made of: of a crawl its seed, of every
// other its items with their lines and the columns beside them: they are URLs of
// the same list, and are found there by the same numbers.
func rerunLines(ctx context.Context, tx store.Tx, parent *store.Batch, failures bool) (*read, error) {
	if parent.Kind == store.KindCrawl && failures {
		return nil, &InvalidSubmission{Fields: []FieldError{{"which", "a crawl runs again whole, from its seed"}}}
	}
	lines, after, group := &read{}, 0, rerunGroup
	if parent.Kind == store.KindCrawl {
		group = 1
	}
	for {
		items, err := tx.RerunItems(ctx, parent.ID, failures, after, group)
		if err != nil {
			return nil, err
		}
		for i := range items {
			lines.add(&items[i])
			after = items[i].Position
		}
		if len(items) < group || parent.Kind == store.KindCrawl {
			break
		}
	}
	if len(lines.urls) == 0 {
		return nil, &InvalidSubmission{Fields: []FieldError{{"which", "nothing of this batch is left to run again"}}}
	}
	return lines, nil
}

// add takes an item of an old batch over.
func (r *read) add(it *store.Item) {
	if it.Extra != nil && r.extras == nil {
		r.extras = make([][]string, len(r.urls))
	}
	r.urls, r.sources = append(r.urls, it.URL), append(r.sources, source{line: it.Line, original: it.Original})
	r.total++
	if r.extras != nil {
		r.extras = append(r.extras, it.Extra)
	}
}

// rerunFacts is a batch that runs another one again, as it was asked for.
type rerunFacts struct {
	submittedFacts
	Of    int64       `json:"of"`
	Which store.Rerun `json:"which"`
}

func (p *Pipeline) auditRerun(ctx context.Context, tx store.Tx, r *rerunning) error {
	b := r.made
	return tx.Audit(ctx, b.CreatedAt, store.Change{
		What: "batch.rerun", Kind: "batch", ID: strconv.FormatInt(b.ID, 10),
		After: rerunFacts{
			submittedFacts: submittedFacts{Name: b.Name, Kind: b.Kind, Accepted: b.Accepted}, Of: r.parent.ID, Which: r.how,
		},
	})
}
