package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// readyWithin is how long the database may take to answer a readiness check.
const readyWithin = 2 * time.Second

// readiness tells the parts of a process apart.
type readiness struct {
	Ready    bool   `json:"ready"`
	Web      string `json:"web"`
	Database string `json:"database"`
	Workers  string `json:"workers"`
	Version  string `json:"version,omitempty"`
}

// healthz is GET /healthz: the process answers.
func (s *Server) healthz(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "ok", "version": s.cfg.Version})
}

// readyz is GET /readyz. Without the database no page can be served: 503. Stuck
// workers are told, but pages stand without them, so it stays 200.
func (s *Server) readyz(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyWithin)
	defer cancel()
	state := readiness{Ready: true, Web: "ok", Database: "ok", Workers: "ok", Version: s.cfg.Version}
	status := http.StatusOK
	if err := s.store.Ping(ctx); err != nil {
		s.log.WarnContext(ctx, "database not ready", slog.Any("error", err))
		state.Ready, state.Database, status = false, "unreachable", http.StatusServiceUnavailable
	}
	if err := s.pipeline.WorkersHealthy(); err != nil {
		s.log.WarnContext(ctx, "workers not healthy", slog.Any("error", err))
		state.Workers = "stuck"
	}
	return c.JSON(status, state)
}
