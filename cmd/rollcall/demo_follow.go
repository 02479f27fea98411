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

// follow shows the batches' progress as one until they have ended or ctx does. It returns the sum as last seen.
func (d *demo) follow(ctx context.Context, ids []int64, out io.Writer) (*store.Batch, error) {
	show := newProgress(out, d.now)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		sum, err := d.together(ctx, ids)
		if err != nil {
			return nil, err
		}
		done := sum.EndedAt != nil
		if err := show.paint(sum, done); err != nil || done {
			return sum, err
		}
		select {
		case <-ctx.Done():
			return sum, ctx.Err()
		case <-tick.C:
		}
	}
}

// together adds the batches up to one, which has ended when all of them have.
func (d *demo) together(ctx context.Context, ids []int64) (*store.Batch, error) {
	sum, open := &store.Batch{}, false
	for _, id := range ids {
		b, err := d.store.Batch(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("look at batch %d: %w", id, err)
		}
		for _, each := range []struct{ to, from *int64 }{
			{&sum.Submitted, &b.Submitted},
			{&sum.Invalid, &b.Invalid},
			{&sum.Duplicate, &b.Duplicate},
			{&sum.Accepted, &b.Accepted},
			{&sum.StoredWebhook, &b.StoredWebhook},
			{&sum.StoredPoll, &b.StoredPoll},
			{&sum.StoredReconcile, &b.StoredReconcile},
			{&sum.StoredReplay, &b.StoredReplay},
			{&sum.StoredSync, &b.StoredSync},
			{&sum.Failed, &b.Failed},
			{&sum.Cancelled, &b.Cancelled},
			{&sum.Outstanding, &b.Outstanding},
		} {
			*each.to += *each.from
		}
		sum.EndedAt = b.EndedAt
		open = open || b.EndedAt == nil
	}
	if open {
		sum.EndedAt = nil
	}
	return sum, nil
}

// finalBatch reads the batches once more when following them was cut short.
func (d *demo) finalBatch(ctx context.Context, ids []int64, seen *store.Batch) (*store.Batch, error) {
	if seen != nil && seen.EndedAt != nil {
		return seen, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalTimeout)
	defer cancel()
	return d.together(ctx, ids)
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
