package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// maxPicked bounds the rows that one press is about.
const maxPicked = 1000

// planCancelBatch is GET /batches/{id}/cancel: what it would stop.
func (s *Server) planCancelBatch(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	batch, err := s.store.PageBatch(ctx, id)
	if err != nil {
		return err
	}
	plan, err := s.pipeline.PlanCancelBatch(ctx, id)
	if err != nil {
		return fmt.Errorf("plan to cancel batch %d: %w", id, err)
	}
	back := "/batches/" + idText(id)
	return s.showCancel(c, views.CancelProps{
		Title: views.Textf(ctx, "Cancel %s", batch.Name), Back: back, BackText: batch.Name, Action: back + "/cancel", Plan: cancelPlan(plan),
		Foreseen: batch.CancelRequestedAt != nil, Crawl: batch.Kind == store.KindCrawl,
	})
}

func (s *Server) showCancel(c echo.Context, props views.CancelProps) error {
	l, err := s.layout(c, "Cancel", views.SectionBatches)
	if err != nil {
		return err
	}
	props.Layout = l
	return render(c, http.StatusOK, views.Cancel(props))
}

// cancelBatch is POST /batches/{id}/cancel. A second press finds nothing left.
func (s *Server) cancelBatch(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if _, err := s.store.Batch(ctx, id); err != nil {
		return err
	}
	done, err := s.pipeline.CancelBatch(ctx, id)
	if err != nil {
		return fmt.Errorf("cancel batch %d: %w", id, err)
	}
	if err := s.flashCancelled(c, done); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/batches/"+idText(id))
}

// planCancelJobs is GET /jobs/cancel?job=1&job=2.
func (s *Server) planCancelJobs(c echo.Context) error {
	ctx := c.Request().Context()
	ids, err := pickedIDs(ctx, c.QueryParams(), "job")
	if err != nil {
		return err
	}
	props := views.CancelProps{Title: "Cancel jobs", Action: "/jobs/cancel"}
	if props.Back, props.BackText, err = s.backFromJobs(c, ids); err != nil {
		return err
	}
	if len(ids) > 0 {
		plan, err := s.pipeline.PlanCancelJobs(ctx, ids)
		if err != nil {
			return fmt.Errorf("plan to cancel jobs: %w", err)
		}
		props.Plan = cancelPlan(plan)
		props.Title = views.Counted(ctx, views.Known(int64(len(ids))), "Cancel %s job", "Cancel %s jobs")
	}
	if len(ids) == 1 {
		job, err := s.store.Job(ctx, ids[0])
		if err != nil {
			return err
		}
		props.Title, props.Crawl = views.Textf(ctx, "Cancel job %s", idText(job.ID)), job.Kind == store.KindCrawl
		props.Foreseen = job.CancelRequestedAt != nil
	}
	for _, id := range ids {
		props.JobIDs = append(props.JobIDs, idText(id))
	}
	return s.showCancel(c, props)
}

// cancelJobs is POST /jobs/cancel.
func (s *Server) cancelJobs(c echo.Context) error {
	r := c.Request()
	if err := parseForm(r); err != nil {
		return err
	}
	ids, err := pickedIDs(r.Context(), r.PostForm, "job")
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return badRequest("No job was picked, so nothing was cancelled.", nil)
	}
	back, _, err := s.backFromJobs(c, ids)
	if err != nil {
		return err
	}
	done, err := s.pipeline.CancelJobs(c.Request().Context(), ids)
	if err != nil {
		return fmt.Errorf("cancel jobs: %w", err)
	}
	if err := s.flashCancelled(c, done); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, back)
}

// backFromJobs is the page that the jobs were picked on: the job's own, or
// their batch's.
func (s *Server) backFromJobs(c echo.Context, ids []int64) (string, string, error) {
	if len(ids) == 0 {
		return batchesPath, "Batches", nil
	}
	ctx := c.Request().Context()
	job, err := s.store.Job(ctx, ids[0])
	if err != nil {
		return "", "", err
	}
	if len(ids) == 1 {
		return "/jobs/" + idText(job.ID), views.Textf(ctx, "Job %s", idText(job.ID)), nil
	}
	batch, err := s.store.PageBatch(ctx, job.BatchID)
	if err != nil {
		return "", "", err
	}
	return "/batches/" + idText(batch.ID), batch.Name, nil
}

// pickedIDs reads the ids of the rows that were ticked, each once.
func pickedIDs(ctx context.Context, values url.Values, name string) ([]int64, error) {
	var ids []int64
	for _, text := range values[name] {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return nil, badRequest("One of the rows can't be found again. Go back and tick them once more.", nil)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > maxPicked {
		return nil, tooManyPicked(ctx)
	}
	return ids, nil
}

func tooManyPicked(ctx context.Context) error {
	return badRequest(views.Textf(ctx, "At most %s rows can be picked at once.", number(maxPicked)), nil)
}

func cancelPlan(p pipeline.CancelPlan) views.CancelPlan {
	known := func(n int) views.Count { return views.Known(int64(n)) }
	return views.CancelPlan{
		Jobs: known(p.Jobs), Unsent: known(p.Unsent), UnsentURLs: known(p.UnsentURLs), Calling: known(p.Calling),
		Stoppable: known(p.Stoppable), StoppableURLs: known(p.StoppableURLs), RunsOut: known(p.RunsOut), Ended: known(p.Ended),
	}
}

func (s *Server) flashCancelled(c echo.Context, done pipeline.CancelPlan) error {
	text := cancelledText(c.Request().Context(), done)
	if text == "" {
		return s.flash(c, "info", "Nothing was left to cancel.")
	}
	return s.flash(c, "success", text)
}

// cancelledText says what a cancellation did; "" when that was nothing.
func cancelledText(ctx context.Context, done pipeline.CancelPlan) string {
	unsent, calling := views.Known(int64(done.Unsent)), views.Known(int64(done.Calling))
	asked, runsOut := views.Known(int64(done.Stoppable)), views.Known(int64(done.RunsOut))
	var said []string
	if unsent.N > 0 {
		said = append(said, views.Counted(ctx, unsent, "%s job was withdrawn before it was sent", "%s jobs were withdrawn before they were sent"))
	}
	if calling.N > 0 {
		said = append(said, views.Counted(ctx, calling, "%s call under way is cancelled, if it can be, when its answer is known",
			"%s calls under way are cancelled, where they can be, when their answers are known"))
	}
	if asked.N > 0 {
		said = append(said, views.Counted(ctx, asked, "the vendor is asked to stop %s job", "the vendor is asked to stop %s jobs"))
	}
	if runsOut.N > 0 {
		said = append(said, views.Counted(ctx, runsOut, "%s job can't be stopped and runs out", "%s jobs can't be stopped and run out"))
	}
	if len(said) == 0 {
		return ""
	}
	return views.Textf(ctx, "Cancelled: %s.", strings.Join(said, "; "))
}
