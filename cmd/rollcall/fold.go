package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Bounds of folding.
const (
	// foldAfter is how many warnings of one text are shown before it is folded.
	foldAfter = 3
	// foldFirst and foldLongest are the lengths of windows: they double for as long as a text comes again and again.
	foldFirst   = 10 * time.Second
	foldLongest = 5 * time.Minute
	// foldTexts bounds how many texts are kept an eye on.
	foldTexts = 1000
)

// foldRepeats makes a logger that keeps the log readable while something goes wrong over and over, such as every turn of
// every worker while the database is away: of warnings and errors with the same text it passes the first few and then, at
// ever longer intervals, the latest with the number of those left out. What somebody was given an error id for is never
// left out. The function it returns tells what is still left out, and ends the folding.
func foldRepeats(log *slog.Logger) (*slog.Logger, func()) {
	f := &folding{texts: make(map[string]*repeated)}
	return slog.New(foldHandler{log.Handler(), f}), f.flush
}

// foldHandler is a slog.Handler that folds.
type foldHandler struct {
	slog.Handler
	folding *folding
}

// folding is what all handlers made of one share.
type folding struct {
	mu    sync.Mutex
	texts map[string]*repeated
	ended bool
}

// repeated is one text that came lately.
type repeated struct {
	passed int
	left   int  // Records left out since the last that was passed.
	came   bool // In this window.
	latest slog.Record
	to     slog.Handler
	window time.Duration
	timer  *time.Timer
}

// Handle implements slog.Handler.
func (h foldHandler) Handle(ctx context.Context, r slog.Record) error {
	foldable := r.Level >= slog.LevelWarn && !hasErrorID(r)
	if foldable && h.folding.leaves(h.Handler, r) { //nolint:contextcheck // What is left out is told long after its context.
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h foldHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return foldHandler{h.Handler.WithAttrs(attrs), h.folding}
}

// WithGroup implements slog.Handler.
func (h foldHandler) WithGroup(name string) slog.Handler {
	return foldHandler{h.Handler.WithGroup(name), h.folding}
}

func hasErrorID(r slog.Record) bool {
	found := false
	r.Attrs(func(a slog.Attr) bool {
		found = a.Key == "error_id"
		return !found
	})
	return found
}

// leaves reports whether the record is to be left out, and keeps it as the latest of its text.
func (f *folding) leaves(to slog.Handler, r slog.Record) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := r.Level.String() + " " + r.Message
	t := f.texts[key]
	if t == nil {
		if !f.ended && len(f.texts) < foldTexts {
			f.texts[key] = &repeated{passed: 1, came: true, window: foldFirst, timer: time.AfterFunc(foldFirst, func() { f.turn(key) })}
		}
		return false
	}
	t.came = true
	if t.passed < foldAfter {
		t.passed++
		return false
	}
	t.left++
	t.latest, t.to = r.Clone(), to
	return true
}

// turn ends a window: what was left out is told, and the next window is longer; a text that came no more is forgotten.
func (f *folding) turn(key string) {
	f.mu.Lock()
	t := f.texts[key]
	if t == nil || !t.came {
		delete(f.texts, key)
		f.mu.Unlock()
		return
	}
	tell := t.tell()
	t.came = false
	t.window = min(2*t.window, foldLongest)
	t.timer.Reset(t.window)
	f.mu.Unlock()
	tell()
}

// tell makes a function that logs the latest record with the number of those left out, if any were. The caller holds mu.
func (t *repeated) tell() func() {
	if t.left == 0 {
		return func() {}
	}
	r, to := t.latest, t.to
	r.AddAttrs(slog.Int("times", t.left), slog.Duration("within", t.window))
	t.left = 0
	return func() { _ = to.Handle(context.Background(), r) } // As slog itself, which has nowhere to tell it.
}

// flush tells what is left out and ends the folding.
func (f *folding) flush() {
	f.mu.Lock()
	var tell []func()
	for _, t := range f.texts {
		t.timer.Stop()
		tell = append(tell, t.tell())
	}
	clear(f.texts)
	f.ended = true
	f.mu.Unlock()
	for _, do := range tell {
		do()
	}
}
