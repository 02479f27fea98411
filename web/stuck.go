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

// How an outstanding item is judged: stuck is what takes stuckTimes as long as
// 19 in 20 answers of its host took lately, and stuckFloor at least. A host with
// fewer than stuckAnswers answers is judged by all hosts together; when there
// is nothing to judge by, by stuckBlind. So is what the vendor has not taken: it
// takes as long as the pace and the gates have it take.
const (
	stuckTimes   = 3
	stuckFloor   = 2 * time.Minute
	stuckBlind   = 30 * time.Minute
	stuckAnswers = 20
	// stuckShown is how many of them a batch's page lists.
	stuckShown = 5
	stuckMost  = 200
)

// stuckOf finds the stuck items of a batch, the oldest first.
func (s *Server) stuckOf(ctx context.Context, b *store.Batch, shown int) (views.StuckProps, error) {
	now := s.now()
	p := views.StuckProps{BatchID: idText(b.ID), Live: b.EndedAt == nil, Total: views.Known(0)}
	if b.EndedAt != nil || now.Sub(b.CreatedAt) < stuckFloor {
		return p, nil
	}
	open, err := s.store.PageOldestOpen(ctx, b.ID, now.Add(-stuckFloor))
	if err != nil || len(open) == 0 {
		return p, err
	}
	usual, err := s.store.PageUsual(ctx)
	if err != nil {
		return p, err
	}
	for i := range open {
		item, stuck := judged(&open[i], usual, now)
		if !stuck {
			continue
		}
		p.Total.N++
		if len(p.Items) < shown {
			p.Items = append(p.Items, item)
		}
	}
	taken := 0
	for i := range open {
		if open[i].JobState == store.JobAccepted {
			taken++
		}
	}
	p.Total.More = taken == store.StuckLook || len(open)-taken == store.StuckUntaken
	return p, nil
}

// judged tells whether an outstanding item is stuck, and by what.
func judged(open *store.OpenItem, usual []store.Usual, now time.Time) (views.StuckItem, bool) {
	item := views.StuckItem{
		ID: idText(open.ID), URL: open.URL, Host: open.Host, JobID: idText(open.JobID), Since: open.Since,
		Age: now.Sub(open.Since), Asked: open.Polls, VendorSays: open.VendorStatus,
	}
	if open.JobState != store.JobAccepted {
		item.Untaken = string(open.JobState)
		return item, item.Age > stuckBlind
	}
	for _, u := range usual {
		fits := u.Answers >= stuckAnswers && (u.All && !item.OfHost || !u.All && u.Host == open.Host)
		if fits {
			item.Usual, item.Answers, item.OfHost = u.P95, u.Answers, !u.All
		}
	}
	if item.Answers == 0 {
		return item, item.Age > stuckBlind
	}
	return item, item.Age > max(stuckFloor, stuckTimes*item.Usual)
}

// stuck is GET /batches/{id}/stuck.
func (s *Server) stuck(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	batch, err := s.store.Batch(ctx, id)
	if err != nil {
		return err
	}
	part := c.QueryParam("part") != ""
	shown := stuckMost
	if part {
		shown = stuckShown
	}
	props, err := s.stuckOf(ctx, batch, shown)
	if err != nil {
		return fmt.Errorf("stuck items of batch %d: %w", id, err)
	}
	props.All = !part
	layout, err := s.layout(c, "Stuck items", views.SectionBatches)
	if err != nil {
		return err
	}
	return render(c, http.StatusOK, views.StuckPage(layout, batch.Name, props))
}

// askVendor is POST /batches/{id}/ask: the vendor is asked about the ticked
// jobs now.
func (s *Server) askVendor(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	r := c.Request()
	if err := parseForm(r); err != nil {
		return err
	}
	picked, err := pickedIDs(r.Context(), r.PostForm, "job")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if _, err := s.store.Batch(ctx, id); err != nil {
		return err
	}
	jobs, err := s.store.JobsOfBatch(ctx, id, picked)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if err := s.pipeline.SettleNow(ctx, job); err != nil {
			return fmt.Errorf("ask about job %d: %w", job, err)
		}
	}
	level, text := "success", views.Counted(ctx, views.Known(int64(len(jobs))),
		"The vendor is being asked about %s job. What it answers shows here as soon as it has come.",
		"The vendor is being asked about %s jobs. What it answers shows here as soon as it has come.")
	if len(jobs) == 0 {
		level, text = "info", "Nothing was asked: tick items that are stuck."
	}
	if err := s.flash(c, level, text); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/batches/"+idText(id))
}
