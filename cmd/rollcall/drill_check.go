package main

import (
	"context"
	"fmt"
	"slices"

	"rollcall/internal/sandbox"
	"rollcall/store"
)

// findings are what the roll call of a drill found wrong, counted by kind and told in words.
type findings struct {
	Lost, Doubled, WrongContent, Imbalance, Stuck int
	told                                          []string
	charges                                       charges
}

func (f *findings) tell(count *int, n int, format string, args ...any) {
	*count += n
	f.told = append(f.told, fmt.Sprintf(format, args...))
}

// check holds everything that was submitted against the rows, and the rows against the vendor's books, URL by URL and
// sum by sum.
func (d *drill) check(ctx context.Context, books sandbox.Books) (*findings, error) {
	f := &findings{}
	d.mu.Lock()
	batches := slices.Clone(d.batches)
	d.mu.Unlock()
	truth := newTruth(books)
	var answers []answer
	for i := range batches {
		b, err := d.store.Batch(ctx, batches[i].id)
		if err != nil {
			return nil, fmt.Errorf("look at batch %d: %w", batches[i].id, err)
		}
		f.counters(&batches[i], b)
		differences, _, err := d.store.RecountBatches(ctx, b.ID-1, 1)
		if err != nil {
			return nil, fmt.Errorf("recount batch %d: %w", b.ID, err)
		}
		for _, r := range differences {
			f.tell(&f.Imbalance, 1, "batch %d counts %s %d, its rows say %d", r.BatchID, r.Column, r.Counter, r.Rows)
		}
		some, err := readAnswers(ctx, d.store.SQL(), b.ID)
		if err != nil {
			return nil, err
		}
		f.present(&batches[i], some)
		f.charges.known(truth, b, some)
		answers = append(answers, some...)
	}
	f.judge(books, answers)
	f.Imbalance += f.charges.miscounted
	if err := d.checkCharges(ctx, f, books, answers); err != nil {
		return nil, err
	}
	return f, d.checkOpen(ctx, f)
}

// checkOpen looks for what has not ended.
func (d *drill) checkOpen(ctx context.Context, f *findings) error {
	unended, err := d.unended(ctx)
	if err != nil || unended == 0 {
		return err
	}
	f.tell(&f.Stuck, int(unended), "%d batches or rotations have not ended", unended)
	lines, err := d.describeOpen(ctx)
	f.told = append(f.told, lines...)
	return err
}

// counters holds a batch's counters against what was submitted.
func (f *findings) counters(want *drillBatch, b *store.Batch) {
	if want.crawl == 0 && (b.Submitted != want.lines || b.Invalid != want.invalid || b.Duplicate != want.duplicate) {
		f.tell(&f.Imbalance, 1, "batch %d: %d lines with %d invalid and %d duplicate were submitted, it counts %d, %d and %d",
			b.ID, want.lines, want.invalid, want.duplicate, b.Submitted, b.Invalid, b.Duplicate)
	}
	for _, sum := range []struct {
		text      string
		got, want int64
	}{
		{"submitted is not invalid + duplicate + accepted", b.Submitted, b.Invalid + b.Duplicate + b.Accepted},
		{"accepted is not stored + failed + cancelled + outstanding", b.Accepted, b.Stored() + b.Failed + b.Cancelled + b.Outstanding},
	} {
		if sum.got != sum.want {
			f.tell(&f.Imbalance, 1, "batch %d: %s: %d is not %d", b.ID, sum.text, sum.got, sum.want)
		}
	}
}

// present looks for each URL that was submitted: it must be there, once.
func (f *findings) present(want *drillBatch, answers []answer) {
	times := make(map[string]int, len(answers))
	for _, a := range answers {
		times[a.url]++
	}
	for _, url := range want.urls {
		if times[url] == 0 {
			f.tell(&f.Lost, 1, "%s: was submitted in batch %d and is not there", url, want.id)
		}
	}
	for url, n := range times {
		if n > 1 {
			f.tell(&f.Doubled, n-1, "%s: is there %d times in batch %d", url, n, want.id)
		}
	}
	if want.crawl == 0 && len(times) > len(want.urls) {
		f.tell(&f.Doubled, len(times)-len(want.urls), "batch %d has %d URLs, %d were submitted", want.id, len(times), len(want.urls))
	}
}

// judge holds each answer against the vendor's books.
func (f *findings) judge(books sandbox.Books, answers []answer) {
	truth := newTruth(books)
	for _, a := range answers {
		problem := truth.judge(a)
		if problem == "" {
			continue
		}
		count := &f.Lost
		switch a.state {
		case string(store.ItemStored):
			count = &f.WrongContent
		case string(store.ItemOutstanding):
			count = &f.Stuck
		}
		f.tell(count, 1, "%s: %s", a.url, problem)
	}
	for _, line := range lostPages(books, answers) {
		f.tell(&f.Lost, 1, "%s", line)
	}
}
