package views

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Verdict is the overview's first line: whether all is well, since when, and
// what was the matter last.
type Verdict struct {
	Level    string // VerdictWell, VerdictLook, VerdictBad or VerdictNew
	Troubles []Trouble
	Since    time.Time // from when on all is well; zero when there is trouble
	Last     *Trouble  // the last one that is over; nil when none is known
	Rolled   time.Time // when the hours were last counted; zero before
}

// The levels of a Verdict.
const (
	VerdictWell = "well" // nothing needs anybody
	VerdictLook = "look" // all comes home, but not as it should
	VerdictBad  = "bad"  // something stands still or needs somebody
	VerdictNew  = "new"  // nothing was ever submitted
)

// Trouble is one thing that is or was the matter.
type Trouble struct {
	At   time.Time // since when, or when it was over
	Text string
	Path string // where to look; or empty
}

// title is the verdict in a few words.
func (v Verdict) title() string {
	switch v.Level {
	case VerdictBad:
		return "Something needs attention"
	case VerdictLook:
		return "All comes home, but not as it should"
	case VerdictNew:
		return "Ready for a first batch"
	}
	return "All is well"
}

// look is how the level is shown.
func (v Verdict) look() look {
	switch v.Level {
	case VerdictBad:
		return look{"bad", "alert-triangle", v.title()}
	case VerdictLook:
		return look{"warn", "alert-circle", v.title()}
	case VerdictNew:
		return look{"info", "info-circle", v.title()}
	}
	return look{"ok", "circle-check", v.title()}
}

// HappenedRow is one line of what happened last.
type HappenedRow struct {
	At   time.Time
	Icon string
	Text string
	Path string // empty when there is no page for everybody
}

// StatTime is a length of time that may be unknown; its zero value is unknown.
type StatTime struct {
	D     time.Duration
	Known bool
}

// String is the time as people read it, or a dash.
func (s StatTime) String() string {
	if !s.Known {
		return dash
	}
	return durationText(s.D)
}

// data is the time for the chart, in seconds; empty when it isn't known.
func (s StatTime) data() string {
	if !s.Known {
		return ""
	}
	return strconv.FormatFloat(s.D.Seconds(), 'f', 3, 64)
}

// data is the number for the chart; empty when it isn't known.
func (c Count) data() string {
	if !c.Known {
		return ""
	}
	return strconv.FormatInt(c.N, 10)
}

// StatRow is an hour or a day of the charts.
type StatRow struct {
	At                   time.Time // its beginning
	Stored               Count
	Nets                 Nets
	SubmitP50, SubmitP95 StatTime // from a batch's submit to the stored result
	VendorP50, VendorP95 StatTime // from the vendor's end of a job to the stored result
	Charged              Count
	Calls                Count
}

// Charts is throughput and latency over time.
type Charts struct {
	Span  string // SpanDay, SpanTwoDays or SpanMonth
	Rows  []StatRow
	Zone  string // IANA name of the zone whose days these are, or in which hours are named until app.js says otherwise
	Note  string // what is to be known of the days of that zone; or empty
	Total StatRow
	// Rolled is when the hours were last counted; zero before.
	Rolled time.Time
}

// The spans to choose from.
const (
	SpanDay     = "24h"
	SpanTwoDays = "48h"
	SpanMonth   = "30d"
)

// ByDay tells whether a row is a day.
func (c Charts) ByDay() bool { return c.Span == SpanMonth }

func (c Charts) unit() string {
	if c.ByDay() {
		return "day"
	}
	return "hour"
}

func (c Charts) storedBy() string {
	if c.ByDay() {
		return "URLs stored by day"
	}
	return "URLs stored by hour"
}

func (c Charts) figuresBy() string {
	if c.ByDay() {
		return "Figures by day"
	}
	return "Figures by hour"
}

// unitIn heads the column of days or hours, with room for the zone that they are in.
func (c Charts) unitIn() string {
	if c.ByDay() {
		return "Day (%s)"
	}
	return "Hour (%s)"
}

// label names a row in the chart's zone.
func (c Charts) label(ctx context.Context, at time.Time) string {
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		zone = time.UTC
	}
	if c.ByDay() {
		return dayText(ctx, at.In(zone))
	}
	return Textf(ctx, "%d %s, %s", at.In(zone).Day(), tr(ctx, monthName(at.In(zone).Month())), at.In(zone).Format("15:04"))
}

// counted tells whether any row is known.
func (c Charts) counted() bool {
	for i := range c.Rows {
		if c.Rows[i].Stored.Known {
			return true
		}
	}
	return false
}

// spans are the links to the spans.
func (c Charts) spans() []Option {
	return []Option{{SpanDay, "24 hours"}, {SpanTwoDays, "48 hours"}, {SpanMonth, "30 days"}}
}

// spanPath is the overview with that span.
func spanPath(span string) string {
	if span == SpanDay {
		return "/"
	}
	return "/?span=" + span
}

// Scorecard is how the vendor's webhooks did over the last days.
type Scorecard struct {
	Days     int
	Hooked   bool  // a webhook is registered
	Expected Count // completed jobs that had a webhook to come
	InTime   Count // of those, within a minute of their end
	Repaired Nets  // the others, by the net that brought them home
	NoHook   Count // jobs that failed or were cancelled: the vendor has no webhook for them
	// Deliveries, by what became of them.
	Deliveries, Duplicates, Refused Count
	// Ahead is how far the vendor's clock is ahead of ours, behind when negative.
	Ahead      time.Duration
	Rolled     time.Time // when the hours were last counted; zero before
	AheadKnown bool
}

// clockText says how the clocks stand to each other; what Date headers can't tell is called agreement.
func (s Scorecard) clockText(ctx context.Context) string {
	switch {
	case !s.AheadKnown:
		return dash
	case s.Ahead.Abs() < 2*time.Second:
		return tr(ctx, "agrees to a second or two")
	case s.Ahead > 0:
		return Textf(ctx, "%s ahead", durationText(s.Ahead.Round(time.Second)))
	}
	return Textf(ctx, "%s behind", durationText(-s.Ahead.Round(time.Second)))
}

// Spending is what was asked of the vendor over the last days, and what that cost.
type Spending struct {
	Days    int
	Calls   []CallRow // by kind, the most first
	Total   Count     // of them
	Since   time.Time // calls are counted from then on, when that is later than Days ago; else zero
	Charged Count
	// Jobs is how many settled jobs are compared. Asking is how many calls their
	// polling, lists and results took and Own how many of these were for one job
	// alone; EachSecond and Backoff are what asking for each job by itself would
	// have taken.
	Jobs, Asking, Own, EachSecond, Backoff Count
	Watch                                  Watch
	Rolled                                 time.Time // when the hours were last counted; zero before
	Quota                                  Quota
}

// Watch is what watching over all jobs at once is worth.
type Watch struct {
	Every, Usual time.Duration // gap between two turns, here and by default
	Pays         bool          // with the gap here; else Jobs is for the default
	// Jobs is from how many jobs a day on, each of which runs for Run, it takes
	// fewer calls than asking for each by itself every second.
	Jobs int64
	Run  time.Duration
}

// CallRow is how many calls of a kind were made.
type CallRow struct {
	Kind  string
	Calls Count
}

// callText is a kind of call in words.
func callText(kind string) string {
	switch kind {
	case "submit":
		return "submit jobs"
	case "sync":
		return "ask for one URL at once"
	case "status":
		return "ask for one job"
	case "page":
		return "further pages of results"
	case "list":
		return "lists of jobs"
	case "cancel":
		return "cancel jobs"
	case "webhooks":
		return "webhooks and secrets"
	case "log":
		return "the delivery log"
	case "usage":
		return "usage and health"
	}
	return strings.ToLower(kind)
}

// saved says how many calls less were made than that.
func (s Spending) saved(ctx context.Context, alone Count) string {
	switch {
	case !alone.Known || !s.Asking.Known:
		return dash
	case s.Asking.N >= alone.N:
		return tr(ctx, "none")
	}
	return thousands(alone.N - s.Asking.N)
}

// saves tells whether fewer calls were made than that.
func (s Spending) saves(alone Count) bool {
	return alone.Known && s.Asking.Known && s.Asking.N < alone.N
}

// watching is how many of the calls were for no job alone.
func (s Spending) watching() Count {
	if !s.Asking.Known || !s.Own.Known {
		return Count{}
	}
	return Known(s.Asking.N - s.Own.N)
}

// why says why few jobs save nothing, and from how many on that changes.
func (w Watch) why(ctx context.Context) string {
	if w.Pays {
		return Textf(ctx, "The watch takes its calls however few jobs there are. At one every %s it saves calls from about %s jobs a day that run for %s each, and against growing gaps with jobs that run for minutes.",
			durationText(w.Every), thousands(w.Jobs), durationText(w.Run))
	}
	return Textf(ctx, "The watch takes its calls however few jobs there are. Here it runs every %s, for you to see it at work: no number of jobs makes up for that. At one every %s, as by default, it saves calls from about %s jobs a day that run for %s each, and against growing gaps with jobs that run for minutes.",
		durationText(w.Every), durationText(w.Usual), thousands(w.Jobs), durationText(w.Run))
}

// Quota is what is left of the plan, and how long that lasts.
type Quota struct {
	Known     bool
	Why       string // it isn't known
	Remaining Count
	Limit     Count
	At        time.Time // when the vendor said so
	Week      Count     // what the last seven days took
	Until     time.Time // the quota is used up then at this week's pace; zero when that isn't known, or never at that pace
}

// forecast says how long the quota lasts.
func (q Quota) forecast(ctx context.Context) string {
	switch {
	case !q.Known:
		return Textf(ctx, "How long the quota lasts isn't known: %s.", tr(ctx, q.Why))
	case !q.Week.Known:
		return tr(ctx, "How long the quota lasts isn't known yet: no week was counted.")
	case q.Remaining.N <= 0:
		return tr(ctx, "The quota is used up.")
	case q.Week.N == 0:
		return tr(ctx, "Nothing was charged this week: at that pace the quota lasts.")
	case q.Until.IsZero():
		return tr(ctx, "At this week's pace the quota lasts for over a year.")
	}
	return Textf(ctx, "At this week's pace the quota lasts until about %s.", dateText(ctx, q.Until.UTC()))
}

// Lasted says how long something lasted, as people read it.
func Lasted(d time.Duration) string { return durationText(d) }
