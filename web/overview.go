package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// What the overview shows.
const (
	overviewDays    = 7
	overviewRunning = 8
	overviewLatest  = 5
	recordOf        = 50
	inTime          = time.Minute
	// alarmShown is how long an alarm is shown that is not raised again.
	alarmShown = 5 * time.Minute
	// refusedShown is how far back refused deliveries are counted; the page says it.
	refusedShown = 24 * time.Hour
)

// overview is GET /.
func (s *Server) overview(c echo.Context) error {
	span := c.QueryParam("span")
	if span != views.SpanTwoDays && span != views.SpanMonth {
		span = views.SpanDay
	}
	props, err := s.overviewProps(c.Request().Context())
	if err != nil {
		return err
	}
	if props.Layout, err = s.layout(c, "Overview", views.SectionOverview); err != nil {
		return err
	}
	if err := s.overviewStats(c.Request().Context(), &props, span, props.Layout.Zone); err != nil {
		return err
	}
	if operators.allows(personOf(c).Role) {
		if props.Disk, err = s.overviewDisk(c.Request().Context()); err != nil {
			return err
		}
	}
	props.Layout.Scripts = []string{"uplot.min.js", "charts.js"}
	props.Live = true
	return render(c, http.StatusOK, views.Overview(props))
}

// overviewProps is the live part of the overview, which doesn't depend on who
// looks at it.
func (s *Server) overviewProps(ctx context.Context) (views.OverviewProps, error) {
	var props views.OverviewProps
	for _, part := range []func(context.Context, *views.OverviewProps) error{
		s.overviewBatches, s.overviewRollCall, s.overviewSystem, s.overviewWebhooks, s.overviewForeign, s.overviewHappened,
		s.overviewVerdict,
	} {
		if err := part(ctx, &props); err != nil {
			return props, fmt.Errorf("overview: %w", err)
		}
	}
	return props, nil
}

func (s *Server) overviewBatches(ctx context.Context, p *views.OverviewProps) error {
	running, err := s.store.PageRunningBatches(ctx, overviewRunning)
	if err != nil {
		return err
	}
	p.Running = batchRows(ctx, running)
	if len(running) > 0 {
		return nil
	}
	newest, err := s.store.PageBatches(ctx, "", store.Key{}, overviewLatest)
	p.Latest = batchRows(ctx, newest)
	return err
}

func (s *Server) overviewRollCall(ctx context.Context, p *views.OverviewProps) error {
	today := s.now().UTC().Truncate(24 * time.Hour)
	days, err := s.store.PageDays(ctx, today.AddDate(0, 0, 1-overviewDays))
	if err != nil {
		return err
	}
	var total store.Batch
	for i := range days {
		p.Days = append(p.Days, views.DayRow{Day: days[i].Day, RollCall: rollCall(&days[i].Batch)})
		add(&total, &days[i].Batch)
	}
	p.Total = rollCall(&total)
	failures, err := s.store.CountFailures(ctx, store.Failed{})
	p.Failures = capped(failures)
	return err
}

func (s *Server) overviewSystem(ctx context.Context, p *views.OverviewProps) error {
	gates, err := s.store.Gates(ctx)
	if err != nil {
		return err
	}
	if err := s.overviewMode(ctx, &p.System); err != nil {
		return err
	}
	p.System.Alarm, p.System.AlarmAt, err = s.store.Alarm(ctx, s.now().Add(-alarmShown))
	if err != nil {
		return err
	}
	for _, gate := range gates {
		if gate.PausedAt != nil {
			p.System.Paused, p.System.PausedReason = true, gate.PausedReason
		}
		state := views.GateState{}
		if gate.ClosedUntil != nil && gate.ClosedUntil.After(s.now()) {
			state = views.GateState{Closed: true, Until: *gate.ClosedUntil}
		}
		if gate.Name == store.GateSubmit {
			p.System.Submit = state
		} else {
			p.System.Read = state
		}
	}
	backlog, err := s.store.PageBacklog(ctx)
	if err != nil {
		return err
	}
	p.System.Queue, p.System.Open = capped(backlog.Waiting), capped(backlog.Open)
	runs, err := s.store.PageRuns(ctx, store.Key{}, 1)
	if err == nil && len(runs) > 0 {
		last := runRow(ctx, &runs[0])
		last.NextAt = s.nextRun(&runs[0])
		p.Last = &last
	}
	return err
}

// overviewMode says what auto means now, since when and why. Asking is what makes the pipeline judge, so that comes
// first.
func (s *Server) overviewMode(ctx context.Context, state *views.SystemState) error {
	state.Mode = s.cfg.Mode
	if s.cfg.Mode != string(pipeline.ModeAuto) {
		return nil
	}
	trusted, err := s.pipeline.WebhooksTrusted(ctx)
	if err != nil {
		return err
	}
	state.Effective = string(pipeline.ModePoll)
	if trusted {
		state.Effective = string(pipeline.ModeWebhook)
	}
	last, err := s.store.LastModeChange(ctx)
	if err == nil && last != nil && last.Mode == state.Effective {
		state.ModeSince, state.ModeReason = last.At, last.Reason
	}
	return err
}

func (s *Server) overviewWebhooks(ctx context.Context, p *views.OverviewProps) error {
	hooks, err := s.store.PageWebhooks(ctx)
	if err != nil || len(hooks) == 0 {
		return err
	}
	kinds, err := s.store.PagePunctuality(ctx, recordOf, inTime, s.now())
	if err != nil {
		return err
	}
	ids := make([]int64, len(hooks))
	for i := range hooks {
		ids[i] = hooks[i].ID
	}
	refused, err := s.store.PageRefused(ctx, ids, s.now().Add(-refusedShown))
	if err != nil {
		return err
	}
	for i := range hooks {
		health := views.WebhookHealth{
			ID: idText(hooks[i].ID), Refused: capped(refused[hooks[i].ID]),
			Event: hooks[i].EventType, State: hookState(hooks[i].State), LastDelivery: orZero(hooks[i].LastDeliveryAt),
		}
		for _, kind := range kinds {
			if strings.HasPrefix(hooks[i].EventType, string(kind.Kind)) {
				health.OnTime, health.OutOf = views.Known(kind.InTime), views.Known(kind.Jobs)
			}
		}
		p.Webhooks = append(p.Webhooks, health)
	}
	return nil
}

// hookState is a webhook's state in the words of the pages.
func hookState(state store.WebhookState) string {
	if state == store.WebhookLive {
		return "active"
	}
	return string(state)
}
