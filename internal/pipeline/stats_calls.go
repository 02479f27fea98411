package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// flushEvery is how often a process writes down how many calls it made.
const flushEvery = 10 * time.Second

// flushLoop writes the calls down until ctx ends.
func (p *Pipeline) flushLoop(ctx context.Context) { p.every(ctx, flushEvery, p.FlushCalls) }

// FlushCalls adds the calls that the vendor's client made since the last time
// to the counts of their hours. It is done each ten seconds and as the pipeline
// stops; a process that is killed takes the calls of its last ten seconds with
// it, so the counts may be a little low and are never too high. Commands that
// open no pipeline, such as doctor, aren't counted. What was called before is
// written when it returns, also by a turn that was under way.
func (p *Pipeline) FlushCalls(ctx context.Context) error {
	p.flushing.Lock()
	defer p.flushing.Unlock()
	if _, err := p.countingSince(ctx); err != nil {
		return err
	}
	taken := p.vendor.TakeCalls()
	counts := make([]store.CallCount, len(taken))
	for i, each := range taken {
		counts[i] = store.CallCount{Hour: each.Hour, Kind: each.Kind, N: each.N}
	}
	if err := p.store.AddCalls(ctx, counts); err != nil {
		p.vendor.GiveBackCalls(taken)
		return fmt.Errorf("write down how many calls were made: %w", err)
	}
	return nil
}

// flushLast writes down what was called since the last turn of the loop.
func (p *Pipeline) flushLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := p.FlushCalls(ctx); err != nil {
		p.log.WarnContext(ctx, "last calls not counted", slog.Any("error", err))
	}
}

// VendorAhead is how far the vendor's clock is ahead of ours, by the Date of its
// last answer to this process, which is good to a second; false before any.
func (p *Pipeline) VendorAhead() (time.Duration, bool) {
	p.clock.mu.Lock()
	defer p.clock.mu.Unlock()
	return p.clock.offset, p.clock.heard
}

// AskingCall reports calls of a kind that are made to learn what became of jobs
// and to read their results. The others are needed whoever asks.
func AskingCall(kind string) bool {
	return kind != geonode.CallSubmit && kind != geonode.CallSync && kind != geonode.CallCancel
}

// OwnCall reports calls that are made for one job alone. The other asking calls
// watch over all jobs at once.
func OwnCall(kind string) bool { return kind == geonode.CallStatus || kind == geonode.CallPage }

const (
	// watchCalls is what one turn of the watch takes where little is going on: a
	// page of each list, the webhooks, a page of each one's log.
	watchCalls = 7
	// watchWindow is for how long a job stays in the lists that are read,
	// watchPage how many are on a page of them, and watchReadings how often a turn
	// reads a list of several pages.
	watchWindow   = 48 * time.Hour
	watchPage     = 100
	watchReadings = 2
)

// WatchPaysFrom is from how many jobs a day on it takes fewer calls to watch over
// all of them at once, a turn every so often, than to ask for each by itself in
// so many calls; zero when no number of jobs makes up for that. Either way a job
// costs one call that brings its result, and in the lists each job takes its
// part of a page as often as they are read. Batches and crawls have results of
// several pages, which both ways read.
func WatchPaysFrom(every time.Duration, alone float64) int64 {
	turns := 24 * time.Hour.Seconds() / every.Seconds()
	saved := alone - 1 - watchReadings*watchWindow.Seconds()/every.Seconds()/watchPage
	if saved <= 0 {
		return 0
	}
	return int64(math.Ceil(watchCalls * turns / saved))
}
