package web

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// readAtMost is how long a reading that somebody asked for counts as under
// way; its task died when it takes longer.
const readAtMost = 10 * time.Minute

// deliveryLog is GET /deliveries/log.
func (s *Server) deliveryLog(c echo.Context) error {
	from, err := keyParam(c)
	if err != nil {
		return err
	}
	filter, err := logFilterOf(c.QueryParams(), readerZone(c))
	props := views.DeliveryLogProps{
		Filter: typedFilter(c, logPath, logValues(filter), mistakesOf(c.Request().Context(), err)), Self: c.Request().URL.RequestURI(),
	}
	props.Filter.Standings, props.Filter.Statuses = views.StandingOptions(), statusOptions(props.Filter.Status)
	if props.Filter.Webhooks, err = s.webhookOptions(c, props.Filter.Webhook); err != nil {
		return err
	}
	if props.Readings, err = s.logReadings(c); err != nil {
		return err
	}
	if len(props.Filter.Errors) > 0 {
		return s.showLog(c, http.StatusUnprocessableEntity, props)
	}
	if err := s.fillLog(c, filter, from, &props); err != nil {
		return fmt.Errorf("list the delivery log: %w", err)
	}
	return s.showLog(c, http.StatusOK, props)
}

func (s *Server) showLog(c echo.Context, status int, props views.DeliveryLogProps) error {
	var err error
	if props.Foreign, props.Held, err = s.countForeign(c.Request().Context()); err != nil {
		return err
	}
	if props.Layout, err = s.layout(c, "The vendor's log", views.SectionDeliveries); err != nil {
		return err
	}
	return render(c, status, views.DeliveryLog(props))
}

func (s *Server) fillLog(c echo.Context, filter store.LogFilter, from store.Key, props *views.DeliveryLogProps) error {
	ctx := c.Request().Context()
	rows, err := s.store.PageLog(ctx, filter, from, pageRows+1)
	if err != nil {
		return err
	}
	n, known, err := s.store.CountLog(ctx, filter)
	if err != nil {
		return err
	}
	props.Filter.Total = countOf(n, known)
	rows, more := cut(rows, pageRows)
	last := ""
	for i := range rows {
		props.Attempts = append(props.Attempts, logRow(&rows[i]))
		last = keyCursor(rows[i].CreatedAt, rows[i].ID)
	}
	props.Pager = pager(c, cursorParam, more, last)
	props.ReplayAll = replayAllPath(logValues(filter), fromLog)
	return nil
}

func logRow(e *store.LogEntry) views.LogRow {
	row := views.LogRow{
		Pick: fmt.Sprintf("%d.%d.%s", e.WebhookID, e.Attempt, e.VendorID), At: e.CreatedAt, Event: e.EventType, Webhook: idText(e.WebhookID),
		VendorID: e.VendorJobID, JobID: knownID(e.JobID), Status: e.Status, HTTP: orZero(e.HTTPStatus), DeliveredAt: orZero(e.DeliveredAt),
		Standing: string(e.Standing),
	}
	if e.Attempt > 0 {
		row.Attempt = strconv.Itoa(e.Attempt)
	}
	if d := e.Delivery; d != nil {
		row.DeliveryID, row.RecoveredAt, row.Why = idText(d.ID), orZero(d.RecoveredAt), shortReason(d)
	}
	return row
}

// statusOptions are the vendor's words that are known, and the one asked for.
func statusOptions(asked string) []views.Option {
	options := make([]views.Option, 0, 5)
	for _, word := range []string{"success", "failed", "abandoned", "pending"} {
		options = append(options, views.Option{Value: word, Text: word})
	}
	return withAsked(options, asked)
}

func (s *Server) logReadings(c echo.Context) ([]views.LogReading, error) {
	rows, err := s.store.PageLogReadings(c.Request().Context())
	if err != nil {
		return nil, fmt.Errorf("how far the delivery log was read: %w", err)
	}
	out := make([]views.LogReading, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = views.LogReading{
			Webhook: idText(r.WebhookID), Event: r.EventType, ReadAt: orZero(r.ReadAt),
			Asked: r.AskedAt != nil && s.now().Sub(*r.AskedAt) < readAtMost,
			Added: views.Known(int64(r.Added)), Changed: views.Known(int64(r.Changed)), More: r.NextPage > 1, Error: r.Note,
		}
	}
	return out, nil
}

// readLogNow is POST /deliveries/log/read.
func (s *Server) readLogNow(c echo.Context) error {
	logs, err := s.pipeline.ReadLogNow(c.Request().Context())
	if err != nil {
		return fmt.Errorf("read the delivery log now: %w", err)
	}
	level, text := "success", "The vendor's log is being read. What it brings shows here."
	if logs == 0 {
		level, text = "warning", "No webhook is registered at the vendor, so there is no log to read."
	}
	if err := s.flash(c, level, text); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, logPath)
}
