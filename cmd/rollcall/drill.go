package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
)

// drillCmd is a fire drill: real processes under load, killed and starved by a script, and a roll call at the end.
type drillCmd struct {
	URLs      int           `name:"urls" default:"600" help:"How many made pages to submit, in batches of every kind."`
	Processes int           `default:"2" help:"How many servers run side by side, 1 to 3."`
	Kills     int           `default:"20" help:"How often a server is ended: at random with SIGKILL or SIGTERM, or at a named step."`
	Rotate    time.Duration `placeholder:"EVERY" default:"15s" help:"Change the secret of every webhook this often. 0s: never."`
	Faults    string        `placeholder:"NAME=RATE,..." help:"What the vendor does wrong all the time and how often. Default: a few at a time, all in turn; none for nothing."`
	Switches  bool          `help:"Go through the sets of vendor switches that hold every pair of them, a set at a time."`
	Seed      uint64        `default:"1" help:"Decides the script."`
	JSON      bool          `name:"json" help:"Print one JSON object, the last line of standard output."`
	HTML      string        `name:"html" placeholder:"FILE" help:"Write a report to look at."`
	Keep      string        `placeholder:"DIR" help:"Keep the logs of all processes in this folder. Default: they are removed."`
	Deadline  time.Duration `default:"20m" help:"How long it may take; what is not answered for by then is stuck."`

	extra []string // Further variables of the processes, for tests.
}

// Help explains the report.
func (c *drillCmd) Help() string { return drillHelp }

// Run carries the drill out and ends with 1 when anything was lost, doubled, wrong, out of balance, stuck or unexplained.
func (c *drillCmd) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := c.tryPaths(); err != nil {
		return err
	}
	ctx, out, stop := untilCutOff(ctx, a.err)
	defer stop()
	attended := *a
	attended.err, a = out, &attended
	d, err := c.open(ctx, a)
	if err != nil {
		return err
	}
	report, err := d.run(ctx)
	err = errors.Join(err, d.close(ctx))
	if err != nil {
		return err
	}
	if err := c.tell(a, report); err != nil {
		return err
	}
	if !report.OK {
		return exitError(1)
	}
	return nil
}

// tell prints the report for people, and for programs where that is asked for.
func (c *drillCmd) tell(a *app, r *drillReport) error {
	if _, err := io.WriteString(a.err, r.text()); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if c.HTML != "" {
		if err := r.writeHTML(c.HTML); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := json.NewEncoder(a.out).Encode(r); err != nil {
			return fmt.Errorf("print the report: %w", err)
		}
	}
	return nil
}

// tryPaths tells before the drill, rather than after it, that nothing can be written there.
func (c *drillCmd) tryPaths() error {
	if c.Keep != "" {
		if err := os.MkdirAll(c.Keep, 0o700); err != nil {
			return fmt.Errorf("--keep: %w", err)
		}
	}
	if c.HTML == "" {
		return nil
	}
	_, before := os.Stat(c.HTML)
	file, err := os.OpenFile(c.HTML, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // The caller names it; it is to be looked at.
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	err = file.Close()
	if errors.Is(before, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(c.HTML))
	}
	return err
}

// check reports what is wrong with the flags, before anything is started for them.
func (c *drillCmd) check() error {
	var errs []error
	for _, n := range []struct {
		name       string
		value, max int
		min        int
	}{
		{"urls", c.URLs, pipeline.MaxLines, 20},
		{"processes", c.Processes, 3, 1},
		{"kills", c.Kills, 10_000, 0},
	} {
		if n.value < n.min || n.value > n.max {
			errs = append(errs, fmt.Errorf("--%s=%d: must be from %d to %d", n.name, n.value, n.min, n.max))
		}
	}
	if _, err := sandbox.ParseFaults(c.Faults); err != nil {
		errs = append(errs, fmt.Errorf("--faults: %w", err))
	}
	if c.Rotate < 0 || c.Rotate > 0 && c.Rotate < time.Second {
		errs = append(errs, fmt.Errorf("--rotate=%s: must be at least 1s, or 0s", c.Rotate))
	}
	if c.Deadline <= 0 {
		errs = append(errs, fmt.Errorf("--deadline=%s: must be above zero", c.Deadline))
	}
	return errors.Join(errs...)
}

// keepDir is the folder for logs and hooks, and whether it stays. One that stays is there since tryPaths.
func (c *drillCmd) keepDir() (string, bool, error) {
	if c.Keep == "" {
		dir, err := os.MkdirTemp("", "rollcall-drill-")
		if err != nil {
			return "", false, fmt.Errorf("folder of the logs: %w", err)
		}
		return dir, false, nil
	}
	return c.Keep, true, nil
}
