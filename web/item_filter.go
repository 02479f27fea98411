package web

import (
	"context"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rollcall/store"
	"rollcall/views"
)

// itemFilterNames are the fields of a filter of items in an address.
func itemFilterNames() []string {
	return []string{
		"batch", "state", "net", "http", "code", "host", "url", "min_bytes", "max_bytes", "min_ms", "max_ms",
		"since", "until", "mark", "standing",
	}
}

func itemStates() []store.ItemState {
	return []store.ItemState{store.ItemOutstanding, store.ItemStored, store.ItemFailed, store.ItemCancelled}
}

func nets() []store.Net {
	return []store.Net{store.NetWebhook, store.NetPoll, store.NetReconcile, store.NetReplay, store.NetSync}
}

// itemFilterOf reads a filter of items from an address, its times in the zone
// of who reads it. The error is a filterError, which names each field that
// can't be read; the filter then does without those.
func itemFilterOf(values url.Values, zone *time.Location) (store.ItemFilter, error) {
	r := newFilterReader(values)
	f := store.ItemFilter{
		Batch: r.number("batch", 1, math.MaxInt64),
		State: store.ItemState(r.word("state", words(itemStates()))), Net: store.Net(r.word("net", words(nets()))),
		Code: r.text("code"), Host: typedHost(r.text("host")), URLPart: r.text("url"),
		MinBytes: r.amount("min_bytes", byteUnits), MaxBytes: r.amount("max_bytes", byteUnits),
		MinMS: r.amount("min_ms", msUnits), MaxMS: r.amount("max_ms", msUnits),
		Mark: r.text("mark"), Standing: store.FailureStanding(r.word("standing", words(store.FailureStandings()))),
	}
	f.HTTPStatus, f.HTTPClass = r.httpStatus("http")
	f.From, f.Until = r.period(zone)
	r.ordered("max_bytes", f.MinBytes, f.MaxBytes)
	r.ordered("max_ms", f.MinMS, f.MaxMS)
	return f, r.err()
}

// itemFilterValues is the way back: the address that says the filter.
func itemFilterValues(f store.ItemFilter) url.Values {
	values := url.Values{}
	setNumber(values, "batch", f.Batch)
	setText(values, "state", string(f.State))
	setText(values, "net", string(f.Net))
	setNumber(values, "http", int64(f.HTTPStatus))
	if f.HTTPStatus == 0 && f.HTTPClass > 0 {
		values.Set("http", strconv.Itoa(f.HTTPClass)+"xx")
	}
	setText(values, "code", f.Code)
	setText(values, "host", f.Host)
	setText(values, "url", f.URLPart)
	setNumber(values, "min_bytes", f.MinBytes)
	setNumber(values, "max_bytes", f.MaxBytes)
	setNumber(values, "min_ms", f.MinMS)
	setNumber(values, "max_ms", f.MaxMS)
	setMoment(values, "since", f.From)
	setMoment(values, "until", f.Until)
	setText(values, "mark", f.Mark)
	setText(values, "standing", string(f.Standing))
	return values
}

// httpStatus reads a status such as 404, or a class such as 4xx.
func (r *filterReader) httpStatus(name string) (int, int) {
	text := strings.ToLower(r.typed(name))
	if text == "" {
		return 0, 0
	}
	if class, found := strings.CutSuffix(text, "xx"); found && len(class) == 1 && class[0] >= '1' && class[0] <= '9' {
		return 0, int(class[0] - '0')
	}
	status, err := strconv.Atoi(text)
	if err != nil || status < 100 || status > 999 {
		r.wrong[name] = func(ctx context.Context) string {
			return views.Textf(ctx, "An HTTP status is a number such as 404, or a class such as 4xx.")
		}
		return 0, 0
	}
	return status, 0
}

// unit is one that an amount may be typed in.
type unit struct {
	name string
	size float64
}

// The units, the one of the number alone first.
var (
	byteUnits = []unit{{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}}                     //nolint:gochecknoglobals // A constant.
	msUnits   = []unit{{"ms", 1}, {"s", 1000}, {"min", 60_000}, {"m", 60_000}, {"h", 36e5}} //nolint:gochecknoglobals // A constant.
)

// amount reads a number with or without a unit, such as 1500, 1.5 kB or 2 s,
// in the first of the units.
func (r *filterReader) amount(name string, units []unit) int64 {
	text := strings.ReplaceAll(r.typed(name), " ", "")
	if text == "" {
		return 0
	}
	digits := strings.TrimRightFunc(text, unicode.IsLetter)
	n, err := strconv.ParseFloat(digits, 64)
	for _, each := range units {
		typed := text[len(digits):]
		if (strings.EqualFold(typed, each.name) || typed == "" && each.size == 1) && err == nil {
			if n *= each.size; n >= 1 && n <= 1<<53 {
				return int64(math.Round(n))
			}
			break
		}
	}
	r.wrong[name] = func(ctx context.Context) string {
		return views.Textf(ctx, "This is a number from 1 on, with a unit if you like, such as 1.5 %s.", units[1].name)
	}
	return 0
}

// ordered refuses an upper end that lies below the lower one.
func (r *filterReader) ordered(name string, least, most int64) {
	if least > 0 && most > 0 && least > most {
		r.wrong[name] = func(ctx context.Context) string { return views.Textf(ctx, "The upper end lies below the lower one.") }
	}
}
