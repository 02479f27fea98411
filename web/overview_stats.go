package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

// statsTeller is what the overview asks of the pipeline.
type statsTeller interface {
	// VendorAhead is how far the vendor's clock is ahead of ours; false when that
	// isn't known.
	VendorAhead() (time.Duration, bool)
	// Usage is what the vendor last said of the account; it doesn't wait for it.
	Usage(ctx context.Context) (pipeline.Usage, error)
}

const (
	// scoreDays is how far back the scorecard and the spending go.
	scoreDays = 7
	// chartDays is how many days the longest span has.
	chartDays = 30
	// quotaFar is a date that is too far off to be told.
	quotaFar = 366 * 24 * time.Hour
)

// history is what is counted of the hours that the page shows.
type history struct {
	now    time.Time
	hours  map[time.Time]*store.HourStats
	calls  map[time.Time]map[string]int64
	first  time.Time // The hour of the first batch; zero before any.
	newest time.Time // The newest hour that was counted; zero before any.
	since  time.Time // From when on calls are counted; zero when they aren't.
}

// readHistory reads what is counted since a time.
func (s *Server) readHistory(ctx context.Context, from time.Time) (*history, error) {
	h := &history{now: s.now(), hours: map[time.Time]*store.HourStats{}, calls: map[time.Time]map[string]int64{}}
	hours, err := s.store.PageHours(ctx, from)
	if err != nil {
		return nil, err
	}
	for i := range hours {
		h.newest = hours[i].Hour.UTC()
		h.hours[h.newest] = &hours[i]
	}
	calls, err := s.store.PageCalls(ctx, from)
	if err != nil {
		return nil, err
	}
	for _, each := range calls {
		hour := each.Hour.UTC()
		if h.calls[hour] == nil {
			h.calls[hour] = map[string]int64{}
		}
		h.calls[hour][each.Kind] += each.N
	}
	if h.since, _, err = s.store.CallsCountedSince(ctx); err != nil {
		return nil, err
	}
	first, err := s.store.FirstBatch(ctx)
	if !first.IsZero() {
		h.first = first.UTC().Truncate(time.Hour)
	}
	return h, err
}

// sum adds up the hours that begin in a stretch of time. It reports false when
// one of them was not counted, or none is to be: before the first batch, and
// after the newest hour that was counted.
func (h *history) sum(from, until time.Time) (*store.HourStats, bool) {
	total, known := &store.HourStats{Hour: from}, false
	if h.newest.IsZero() || h.first.IsZero() {
		return total, false
	}
	hour := from.UTC().Truncate(time.Hour)
	if hour.Before(from) {
		hour = hour.Add(time.Hour)
	}
	if hour.Before(h.first) {
		hour = h.first
	}
	for ; hour.Before(until) && !hour.After(h.newest); hour = hour.Add(time.Hour) {
		counted := h.hours[hour]
		if counted == nil {
			return total, false
		}
		total.Add(counted)
		known = true
	}
	return total, known
}

// called counts the calls of a stretch of time by kind; false when they weren't
// counted in any of it.
func (h *history) called(from, until time.Time) (map[string]int64, bool) {
	kinds := map[string]int64{}
	for hour, calls := range h.calls {
		if !hour.Before(from) && hour.Before(until) {
			for kind, n := range calls {
				kinds[kind] += n
			}
		}
	}
	return kinds, !h.since.IsZero() && h.since.Before(until) && from.Before(h.now)
}

// overviewStats fills in the charts and what is counted with them.
func (s *Server) overviewStats(ctx context.Context, p *views.OverviewProps, span, zone string) error {
	now := s.now().UTC()
	week := now.Truncate(time.Hour).Add(-scoreDays*24*time.Hour + time.Hour)
	p.Charts = views.Charts{Span: span, Zone: zone, Rolled: p.Verdict.Rolled}
	p.Score.Rolled, p.Spending.Rolled = p.Verdict.Rolled, p.Verdict.Rolled
	starts := chartStarts(ctx, &p.Charts, now)
	from := week
	if starts[0].Before(week) {
		from = starts[0].UTC().Truncate(time.Hour)
	}
	h, err := s.readHistory(ctx, from)
	if err != nil {
		return fmt.Errorf("overview's figures: %w", err)
	}
	for i, start := range starts[:len(starts)-1] {
		p.Charts.Rows = append(p.Charts.Rows, h.row(start, starts[i+1]))
	}
	p.Charts.Total = h.row(starts[0], starts[len(starts)-1])
	if err := s.overviewScore(ctx, h, &p.Score, week); err != nil {
		return fmt.Errorf("overview's scorecard: %w", err)
	}
	return s.overviewSpending(ctx, h, &p.Spending, week)
}

// chartStarts are the beginnings of a chart's rows and the end of the last.
func chartStarts(ctx context.Context, c *views.Charts, now time.Time) []time.Time {
	var starts []time.Time
	if !c.ByDay() {
		hours := 24
		if c.Span == views.SpanTwoDays {
			hours = 48
		}
		for i := range hours + 1 {
			starts = append(starts, now.Truncate(time.Hour).Add(time.Duration(i+1-hours)*time.Hour))
		}
		return starts
	}
	zone, err := time.LoadLocation(c.Zone)
	if err != nil || c.Zone == "" {
		zone = time.UTC
		c.Note = "Days are UTC's, as your account names no time zone."
	}
	year, month, day := now.In(zone).Date()
	for i := range chartDays + 1 {
		starts = append(starts, time.Date(year, month, day+1+i-chartDays, 0, 0, 0, 0, zone))
	}
	if _, offset := now.In(zone).Zone(); offset%3600 != 0 {
		begins := starts[0].UTC().Truncate(time.Hour).Add(time.Hour).In(zone).Format("15:04")
		c.Note = views.Textf(ctx, "Hours are UTC's, so a day here goes from %s to %s.", begins, begins)
	}
	return starts
}

// row is one row of the charts.
func (h *history) row(from, until time.Time) views.StatRow {
	row := views.StatRow{At: from}
	if total, known := h.sum(from, until); known {
		row.Stored, row.Charged = views.Known(total.Stored()), views.Known(total.Charged)
		row.Nets = views.Nets{
			Webhook: views.Known(total.StoredWebhook), Poll: views.Known(total.StoredPoll), Reconcile: views.Known(total.StoredReconcile),
			Replay: views.Known(total.StoredReplay), Sync: views.Known(total.StoredSync),
		}
		row.SubmitP50, row.SubmitP95 = quantiles(total.SubmitLatency)
		row.VendorP50, row.VendorP95 = quantiles(total.VendorLatency)
	}
	if kinds, known := h.called(from.UTC(), until.UTC()); known {
		row.Calls = views.Known(0)
		for _, n := range kinds {
			row.Calls.N += n
		}
	}
	return row
}

func quantiles(l store.Latencies) (views.StatTime, views.StatTime) {
	half, known := l.Quantile(0.5)
	most, _ := l.Quantile(0.95)
	return views.StatTime{D: half, Known: known}, views.StatTime{D: most, Known: known}
}

// overviewScore judges the vendor's webhooks since a time.
func (s *Server) overviewScore(ctx context.Context, h *history, score *views.Scorecard, from time.Time) error {
	score.Days = scoreDays
	score.Ahead, score.AheadKnown = s.pipeline.VendorAhead()
	hooks, err := s.store.PageWebhooks(ctx)
	if err != nil {
		return err
	}
	score.Hooked = slices.ContainsFunc(hooks, func(w store.Webhook) bool { return w.State != store.WebhookRemoved })
	total, known := h.sum(from, h.now)
	if !known {
		return nil
	}
	repaired := total.RepairedPoll + total.RepairedReconcile + total.RepairedReplay
	score.InTime, score.Expected = views.Known(total.InTime), views.Known(total.InTime+repaired)
	score.Repaired = views.Nets{
		Poll: views.Known(total.RepairedPoll), Reconcile: views.Known(total.RepairedReconcile), Replay: views.Known(total.RepairedReplay),
	}
	score.NoHook = views.Known(total.JobsFailed + total.JobsCancelled)
	score.Deliveries, score.Duplicates = views.Known(total.DeliveriesAccepted), views.Known(total.DeliveriesDuplicate)
	score.Refused = views.Known(total.DeliveriesRefused)
	return nil
}

// overviewSpending says what was asked of the vendor since a time, what that
// cost, and what asking for each job by itself would have.
func (s *Server) overviewSpending(ctx context.Context, h *history, p *views.Spending, from time.Time) error {
	p.Days = scoreDays
	s.watchPays(p)
	total, known := h.sum(from, h.now)
	if known {
		p.Charged = views.Known(total.Charged)
	}
	kinds, counted := h.called(from, h.now)
	if counted {
		p.Total, p.Asking, p.Own = views.Known(0), views.Known(0), views.Known(0)
		for kind, n := range kinds {
			p.Calls = append(p.Calls, views.CallRow{Kind: kind, Calls: views.Known(n)})
			p.Total.N += n
			if pipeline.AskingCall(kind) {
				p.Asking.N += n
			}
			if pipeline.OwnCall(kind) {
				p.Own.N += n
			}
		}
		slices.SortFunc(p.Calls, func(a, b views.CallRow) int {
			return cmp.Or(cmp.Compare(b.Calls.N, a.Calls.N), cmp.Compare(a.Kind, b.Kind))
		})
		if h.since.After(from) {
			p.Since = h.since
		}
	}
	if known && counted {
		p.Jobs, p.EachSecond, p.Backoff = views.Known(total.ComparedJobs), views.Known(total.CallsEachSecond), views.Known(total.CallsBackoff)
	}
	usage, err := s.pipeline.Usage(ctx)
	if err != nil {
		return err
	}
	p.Quota = h.quota(ctx, usage, p.Charged)
	return nil
}

// usualRun is how long a job runs that is taken as an example of what the watch
// over all jobs pays for.
const usualRun = 30 * time.Second

// watchPays says from how many jobs a day on the watch saves calls. Where it runs
// so often that it never does, as in a demo, that is said of the default.
func (s *Server) watchPays(p *views.Spending) {
	w := views.Watch{Every: s.cfg.ReconcileEvery, Usual: defaultReconcileEvery, Run: usualRun}
	w.Jobs = pipeline.WatchPaysFrom(w.Every, w.Run.Seconds())
	if w.Pays = w.Jobs > 0; !w.Pays {
		w.Jobs = pipeline.WatchPaysFrom(w.Usual, w.Run.Seconds())
	}
	p.Watch = w
}

// quota says how long what is left lasts, at the pace of the last seven days:
// the account's as the vendor counts them, or else ours.
func (h *history) quota(ctx context.Context, u pipeline.Usage, charged views.Count) views.Quota {
	q := views.Quota{Known: u.Known && u.Remaining != nil, Why: cmp.Or(u.Why, views.Textf(ctx, "the vendor does not say what is left")), At: u.At, Week: charged}
	if !q.Known {
		return q
	}
	q.Remaining = views.Known(*u.Remaining)
	if u.Limit != nil {
		q.Limit = views.Known(*u.Limit)
	}
	over := min(scoreDays*24*time.Hour, h.now.Sub(h.first))
	if len(u.Days) > 0 {
		q.Week, over = views.Known(0), scoreDays*24*time.Hour
		for _, each := range u.Days {
			if each.Day.After(h.now.Add(-over)) {
				q.Week.N += each.Used
			}
		}
	}
	if !q.Week.Known || q.Week.N <= 0 || *u.Remaining <= 0 {
		return q
	}
	if lasts := float64(*u.Remaining) / float64(q.Week.N) * float64(over); lasts < float64(quotaFar) {
		q.Until = h.now.Add(time.Duration(lasts))
	}
	return q
}
