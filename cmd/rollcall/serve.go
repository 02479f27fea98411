package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"

	"rollcall/internal/pipeline"
	"rollcall/web"
)

// The roles of a process.
const (
	roleWeb    = "web"
	roleWorker = "worker"
)

// serveCmd is the server: pages, webhook endpoint and background work, or the part of these that the role names.
type serveCmd struct {
	Hurry bool `hidden:"" help:"Waits that are minutes are seconds: for the drill."`
}

// Run serves until ctx ends, then finishes what is in flight. A process that ends in order returns nil.
func (c *serveCmd) Run(ctx context.Context, a *app) error {
	if err := errors.Join(a.check(), a.config.requireVendor()); err != nil {
		return err
	}
	a.config.logSettings(ctx, a.log)
	folded, flush := foldRepeats(a.log)
	defer flush()
	hooks, err := drillHooks(a.now, processEnv)
	if err != nil {
		return err
	}
	s := newStack(a.config, folded, hooks.now)
	s.hooks, s.hurry = hooks, c.Hurry
	err = serve(ctx, s)
	a.log.InfoContext(ctx, "stopping", slog.Duration("grace", a.config.ShutdownGrace))
	if err := errors.Join(err, s.close(ctx)); err != nil {
		return err
	}
	a.log.InfoContext(ctx, "stopped")
	return nil
}

// serve builds the stack behind an open port, which answers 503 until all is there, and waits for the end.
func serve(ctx context.Context, s *stack) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.config.Listen, err)
	}
	front := openDoor(listener, s.log, s.now)
	s.onClose("server", front.close)
	if err := s.openAll(ctx, front); err != nil {
		return unlessEnding(ctx, err)
	}
	if err := s.announce(ctx, front); err != nil {
		return unlessEnding(ctx, err)
	}
	return s.untilEnd(ctx, front)
}

// unlessEnding is err, or nil when the process was told to end before it had begun: then the start was cut short on
// purpose.
func unlessEnding(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// openAll builds what this process's role needs and lets requests in.
func (s *stack) openAll(ctx context.Context, front *door) error {
	if err := s.ownDatabase(ctx); err != nil {
		return err
	}
	if err := s.openStore(ctx); err != nil {
		return err
	}
	if err := s.openVendor(); err != nil {
		return err
	}
	onlySubmit := s.config.Role == roleWeb
	if err := s.openPipeline(ctx, func(c *pipeline.Config) {
		c.OnlySubmit = onlySubmit
		if s.hurry {
			hurry(c)
		}
	}); err != nil {
		return err
	}
	if s.config.Role == roleWorker {
		front.admit(s.workerHealth())
		return nil
	}
	if err := s.openWeb(front); err != nil { //nolint:contextcheck // A request's context is its own.
		return err
	}
	front.admit(s.web.Handler())
	return nil
}

// announce logs where to go, and how the first admin comes in.
func (s *stack) announce(ctx context.Context, front *door) error {
	base := front.url()
	s.log.InfoContext(ctx, "ready", slog.String("role", s.config.Role), slog.String("open", base))
	if s.web == nil {
		return nil
	}
	if s.config.simulated() {
		s.log.WarnContext(ctx, "the vendor is simulated", slog.String("base_url", s.config.ScraperAPIBaseURL))
	}
	token, err := s.web.EnsureSetupToken(ctx)
	if err != nil || token == "" {
		return err
	}
	if s.config.PublicURL != "" {
		base = s.config.publicBase()
	}
	s.log.InfoContext(ctx, "nobody has an account: open this address once to make the first admin",
		slog.String("open", base+"/setup?token="+url.QueryEscape(token)))
	return nil
}

// untilEnd returns nil when ctx ends, or what ended the process without being asked.
func (s *stack) untilEnd(ctx context.Context, front *door) error {
	var database <-chan struct{}
	if s.private != nil {
		database = s.private.Done()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-front.ended:
		return fmt.Errorf("the server ended: %w", front.failure)
	case <-database:
		return fmt.Errorf("the private Postgres ended: %w", s.private.Err())
	}
}

// workerHealth is all that a process without pages serves.
func (s *stack) workerHealth() http.Handler {
	mux := http.NewServeMux()
	health := web.Health{
		Store: s.store, Workers: s.pipeline.WorkersHealthy, Schema: s.schemaReady(), Log: s.log, Version: thisRelease().Version,
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		s.answerHealth(r.Context(), w, http.StatusOK, map[string]any{"status": "ok", "version": thisRelease().Version})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ready := health.Check(r.Context())
		s.answerHealth(r.Context(), w, ready.Status(), ready)
	})
	return mux
}

func (s *stack) answerHealth(ctx context.Context, w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.log.DebugContext(ctx, "health answer not sent", slog.Any("error", err))
	}
}
