package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
)

// The demo is in a hurry: its vendor answers within a second, and nobody wants to watch a poller wait.
const (
	demoURLsPerJob = 50
	demoRunTime    = 500 * time.Millisecond // Of a page, when somebody watches.
	demoRPS        = 500
	demoCalls      = 8
	// registerFor is how long a vendor full of faults is asked for its webhooks, and registerEvery how often.
	registerFor, registerEvery = 30 * time.Second, 500 * time.Millisecond
	// demoMissingGap is longer than the sandbox's rows can be late.
	demoMissingGap = 3 * time.Second
	// demoGiveUpAfter ends the jobs of a vendor that never ends some, or loses many: long enough for all others, which
	// takes longer when it has other faults besides.
	demoGiveUpAfter, demoGiveUpLate = 2 * time.Minute, 6 * time.Minute
)

// demo is a stack with its vendor.
type demo struct {
	*stack
	sandbox *sandbox.Sandbox
	url     string // Of the dashboard.
	people  []person
}

// open builds the demo from the bottom up. On an error nothing of it is left.
func (c *demoCmd) open(ctx context.Context, a *app) (*demo, error) {
	if err := loopbackOnly(a.config.Listen); err != nil {
		return nil, err
	}
	config, err := c.settings(a.config)
	if err != nil {
		return nil, err
	}
	d := &demo{stack: newStack(config, a.log, a.now)}
	if err := c.build(ctx, a, d); err != nil {
		return nil, errors.Join(err, d.close(ctx))
	}
	return d, nil
}

// settings are those of the demo: what the environment says of a real installation must not leak into it.
func (c *demoCmd) settings(given *Config) (*Config, error) {
	config := *given
	config.DatabaseURL, config.SecretKey, config.PublicURL = "", "", ""
	config.GeonodeScraperAPIKey = "demo-" + rand.Text()
	config.VendorRPS, config.VendorConcurrency, config.VendorTimeout = demoRPS, demoCalls, 10*time.Second
	config.URLsPerJob = demoURLsPerJob
	config.PollFirst, config.PollCap, config.WebhookFallback = 500*time.Millisecond, 3*time.Second, 3*time.Second
	config.ReconcileEvery, config.ReconcileOlderThan = 2*time.Second, time.Second
	config.Mode = string(pipeline.ModeAuto)
	if !c.net("webhook") {
		config.Mode = string(pipeline.ModePoll)
	} else {
		config.ReconcileOlderThan = 4 * time.Second // Late deliveries get their chance.
	}
	if c.Data != "" {
		return &config, config.DataDir.UnmarshalText([]byte(c.Data))
	}
	config.DataDir = "" // A temporary folder, made by build.
	return &config, nil
}

func (c *demoCmd) build(ctx context.Context, a *app, d *demo) error {
	if d.config.DataDir == "" {
		if err := d.temporaryDataDir(); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(a.err, "Starting a private Postgres in", d.config.DataDir); err != nil {
		return err
	}
	if err := d.ownDatabase(ctx); err != nil {
		return err
	}
	if err := d.openStore(ctx); err != nil {
		return err
	}
	if err := c.openSandbox(ctx, d); err != nil {
		return err
	}
	if err := d.openVendor(); err != nil {
		return err
	}
	return c.serve(ctx, a, d)
}

// serve opens the dashboard with the webhook endpoint, and what is behind it.
func (c *demoCmd) serve(ctx context.Context, a *app, d *demo) error {
	listener, err := listenNear(ctx, d.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", d.config.Listen, err)
	}
	front := openDoor(listener, d.log, d.now)
	d.onClose("server", front.close)
	d.url = front.url()
	if got, want := listener.Addr().String(), d.config.Listen; got != want && !strings.HasSuffix(want, ":0") {
		if _, err := fmt.Fprintf(a.err, "%s is taken; using %s instead.\n", want, got); err != nil {
			return err
		}
	}
	if c.net("webhook") {
		d.config.PublicURL = d.url
	}
	if err := c.openPipeline(ctx, d); err != nil {
		return err
	}
	if err := d.openWeb(front); err != nil { //nolint:contextcheck // A request's context is its own.
		return err
	}
	front.admit(d.web.Handler())
	if c.net("webhook") {
		return d.registerWebhooks(ctx)
	}
	return nil
}

// openSandbox starts the vendor on a port of its own.
func (c *demoCmd) openSandbox(ctx context.Context, d *demo) error {
	faults, err := readFaults(c.Faults)
	if err != nil {
		return err
	}
	cfg := sandbox.Config{
		Now: d.now, Logger: d.log, Seed: c.Seed, Faults: faults, AllowPrivate: c.AllowPrivate, PagesChange: c.PagesChange,
		APIKeys: map[string]string{d.config.GeonodeScraperAPIKey: sandbox.DefaultAccount},
	}
	if !c.Once {
		cfg.RunTime = demoRunTime
	}
	box, err := sandbox.New(cfg)
	if err != nil {
		return err
	}
	d.onClose("sandbox", box.Shutdown)
	d.sandbox = box
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	vendor := openDoor(listener, d.log, d.now)
	vendor.admit(box.Handler())
	d.onClose("sandbox's server", vendor.close)
	d.config.ScraperAPIBaseURL = vendor.url()
	return nil
}

// giveUpAfter is soon with faults of which only giving up makes an end; else it is the default.
func (c *demoCmd) giveUpAfter() time.Duration {
	faults, err := readFaults(c.Faults)
	switch {
	case err != nil || faults[sandbox.FaultNever]+faults[sandbox.FaultForget] == 0:
		return 0
	case len(faults) > 1:
		return demoGiveUpLate
	}
	return demoGiveUpAfter
}

// openPipeline starts the pipeline with the nets that are on.
func (c *demoCmd) openPipeline(ctx context.Context, d *demo) error {
	return d.openPipeline(ctx, func(cfg *pipeline.Config) {
		cfg.NoPoll, cfg.NoReconcile = !c.net("poll"), !c.net("reconcile")
		cfg.PollTick, cfg.ListEvery = 200*time.Millisecond, 500*time.Millisecond
		cfg.RetryGaps = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}
		cfg.MissingGap, cfg.AdoptGap, cfg.ProbeEvery = demoMissingGap, 5*time.Second, time.Second/2
		cfg.CancelGrace, cfg.ForgottenAfter = demoMissingGap, 5*time.Second
		cfg.GiveUpAfter = c.giveUpAfter()
	})
}

// registerWebhooks registers the three event types. What an earlier demo in the same folder registered, this vendor
// doesn't know, and the check finds out. A vendor whose faults keep it from answering is asked again for a while.
func (d *demo) registerWebhooks(ctx context.Context) error {
	if err := d.pipeline.CheckWebhooks(ctx); err != nil {
		d.log.InfoContext(ctx, "webhooks of an earlier demo not checked", slog.Any("error", err))
	}
	ctx, cancel := context.WithTimeout(ctx, registerFor)
	defer cancel()
	tick := time.NewTicker(registerEvery)
	defer tick.Stop()
	for {
		_, err := d.pipeline.RegisterWebhooks(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
