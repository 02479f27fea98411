package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// preflight is GET /preflights/{id}. What became a batch leads there, and what
// was only kept for its form leads back to it.
func (s *Server) preflight(c echo.Context) error {
	id, err := idParam(c)
	if err != nil {
		return err
	}
	return s.showPreflight(c, id, http.StatusOK, func(*views.PreflightProps) {})
}

func (s *Server) showPreflight(c echo.Context, id int64, status int, change func(*views.PreflightProps)) error {
	f, err := s.store.Preflight(c.Request().Context(), id, &personOf(c).ID, s.now())
	switch {
	case err != nil:
		return err
	case f.BatchID != nil:
		return c.Redirect(http.StatusSeeOther, "/batches/"+idText(*f.BatchID))
	case f.Reading == 0:
		return c.Redirect(http.StatusSeeOther, newBatchPath+"?from="+idText(id))
	}
	props, err := s.preflightProps(c, f)
	if err != nil {
		return fmt.Errorf("preflight %d: %w", id, err)
	}
	change(&props)
	return render(c, status, views.Preflight(props))
}

func (s *Server) preflightProps(c echo.Context, f *store.Preflight) (views.PreflightProps, error) {
	props := views.PreflightProps{
		ID: idText(f.ID), Reading: f.Reading, Name: f.Name, Upload: f.UploadName, UploadAs: f.UploadSize, Pasted: f.PastedSize,
		ExpiresAt: f.ExpiresAt, Problem: f.Problem,
	}
	if f.ProblemField != "" {
		props.Errors = views.Errors{f.ProblemField: f.Problem}
	}
	var choices pipeline.Choices
	var found pipeline.Detected
	var sum pipeline.Totals
	for _, part := range []struct {
		raw json.RawMessage
		to  any
	}{{f.Choices, &choices}, {f.Detected, &found}, {f.Totals, &sum}} {
		if err := json.Unmarshal(part.raw, part.to); err != nil {
			return props, err
		}
	}
	days := ""
	if f.StoredDays > 0 {
		days = strconv.Itoa(f.StoredDays)
	}
	props.Choices, props.Found = choicesOf(choices, days), foundOf(found)
	totalsInto(&props, sum)
	plan, err := s.pipeline.PlanPreflight(c.Request().Context(), f)
	if err != nil {
		return props, err
	}
	props.Plan = planOf(plan)
	if err := s.preflightRows(c, f.ID, &props); err != nil {
		return props, err
	}
	props.Layout, err = s.layout(c, "Check before you submit", views.SectionNewBatch)
	return props, err
}

func choicesOf(c pipeline.Choices, days string) views.PreflightChoices {
	shown := views.PreflightChoices{
		Format: c.Format, Charset: c.Charset, Delimiter: c.Delimiter, URLColumn: c.URLColumn, KeepDuplicates: c.KeepDuplicates,
		KeepFragment: c.KeepFragment, SortQuery: c.SortQuery, StoredDays: days,
	}
	if c.Header != nil {
		shown.Header = map[bool]string{true: "yes", false: "no"}[*c.Header]
	}
	return shown
}

func foundOf(d pipeline.Detected) views.PreflightFound {
	return views.PreflightFound{
		Format: d.Format, Charset: d.Charset, Gzipped: d.Gzipped, Delimiter: d.Delimiter, Header: d.Header, URLColumn: d.URLColumn,
		Columns: d.Columns, All: d.AllColumns,
	}
}

func totalsInto(props *views.PreflightProps, sum pipeline.Totals) {
	known := func(n int) views.Count { return views.Known(int64(n)) }
	props.Submitted, props.Accepted, props.Fixed = known(sum.Submitted), known(sum.Accepted+sum.Fixed), known(sum.Fixed)
	props.Duplicate, props.Invalid = known(sum.Duplicate), known(sum.Invalid)
	for _, h := range sum.Hosts {
		props.Hosts = append(props.Hosts, views.HostLines{Host: h.Host, Name: readableHost(h.Host), URLs: known(h.Count), Private: h.Private})
	}
	props.OtherHosts, props.OtherURLs, props.PrivateURLs = known(sum.OtherHosts), known(sum.OtherURLs), known(sum.PrivateURLs)
}

func planOf(plan pipeline.PreflightPlan) views.PreflightPlan {
	return views.PreflightPlan{
		Kind: string(plan.Kind), Requests: views.Known(plan.Requests), Jobs: views.Known(plan.Jobs), Account: accountLeft(plan.Left),
		Takes: plan.Takes, Batches: views.Known(plan.Speed.Batches), URLs: views.Known(plan.Speed.URLs),
		Took: plan.Speed.Took,
	}
}

func accountLeft(u pipeline.Usage) views.AccountLeft {
	left := views.AccountLeft{At: u.At, Why: u.Why}
	if u.Known {
		left.Left = views.Known(*u.Remaining)
	}
	return left
}

// preflightRows is one page of the lines with one verdict: with the one that
// most likely needs a look, unless another is asked for.
func (s *Server) preflightRows(c echo.Context, id int64, props *views.PreflightProps) error {
	counts := map[string]int64{
		"invalid": props.Invalid.N, "fixed": props.Fixed.N, "duplicate": props.Duplicate.N, "accepted": props.Accepted.N - props.Fixed.N,
	}
	props.Tab = c.QueryParam("verdict")
	if !slices.Contains(slices.Collect(maps.Keys(counts)), props.Tab) {
		props.Tab = "accepted"
		for _, verdict := range []string{"duplicate", "fixed", "invalid"} {
			if counts[verdict] > 0 {
				props.Tab = verdict
			}
		}
	}
	after, err := positionParam(c, 0)
	if err != nil {
		return err
	}
	lines, err := s.store.PreflightLines(c.Request().Context(), id, []store.LineVerdict{store.LineVerdict(props.Tab)}, after, pageRows+1)
	if err != nil {
		return err
	}
	lines, more := cut(lines, pageRows)
	last := ""
	for i := range lines {
		props.Lines = append(props.Lines, preflightLine(&lines[i]))
		last = placeCursor(int64(lines[i].Number))
	}
	props.Pager = pager(c, cursorParam, more, last)
	return nil
}

// lineShown bounds the text of a line on a page.
const lineShown = 2000

func preflightLine(l *store.PreflightLine) views.PreflightLine {
	return views.PreflightLine{
		Number: l.Number, Original: clean(l.Original, lineShown), URL: l.URL, Reason: l.Reason, StoredItem: idOrNone(l.StoredItem),
	}
}
