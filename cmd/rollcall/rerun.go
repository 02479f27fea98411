package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// rerunCmd runs a batch again, or only its failures, as a new batch tied to it.
type rerunCmd struct {
	Batch    int64  `arg:"" help:"Number of the batch, as in its page's address."`
	Failures bool   `help:"Run only what failed and was not resolved."`
	Name     string `help:"Name of the new batch. Default: the old one's, with (again)."`
	DryRun   bool   `help:"Say what it would come to, and do nothing."`
	JSON     bool   `name:"json" help:"Print one JSON object."`
}

// rerunSaid is what the command says.
type rerunSaid struct {
	Of       int64  `json:"of"`
	Name     string `json:"name"`
	URLs     int64  `json:"urls"`
	Jobs     int64  `json:"jobs"`
	Requests int64  `json:"requests"`           // At most.
	Resolved int64  `json:"resolved"`           // Failures that are left out.
	BatchID  int64  `json:"batch_id,omitempty"` // Absent when nothing was made.
}

// Run makes the new batch. It needs no vendor to answer: the running server makes the calls. It ends with 1 when there
// is nothing to run again.
func (c *rerunCmd) Run(ctx context.Context, a *app) error {
	if err := errors.Join(a.check(), a.config.requireVendor()); err != nil {
		return err
	}
	return a.withStore(ctx, func(ctx context.Context, s *stack) error {
		if err := s.openVendor(); err != nil {
			return err
		}
		if err := s.openPipeline(ctx, func(p *pipeline.Config) { p.OnlySubmit = true }); err != nil {
			return err
		}
		said, err := c.rerun(ctx, s)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no batch %d", c.Batch)
		}
		if err != nil {
			return err
		}
		return c.print(a.out, said)
	})
}

func (c *rerunCmd) rerun(ctx context.Context, s *stack) (rerunSaid, error) {
	plan, err := s.pipeline.PlanRerun(ctx, c.Batch, c.Failures)
	if err != nil {
		return rerunSaid{}, err
	}
	said := rerunSaid{
		Of: c.Batch, Name: plan.Name, URLs: plan.URLs, Jobs: plan.Jobs, Requests: plan.Requests, Resolved: plan.Resolved,
	}
	if c.Name != "" {
		said.Name = c.Name
	}
	if c.DryRun {
		return said, nil
	}
	done, err := s.pipeline.Rerun(ctx, pipeline.Again{BatchID: c.Batch, Failures: c.Failures, Name: c.Name})
	said.BatchID, said.URLs = done.BatchID, done.Accepted
	return said, err
}

func (c *rerunCmd) print(out io.Writer, said rerunSaid) error {
	if c.JSON {
		return json.NewEncoder(out).Encode(said)
	}
	verb := "runs"
	if c.DryRun {
		verb = "would run"
	}
	made := "A new batch"
	if said.BatchID > 0 {
		made = fmt.Sprintf("Batch %d", said.BatchID)
	}
	_, err := fmt.Fprintf(out, "%s, %q, %s batch %d again. URLs: %d. Jobs: %d. Requests at most: %d.\n",
		made, said.Name, verb, said.Of, said.URLs, said.Jobs, said.Requests)
	if err == nil && said.Resolved > 0 {
		_, err = fmt.Fprintf(out, "Resolved failures that are left out: %d.\n", said.Resolved)
	}
	return err
}
