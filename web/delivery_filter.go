package web

import (
	"context"
	"errors"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rollcall/store"
	"rollcall/views"
)

// mistake says what is wrong with a field, in the language of whoever is told.
type mistake func(context.Context) string

// filterError says by field what is wrong with a filter. It is an error
// that the page of the filter shows beside its fields.
type filterError map[string]mistake

// Error implements error: in English, for the log.
func (m filterError) Error() string { return m.in(context.Background()) }

// in is all of it in a line.
func (m filterError) in(ctx context.Context) string {
	said := make([]string, 0, len(m))
	for field, each := range m {
		said = append(said, field+": "+each(ctx))
	}
	slices.Sort(said)
	return strings.Join(said, "; ")
}

// mistakesOf are the mistakes that an error is; nil when it is none or another.
func mistakesOf(ctx context.Context, err error) views.Errors {
	found, ok := errors.AsType[filterError](err)
	if !ok || len(found) == 0 {
		return nil
	}
	said := views.Errors{}
	for field, each := range found {
		said[field] = each(ctx)
	}
	return said
}

// filterReader reads the fields of a filter from an address and collects what
// is wrong with them.
type filterReader struct {
	values url.Values
	wrong  filterError
}

func newFilterReader(values url.Values) *filterReader {
	return &filterReader{values: values, wrong: filterError{}}
}

// filterText is how long what is typed into a filter may be, in bytes.
const filterText = 800

// typed is a field as it was typed.
func (r *filterReader) typed(name string) string {
	return strings.TrimSpace(clean(r.values.Get(name), filterText+1))
}

func (r *filterReader) text(name string) string {
	text := r.typed(name)
	switch {
	case len(text) > filterText:
		r.wrong[name] = func(ctx context.Context) string { return views.Textf(ctx, "This is too long.") }
	case strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }):
		r.wrong[name] = func(ctx context.Context) string { return views.Textf(ctx, "This holds characters that can't be seen.") }
	default:
		return text
	}
	return ""
}

func (r *filterReader) number(name string, least, most int64) int64 {
	text := r.typed(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n >= least && n <= most {
		return n
	}
	r.wrong[name] = func(ctx context.Context) string {
		if most == math.MaxInt64 || most == math.MaxInt32 {
			return views.Textf(ctx, "This is a whole number from %d on.", least)
		}
		return views.Textf(ctx, "This is a whole number from %d to %d.", least, most)
	}
	return 0
}

func (r *filterReader) word(name string, known []string) string {
	text := r.typed(name)
	if text == "" || slices.Contains(known, text) {
		return text
	}
	r.wrong[name] = func(ctx context.Context) string {
		return views.Textf(ctx, "Choose one of: %s.", strings.Join(known, ", "))
	}
	return ""
}

// period reads since and until: the first moment, and the first after the last.
func (r *filterReader) period(zone *time.Location) (time.Time, time.Time) {
	from, _, wrong := momentOf(r.typed("since"), zone)
	if wrong != nil {
		r.wrong["since"] = wrong
	}
	_, until, wrong := momentOf(r.typed("until"), zone)
	if wrong != nil {
		r.wrong["until"] = wrong
	}
	if len(r.wrong) == 0 && !from.IsZero() && !until.IsZero() && !from.Before(until) {
		r.wrong["until"] = func(ctx context.Context) string { return views.Textf(ctx, "The end comes before the beginning.") }
	}
	return from, until
}

// err is nil when nothing was wrong.
func (r *filterReader) err() error {
	if len(r.wrong) == 0 {
		return nil
	}
	return r.wrong
}

func classes() []string { return []string{"2", "3", "4", "5"} }

func words[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, each := range all {
		out[i] = string(each)
	}
	return out
}

func verdicts() []store.Verdict {
	return []store.Verdict{store.VerdictAccepted, store.VerdictDuplicate, store.VerdictRefused, store.VerdictUnreadable}
}

// deliveryFilterOf reads a filter of the received deliveries from an address,
// its times in the zone. The error names each field that can't be read; the
// filter then does without those.
func deliveryFilterOf(values url.Values, zone *time.Location) (store.DeliveryFilter, error) {
	r := newFilterReader(values)
	class, _ := strconv.Atoi(r.word("class", classes()))
	f := store.DeliveryFilter{
		Webhook: r.number("webhook", 1, math.MaxInt64), Event: r.text("event"),
		Verdict: store.Verdict(r.word("verdict", words(verdicts()))), Class: class,
		Status: int(r.number("http", 100, 999)), Job: r.text("job"),
		Batch: r.number("batch", 1, math.MaxInt64),
	}
	f.From, f.Until = r.period(zone)
	return f, r.err()
}

// deliveryValues is the way back: the address that says the filter, whatever
// zone it is read in.
func deliveryValues(f store.DeliveryFilter) url.Values {
	values := url.Values{}
	setNumber(values, "webhook", f.Webhook)
	setText(values, "event", f.Event)
	setText(values, "verdict", string(f.Verdict))
	setNumber(values, "class", int64(f.Class))
	setNumber(values, "http", int64(f.Status))
	setText(values, "job", f.Job)
	setNumber(values, "batch", f.Batch)
	setMoment(values, "since", f.From)
	setMoment(values, "until", f.Until)
	return values
}

// logFilterOf is deliveryFilterOf for the vendor's delivery log.
func logFilterOf(values url.Values, zone *time.Location) (store.LogFilter, error) {
	r := newFilterReader(values)
	class, _ := strconv.Atoi(r.word("class", classes()))
	f := store.LogFilter{
		Webhook: r.number("webhook", 1, math.MaxInt64), Event: r.text("event"),
		Status: r.text("status"), Class: class, HTTPStatus: int(r.number("http", 100, 999)),
		Attempt: int(r.number("attempt", 1, math.MaxInt32)), Job: r.text("job"),
		Batch:    r.number("batch", 1, math.MaxInt64),
		Standing: store.Standing(r.word("standing", words(store.Standings()))),
	}
	f.From, f.Until = r.period(zone)
	return f, r.err()
}

// logValues is deliveryValues for the vendor's delivery log.
func logValues(f store.LogFilter) url.Values {
	values := url.Values{}
	setNumber(values, "webhook", f.Webhook)
	setText(values, "event", f.Event)
	setText(values, "status", f.Status)
	setNumber(values, "class", int64(f.Class))
	setNumber(values, "http", int64(f.HTTPStatus))
	setNumber(values, "attempt", int64(f.Attempt))
	setText(values, "job", f.Job)
	setNumber(values, "batch", f.Batch)
	setText(values, "standing", string(f.Standing))
	setMoment(values, "since", f.From)
	setMoment(values, "until", f.Until)
	return values
}

func setText(values url.Values, name, text string) {
	if text != "" {
		values.Set(name, text)
	}
}

func setNumber(values url.Values, name string, n int64) {
	if n > 0 {
		values.Set(name, idText(n))
	}
}

func setMoment(values url.Values, name string, at time.Time) {
	if !at.IsZero() {
		values.Set(name, at.UTC().Format(time.RFC3339))
	}
}
