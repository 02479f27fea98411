package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

const schedulesPath = "/schedules"

// overdueAfter is how long after its time a schedule that nothing took up is
// shown as overdue.
const overdueAfter = time.Minute

// nextShown is how many of the next runs are shown.
const nextShown = 5

// schedules is GET /schedules.
func (s *Server) schedules(c echo.Context) error {
	below, err := placeParam(c, cursorParam, 0)
	if err != nil {
		return err
	}
	rows, err := s.store.PageSchedules(c.Request().Context(), below, pageRows+1)
	if err != nil {
		return fmt.Errorf("list schedules: %w", err)
	}
	rows, more := cut(rows, pageRows)
	var props views.SchedulesProps
	last := ""
	for i := range rows {
		props.Rows = append(props.Rows, s.scheduleRow(c.Request().Context(), &rows[i]))
		last = placeCursor(rows[i].ID)
	}
	props.Pager = pager(c, cursorParam, more, last)
	if props.Layout, err = s.layout(c, "Schedules", views.SectionSchedules); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Schedules(props))
}

func (s *Server) scheduleRow(ctx context.Context, r *store.ScheduleRow) views.ScheduleRow {
	return views.ScheduleRow{
		ID: idText(r.ID), Name: r.Name, Batch: views.Kin{ID: idText(r.TemplateBatchID), Name: r.Template}, When: pickedFrom(r.Cron).words(ctx),
		Zone: r.Zone, State: s.scheduleState(&r.Schedule), Next: orZero(r.NextAt), LastDue: orZero(r.LastDue),
		LastOutcome: string(orZero(r.LastOutcome)), LastBatch: idOrNone(r.LastBatch), By: r.By,
	}
}

func (s *Server) scheduleState(r *store.Schedule) string {
	switch {
	case r.RemovedAt != nil:
		return "removed"
	case r.PausedAt != nil:
		return "paused"
	case r.NextAt == nil:
		return "over"
	case r.NextAt.Before(s.now().Add(-overdueAfter)):
		return "overdue"
	}
	return "active"
}

// schedule is GET /schedules/{id}.
func (s *Server) schedule(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	from, err := keyParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	row, err := s.store.PageSchedule(ctx, id)
	if err != nil {
		return err
	}
	props := views.ScheduleProps{
		ScheduleRow: s.scheduleRow(ctx, row), Cron: row.Cron, CreatedAt: row.CreatedAt, PausedAt: orZero(row.PausedAt), PausedBy: row.PausedBy,
		RemovedAt: orZero(row.RemovedAt),
	}
	if row.RemovedAt == nil {
		props.Coming = s.nextRuns(c, row.Cron, row.Zone)
		if props.Going, err = s.goingBatch(ctx, &row.Schedule); err != nil {
			return err
		}
	}
	runs, err := s.store.PageScheduleRuns(ctx, id, from, pageRows+1)
	if err != nil {
		return fmt.Errorf("list the runs of schedule %d: %w", id, err)
	}
	runs, more := cut(runs, pageRows)
	last := ""
	for i := range runs {
		props.Runs = append(props.Runs, scheduleRun(&runs[i]))
		last = keyCursor(runs[i].DueAt, runs[i].ID)
	}
	props.Pager = pager(c, cursorParam, more, last)
	if props.Layout, err = s.layout(c, row.Name, views.SectionSchedules); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Schedule(props))
}

// goingBatch is the batch for which a run would be skipped now; nil when none
// is.
func (s *Server) goingBatch(ctx context.Context, r *store.Schedule) (*views.GoingBatch, error) {
	id := r.TemplateBatchID
	if r.LastBatchID != nil {
		id = *r.LastBatchID
	}
	b, err := s.store.Batch(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("the last batch of schedule %d: %w", r.ID, err)
	}
	if b.Outstanding == 0 {
		return nil, nil
	}
	return &views.GoingBatch{
		Kin: views.Kin{ID: idText(b.ID), Name: b.Name}, Outstanding: views.Known(b.Outstanding), Accepted: views.Known(b.Accepted),
	}, nil
}

func scheduleRun(r *store.ScheduleRunRow) views.ScheduleRun {
	run := views.ScheduleRun{
		Due: r.DueAt, Until: orZero(r.UntilAt), Times: views.Known(int64(r.Times)), At: r.At, Outcome: string(r.Outcome), Reason: sentence(r.Reason),
		PressedBy: r.PressedBy,
	}
	if r.BatchID != nil {
		run.Batch = &views.Kin{ID: idText(*r.BatchID), Name: r.Name}
		run.Accepted, run.Outstanding, run.Failed = views.Known(r.Accepted), views.Known(r.Outstanding), views.Known(r.Failed)
	}
	return run
}

// nextRuns are the next runs of an expression in a zone, beside which a reader
// of another zone is shown their own time.
func (s *Server) nextRuns(c echo.Context, cron, zone string) views.NextRuns {
	next := views.NextRuns{When: pickedFrom(cron).words(c.Request().Context()), Zone: zone}
	times, err := pipeline.ReadTimes(cron, zone)
	if invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err); ok {
		next.Problem = sentence(invalid.Fields[0].Message)
		return next
	}
	place, err := time.LoadLocation(zone)
	if err != nil {
		next.Problem = sentence(err.Error())
		return next
	}
	for _, at := range times.Following(s.now(), nextShown) {
		next.Times = append(next.Times, views.NextRun{
			At: at.In(place), Here: personOf(c).TimeZone == zone,
		})
	}
	return next
}

func schedulePath(id int64) string { return schedulesPath + "/" + idText(id) }

// pauseSchedule is POST /schedules/{id}/pause.
func (s *Server) pauseSchedule(c echo.Context) error {
	return s.moveSchedule(c, "Paused. Nothing starts by the clock until it is resumed.", "It isn't running, so nothing was paused.", s.pipeline.PauseSchedule)
}

// resumeSchedule is POST /schedules/{id}/resume.
func (s *Server) resumeSchedule(c echo.Context) error {
	return s.moveSchedule(c, "It goes on with the next of its times.", "It isn't paused, so there was nothing to resume.", s.pipeline.ResumeSchedule)
}

// planRemoveSchedule is GET /schedules/{id}/remove.
func (s *Server) planRemoveSchedule(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	r, err := s.store.Schedule(c.Request().Context(), id)
	if err != nil {
		return err
	}
	if r.RemovedAt != nil {
		return c.Redirect(http.StatusSeeOther, schedulePath(id))
	}
	props := views.RemoveScheduleProps{ID: idText(id), Name: r.Name}
	if props.Layout, err = s.layout(c, "Remove the schedule", views.SectionSchedules); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.RemoveSchedule(props))
}

// removeSchedule is POST /schedules/{id}/remove.
func (s *Server) removeSchedule(c echo.Context) error {
	return s.moveSchedule(c, "Removed. What it made stays.", "It was removed before.", s.pipeline.RemoveSchedule)
}

// moveSchedule answers a press with what it did, or that somebody was first.
func (s *Server) moveSchedule(c echo.Context, done, late string, move func(context.Context, int64) (bool, error)) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	moved, err := move(c.Request().Context(), id)
	if err != nil {
		return err
	}
	level, text := "success", done
	if !moved {
		level, text = "info", late
	}
	return s.flashTo(c, schedulePath(id), level, text)
}

// planRunSchedule is GET /schedules/{id}/run: what a press would do.
func (s *Server) planRunSchedule(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	r, err := s.store.PageSchedule(ctx, id)
	if err != nil {
		return err
	}
	if r.RemovedAt != nil {
		return s.flashTo(c, schedulePath(id), "info", "It was removed, so it can't be run.")
	}
	plan, err := s.pipeline.PlanRerun(ctx, r.TemplateBatchID, false)
	if err != nil {
		return fmt.Errorf("plan a run of schedule %d: %w", id, err)
	}
	usage, err := s.pipeline.Usage(ctx)
	if err != nil {
		return fmt.Errorf("plan a run of schedule %d: %w", id, err)
	}
	props := views.RunScheduleProps{
		ID: idText(id), Name: r.Name, Batch: views.Kin{ID: idText(r.TemplateBatchID), Name: r.Template}, Whole: plan.Whole,
		URLs: views.Known(plan.URLs), Jobs: views.Known(plan.Jobs), Requests: views.Known(plan.Requests), Account: accountLeft(usage),
		Paused: r.PausedAt != nil,
	}
	if props.Going, err = s.goingBatch(ctx, &r.Schedule); err != nil {
		return err
	}
	if props.Layout, err = s.layout(c, "Run now", views.SectionSchedules); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.RunSchedule(props))
}

// runSchedule is POST /schedules/{id}/run.
func (s *Server) runSchedule(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	run, err := s.pipeline.RunScheduleNow(ctx, id)
	if err != nil {
		return err
	}
	if run.Outcome == store.RunStarted {
		return s.flashTo(c, schedulePath(id), "success", views.Textf(ctx, "Started: batch %s.", idText(orZero(run.BatchID))))
	}
	return s.flashTo(c, schedulePath(id), "warning", views.Textf(ctx, "Skipped: %s.", run.Reason))
}
