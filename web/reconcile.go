package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// runAtMost is how long an unfinished run counts as running; its process died
// when it takes longer.
const runAtMost = 10 * time.Minute

// reconcile is GET /reconcile.
func (s *Server) reconcile(c echo.Context) error {
	from, err := keyParam(c)
	if err != nil {
		return err
	}
	runs, err := s.store.PageRuns(c.Request().Context(), from, pageRows+1)
	if err != nil {
		return fmt.Errorf("list reconcile runs: %w", err)
	}
	runs, more := cut(runs, pageRows)
	props := views.ReconcileProps{Every: s.cfg.ReconcileEvery}
	last := ""
	for i := range runs {
		props.Runs = append(props.Runs, runRow(c.Request().Context(), &runs[i]))
		last = keyCursor(runs[i].StartedAt, runs[i].ID)
	}
	props.Live = from.ID == 0
	if from.ID == 0 && len(runs) > 0 {
		newest := &runs[0]
		props.Running = newest.FinishedAt == nil && s.now().Sub(newest.StartedAt) < runAtMost
		props.NextAt = s.nextRun(newest)
	}
	props.Pager = pager(c, cursorParam, more, last)
	if props.Layout, err = s.layout(c, "Reconcile", views.SectionReconcile); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Reconcile(props))
}

// nextRun is when the run after the newest one begins by itself.
func (s *Server) nextRun(newest *store.ReconcileRun) time.Time {
	next := newest.StartedAt.Add(s.cfg.ReconcileEvery)
	if now := s.now(); next.Before(now) {
		return now // It is due: the run before it takes longer than the gap.
	}
	return next
}

func runRow(ctx context.Context, run *store.ReconcileRun) views.ReconcileRow {
	row := views.ReconcileRow{
		ID: idText(run.ID), StartedAt: run.StartedAt, FinishedAt: orZero(run.FinishedAt),
		From: run.WindowStart, To: run.WindowEnd, Error: run.Note, By: runBy(ctx, run.Trigger),
	}
	if run.FinishedAt != nil {
		// Until then the numbers aren't known.
		row.Listed, row.Missing = views.Known(int64(run.Listed)), views.Known(int64(run.Missing))
		row.Refused, row.Held = views.Known(int64(run.Refused)), views.Known(int64(run.Held))
		row.Woken, row.Foreign = views.Known(int64(run.Woken)), views.Known(int64(run.ForeignJobs))
		row.Errors = views.Known(int64(run.Errors))
	}
	return row
}

func runBy(ctx context.Context, trigger string) string {
	switch trigger {
	case "person":
		return views.Textf(ctx, "a person")
	case "command":
		return views.Textf(ctx, "the command line")
	}
	return ""
}

// reconcileNow is POST /reconcile.
func (s *Server) reconcileNow(c echo.Context) error {
	if err := s.pipeline.ReconcileNow(c.Request().Context()); err != nil {
		return fmt.Errorf("reconcile now: %w", err)
	}
	if err := s.flash(c, "success", "A run is queued. What it finds shows here."); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/reconcile")
}

// resumeDispatch is POST /dispatch/resume.
func (s *Server) resumeDispatch(c echo.Context) error {
	if err := s.pipeline.ResumeDispatch(c.Request().Context()); err != nil {
		return fmt.Errorf("resume dispatch: %w", err)
	}
	if err := s.flash(c, "success", "Dispatch goes on. If the vendor still refuses the account, it pauses again."); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/")
}
