package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/preflight"
	"rollcall/store"
	"rollcall/web"
)

// submitCmd submits a file as the pages do: it is looked through first, and what is accepted or mended becomes a batch.
type submitCmd struct {
	File   string `arg:"" help:"File with the URLs: plain text, CSV, JSON lines or an XML sitemap, gzipped or not; - is standard input."`
	Name   string `help:"Name of the batch. Default: the file's own, or the first host of what standard input brings."`
	User   string `placeholder:"NAME" help:"Whose batch it is. Default: nobody's."`
	Kind   string `default:"auto" enum:"auto,extract,batch" help:"Kind of job: ${enum}."`
	DryRun bool   `help:"Say what would be submitted, and submit nothing."`
	Strict bool   `help:"Submit nothing when a line is invalid."`
	JSON   bool   `name:"json" help:"Print one JSON object."`

	StoredDays  int           `placeholder:"DAYS" help:"Leave out URLs whose page was stored in the last days."`
	Content     []string      `default:"markdown" enum:"markdown,html" help:"What is stored of a page: markdown, html or both."`
	RenderJS    bool          `name:"render-js" help:"Render JavaScript."`
	Links       bool          `help:"List each page's links; only with extract."`
	Country     string        `placeholder:"DE" help:"Country of the proxy, two letters."`
	Proxy       string        `placeholder:"TYPE" help:"Type of the proxy: residential or datacenter."`
	WaitUntil   string        `placeholder:"STATE" help:"State of the page to wait for: commit, domcontentloaded or load."`
	WaitFor     string        `placeholder:"SELECTOR" help:"Element to wait for, as a CSS selector."`
	WaitTimeout time.Duration `placeholder:"30s" help:"How long to wait at most."`
	readFlags
}

// submittedFile is what the command says.
type submittedFile struct {
	Lines     int   `json:"lines"`
	Submitted int   `json:"submitted"`
	Accepted  int   `json:"accepted"`
	Fixed     int   `json:"fixed"`
	Duplicate int   `json:"duplicate"`
	Invalid   int   `json:"invalid"`
	Requests  int64 `json:"requests"`
	Jobs      int64 `json:"jobs"`
	BatchID   int64 `json:"batch_id,omitempty"` // Absent when nothing was submitted.
}

// Run submits the file. It needs no vendor to answer: the running server makes the calls. It ends with 1 when nothing is
// submitted, or with --dry-run when a line is invalid, and with 2 when the file can't be read to its end.
func (c *submitCmd) Run(ctx context.Context, a *app) error {
	if err := errors.Join(a.check(), a.config.requireVendor()); err != nil {
		return err
	}
	in, err := c.input(a)
	if err != nil {
		return exitError(complain(a.err, err, unreadableFile))
	}
	return a.withStore(ctx, func(ctx context.Context, s *stack) error {
		if err := s.openVendor(); err != nil {
			return err
		}
		if err := s.openPipeline(ctx, func(p *pipeline.Config) { p.OnlySubmit = true }); err != nil {
			return err
		}
		return c.submit(ctx, a, s, in)
	})
}

func (c *submitCmd) input(a *app) (pipeline.PreflightInput, error) {
	content, open, err := c.file(a)
	if err != nil {
		return pipeline.PreflightInput{}, err
	}
	in := pipeline.PreflightInput{
		Submission: pipeline.Submission{Name: c.name(), Options: pipeline.Options{
			Formats: c.Content, RenderJS: c.RenderJS, ProxyCountry: c.Country, ProxyType: c.Proxy, WaitUntil: c.WaitUntil,
			WaitFor: c.WaitFor, WaitTimeoutMS: int(c.WaitTimeout.Milliseconds()), ExtractLinks: c.Links,
		}},
		Files: []pipeline.File{content}, Choices: c.choices(), StoredDays: c.StoredDays, Open: open,
	}
	if c.Kind != "auto" {
		in.Kind = store.Kind(c.Kind)
	}
	return in, nil
}

// name is what the batch is called: after its file, as on the page. What comes by standard input has no name of its own,
// so its batch is called after its first host.
func (c *submitCmd) name() string {
	if strings.TrimSpace(c.Name) != "" || c.File == "-" {
		return c.Name
	}
	return web.NameOfFile(filepath.Base(c.File))
}

// file is the file to be submitted, and what opens the sitemaps beside it. Standard input can be read only once, so
// what comes by it is held in memory.
func (c *submitCmd) file(a *app) (pipeline.File, preflight.Opener, error) {
	in, open, err := c.open(a, c.File)
	if err != nil {
		return pipeline.File{}, nil, err
	}
	defer in.Close()
	if c.File != "-" {
		return pipeline.File{Name: filepath.Base(c.File), Open: func() (io.ReadCloser, error) { return os.Open(c.File) }}, open, nil
	}
	content, err := io.ReadAll(io.LimitReader(in, pipeline.MaxPreflight+1))
	return pipeline.FileOf(c.File, content), open, err
}

// owner is whose the batch will be; nil when nobody's.
func (c *submitCmd) owner(ctx context.Context, s *stack) (*int64, error) {
	if c.User == "" {
		return nil, nil
	}
	u, err := s.store.UserByName(ctx, c.User)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("--user: there is no user %q", c.User)
	case err != nil:
		return nil, fmt.Errorf("--user: %w", err)
	case u.DisabledAt != nil:
		return nil, fmt.Errorf("--user: the account %q is disabled", u.Name)
	}
	return &u.ID, nil
}

func (c *submitCmd) submit(ctx context.Context, a *app, s *stack, in pipeline.PreflightInput) error {
	var err error
	if in.CreatedBy, err = c.owner(ctx, s); err != nil {
		return err
	}
	id, err := s.pipeline.Preflight(ctx, in)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	f, err := s.store.Preflight(ctx, id, in.CreatedBy, s.now())
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if f.Problem != "" {
		err := errors.Join(fmt.Errorf("%s: %s", c.File, f.Problem), s.pipeline.DropPreflight(ctx, id))
		return exitError(complain(a.err, err, unreadableFile))
	}
	said, err := c.plan(ctx, s, f)
	if err != nil {
		return err
	}
	nothing := c.nothing(said)
	if nothing == nil && !c.DryRun {
		done, err := s.pipeline.SubmitPreflight(ctx, id, in.CreatedBy, f.Reading)
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		said.BatchID = done.BatchID
	} else if err := s.pipeline.DropPreflight(ctx, id); err != nil {
		return err
	}
	return errors.Join(c.tell(a.out, said), nothing)
}

// nothing says why no batch is made, or would be.
func (c *submitCmd) nothing(said submittedFile) error {
	switch {
	case said.Accepted+said.Fixed == 0:
		return fmt.Errorf("%s: not one of the lines is left to be submitted", c.File)
	case said.Invalid > 0 && (c.Strict || c.DryRun):
		return fmt.Errorf("%s: %d invalid; rollcall preflight shows them", c.File, said.Invalid)
	}
	return nil
}

func (c *submitCmd) plan(ctx context.Context, s *stack, f *store.Preflight) (submittedFile, error) {
	plan, err := s.pipeline.PlanPreflight(ctx, f)
	if err != nil {
		return submittedFile{}, err
	}
	var sum pipeline.Totals
	if err := json.Unmarshal(f.Totals, &sum); err != nil {
		return submittedFile{}, fmt.Errorf("totals of preflight %d: %w", f.ID, err)
	}
	return submittedFile{
		Lines: sum.Lines, Submitted: sum.Submitted, Accepted: sum.Accepted, Fixed: sum.Fixed, Duplicate: sum.Duplicate,
		Invalid: sum.Invalid, Requests: plan.Requests, Jobs: plan.Jobs,
	}, nil
}

func (c *submitCmd) tell(out io.Writer, said submittedFile) error {
	if c.JSON {
		return json.NewEncoder(out).Encode(said)
	}
	_, err := fmt.Fprintf(out, "%d lines: %d accepted, %d fixed, %d duplicate, %d invalid\n",
		said.Submitted, said.Accepted, said.Fixed, said.Duplicate, said.Invalid)
	if err != nil {
		return err
	}
	verb := "nothing was submitted; it would be"
	if said.BatchID > 0 {
		verb = fmt.Sprintf("submitted as batch %d:", said.BatchID)
	}
	_, err = fmt.Fprintf(out, "%s %s in %s\n", verb, manyOf(said.Requests, "request"), manyOf(said.Jobs, "job"))
	return err
}

// manyOf is "1 job" or "2 jobs".
func manyOf(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
