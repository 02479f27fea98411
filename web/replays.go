package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

const replaysPath = "/replays"

// outcomeParam names the list of a replay's jobs that is shown.
const outcomeParam = "outcome"

// replays is GET /replays.
func (s *Server) replays(c echo.Context) error {
	before, err := placeParam(c, cursorParam, 0)
	if err != nil {
		return err
	}
	rows, err := s.store.PageReplays(c.Request().Context(), before, pageRows+1)
	if err != nil {
		return fmt.Errorf("list replays: %w", err)
	}
	rows, more := cut(rows, pageRows)
	var props views.ReplaysProps
	last := ""
	for i := range rows {
		r := &rows[i]
		props.Rows = append(props.Rows, views.ReplayRow{
			ID: idText(r.ID), State: string(r.State), Picked: r.Picked, By: r.PlannedBy, At: r.PlannedAt, Jobs: views.Known(r.Jobs),
			Deliveries: views.Known(r.Deliveries), Ended: views.Known(r.Ended()), Settled: views.Known(r.SettledNow),
		})
		last = placeCursor(r.ID)
	}
	props.Pager = pager(c, cursorParam, more, last)
	if props.Layout, err = s.layout(c, "Replays", views.SectionReplays); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Replays(props))
}

// planReplay is POST /replays: the plan is frozen, and nothing runs. The same
// form sent twice leads to the same plan.
func (s *Server) planReplay(c echo.Context) error {
	r := c.Request()
	if err := parseForm(r); err != nil {
		return err
	}
	p, err := s.replayPicks(c, r.PostForm)
	if err != nil {
		return err
	}
	if p.nothing {
		return badRequest("Nothing was picked, so there is nothing to plan.", nil)
	}
	plan, err := s.pipeline.PlanReplay(r.Context(), pipeline.ReplayRequest{
		Picks: p.picks, Picked: p.words(inEnglish(r.Context())), Address: p.address, Token: field(c, "once", maxOnce),
	})
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, replayPath(plan.ID))
}

func replayPath(id int64) string { return replaysPath + "/" + idText(id) }

// newReplay is GET /replays/new: what was picked, before it is planned.
func (s *Server) newReplay(c echo.Context) error {
	p, err := s.replayPicks(c, c.QueryParams())
	if err != nil {
		return err
	}
	props := views.NewReplayProps{
		Back: p.back(), BackText: p.backText, Picked: p.words(c.Request().Context()), Lines: p.lines, Fields: p.fields, Once: newToken(), Nothing: p.nothing,
	}
	if props.Layout, err = s.layout(c, "Plan a replay", views.SectionReplays); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.NewReplay(props))
}

// replay is GET /replays/{id}.
func (s *Server) replay(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	afterJob, err := placeParam(c, cursorParam, 0)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	r, err := s.store.Replay(ctx, id)
	if err != nil {
		return err
	}
	under, err := s.store.CountReplayUnder(ctx, id)
	if err != nil {
		return fmt.Errorf("count what replay %d has under way: %w", id, err)
	}
	props := s.replayProps(r, under)
	props.Self, props.Live = c.Request().URL.RequestURI(), r.State != store.ReplayPlanned && (!r.Over() || under > 0)
	if props.List = c.QueryParam(outcomeParam); !knownList(props.Lists, props.List) {
		props.List = ""
	}
	if err := s.fillReplayDeliveries(ctx, id, &props); err != nil {
		return err
	}
	rows, err := s.store.PageReplayJobs(ctx, id, props.List, afterJob, pageRows+1)
	if err != nil {
		return fmt.Errorf("list the jobs of replay %d: %w", id, err)
	}
	rows, more := cut(rows, pageRows)
	last := ""
	for i := range rows {
		props.Rows = append(props.Rows, replayJobRow(&rows[i]))
		last = placeCursor(rows[i].JobID)
	}
	props.Pager = pager(c, cursorParam, more, last)
	if props.Layout, err = s.layout(c, views.Textf(ctx, "Replay %s", props.ID), views.SectionReplays); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Replay(props))
}

// replayDeliveriesShown is how many of a replay's refused deliveries its page
// lists.
const replayDeliveriesShown = 20

func (s *Server) fillReplayDeliveries(ctx context.Context, id int64, props *views.ReplayProps) error {
	rows, err := s.store.PageReplayDeliveries(ctx, id, replayDeliveriesShown)
	if err != nil {
		return fmt.Errorf("list the refused deliveries of replay %d: %w", id, err)
	}
	for i := range rows {
		d := &rows[i]
		props.Verified = append(props.Verified, views.ReplayDeliveryRow{
			ID: idText(d.ID), At: d.ReceivedAt, Outcome: d.Outcome, Why: shortReason(&d.Delivery),
		})
	}
	return nil
}

func (s *Server) replayProps(r *store.Replay, under int64) views.ReplayProps {
	p := views.ReplayProps{
		ID: idText(r.ID), State: string(r.State), Picked: r.Picked, Address: r.Address, PlannedBy: r.PlannedBy, PlannedAt: r.PlannedAt,
		RunBy: r.RunBy, StartedAt: orZero(r.StartedAt), EndedAt: orZero(r.EndedAt), Refetch: r.Refetch,
		Takes: s.pipeline.ReplayTakes(r.Calls), RefetchTakes: s.pipeline.ReplayTakes(r.RefetchCalls),
	}
	waiting := r.Jobs - r.Ended() - under
	for _, each := range []struct {
		to *views.Count
		n  int64
	}{
		{&p.Lines, r.Lines},
		{&p.Unnamed, r.Unnamed},
		{&p.Foreign, r.ForeignJobs},
		{&p.Pruned, r.PrunedJobs},
		{&p.Jobs, r.Jobs},
		{&p.SettledBefore, r.SettledBefore},
		{&p.Open, r.Jobs - r.SettledBefore},
		{&p.Calls, r.Calls},
		{&p.RefetchCalls, r.RefetchCalls},
		{&p.Deliveries, r.Deliveries},
		{&p.Ended, r.Ended()},
		{&p.Recovered, r.Recovered},
		{&p.Refused, r.Refused},
		{&p.Refetched, r.Refetched},
		{&p.Differing, r.Differing},
	} {
		*each.to = views.Known(each.n)
	}
	p.Lists = []views.ReplayList{
		{Word: store.ReplayListWaiting, Count: views.Known(max(0, waiting))},
		{Word: store.ReplayListUnder, Count: views.Known(under)},
		{Word: string(store.ReplayAlreadySettled), Count: views.Known(r.AlreadySettled)},
		{Word: string(store.ReplaySettledNow), Count: views.Known(r.SettledNow)},
		{Word: string(store.ReplayStillRunning), Count: views.Known(r.StillRunning)},
		{Word: string(store.ReplayFailed), Count: views.Known(r.Failed)},
		{Word: string(store.ReplayUnknown), Count: views.Known(r.UnknownToVendor)},
		{Word: string(store.ReplayError), Count: views.Known(r.Errors)},
	}
	return p
}

func knownList(lists []views.ReplayList, word string) bool {
	for _, each := range lists {
		if each.Word == word {
			return true
		}
	}
	return false
}

func replayJobRow(j *store.ReplayJob) views.ReplayJobRow {
	row := views.ReplayJobRow{JobID: idText(j.JobID), Detail: j.Detail, State: string(j.JobState), Refetched: string(orZero(j.Refetched))}
	switch {
	case j.Outcome != nil:
		row.Outcome, row.At = string(*j.Outcome), orZero(j.EndedAt)
	case j.State == store.ReplayJobWaiting:
		row.Outcome = store.ReplayListWaiting
	default:
		row.Outcome, row.At = store.ReplayListUnder, orZero(j.WokenAt)
	}
	return row
}

// replayLive is GET /replays/{id}/live.
func (s *Server) replayLive(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	if _, err := s.store.Replay(c.Request().Context(), id); err != nil {
		return err
	}
	return s.follow(c, overviewTopic, func(ctx context.Context) (string, bool, error) {
		stamp, err := s.store.PageReplayStamp(ctx, id)
		return stamp.Text, stamp.Ended, err
	})
}

// runReplay is POST /replays/{id}/run.
func (s *Server) runReplay(c echo.Context) error {
	if err := parseForm(c.Request()); err != nil {
		return err
	}
	refetch := c.Request().PostFormValue("refetch") != ""
	return s.moveReplay(c, "It was started.", "It had been started or dropped before.", func(ctx context.Context, id int64) (bool, error) {
		return s.pipeline.RunReplay(ctx, id, refetch)
	})
}

// pauseReplay is POST /replays/{id}/pause.
func (s *Server) pauseReplay(c echo.Context) error {
	return s.moveReplay(c, "Paused. What is under way ends, and nothing else begins.", "It isn't running, so nothing was paused.", s.pipeline.PauseReplay)
}

// resumeReplay is POST /replays/{id}/resume.
func (s *Server) resumeReplay(c echo.Context) error {
	return s.moveReplay(c, "It was resumed.", "It isn't paused, so there was nothing to resume.", s.pipeline.ResumeReplay)
}

// cancelReplay is POST /replays/{id}/cancel.
func (s *Server) cancelReplay(c echo.Context) error {
	return s.moveReplay(c, "Cancelled. What is under way ends by itself.", "It had ended already.", s.pipeline.CancelReplay)
}

// moveReplay answers a press with what it did, or that somebody was first.
func (s *Server) moveReplay(c echo.Context, done, late string, move func(context.Context, int64) (bool, error)) error {
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
	if err := s.flash(c, level, text); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, replayPath(id))
}

// itemParam reads the item's id in a path.
func itemParam(c echo.Context) (int64, error) {
	text := c.Param("item")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 || strconv.FormatInt(id, 10) != text {
		return 0, notFound()
	}
	return id, nil
}

// zonedText is a moment as the reader of a plan should see it again.
func zonedText(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("2006-01-02 15:04 MST")
}
