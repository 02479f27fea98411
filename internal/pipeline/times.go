package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"rollcall/store"
)

// Times are the moments that a cron expression names in a time zone.
//
// The expression is read on the wall clock of the zone. Where that clock jumps
// forward, what it skips comes as it has jumped: 02:30 runs at 03:00, once. Where
// it goes back, what comes twice runs the first time only. An expression whose
// hour is * means every hour that passes: it skips no hour and runs in both.
type Times struct {
	spec   cron.Schedule // On a clock that never jumps.
	hourly bool          // The hour is *.
	zone   *time.Location
}

const (
	// longestCron bounds an expression, in bytes.
	longestCron = 200
	// longestZone is longer than any name of the tz database, in bytes.
	longestZone = 64
	// mostPeriods bounds the changes of the clock that are looked across for the
	// next time: two a year for as long as the expression is looked ahead.
	mostPeriods = 64
)

// cronFields are the parts of an expression, as a reader is told of them.
//
//nolint:gochecknoglobals // A table that nothing changes.
var cronFields = []struct{ name, gives string }{
	{"minute", "0 to 59"},
	{"hour", "0 to 23"},
	{"day of the month", "1 to 31"},
	{"month", "1 to 12 or JAN to DEC"},
	{"day of the week", "0 to 7 or SUN to SAT, where 0 and 7 are Sunday"},
}

// cronParser takes five fields and nothing else. A day of the month and a day of
// the week that are both given mean either, as in every cron.
func cronParser() (cron.Parser, error) {
	return cron.TryNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom)
}

// ReadTimes reads a cron expression of five fields and the name of a zone. It
// returns *InvalidSubmission, naming the fields "cron" and "zone", when they
// cannot be read or name no time at all.
func ReadTimes(expression, zone string) (Times, error) {
	wrong := &InvalidSubmission{}
	spec, message := readCron(expression)
	if message != "" {
		wrong.Fields = append(wrong.Fields, FieldError{"cron", message})
	}
	place, err := readZone(zone)
	if err != nil {
		wrong.Fields = append(wrong.Fields, FieldError{"zone", err.Error()})
	}
	if len(wrong.Fields) > 0 {
		return Times{}, wrong
	}
	return Times{spec: spec, zone: place, hourly: strings.Fields(expression)[1] == "*"}, nil
}

// CleanCron is an expression with one space between its fields.
func CleanCron(expression string) string {
	return strings.ToUpper(strings.Join(strings.Fields(expression), " "))
}

func readZone(name string) (*time.Location, error) {
	if name == "" {
		return nil, errors.New("choose a time zone, such as Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	// "Local" is the server's own zone, whichever that is.
	if err != nil || name == "Local" || len(name) > longestZone {
		return nil, fmt.Errorf("no time zone is called %q; they are named like Europe/Berlin", clip(store.CleanText(name), longestZone))
	}
	return zone, nil
}

// readCron reads an expression, or says what is wrong with which field.
func readCron(expression string) (cron.Schedule, string) {
	fields := strings.Fields(expression)
	switch {
	case len(expression) > longestCron:
		return nil, fmt.Sprintf("the expression is over %d bytes", longestCron)
	case len(fields) != len(cronFields):
		return nil, fmt.Sprintf("an expression has five fields: minute, hour, day of the month, month, day of the week; this has %d", len(fields))
	}
	parser, err := cronParser()
	if err != nil {
		return nil, err.Error()
	}
	spec, err := parser.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, wrongCron(parser, fields)
	}
	if spec.Next(time.Unix(0, 0).UTC()).IsZero() {
		return nil, "no day is ever like that"
	}
	return spec, ""
}

// wrongCron tries the fields one by one.
func wrongCron(parser cron.Parser, fields []string) string {
	for i, each := range fields {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = each
		if _, err := parser.Parse(strings.Join(alone, " ")); err != nil {
			return fmt.Sprintf("the %s cannot be %q: give %s, as one, a range such as 1-5, a list with commas, or *",
				cronFields[i].name, clip(store.CleanText(each), 40), cronFields[i].gives)
		}
	}
	return "this cannot be read as a cron expression"
}

// Next is the first of the times after a moment; zero when none follows. It goes
// through the stretches in which the zone's clock does not change.
func (t Times) Next(after time.Time) time.Time {
	from := onWall(after, offsetAt(after, t.zone))
	for range mostPeriods {
		start, end := after.In(t.zone).ZoneBounds()
		offset := offsetAt(after, t.zone)
		wall := t.spec.Next(t.pastRepeat(from, start, offset))
		if wall.IsZero() {
			return time.Time{}
		}
		if at := wall.Add(-offset); end.IsZero() || at.Before(end) {
			return at
		}
		if !t.hourly && wall.Before(onWall(end, offsetAt(end, t.zone))) {
			return end.UTC() // The clock never shows it.
		}
		after, from = end, onWall(end, offsetAt(end, t.zone)).Add(-1)
	}
	return time.Time{}
}

// pastRepeat moves what the clock shows for the second time, since it went back
// at the start, on to the last moment of that.
func (t Times) pastRepeat(wall, start time.Time, offset time.Duration) time.Time {
	if t.hourly || start.IsZero() {
		return wall
	}
	// What it would show had it not gone back; earlier where it went forward.
	fresh := onWall(start, offsetAt(start.Add(-1), t.zone)).Add(-1)
	if offsetAt(start.Add(-1), t.zone) > offset && wall.Before(fresh) {
		return fresh
	}
	return wall
}

// offsetAt is how far the zone's clock is ahead of UTC.
func offsetAt(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// onWall is what the clock shows, as if it were UTC: a clock that never jumps.
func onWall(at time.Time, offset time.Duration) time.Time { return at.UTC().Add(offset) }

// Following are the next so many times after a moment.
func (t Times) Following(after time.Time, n int) []time.Time {
	var out []time.Time
	for range n {
		if after = t.Next(after); after.IsZero() {
			break
		}
		out = append(out, after)
	}
	return out
}
