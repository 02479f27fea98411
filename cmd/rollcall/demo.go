package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// maxURLsFile bounds what is read from --urls-file.
const maxURLsFile = 64 << 20

// demoCmd is a whole Rollcall with a simulated vendor, and a batch or two to look at.
type demoCmd struct {
	Once         bool          `help:"Run to the end and exit: 0 when every URL is answered for as the vendor's own books say."`
	JSON         bool          `name:"json" help:"With --once: print the roll call as one JSON object, the last line of standard output."`
	URLs         int           `name:"urls" default:"300" help:"How many made pages to submit, or at most to crawl."`
	URLsFile     string        `name:"urls-file" type:"existingfile" help:"Submit the URLs of this file, one on each line, instead of made pages."`
	AllowPrivate bool          `help:"Let the simulated vendor fetch pages from loopback and private addresses."`
	Kind         string        `enum:"batch,extract,crawl,mixed" default:"batch" help:"The vendor's jobs to use: batch, extract, crawl, or mixed, which is all three: a tenth of the URLs is a crawl's."`
	Faults       string        `placeholder:"NAME=RATE,..." help:"What the vendor does wrong and how often, such as drop=0.1,dup=0.1; none for nothing. Default: a mix."`
	Rotate       time.Duration `placeholder:"EVERY" help:"Change the secret of every webhook this often while the batch runs. Default: never."`
	Nets         []string      `enum:"webhook,poll,reconcile" default:"webhook,poll,reconcile" help:"The nets that are on."`
	Seed         uint64        `default:"1" help:"Decides the pages and the faults."`
	PagesChange  float64       `default:"0.1" placeholder:"RATE" help:"Share of the made pages that changed a little since they were last submitted, from 0 to 1: what a batch that runs again finds changed."`
	Data         string        `placeholder:"DIR" help:"Folder to keep the database in. Default: a temporary one, removed on exit."`
	Timeout      time.Duration `default:"20m" help:"With --once: how long it may take."`
}

// Help implements kong.HelpProvider: where it listens is a setting of every command, which its flags don't show.
func (c *demoCmd) Help() string {
	return `It serves on 127.0.0.1:8080, or on the next free port when that is taken, and says where. To choose:

  rollcall demo --listen 127.0.0.1:9000
  make demo ARGS="--listen 127.0.0.1:9000"`
}

// Run sets everything up, submits the batch and shows how it fills.
func (c *demoCmd) Run(ctx context.Context, a *app) error {
	text, err := c.urls()
	if err := errors.Join(err, c.check()); err != nil {
		return err
	}
	a.log = quietly(a)
	d, err := c.open(ctx, a)
	if err != nil {
		return err
	}
	err = c.show(ctx, a, d, text)
	return errors.Join(err, d.close(ctx))
}

// quietly is the log of a demo. Its terminal is for the progress, and its faults are on purpose: unless more is asked
// for than by default, only errors are logged.
func quietly(a *app) *slog.Logger {
	return newLogger(a.err, a.config.loggedFrom("error"))
}

// loggedFrom is the settings with another least level of the log than the default, unless one was chosen.
func (c *Config) loggedFrom(level string) *Config {
	config := *c
	if config.LogLevel == "info" {
		config.LogLevel = level
	}
	return &config
}

// show submits the batches, follows them to their end, and says what came of them.
func (c *demoCmd) show(ctx context.Context, a *app, d *demo, text string) error {
	var by *int64
	limited, cancel := ctx, func() {}
	if c.Once {
		limited, cancel = context.WithTimeout(ctx, c.Timeout)
	} else {
		alice, err := d.addPeople(ctx)
		if err := errors.Join(err, d.introduce(a.err)); err != nil {
			return err
		}
		by = &alice
	}
	defer cancel()
	started := a.now()
	ids, err := c.submit(limited, d, text, by)
	if err != nil {
		return err
	}
	turning := d.rotateEvery(limited, c.Rotate)
	batch, err := d.follow(limited, ids, a.err)
	err = errors.Join(err, turning())
	if err != nil && ctx.Err() == nil && limited.Err() == nil {
		return err
	}
	if ctx.Err() != nil && !c.Once {
		_, err := fmt.Fprintln(a.err, "\nStopped before the batch was done.")
		return err
	}
	if batch, err = d.finalBatch(ctx, ids, batch); err != nil {
		return err
	}
	return c.conclude(ctx, a, d, ids, batch, a.now().Sub(started))
}

// conclude checks the batches against the vendor's books, prints the roll call and, without --once, goes on serving.
func (c *demoCmd) conclude(ctx context.Context, a *app, d *demo, ids []int64, batch *store.Batch, took time.Duration) error {
	books := d.sandbox.Books()
	problems, err := d.verify(ctx, ids, batch, books)
	if err != nil {
		return err
	}
	sum := summarize(batch, books, took)
	if sum.RefusedSecretLost, err = d.store.CountSecretLost(ctx); err != nil {
		return err
	}
	if _, err := io.WriteString(a.err, sum.text()); err != nil {
		return fmt.Errorf("print the roll call: %w", err)
	}
	if err := printProblems(a.err, problems); err != nil {
		return err
	}
	if c.JSON {
		if err := json.NewEncoder(a.out).Encode(sum); err != nil {
			return fmt.Errorf("print the roll call: %w", err)
		}
	}
	if c.Once {
		if len(problems) > 0 {
			return exitError(1)
		}
		return nil
	}
	return d.stay(ctx, a.err)
}

// check reports what is wrong with the other flags, before a database is started for them.
func (c *demoCmd) check() error {
	_, err := readFaults(c.Faults)
	if c.Rotate < 0 || c.Rotate > 0 && c.Rotate < time.Second {
		err = errors.Join(err, fmt.Errorf("--rotate=%s: must be at least 1s", c.Rotate))
	}
	if !(c.PagesChange >= 0 && c.PagesChange <= 1) { // NaN is neither.
		err = errors.Join(err, fmt.Errorf("--pages-change=%g: must be from 0 to 1", c.PagesChange))
	}
	if c.Timeout <= 0 {
		err = errors.Join(err, fmt.Errorf("--timeout=%s: must be above zero", c.Timeout))
	}
	if len(c.Nets) == 0 {
		err = errors.Join(err, errors.New("--nets: at least one must be on, or nothing comes home"))
	}
	return err
}

// urls is what is submitted, a URL a line.
func (c *demoCmd) urls() (string, error) {
	if c.URLsFile == "" {
		if c.URLs < 1 || c.URLs > pipeline.MaxLines {
			return "", fmt.Errorf("--urls=%d: must be from 1 to %d", c.URLs, pipeline.MaxLines)
		}
		return strings.Join(sandbox.MadeURLs(c.URLs, c.Seed), "\n"), nil
	}
	file, err := os.Open(c.URLsFile)
	if err != nil {
		return "", fmt.Errorf("--urls-file: %w", err)
	}
	defer func() { _ = file.Close() }() // It was only read.
	data, err := io.ReadAll(io.LimitReader(file, maxURLsFile+1))
	if err != nil {
		return "", fmt.Errorf("--urls-file: %w", err)
	}
	if len(data) > maxURLsFile {
		return "", fmt.Errorf("--urls-file %s is over %d MiB", c.URLsFile, maxURLsFile>>20)
	}
	return string(data), nil
}

func (c *demoCmd) net(name string) bool { return slices.Contains(c.Nets, name) }
