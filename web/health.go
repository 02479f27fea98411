package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
)

// readyWithin is how long the database may take to answer a readiness check.
const readyWithin = 2 * time.Second

// Readiness is the answer of /readyz. It tells the parts of a process apart,
// each "ok" or what is wrong with it in a word, and says in Problems what an
// operator should know; nothing of it tells of addresses, names or causes,
// which are in the log.
type Readiness struct {
	Ready    bool     `json:"ready"`
	Problems []string `json:"problems"`
	Web      string   `json:"web,omitempty"` // Empty where there are no pages.
	Database string   `json:"database"`
	Schema   string   `json:"schema"`
	Listener string   `json:"listener,omitempty"` // What live pages hear of changes by.
	Workers  string   `json:"workers"`
	Version  string   `json:"version,omitempty"`
}

// Health is what a process's readiness depends on.
type Health struct {
	Store *store.Store
	// Workers says what keeps the background work from running.
	Workers func() error
	// Schema says why this release can't run on the database as it is; nil when
	// nobody can tell. Not to reach the database is no reason.
	Schema func(context.Context) error
	// Listening reports whether live pages hear of changes; nil in a process
	// without pages.
	Listening func() bool
	Log       *slog.Logger
	Version   string
}

// Check asks every part. A process is not ready while it can't do what it is
// there for: without the database nothing goes, without the listener pages
// stand still, and without workers one that has no pages does nothing. Where
// there are pages they stand without workers, so these are only told of.
func (h Health) Check(ctx context.Context) *Readiness {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	r := &Readiness{Ready: true, Problems: []string{}, Database: "ok", Schema: "ok", Workers: "ok", Version: h.Version}
	away := h.Store.Ping(ctx)
	if away != nil {
		h.Log.WarnContext(ctx, "database not ready", slog.Any("error", away))
		r.Database, r.Schema = "unreachable", "unknown"
		r.wrong("the database can't be reached")
	} else {
		h.schema(ctx, r)
	}
	if h.Listening != nil {
		r.Web, r.Listener = "ok", "ok"
		h.listener(r, away != nil)
	}
	if err := h.Workers(); err != nil {
		h.Log.WarnContext(ctx, "workers not healthy", slog.Any("error", err))
		r.Workers = "stuck"
		r.Problems = append(r.Problems, "the background work is not running")
		r.Ready = r.Ready && h.Listening != nil
	}
	return r
}

// wrong adds a problem that the process can't do its work with.
func (r *Readiness) wrong(problem string) {
	r.Ready = false
	r.Problems = append(r.Problems, problem)
}

func (h Health) schema(ctx context.Context, r *Readiness) {
	if h.Schema == nil {
		return
	}
	if err := h.Schema(ctx); err != nil {
		h.Log.WarnContext(ctx, "schema not ready", slog.Any("error", err))
		r.Schema = "not of this release"
		r.wrong("the database's migrations are not those of this release")
	}
}

// listener is not told of beside a database that is away, which it follows.
func (h Health) listener(r *Readiness, away bool) {
	if h.Listening() {
		return
	}
	r.Listener = "not connected"
	if !away {
		r.wrong("live pages are not connected to the database's notifications")
	}
}

// Status is the status to answer with.
func (r *Readiness) Status() int {
	if r.Ready {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// healthz is GET /healthz: the process answers.
func (s *Server) healthz(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "ok", "version": s.cfg.Version})
}

// readyz is GET /readyz.
func (s *Server) readyz(c echo.Context) error {
	h := Health{
		Store: s.store, Workers: s.pipeline.WorkersHealthy, Schema: s.cfg.Schema, Listening: s.live.listening.Load,
		Log: s.log, Version: s.cfg.Version,
	}
	r := h.Check(c.Request().Context())
	return c.JSON(r.Status(), r)
}
