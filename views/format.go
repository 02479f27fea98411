package views

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// dash is what stands for a value that isn't known. It is never written 0.
const dash = "–"

// Count is a number that may be unknown; its zero value is unknown and shown as a dash.
type Count struct {
	N     int64
	Known bool
	More  bool // counting stopped at N: there are more
}

// Known returns the Count of a number that is known.
func Known(n int64) Count { return Count{N: n, Known: true} }

// String returns the number with thousands separators, or a dash.
func (c Count) String() string {
	if !c.Known {
		return dash
	}
	if c.More {
		return thousands(c.N) + "+"
	}
	return thousands(c.N)
}

func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// sizeText returns a size in bytes as people read it: "812 B", "3.4 kB", "12 MB".
func sizeText(size int64) string {
	if size < 1000 {
		return strconv.FormatInt(size, 10) + " B"
	}
	value := float64(size)
	for _, unit := range []string{"kB", "MB", "GB"} {
		value /= 1000
		if value < 999.5 || unit == "GB" {
			return compact(value) + " " + unit
		}
	}
	return ""
}

// compact keeps one decimal below ten and none above.
func compact(value float64) string {
	if value < 9.95 {
		return strconv.FormatFloat(value, 'f', 1, 64)
	}
	return strconv.FormatFloat(value, 'f', 0, 64)
}

// durationText returns a duration as people read it: "<0.1 ms", "12 ms", "3.4 s", "2 min 5 s", "3 h 10 min", "2 d 4 h".
func durationText(d time.Duration) string {
	switch {
	case d < 0:
		return dash
	case d > 0 && d < 50*time.Microsecond:
		return "<0.1 ms"
	case d < time.Second:
		return fewDigits(float64(d.Microseconds())/1000) + " ms"
	case d < time.Minute:
		return fewDigits(d.Seconds()) + " s"
	case d < time.Hour:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	case d < 24*time.Hour:
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	default:
		return twoUnits(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

// fewDigits is compact without a zero that says nothing.
func fewDigits(value float64) string { return strings.TrimSuffix(compact(value), ".0") }

func twoUnits(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}

// utcText is what a reader without JavaScript sees: "29 Nov 2026, 14:02 UTC".
func utcText(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") }

// utcClock carries seconds: "2 Jan, 14:02:10 UTC".
func utcClock(t time.Time) string { return t.UTC().Format("2 Jan, 15:04:05 UTC") }

// utcExact carries milliseconds, for timelines: "14:02:10.123 UTC".
func utcExact(t time.Time) string { return t.UTC().Format("2 Jan, 15:04:05.000 UTC") }

// dayText is a day of this week or so: "Fri 27 Nov".
func dayText(ctx context.Context, t time.Time) string {
	return Textf(ctx, "%s %d %s", tr(ctx, weekdayName(t.Weekday())), t.Day(), tr(ctx, monthName(t.Month())))
}

// dateText is any day: "27 Nov 2026".
func dateText(ctx context.Context, t time.Time) string {
	return Textf(ctx, "%d %s %d", t.Day(), tr(ctx, monthName(t.Month())), t.Year())
}

// clockText is a time on the clock that it is of: "Mon 30 Nov 2026, 15:02 CET".
func clockText(ctx context.Context, t time.Time) string {
	return Textf(ctx, "%s %d %s %d, %s", tr(ctx, weekdayName(t.Weekday())), t.Day(), tr(ctx, monthName(t.Month())), t.Year(), t.Format("15:04 MST"))
}

// weekdayName is short; the catalog has each of them.
func weekdayName(day time.Weekday) string {
	switch day {
	case time.Monday:
		return "Mon"
	case time.Tuesday:
		return "Tue"
	case time.Wednesday:
		return "Wed"
	case time.Thursday:
		return "Thu"
	case time.Friday:
		return "Fri"
	case time.Saturday:
		return "Sat"
	case time.Sunday:
		return "Sun"
	}
	return dash
}

// monthName is short; the catalog has each of them.
func monthName(month time.Month) string {
	switch month {
	case time.January:
		return "Jan"
	case time.February:
		return "Feb"
	case time.March:
		return "Mar"
	case time.April:
		return "Apr"
	case time.May:
		return "May"
	case time.June:
		return "Jun"
	case time.July:
		return "Jul"
	case time.August:
		return "Aug"
	case time.September:
		return "Sep"
	case time.October:
		return "Oct"
	case time.November:
		return "Nov"
	case time.December:
		return "Dec"
	}
	return dash
}

// machineTime is the datetime attribute's form.
func machineTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// shortID keeps lists readable when ids are long; whole ids stand in links and titles.
func shortID(id string) string {
	if len(id) <= 12 {
		return id
	}
	return id[:8] + "…"
}

// percent returns part of whole as "41 %", or a dash when either is unknown or whole is zero.
func percent(part, whole Count) string {
	if !part.Known || !whole.Known || whole.N <= 0 {
		return dash
	}
	switch share := float64(part.N) * 100 / float64(whole.N); {
	case share > 0 && share < 1:
		return "<1 %"
	case share > 99 && share < 100:
		return ">99 %"
	default:
		return strconv.FormatFloat(share, 'f', 0, 64) + " %"
	}
}
