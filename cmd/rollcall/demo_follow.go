package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"rollcall/store"
)

const (
	followEvery  = 200 * time.Millisecond
	lineEvery    = 5 * time.Second // Between two lines where there is no terminal to paint on.
	barWidth     = 30
	finalTimeout = 30 * time.Second
)

// follow shows the batch's progress until nothing of it is outstanding or ctx ends. It returns the batch as last seen.
func (d *demo) follow(ctx context.Context, id int64, out io.Writer) (*store.Batch, error) {
	show := newProgress(out, d.now)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		batch, err := d.store.Batch(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("look at batch %d: %w", id, err)
		}
		if err := show.paint(batch, batch.Outstanding == 0); err != nil || batch.Outstanding == 0 {
			return batch, err
		}
		select {
		case <-ctx.Done():
			return batch, ctx.Err()
		case <-tick.C:
		}
	}
}

// finalBatch reads the batch once more when following it was cut short.
func (d *demo) finalBatch(ctx context.Context, id int64, seen *store.Batch) (*store.Batch, error) {
	if seen != nil && seen.Outstanding == 0 {
		return seen, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalTimeout)
	defer cancel()
	batch, err := d.store.Batch(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("look at batch %d: %w", id, err)
	}
	return batch, nil
}

// progress is a bar on a terminal, and a line now and then elsewhere.
type progress struct {
	out      io.Writer
	now      func() time.Time
	terminal bool
	started  time.Time
	printed  time.Time
}

func newProgress(out io.Writer, now func() time.Time) *progress {
	return &progress{out: out, now: now, terminal: isTerminal(out), started: now()}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// paint shows the batch; the last time in any case.
func (p *progress) paint(batch *store.Batch, last bool) error {
	now := p.now()
	if !p.terminal && !last && now.Sub(p.printed) < lineEvery {
		return nil
	}
	p.printed = now
	line := progressLine(batch, now.Sub(p.started))
	switch {
	case !p.terminal, last:
		line += "\n"
	}
	if p.terminal {
		line = "\r\x1b[K" + line
	}
	if _, err := io.WriteString(p.out, line); err != nil {
		return fmt.Errorf("show the progress: %w", err)
	}
	return nil
}

func progressLine(b *store.Batch, took time.Duration) string {
	answered := b.Accepted - b.Outstanding
	full := barWidth
	if b.Accepted > 0 {
		full = int(barWidth * answered / b.Accepted)
	}
	return fmt.Sprintf("[%s%s] %d/%d  stored %d  failed %d  outstanding %d  %.0f s", strings.Repeat("#", full),
		strings.Repeat(".", barWidth-full), answered, b.Accepted, b.Stored(), b.Failed, b.Outstanding, took.Seconds())
}

// stay serves until ctx ends, which is how a person ends the demo.
func (d *demo) stay(ctx context.Context, out io.Writer) error {
	if _, err := fmt.Fprintln(out, "Serving until Ctrl-C."); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-d.private.Done():
		return fmt.Errorf("the private Postgres ended: %w", d.private.Err())
	}
}
