package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"
)

const (
	// passingPatience is how long a start is tried again while what stands in its way goes away by itself.
	passingPatience = 20 * time.Second
	// maxDeaths is how often in a row the server may die young before it is given up.
	maxDeaths = 8
	// youth is the age from which a death counts as the first again.
	youth = time.Minute
)

// supervise starts the server, tells started how that went, and starts it again whenever it dies, until life ends.
func (s *Server) supervise(ctx, life context.Context, started chan<- error) {
	defer close(s.done)
	// The server is bound to the thread that starts it; see spawn. Ending locked ends the thread too.
	runtime.LockOSThread()
	err := s.launch(ctx)
	started <- err
	if err != nil {
		return
	}
	for deaths := 1; ; deaths++ {
		if err == nil {
			deaths = s.attend(life, deaths)
		} else if life.Err() == nil {
			s.log.ErrorContext(life, "database server can't be started again", slog.Int("deaths", deaths), slog.Any("error", err))
		}
		if deaths >= maxDeaths && life.Err() == nil {
			s.result = fmt.Errorf("the database server died %d times in a row", deaths)
			s.log.ErrorContext(life, "database server is given up", slog.Int("deaths", deaths))
			return
		}
		if !pause(life, min(s.pause<<(deaths-1), 5*time.Second)) {
			return
		}
		err = s.launch(life)
	}
}

// attend waits for the end of the server and returns which death in a row this is: deaths, or the first when it grew old.
func (s *Server) attend(life context.Context, deaths int) int {
	born := s.now()
	<-s.proc.exited // Only the supervising goroutine changes s.proc.
	if s.now().Sub(born) > youth {
		deaths = 1
	}
	if life.Err() == nil {
		s.log.ErrorContext(life, "database server died", slog.Int("pid", s.proc.pid()), slog.Int("deaths", deaths),
			slog.Any("error", s.proc.err), slog.String("said", s.proc.said.String()))
	}
	return deaths
}

// pause waits and tells whether ctx still lasts.
func pause(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// launch brings the folder in order and the server up. What goes away by itself is waited for.
func (s *Server) launch(ctx context.Context) error {
	if err := s.run.ensureData(ctx); err != nil {
		return err
	}
	deadline := s.now().Add(passingPatience)
	for {
		err := s.try(ctx)
		start, early := errors.AsType[*startError](err)
		if !early || !start.passing() || s.now().After(deadline) {
			return err
		}
		if !pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// try starts the server once; when it fails no process is left.
func (s *Server) try(ctx context.Context) error {
	if err := s.run.folder.takeOver(ctx); err != nil {
		return err
	}
	if err := s.run.configure(); err != nil {
		return err
	}
	proc, err := s.spawn(ctx)
	if err != nil {
		return err
	}
	err = proc.ready(ctx, s.folder)
	if err == nil {
		err = s.folder.ensureDatabase(ctx)
	}
	if err != nil {
		return errors.Join(err, proc.stop(context.WithoutCancel(ctx)))
	}
	return nil
}

// spawn starts the process unless Stop was called, so that Stop never overlooks one.
func (s *Server) spawn(ctx context.Context) (*postmaster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	proc, err := s.run.spawn()
	s.proc = proc
	return proc, err
}
