package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"rollcall/store"
	"rollcall/views"
)

const auditPath = "/audit"

// longestFilter is the longest text that a filter looks for, in bytes.
const longestFilter = 300

// audit is GET /audit.
func (s *Server) audit(c echo.Context) error {
	from, err := keyParam(c)
	if err != nil {
		return err
	}
	filter, errs := auditFilterOf(c.Request().Context(), c.QueryParams(), readerZone(c))
	props := auditProps(c, filter)
	props.Errors = errs
	status := http.StatusOK
	if len(errs) > 0 {
		status = http.StatusUnprocessableEntity
	} else if err := s.fillAudit(c, filter, from, &props); err != nil {
		return fmt.Errorf("list the audit log: %w", err)
	}
	if err := s.auditChoices(c, &props); err != nil {
		return fmt.Errorf("list what the audit log tells of: %w", err)
	}
	if props.Layout, err = s.layout(c, "Audit log", views.SectionAudit); err != nil {
		return err
	}
	return render(c, status, views.Audit(props))
}

// auditProps shows the filter as it was typed.
func auditProps(c echo.Context, f store.AuditFilter) views.AuditProps {
	typed := auditTyped(c.QueryParams())
	return views.AuditProps{
		Who: f.Who, What: f.What, Kind: f.Kind, ID: f.ID, Since: typed.Get("since"), Until: typed.Get("until"),
		Zone: readerZone(c).String(), Filtered: len(typed) > 0,
		CSV: address(auditPath+".csv", typed), JSONL: address(auditPath+".jsonl", typed),
	}
}

// auditTyped is what of an address is the filter.
func auditTyped(query url.Values) url.Values {
	typed := url.Values{}
	for _, name := range []string{"who", "what", "kind", "id", "since", "until"} {
		if text := clean(strings.TrimSpace(query.Get(name)), 2*longestFilter); text != "" {
			typed.Set(name, text)
		}
	}
	return typed
}

// auditFilterOf reads a filter from an address, times in the reader's zone, and
// says what is wrong with it by field.
func auditFilterOf(ctx context.Context, query url.Values, zone *time.Location) (store.AuditFilter, views.Errors) {
	typed, errs := auditTyped(query), views.Errors{}
	f := store.AuditFilter{Who: typed.Get("who"), What: typed.Get("what"), Kind: typed.Get("kind"), ID: typed.Get("id")}
	for _, name := range []string{"who", "what", "kind", "id"} {
		if len(typed.Get(name)) > longestFilter {
			errs[name] = views.Textf(ctx, "This has at most %d bytes.", longestFilter)
		}
	}
	if f.ID != "" && f.Kind == "" {
		errs["kind"] = views.Textf(ctx, "Choose what %q is the id or the name of.", f.ID)
	}
	var wrong mistake
	if f.From, _, wrong = momentOf(typed.Get("since"), zone); wrong != nil {
		errs["since"] = wrong(ctx)
	}
	// A day alone is the whole of it.
	if _, f.Until, wrong = momentOf(typed.Get("until"), zone); wrong != nil {
		errs["until"] = wrong(ctx)
	}
	if !f.From.IsZero() && !f.Until.IsZero() && !f.From.Before(f.Until) {
		errs["until"] = "The end lies before the beginning."
	}
	return f, errs
}

// momentOf reads a time as people type it, in their zone: where it begins and
// where it ends, which differ for a day without a time; or what is wrong with
// it.
func momentOf(text string, zone *time.Location) (time.Time, time.Time, mistake) {
	if text == "" {
		return time.Time{}, time.Time{}, nil
	}
	for _, form := range []string{"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05", time.RFC3339} {
		if at, err := time.ParseInLocation(form, text, zone); err == nil {
			return inRange(at, at)
		}
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return inRange(day, day.AddDate(0, 0, 1))
	}
	return time.Time{}, time.Time{}, func(ctx context.Context) string {
		return views.Textf(ctx, "%q is no time. Write it like 2026-11-29 14:00, or 2026-11-29 for the day.", text)
	}
}

// inRange keeps out times that the database doesn't take.
func inRange(begin, end time.Time) (time.Time, time.Time, mistake) {
	if begin.Year() < 1970 || end.Year() > 9998 {
		return time.Time{}, time.Time{}, func(ctx context.Context) string {
			return views.Textf(ctx, "The year must lie between 1970 and 9998.")
		}
	}
	return begin.UTC(), end.UTC(), nil
}

func (s *Server) fillAudit(c echo.Context, f store.AuditFilter, from store.Key, props *views.AuditProps) error {
	rows, next, err := s.store.PageAudit(c.Request().Context(), f, from, pageRows)
	if err != nil {
		return err
	}
	for i := range rows {
		props.Rows = append(props.Rows, auditRow(c.Request().Context(), &rows[i]))
	}
	props.Pager = pager(c, cursorParam, next.ID != 0, keyCursor(next.At, next.ID))
	return nil
}

// auditChoices offers what the log tells of, and what is chosen.
func (s *Server) auditChoices(c echo.Context, props *views.AuditProps) error {
	whats, err := s.store.AuditWords(c.Request().Context())
	if err != nil {
		return err
	}
	kinds, err := s.store.AuditKinds(c.Request().Context())
	if err != nil {
		return err
	}
	props.Whats, props.Kinds = choices(whats, props.What), choices(kinds, props.Kind)
	return nil
}

func choices(words []string, chosen string) []views.Option {
	if chosen != "" && !slices.Contains(words, chosen) {
		words = append(words, chosen)
	}
	options := make([]views.Option, len(words))
	for i, word := range words {
		options[i] = views.Option{Value: word, Text: word}
	}
	return options
}

func auditRow(ctx context.Context, row *store.AuditRow) views.AuditRow {
	return views.AuditRow{
		At: row.At, Who: row.Who, WhoLink: address(auditPath, url.Values{"who": {row.Who}}), Source: row.Source,
		What: row.What, Kind: row.Kind, ID: row.OnID, Link: auditLink(row), Changes: auditChanges(ctx, row.Before, row.After),
	}
}

// auditLink leads to the page of the thing, or to all that was done to it.
func auditLink(row *store.AuditRow) string {
	if row.OnID == "" {
		return ""
	}
	switch row.Kind {
	case "batch":
		return "/batches/" + url.PathEscape(row.OnID)
	case "item":
		return "/items/" + url.PathEscape(row.OnID)
	case "job":
		return "/jobs/" + url.PathEscape(row.OnID)
	case "delivery":
		return "/deliveries/" + url.PathEscape(row.OnID)
	case "webhook":
		return "/webhooks/" + url.PathEscape(row.OnID)
	case "replay":
		return "/replays/" + url.PathEscape(row.OnID)
	case "export":
		return "/exports/" + url.PathEscape(row.OnID)
	}
	return address(auditPath, url.Values{"kind": {row.Kind}, "id": {row.OnID}})
}

// auditChanges sets what was kept of a change side by side, member by member;
// what stayed as it was is left out.
func auditChanges(ctx context.Context, before, after json.RawMessage) []views.AuditChange {
	was, okWas := members(before)
	is, okIs := members(after)
	if !okWas || !okIs {
		return []views.AuditChange{auditChange(ctx, "", before, after)}
	}
	names := make(map[string]json.RawMessage, len(was)+len(is))
	maps.Copy(names, was)
	maps.Copy(names, is)
	var changes []views.AuditChange
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(was[name], is[name]) {
			changes = append(changes, auditChange(ctx, name, was[name], is[name]))
		}
	}
	return changes
}

// membersDeep is how many objects within each other are spread out.
const membersDeep = 4

// members are those of a JSON object, and of the objects in it, each by the way
// that leads to it; nothing at all has none.
func members(side json.RawMessage) (map[string]json.RawMessage, bool) {
	if len(side) == 0 {
		return nil, true
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(side, &object); err != nil || object == nil {
		return nil, false
	}
	all := make(map[string]json.RawMessage, len(object))
	for name, value := range object {
		spread(all, name, value, membersDeep)
	}
	return all, true
}

// spread puts a value among the members: an object member by member.
func spread(all map[string]json.RawMessage, name string, value json.RawMessage, deep int) {
	var object map[string]json.RawMessage
	if deep == 0 || json.Unmarshal(value, &object) != nil || len(object) == 0 {
		all[name] = value
		return
	}
	for each, inner := range object {
		spread(all, name+"."+each, inner, deep-1)
	}
}

func auditChange(ctx context.Context, name string, before, after json.RawMessage) views.AuditChange {
	return views.AuditChange{
		Name: name, Before: auditValue(ctx, before), After: auditValue(ctx, after), Was: len(before) > 0, Is: len(after) > 0,
	}
}

// shownOfMember is how much of one member the page shows; exports have all.
const shownOfMember = 300

// auditValue is a value as people read it: a time as one, on their clock.
func auditValue(ctx context.Context, value json.RawMessage) views.AuditValue {
	var at time.Time
	if len(value) > 0 && json.Unmarshal(value, &at) == nil && !at.IsZero() {
		return views.AuditValue{At: at}
	}
	return views.AuditValue{Text: auditText(ctx, value)}
}

// auditText is a value in words: text without quotes, an empty one by name, and
// a list with commas.
func auditText(ctx context.Context, value json.RawMessage) string {
	text := string(value)
	var plain string
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil && len(list) > 0 {
		texts := make([]string, len(list))
		for i := range list {
			texts[i] = auditText(ctx, list[i])
		}
		text = strings.Join(texts, ", ")
	}
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &plain) == nil {
		text = plain
		if text == "" {
			text = views.Textf(ctx, "(empty)")
		}
	}
	if len(text) > shownOfMember {
		text = clean(text, shownOfMember) + "…"
	}
	return text
}
