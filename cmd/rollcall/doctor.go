package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"rollcall/internal/pipeline"
)

// doctorCmd looks at everything that must be right for jobs to come home. It changes nothing but what it learns of
// the webhooks' state at the vendor.
type doctorCmd struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// finding is what one check came to. A check that another's failure made impossible is skipped, which is no problem
// of its own.
type finding struct {
	Check   string   `json:"check"`
	Status  string   `json:"status"` // ok, problem or skipped.
	Detail  string   `json:"detail"`
	Problem []string `json:"problems,omitempty"`
}

// The states of a finding.
const (
	statusOK      = "ok"
	statusProblem = "problem"
	statusSkipped = "skipped"
)

// diagnosis is what doctor prints.
type diagnosis struct {
	OK     bool      `json:"ok"`
	Checks []finding `json:"checks"`
}

// Run makes all checks, prints a line for each, and exits with 1 when there is a problem.
func (c *doctorCmd) Run(ctx context.Context, a *app) error {
	d := &doctor{stack: newStack(a.config, a.log, a.now)}
	d.examine(ctx)
	if err := d.close(ctx); err != nil {
		d.note("shutdown", "", err)
	}
	result := diagnosis{OK: true, Checks: d.findings}
	for _, f := range d.findings {
		result.OK = result.OK && f.Status != statusProblem
	}
	if err := c.print(a.out, result); err != nil {
		return err
	}
	if !result.OK {
		return exitError(1)
	}
	return nil
}

func (c *doctorCmd) print(out io.Writer, result diagnosis) error {
	if c.JSON {
		return json.NewEncoder(out).Encode(result)
	}
	var b strings.Builder
	for _, f := range result.Checks {
		if f.Status != statusProblem {
			fmt.Fprintf(&b, "%-8s %-12s %s\n", f.Status, f.Check, f.Detail)
		}
		for _, problem := range f.Problem {
			fmt.Fprintf(&b, "%-8s %-12s %s\n", f.Status, f.Check, problem)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// doctor makes the checks, each on what the ones before it built.
type doctor struct {
	*stack
	findings []finding
}

// note adds what a check came to: the detail, or every problem that err joins.
func (d *doctor) note(check, detail string, err error) bool {
	f := finding{Check: check, Status: statusOK, Detail: detail}
	if err != nil {
		f.Status, f.Detail = statusProblem, ""
		f.Problem = strings.Split(strings.TrimSpace(err.Error()), "\n")
	}
	d.findings = append(d.findings, f)
	return err == nil
}

// skip adds the checks that can't be made.
func (d *doctor) skip(why string, checks ...string) {
	for _, check := range checks {
		d.findings = append(d.findings, finding{Check: check, Status: statusSkipped, Detail: why})
	}
}

// examine makes the checks in the order in which they depend on each other.
func (d *doctor) examine(ctx context.Context) {
	d.note("settings", "they can be read and agree with each other", errors.Join(d.config.Check(), d.config.requireVendor()))
	stored := d.examineDatabase(ctx)
	vendor := d.examineVendor(ctx)
	d.examinePublicURL(ctx)
	if !stored {
		d.skip("needs the database", "secret key", "webhooks", "roll call")
		return
	}
	d.examineRollCall(ctx)
	if d.vendor == nil {
		d.skip("needs the vendor's client", "secret key", "webhooks")
		return
	}
	err := d.openPipeline(ctx, func(c *pipeline.Config) { c.OnlySubmit = true })
	if err == nil {
		err = d.pipeline.CheckSecrets(ctx)
	}
	if !d.note("secret key", "it opens the webhook secrets that are stored", err) && d.pipeline == nil {
		d.skip("needs the secret key", "webhooks")
		return
	}
	if !vendor {
		d.skip("needs the vendor", "webhooks")
		return
	}
	d.examineWebhooks(ctx)
}
