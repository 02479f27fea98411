package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// The ways to say when a schedule runs.
const (
	pickDaily  = "daily"
	pickWeekly = "weekly"
	pickCron   = "cron"
)

// pickedTimes is when a schedule runs, as the form has it.
type pickedTimes struct {
	pick string
	time string   // HH:MM
	days []string // "0" is Sunday
	cron string
}

// The expressions that the daily and the weekly picker make.
var (
	dailyCron  = regexp.MustCompile(`^(\d{1,2}) (\d{1,2}) \* \* \*$`)
	weeklyCron = regexp.MustCompile(`^(\d{1,2}) (\d{1,2}) \* \* ([0-6](?:,[0-6])*)$`)
	clockTime  = regexp.MustCompile(`^([01]\d|2[0-3]):([0-5]\d)$`)
)

// pickedFrom finds the picker that makes an expression.
func pickedFrom(cron string) pickedTimes {
	p := pickedTimes{pick: pickCron, cron: cron}
	if m := dailyCron.FindStringSubmatch(cron); m != nil {
		p.pick, p.time = pickDaily, hourMinute(m[2], m[1])
	}
	if m := weeklyCron.FindStringSubmatch(cron); m != nil {
		p.pick, p.time, p.days = pickWeekly, hourMinute(m[2], m[1]), strings.Split(m[3], ",")
	}
	return p
}

func hourMinute(hour, minute string) string { return fmt.Sprintf("%02s:%02s", hour, minute) }

// words says when it is, for a reader: an expression stays as it is.
func (p pickedTimes) words(ctx context.Context) string {
	switch p.pick {
	case pickDaily:
		return views.Textf(ctx, "Every day at %s", p.time)
	case pickWeekly:
		var days []string
		for _, each := range []struct{ value, name string }{
			{"1", views.Textf(ctx, "Monday")},
			{"2", views.Textf(ctx, "Tuesday")},
			{"3", views.Textf(ctx, "Wednesday")},
			{"4", views.Textf(ctx, "Thursday")},
			{"5", views.Textf(ctx, "Friday")},
			{"6", views.Textf(ctx, "Saturday")},
			{"0", views.Textf(ctx, "Sunday")},
		} {
			if slices.Contains(p.days, each.value) {
				days = append(days, each.name)
			}
		}
		return views.Textf(ctx, "Every %s at %s", listed(ctx, days), p.time)
	}
	return p.cron
}

// listed joins words as a sentence does.
func listed(ctx context.Context, words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return views.Textf(ctx, "%s and %s", strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}

// expression is the cron expression of it, or what is wrong by field.
func (p pickedTimes) expression() (string, views.Errors) {
	if p.pick == pickCron {
		return p.cron, nil
	}
	errs := views.Errors{}
	if p.pick != pickDaily && p.pick != pickWeekly {
		return "", views.Errors{"pick": "Choose every day, every week or an expression."}
	}
	m := clockTime.FindStringSubmatch(p.time)
	if m == nil {
		errs["time"] = "Give a time such as 06:30."
	}
	days := "*"
	if p.pick == pickWeekly {
		days = strings.Join(p.days, ",")
		if !regexp.MustCompile(`^[0-6](,[0-6])*$`).MatchString(days) {
			errs["day"] = "Tick at least one day."
		}
	}
	if len(errs) > 0 {
		return "", errs
	}
	hour, _ := strconv.Atoi(m[1]) // Both match the pattern.
	minute, _ := strconv.Atoi(m[2])
	return fmt.Sprintf("%d %d * * %s", minute, hour, days), nil
}

// typedSchedule is the form as it was sent or as its address has it.
func typedSchedule(values url.Values) views.ScheduleFormProps {
	one := func(name string, limit int) string { return clean(strings.TrimSpace(values.Get(name)), limit) }
	p := views.ScheduleFormProps{
		Name: one("name", 1000), Pick: one("pick", 20), Time: one("time", 20), Cron: one("cron", 1000), Zone: one("zone", 2*longestZone),
		Once: one("once", maxOnce),
	}
	for _, each := range values["day"] {
		if len(p.Days) < 7 && len(each) == 1 {
			p.Days = append(p.Days, clean(each, 1))
		}
	}
	return p
}

func pickedOf(p views.ScheduleFormProps) pickedTimes {
	return pickedTimes{pick: p.Pick, time: p.Time, days: p.Days, cron: p.Cron}
}

// newSchedule is GET /schedules/new?batch=1, with what was typed so far where no
// script shows the next runs.
func (s *Server) newSchedule(c echo.Context) error {
	props := typedSchedule(c.QueryParams())
	props.Batch.ID = c.QueryParam("batch")
	if props.Pick == "" {
		props.Pick, props.Time, props.Days, props.Zone = pickDaily, "06:00", []string{"1"}, readerZone(c).String()
	}
	return s.showScheduleForm(c, http.StatusOK, props)
}

// showScheduleForm fills in what the form was not sent with.
func (s *Server) showScheduleForm(c echo.Context, status int, props views.ScheduleFormProps) error {
	id, err := strconv.ParseInt(props.Batch.ID, 10, 64)
	if err != nil || id <= 0 {
		return notFound()
	}
	b, err := s.store.Batch(c.Request().Context(), id)
	if err != nil {
		return err
	}
	if b.PrunedAt != nil && props.ID == "" {
		return removedItems(c.Request().Context(), b)
	}
	props.Batch.Name, props.URLs = b.Name, views.Known(b.Accepted)
	if b.Kind == store.KindCrawl {
		props.URLs = views.Known(1)
	}
	if props.Name == "" && len(props.Errors) == 0 {
		props.Name = b.Name
	}
	if props.Once == "" {
		props.Once = newToken()
	}
	props.Zones = append([]string{"UTC"}, strings.Fields(zoneNames)...)
	props.Next = s.nextOfForm(c, props)
	title := "New schedule"
	if props.ID != "" {
		title = "Change the schedule"
	}
	if props.Layout, err = s.layout(c, title, views.SectionSchedules); err != nil {
		return err
	}
	return render(c, status, views.ScheduleForm(props))
}

// nextOfForm are the next runs of what is typed, or what keeps them from being
// known.
func (s *Server) nextOfForm(c echo.Context, p views.ScheduleFormProps) views.NextRuns {
	cron, errs := pickedOf(p).expression()
	for _, name := range []string{"pick", "day", "time"} {
		if errs[name] != "" {
			return views.NextRuns{Problem: errs[name]}
		}
	}
	return s.nextRuns(c, pipeline.CleanCron(cron), p.Zone)
}

// nextSchedule is GET /schedules/next: the next runs of what is being typed.
func (s *Server) nextSchedule(c echo.Context) error {
	return render(c, http.StatusOK, views.NextRunsPart(s.nextOfForm(c, typedSchedule(c.QueryParams()))))
}

// sentSchedule reads a form that was sent. The second value says where to go
// instead when it only asks for the next runs.
func sentSchedule(c echo.Context, path string) (views.ScheduleFormProps, string, error) {
	r := c.Request()
	if err := parseForm(r); err != nil {
		return views.ScheduleFormProps{}, "", err
	}
	form := r.PostForm
	props := typedSchedule(form)
	props.Batch.ID = form.Get("batch")
	if form.Get("show") == "" {
		return props, "", nil
	}
	query := url.Values{"batch": {props.Batch.ID}, "day": props.Days}
	for name, value := range map[string]string{
		"name": props.Name, "pick": props.Pick, "time": props.Time, "cron": props.Cron, "zone": props.Zone, "once": props.Once,
	} {
		query.Set(name, value)
	}
	return props, address(path, query), nil
}

// addSchedule is POST /schedules. The same form sent twice makes one schedule.
func (s *Server) addSchedule(c echo.Context) error {
	props, show, err := sentSchedule(c, schedulesPath+"/new")
	if err != nil {
		return err
	}
	if show != "" {
		return c.Redirect(http.StatusSeeOther, show)
	}
	id, err := strconv.ParseInt(props.Batch.ID, 10, 64)
	if err != nil || id <= 0 {
		return notFound()
	}
	return s.saveSchedule(c, props, func(f pipeline.ScheduleForm) (int64, error) {
		f.BatchID = id
		made, err := s.pipeline.AddSchedule(c.Request().Context(), f)
		if err != nil {
			return 0, err
		}
		return made.ID, s.flash(c, "success", "The schedule is made.")
	})
}

// saveSchedule hands a form on, or brings it back with what is wrong.
func (s *Server) saveSchedule(c echo.Context, props views.ScheduleFormProps, save func(pipeline.ScheduleForm) (int64, error)) error {
	cron, errs := pickedOf(props).expression()
	if len(errs) > 0 {
		props.Errors = errs
		return s.showScheduleForm(c, http.StatusUnprocessableEntity, props)
	}
	id, err := save(pipeline.ScheduleForm{
		Name: props.Name, Cron: cron, Zone: props.Zone, CreatedBy: &personOf(c).ID, Token: props.Once,
	})
	if invalid, ok := errors.AsType[*pipeline.InvalidSubmission](err); ok {
		props.Errors = refusedFields(invalid)
		return s.showScheduleForm(c, http.StatusUnprocessableEntity, props)
	}
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, schedulePath(id))
}

// changeScheduleForm is GET /schedules/{id}/change.
func (s *Server) changeScheduleForm(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	r, err := s.store.Schedule(c.Request().Context(), id)
	if err != nil {
		return err
	}
	if r.RemovedAt != nil {
		return s.flashTo(c, schedulePath(id), "info", "It was removed, so it can't be changed.")
	}
	props := typedSchedule(c.QueryParams())
	if props.Pick == "" {
		p := pickedFrom(r.Cron)
		props = views.ScheduleFormProps{Name: r.Name, Pick: p.pick, Time: p.time, Days: p.days, Cron: r.Cron, Zone: r.Zone}
		if props.Time == "" {
			props.Time = "06:00"
		}
	}
	props.ID, props.Batch.ID = idText(id), idText(r.TemplateBatchID)
	return s.showScheduleForm(c, http.StatusOK, props)
}

// changeSchedule is POST /schedules/{id}/change.
func (s *Server) changeSchedule(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	props, show, err := sentSchedule(c, schedulePath(id)+"/change")
	if err != nil {
		return err
	}
	if show != "" {
		return c.Redirect(http.StatusSeeOther, show)
	}
	r, err := s.store.Schedule(c.Request().Context(), id)
	if err != nil {
		return err
	}
	props.ID, props.Batch.ID = idText(id), idText(r.TemplateBatchID)
	return s.saveSchedule(c, props, func(f pipeline.ScheduleForm) (int64, error) {
		changed, err := s.pipeline.ChangeSchedule(c.Request().Context(), id, f)
		if err != nil {
			return 0, err
		}
		if !changed {
			return id, s.flash(c, "info", "It was removed meanwhile, so nothing was changed.")
		}
		return id, s.flash(c, "success", views.Textf(c.Request().Context(), "Saved."))
	})
}
