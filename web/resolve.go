package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

// noteMost is how long a note on a failure may be, in characters.
const noteMost = 1000

// planResolve is GET /failures/resolve: which failures would be resolved, and
// the field for the note.
func (s *Server) planResolve(c echo.Context) error {
	p, err := pickedItems(c.Request().Context(), c.QueryParams())
	if err != nil {
		return err
	}
	before := s.now().Truncate(time.Microsecond)
	if p.all {
		p.filter.Before, p.filter.Standing = before, store.FailureWaiting
		var more bool
		if p.ids, more, err = s.frozenFailures(c.Request().Context(), p.filter); err != nil {
			return fmt.Errorf("plan to resolve: %w", err)
		}
		return s.showResolve(c, http.StatusOK, p, before, views.ResolveProps{More: more})
	}
	return s.showResolve(c, http.StatusOK, p, before, views.ResolveProps{})
}

// showResolve shows the plan with what was typed.
func (s *Server) showResolve(c echo.Context, status int, p picked, before time.Time, props views.ResolveProps) error {
	ctx := c.Request().Context()
	ids, err := s.store.EndedIDs(ctx, p.ids, store.AsPlanned{Before: before, Standing: store.FailureWaiting})
	if err != nil {
		return fmt.Errorf("plan to resolve: %w", err)
	}
	first, err := s.store.PageEnded(ctx, ids[:min(len(ids), resubmitShown)], before)
	if err != nil {
		return fmt.Errorf("plan to resolve: %w", err)
	}
	for i := range first {
		props.First = append(props.First, itemRow(&first[i]))
	}
	props.Count, props.Set = views.Known(int64(len(ids))), freeze(ids)
	props.Before, props.BeforeAt = strconv.FormatInt(before.UnixMicro(), 10), before
	props.Back, props.BackText = failuresPath(p.filter), "Failures"
	if !p.all && len(p.ids) == 1 {
		props.Back, props.BackText = "/items/"+idText(p.ids[0]), views.Textf(ctx, "Item")
	}
	props.Filter = filterPairs(p)
	if props.Layout, err = s.layout(c, views.Textf(ctx, "Resolve"), views.SectionFailures); err != nil {
		return err
	}
	return render(c, status, views.Resolve(props))
}

// filterPairs are the hidden fields that say what a plan was about.
func filterPairs(p picked) []views.Pair {
	var pairs []views.Pair
	values := filterValues(p.filter)
	for _, name := range []string{"code", "host", "batch", "group", "standing"} {
		if value := values.Get(name); value != "" {
			pairs = append(pairs, views.Pair{Name: name, Value: value})
		}
	}
	return pairs
}

// resolve is POST /failures/resolve. What a person resolved stays failed.
func (s *Server) resolve(c echo.Context) error {
	form, p, before, err := s.setForm(c)
	if err != nil {
		return err
	}
	note := strings.TrimSpace(store.CleanText(form.Get("note")))
	if wrong := wrongNote(c.Request().Context(), note); wrong != "" {
		return s.showResolve(c, http.StatusUnprocessableEntity, p, before, views.ResolveProps{
			Note: clean(note, 4*noteMost), More: form.Get("more") != "", Errors: views.Errors{"note": wrong},
		})
	}
	done, err := s.pipeline.Resolve(c.Request().Context(), p.ids, note, before)
	if err != nil {
		return fmt.Errorf("resolve failures: %w", err)
	}
	level, text := "success", views.Counted(c.Request().Context(), views.Known(done), "%s failure was resolved.", "%s failures were resolved.")
	if done == 0 {
		level, text = "info", "Nothing was resolved: none of these failures waits any more."
	}
	return s.backFrom(c, p, level, text)
}

// unresolve is POST /failures/unresolve: failures wait for a person again.
func (s *Server) unresolve(c echo.Context) error {
	r := c.Request()
	if err := parseForm(r); err != nil {
		return err
	}
	p := picked{filter: store.Failed{Standing: store.FailureResolved}}
	var err error
	if p.ids, err = pickedIDs(r.Context(), r.PostForm, "item"); err != nil {
		return err
	}
	done, err := s.pipeline.Unresolve(c.Request().Context(), p.ids)
	if err != nil {
		return fmt.Errorf("unresolve failures: %w", err)
	}
	level, text := "success", views.Counted(r.Context(), views.Known(done), "%s failure waits again.", "%s failures wait again.")
	if done == 0 {
		level, text = "info", "Nothing was unresolved: tick failures that are resolved."
	}
	return s.backFrom(c, p, level, text)
}

// setForm reads the press of a plan that carries its set.
func (s *Server) setForm(c echo.Context) (url.Values, picked, time.Time, error) {
	r := c.Request()
	if err := parseForm(r); err != nil {
		return nil, picked{}, time.Time{}, err
	}
	r.PostForm.Set("all", "1")
	p, before, err := s.pickedByPlan(r.Context(), r.PostForm)
	return r.PostForm, p, before, err
}

func (s *Server) backFrom(c echo.Context, p picked, level, text string) error {
	if err := s.flash(c, level, text); err != nil {
		return err
	}
	p.filter.Group = "" // Nothing of the group may be left to show.
	back := failuresPath(p.filter)
	if len(p.ids) == 1 && p.filter.BatchID == 0 {
		back = "/items/" + idText(p.ids[0])
	}
	return c.Redirect(http.StatusSeeOther, back)
}

func wrongNote(ctx context.Context, note string) string {
	switch {
	case note == "":
		return "Say why, so that others know."
	case len([]rune(note)) > noteMost:
		return views.Textf(ctx, "At most %s characters.", number(noteMost))
	}
	return ""
}
