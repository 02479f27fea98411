package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// runKeeper is what the pages ask of the pipeline about running batches again,
// once or by the clock. What can't be is *pipeline.InvalidSubmission; a move
// reports false when somebody was first.
type runKeeper interface {
	PlanRerun(ctx context.Context, batchID int64, failures bool) (pipeline.RerunPlan, error)
	Rerun(ctx context.Context, a pipeline.Again) (pipeline.Submitted, error)
	AddSchedule(ctx context.Context, f pipeline.ScheduleForm) (*store.Schedule, error)
	ChangeSchedule(ctx context.Context, id int64, f pipeline.ScheduleForm) (bool, error)
	PauseSchedule(ctx context.Context, id int64) (bool, error)
	ResumeSchedule(ctx context.Context, id int64) (bool, error)
	RemoveSchedule(ctx context.Context, id int64) (bool, error)
	RunScheduleNow(ctx context.Context, id int64) (*store.ScheduleRun, error)
}

// kinShown is how many batches or schedules a batch names that come from it.
const kinShown = 3

// rerunLineOf is what a batch comes from and what came from it.
func (s *Server) rerunLineOf(ctx context.Context, b *store.Batch) (views.RerunLine, error) {
	line := views.RerunLine{How: string(orZero(b.Rerun))}
	if b.ParentBatchID != nil {
		parent, err := s.store.Batch(ctx, *b.ParentBatchID)
		if err != nil {
			return line, fmt.Errorf("the batch that batch %d runs again: %w", b.ID, err)
		}
		line.Of = &views.Kin{ID: idText(parent.ID), Name: parent.Name}
	}
	if orZero(b.Rerun) == store.RerunSchedule {
		by, err := s.store.ScheduleOfBatch(ctx, b.ID)
		if err != nil {
			return line, fmt.Errorf("the schedule of batch %d: %w", b.ID, err)
		}
		line.By = &views.Kin{ID: idText(by.ID), Name: by.Name}
	}
	again, err := s.store.PageReruns(ctx, b.ID, kinShown+1)
	if err != nil {
		return line, fmt.Errorf("what runs batch %d again: %w", b.ID, err)
	}
	again, line.More = cut(again, kinShown)
	line.Again = kinOf(again)
	schedules, err := s.store.PageSchedulesOf(ctx, b.ID, kinShown)
	if err != nil {
		return line, fmt.Errorf("the schedules that run batch %d again: %w", b.ID, err)
	}
	line.Schedules = kinOf(schedules)
	return line, nil
}

func kinOf(rows []store.Kin) []views.Kin {
	out := make([]views.Kin, len(rows))
	for i := range rows {
		out[i] = views.Kin{ID: idText(rows[i].ID), Name: rows[i].Name}
	}
	return out
}

// planRerun is GET /batches/{id}/rerun: what running it again comes to.
func (s *Server) planRerun(c echo.Context) error {
	return s.showRerun(c, http.StatusOK, views.RerunProps{Which: c.QueryParam("which")})
}

// showRerun fills in what the form was not sent with.
func (s *Server) showRerun(c echo.Context, status int, props views.RerunProps) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	all, err := s.pipeline.PlanRerun(ctx, id, false)
	if err != nil {
		return fmt.Errorf("plan to run batch %d again: %w", id, err)
	}
	failures, err := s.pipeline.PlanRerun(ctx, id, true)
	if err != nil {
		return fmt.Errorf("plan to run batch %d again: %w", id, err)
	}
	usage, err := s.pipeline.Usage(ctx)
	if err != nil {
		return fmt.Errorf("plan to run batch %d again: %w", id, err)
	}
	props.Account = accountLeft(usage)
	plan := all
	if props.Which == string(store.RerunFailures) && !all.Whole {
		plan = failures
	} else {
		props.Which = string(store.RerunAll)
		props.Outstanding = views.Known(all.Batch.Outstanding)
	}
	props.BatchID, props.BatchName, props.Whole, props.Extract = idText(id), plan.Batch.Name, plan.Whole, plan.Extract
	props.All, props.Failures = views.Known(all.URLs), views.Known(failures.URLs)
	props.URLs, props.Jobs, props.Requests = views.Known(plan.URLs), views.Known(plan.Jobs), views.Known(plan.Requests)
	props.Resolved = views.Known(plan.Resolved)
	if !props.Outstanding.Known {
		props.Outstanding = views.Known(0)
	}
	if props.Name == "" && len(props.Errors) == 0 {
		props.Name = plan.Name
	}
	if props.Once == "" {
		props.Once = newToken()
	}
	if all.Batch.PrunedAt != nil {
		props.PrunedAt = *all.Batch.PrunedAt
	}
	if props.Layout, err = s.layout(c, "Run again", views.SectionBatches); err != nil {
		return err
	}
	return render(c, status, views.Rerun(props))
}

// rerun is POST /batches/{id}/rerun. The same form sent twice leads to the same
// batch.
func (s *Server) rerun(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	props := views.RerunProps{Which: field(c, "which", 20), Name: field(c, "name", 1000), Once: field(c, "once", maxOnce)}
	if props.Which != string(store.RerunAll) && props.Which != string(store.RerunFailures) {
		props.Errors = views.Errors{"which": "Choose all of it or only its failures."}
		return s.showRerun(c, http.StatusUnprocessableEntity, props)
	}
	done, err := s.pipeline.Rerun(c.Request().Context(), pipeline.Again{
		BatchID: id, Failures: props.Which == string(store.RerunFailures), Name: props.Name, CreatedBy: &personOf(c).ID, Token: props.Once,
	})
	if invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err); ok {
		props.Errors = refusedFields(invalid)
		return s.showRerun(c, http.StatusUnprocessableEntity, props)
	}
	if errors.Is(err, pipeline.ErrSealed) {
		props.Errors = views.Errors{"form": "The headers of this batch were sealed with another secret key than today's, so they can't be sent again."}
		return s.showRerun(c, http.StatusUnprocessableEntity, props)
	}
	if err != nil {
		return fmt.Errorf("run batch %d again: %w", id, err)
	}
	return c.Redirect(http.StatusSeeOther, "/batches/"+idText(done.BatchID))
}

// refusedFields is what the pipeline refused, as sentences by field.
func refusedFields(invalid *pipeline.InvalidSubmission) views.Errors {
	errs := views.Errors{}
	for _, each := range invalid.Fields {
		if errs[each.Field] == "" {
			errs[each.Field] = sentence(each.Message)
		}
	}
	return errs
}

// sentence makes a message of the pipeline one for a page.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
