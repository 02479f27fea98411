package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// resubmitMost is how many failures one press sends at most, and resubmitShown
// how many of them the plan names.
const (
	resubmitMost  = 20_000
	resubmitShown = 20
)

// picked is what a resubmission is about: items that were ticked, or all the
// failures that match.
type picked struct {
	all    bool
	ids    []int64
	filter store.Failed
}

func pickedItems(ctx context.Context, values url.Values) (picked, error) {
	p := picked{all: values.Get("all") != ""}
	var err error
	if !p.all {
		p.ids, err = pickedIDs(ctx, values, "item")
		return p, err
	}
	p.filter, err = failedFilter(values)
	return p, err
}

// groupKey is how the key of a group of failures is spelled.
var groupKey = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// standingAll asks for failures whatever people did with them.
const standingAll = "all"

// failedFilter reads which failures a list or a plan is about: those that wait
// for a person, unless it says otherwise.
func failedFilter(values url.Values) (store.Failed, error) {
	f := store.Failed{
		Code: clean(values.Get("code"), 100), Host: typedHost(values.Get("host")), Group: strings.ToLower(values.Get("group")),
		Standing: store.FailureWaiting,
	}
	switch values.Get("standing") {
	case "", string(store.FailureWaiting):
	case string(store.FailureResolved):
		f.Standing = store.FailureResolved
	case standingAll:
		f.Standing = ""
	default:
		return f, notFound()
	}
	if f.Group != "" && !groupKey.MatchString(f.Group) {
		return f, notFound()
	}
	if text := values.Get("batch"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return f, notFound()
		}
		f.BatchID = id
	}
	return f, nil
}

// pickedByPlan reads what the press of a plan is about: the ticked items, or the
// set that the plan froze, as they were at the time that it names.
func (s *Server) pickedByPlan(ctx context.Context, form url.Values) (picked, time.Time, error) {
	p, err := pickedItems(ctx, form)
	if err != nil {
		return p, time.Time{}, err
	}
	micros, err := strconv.ParseInt(form.Get("before"), 10, 64)
	before := time.UnixMicro(micros).UTC()
	whole := true
	if p.all {
		p.ids, whole = thaw(form.Get("set"), resubmitMost)
	}
	if err != nil || !whole || micros <= 0 || before.After(s.now().Add(time.Minute)) {
		return p, before, badRequest("The plan is damaged, so nothing was done. Open it again.", err)
	}
	return p, before, nil
}

// frozenFailures are the failures that match, at most as many of the latest as
// one press takes, and whether there are more.
func (s *Server) frozenFailures(ctx context.Context, f store.Failed) ([]int64, bool, error) {
	ids, err := s.store.FailedItems(ctx, f, resubmitMost+1)
	if err != nil {
		return nil, false, err
	}
	ids, more := cut(ids, resubmitMost)
	return ids, more, nil
}

// planResubmit is GET /resubmit: what would be asked for again, and what that
// may cost.
func (s *Server) planResubmit(c echo.Context) error {
	p, err := pickedItems(c.Request().Context(), c.QueryParams())
	if err != nil {
		return err
	}
	// The database keeps microseconds, and the form carries them.
	before := s.now().Truncate(time.Microsecond)
	props := views.ResubmitProps{All: p.all, Before: strconv.FormatInt(before.UnixMicro(), 10), BeforeAt: before}
	if p.all {
		p.filter.Before = before
		err = s.planMatching(c, p.filter, &props)
	} else {
		err = s.planTicked(c, p.ids, before, &props)
	}
	if err != nil {
		return fmt.Errorf("plan to resubmit: %w", err)
	}
	if props.Layout, err = s.layout(c, views.Textf(c.Request().Context(), "Resubmit"), views.SectionFailures); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Resubmit(props))
}

func (s *Server) planMatching(c echo.Context, f store.Failed, props *views.ResubmitProps) error {
	ctx := c.Request().Context()
	props.Back, props.BackText = failuresPath(f), "Failures"
	props.Code, props.Host = f.Code, f.Host
	if f.BatchID > 0 {
		batch, err := s.store.PageBatch(ctx, f.BatchID)
		if err != nil {
			return err
		}
		props.BatchID, props.BatchName = idText(f.BatchID), batch.Name
	}
	props.Standing, props.Group = standingParam(f.Standing), f.Group
	ids, more, err := s.frozenFailures(ctx, f)
	if err != nil {
		return err
	}
	sum, err := s.store.PageAgain(ctx, ids, f.Before, s.pipeline.URLsPerJob())
	if err != nil {
		return err
	}
	fillAgain(props, sum)
	props.Set, props.More = freeze(ids), more
	first, err := s.store.PageFailures(ctx, f, store.Key{}, resubmitShown)
	for i := range first {
		props.First = append(props.First, itemRow(&first[i].ItemRow))
	}
	return err
}

func (s *Server) planTicked(c echo.Context, ids []int64, before time.Time, props *views.ResubmitProps) error {
	ctx := c.Request().Context()
	props.Back, props.BackText = "/failures", "Failures"
	for _, id := range ids {
		props.ItemIDs = append(props.ItemIDs, idText(id))
	}
	rows, err := s.store.PageEnded(ctx, ids, before)
	if err != nil {
		return err
	}
	for i := range rows[:min(len(rows), resubmitShown)] {
		props.First = append(props.First, itemRow(&rows[i]))
	}
	if len(ids) == 1 {
		props.Back, props.BackText = "/items/"+idText(ids[0]), views.Textf(ctx, "Item")
	} else if len(rows) > 0 && sameBatch(rows) {
		props.Back, props.BackText = "/batches/"+idText(rows[0].BatchID)+"/items?state="+string(rows[0].State), views.Textf(ctx, "Batch")
	}
	sum, err := s.store.PageAgain(ctx, ids, before, s.pipeline.URLsPerJob())
	fillAgain(props, sum)
	props.Left = views.Known(int64(len(ids)) - sum.Items)
	return err
}

func sameBatch(rows []store.ItemRow) bool {
	for i := range rows {
		if rows[i].BatchID != rows[0].BatchID {
			return false
		}
	}
	return true
}

func fillAgain(p *views.ResubmitProps, sum store.Again) {
	p.URLs, p.Jobs = views.Known(sum.Items), views.Known(sum.Jobs)
	p.Requests = views.Known(sum.Items - sum.Seeds + sum.Limits)
	p.Final, p.Lost = views.Known(sum.Final), views.Known(sum.Lost)
	p.Crawls, p.Left = views.Known(sum.Seeds), views.Known(0)
}

// resubmit is POST /resubmit. What has been sent again since its plan was shown
// is left alone, so a second press sends nothing twice.
func (s *Server) resubmit(c echo.Context) error {
	r := c.Request()
	if err := parseForm(r); err != nil {
		return err
	}
	form := r.PostForm
	p, before, err := s.pickedByPlan(r.Context(), form)
	if err != nil {
		return err
	}
	done, back, err := s.resubmitPicked(c, p, before)
	if err != nil {
		return fmt.Errorf("resubmit: %w", err)
	}
	if err := s.flash(c, resubmittedLevel(done), resubmittedText(r.Context(), done, form.Get("more") != "")); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, back)
}

// resubmitPicked sends what was picked and says which page it was picked on.
func (s *Server) resubmitPicked(c echo.Context, p picked, before time.Time) (pipeline.Resubmitted, string, error) {
	if !p.all {
		return s.resubmitTicked(c, p.ids, before)
	}
	back, as := failuresPath(ungrouped(p.filter)), store.AsPlanned{Before: before, Standing: p.filter.Standing}
	ids, err := s.store.EndedIDs(c.Request().Context(), p.ids, as)
	if err != nil || len(ids) == 0 {
		return pipeline.Resubmitted{}, back, err
	}
	done, err := s.pipeline.Resubmit(c.Request().Context(), ids, as)
	if err != nil || done.BatchID == 0 {
		return done, back, err
	}
	// Where nothing is left to show, the batch shows what comes of it.
	left := int64(0)
	if p.filter.Group == "" {
		left, err = s.store.CountFailures(c.Request().Context(), p.filter)
	}
	if left == 0 {
		back = "/batches/" + idText(done.BatchID)
	}
	return done, back, err
}

func (s *Server) resubmitTicked(c echo.Context, ids []int64, before time.Time) (pipeline.Resubmitted, string, error) {
	ctx := c.Request().Context()
	rows, err := s.store.PageEnded(ctx, ids, before)
	if err != nil {
		return pipeline.Resubmitted{}, "", err
	}
	back := "/failures"
	if len(ids) == 1 {
		back = "/items/" + idText(ids[0])
	} else if len(rows) > 0 && sameBatch(rows) {
		back = "/batches/" + idText(rows[0].BatchID)
	}
	ids = ids[:0]
	for i := range rows {
		ids = append(ids, rows[i].ID)
	}
	if len(ids) == 0 {
		return pipeline.Resubmitted{}, back, nil
	}
	done, err := s.pipeline.Resubmit(ctx, ids, store.AsPlanned{Before: before})
	return done, back, err
}

func resubmittedLevel(done pipeline.Resubmitted) string {
	switch {
	case len(done.Sealed) > 0:
		return "warning"
	case done.Items == 0:
		return "info"
	}
	return "success"
}

// resubmittedText says what was sent, and what could not be.
func resubmittedText(ctx context.Context, done pipeline.Resubmitted, more bool) string {
	if len(done.Sealed) == 0 {
		return sentText(ctx, done, more)
	}
	text := sealedText(ctx, done.Sealed)
	if done.Items > 0 {
		text = sentText(ctx, done, more) + " " + text
	}
	return text
}

// sealedShown is how many batches a sentence names.
const sealedShown = 5

// sealedText names the batches that were left alone for their headers.
func sealedText(ctx context.Context, ids []int64) string {
	if len(ids) == 1 {
		return views.Textf(ctx, "The URLs of batch %s stay as they are: the custom headers were sealed with a key that is lost, and nothing is sent without them.", idText(ids[0]))
	}
	names := make([]string, 0, sealedShown+1)
	for _, id := range ids[:min(len(ids), sealedShown)] {
		names = append(names, idText(id))
	}
	if more := len(ids) - sealedShown; more > 0 {
		names = append(names, views.Textf(ctx, "%s more", number(int64(more))))
	}
	return views.Textf(ctx, "The URLs of the batches %s stay as they are: the custom headers were sealed with a key that is lost, and nothing is sent without them.", listed(ctx, names))
}

func sentText(ctx context.Context, done pipeline.Resubmitted, more bool) string {
	switch {
	case done.Items == 0:
		return "Nothing was resubmitted: none of these URLs has failed or is cancelled any more, or somebody resolved them since."
	case more:
		return views.Counted(ctx, views.Known(done.Items),
			"%s URL was resubmitted. As many as one press takes: more match, so press again for those.",
			"%s URLs were resubmitted. As many as one press takes: more match, so press again for those.")
	case done.Items == 1:
		return views.Textf(ctx, "1 URL was resubmitted.")
	}
	return views.Textf(ctx, "%s were resubmitted in %s.", views.Counted(ctx, views.Known(done.Items), "%s URL", "%s URLs"),
		views.Counted(ctx, views.Known(done.Jobs), "%s job", "%s jobs"))
}
