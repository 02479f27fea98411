package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

const (
	benchTick     = 500 * time.Millisecond // Between two turns: the pipeline's own default.
	benchLongest  = time.Hour              // Of the clock of a round; then something is wrong.
	benchSubmits  = 100_000                // Submits a second: the measurement begins when all are accepted.
	benchAccount  = "bench"
	benchStopTime = time.Minute
)

// benchClock is the time of the rounds. It stands still until it is put forward.
type benchClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *benchClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *benchClock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// pollByRollcall runs a round through the actual pipeline: it submits the jobs and then takes turn after turn, each as
// the loops of a server would, waiting for all that a turn caused before the clock goes on.
func pollByRollcall(ctx context.Context, s *stack, clock *benchClock, runs []time.Duration) (pollRow, error) {
	vendor := newBenchVendor(clock.now, runs)
	p, err := benchPipeline(s, clock, vendor)
	if err != nil {
		return pollRow{}, err
	}
	if err := p.Start(ctx); err != nil {
		return pollRow{}, err
	}
	err = benchTurns(ctx, p, clock, vendor)
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), benchStopTime)
	defer cancel()
	if err := errors.Join(err, p.Stop(stopCtx)); err != nil {
		return pollRow{}, err
	}
	return vendor.row(runs), nil
}

// benchPipeline has the defaults and no net but polling, of which the turns are ours.
func benchPipeline(s *stack, clock *benchClock, vendor *benchVendor) (*pipeline.Pipeline, error) {
	client, err := geonode.New(geonode.Config{
		BaseURL: "http://127.0.0.1", APIKey: benchAccount + "-" + rand.Text(), Now: clock.now, Transport: vendor,
	})
	if err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // It never fails.
	return pipeline.New(pipeline.Config{
		Store: s.store, Vendor: client, Logger: s.log, Now: clock.now, Key: key, Account: benchAccount,
		Mode: pipeline.ModePoll, NoPoll: true, NoReconcile: true, VendorRPS: benchSubmits, PollTick: benchTick,
	})
}

func benchTurns(ctx context.Context, p *pipeline.Pipeline, clock *benchClock, vendor *benchVendor) error {
	_, err := p.Submit(ctx, pipeline.Submission{
		Name: "bench poll", Kind: store.KindExtract, Text: strings.Join(vendor.urls(), "\n"),
		Options: pipeline.Options{Formats: []string{"markdown"}},
	})
	if err != nil {
		return err
	}
	if err := p.Idle(ctx); err != nil {
		return err
	}
	for took := time.Duration(0); vendor.left() > 0; took += benchTick {
		if took > benchLongest {
			return fmt.Errorf("%d jobs were not home after %s", vendor.left(), benchLongest)
		}
		clock.forward(benchTick)
		if err := benchTurn(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// benchTurn is one turn of each polling loop.
func benchTurn(ctx context.Context, p *pipeline.Pipeline) error {
	singly, err := p.Poll(ctx)
	if err != nil {
		return err
	}
	listed, err := p.ListPoll(ctx)
	if err != nil || singly+listed == 0 {
		return err
	}
	return p.Idle(ctx)
}
