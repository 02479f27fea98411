package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/tidwall/gjson"

	"rollcall/internal/geonode"
	"rollcall/store"
)

const (
	// usageKey is the setting that holds the vendor's last answer for all replicas.
	usageKey = "vendor_usage"
	// usageEvery is how often the vendor is asked unasked.
	usageEvery = 15 * time.Minute
	// usageFresh is how old an answer may be before a page has it asked for again.
	usageFresh = 2 * time.Minute
	// usageStale is the age at which an answer says nothing about today.
	usageStale = 6 * time.Hour
	// usageTimeout bounds one run of the task: two small calls.
	usageTimeout = 15 * time.Second
)

// Usage is what the vendor last said about the account: of what may be spent
// how much is left. A nil number is one that the vendor didn't give.
type Usage struct {
	// Known reports that Remaining is known and recent; else Why says, for a
	// page, why it isn't.
	Known bool   `json:"known"`
	Why   string `json:"why,omitempty"`
	// At is when the vendor was last asked; zero when it never was.
	At time.Time `json:"at"`
	// Of requests, which the vendor also calls tokens.
	Limit     *int64 `json:"limit,omitempty"`
	Used      *int64 `json:"used,omitempty"`
	Remaining *int64 `json:"remaining,omitempty"`
	// Period is how many requests were charged over the last 30 days, Days the
	// same by day, as the vendor lists them.
	Period *int64     `json:"period,omitempty"`
	Days   []UsageDay `json:"days,omitempty"`
	// Account is the fingerprint of the key that was asked with.
	Account string `json:"account"`
}

// UsageDay is what one day took, by the vendor's count.
type UsageDay struct {
	Day  time.Time `json:"day"`
	Used int64     `json:"used"`
}

// Usage returns what the vendor last said, and never waits for it: when that is
// old, it is asked for in the background.
func (p *Pipeline) Usage(ctx context.Context) (Usage, error) {
	text, err := p.store.Setting(ctx, usageKey)
	if err != nil {
		return Usage{}, fmt.Errorf("read the vendor's usage: %w", err)
	}
	u := p.usageOf(text)
	if p.now().Sub(u.At) < usageFresh {
		return u, nil
	}
	if err := p.queue.usage(ctx); err != nil {
		return u, fmt.Errorf("ask for the vendor's usage: %w", err)
	}
	return u, nil
}

// usageOf reads what the task wrote. What is old, or another account's, is not known.
func (p *Pipeline) usageOf(text string) Usage {
	var u Usage
	switch {
	case text == "" || json.Unmarshal([]byte(text), &u) != nil:
		return Usage{Why: "the vendor has not been asked yet"}
	case u.Account != p.cfg.Account:
		return Usage{Why: "the vendor has not been asked with this API key yet"}
	case u.Known && p.now().Sub(u.At) > usageStale:
		u.Known, u.Why = false, "the vendor's last answer is over six hours old"
	}
	return u
}

// usageArgs asks that the vendor's usage be read. Running twice is harmless:
// the later answer is kept.
type usageArgs struct{}

// Kind implements river.JobArgs.
func (usageArgs) Kind() string { return "usage" }

func usageOpts() *river.InsertOpts {
	return &river.InsertOpts{Queue: queueMaintenance, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByState: active()}}
}

func (q *queue) usage(ctx context.Context) error {
	_, err := q.client.Insert(ctx, usageArgs{}, usageOpts())
	return err
}

// usageOften is the periodic task.
func usageOften() *river.PeriodicJob {
	return river.NewPeriodicJob(everyFull(usageEvery), func() (river.JobArgs, *river.InsertOpts) { return usageArgs{}, usageOpts() },
		&river.PeriodicJobOpts{ID: "usage"})
}

type usageWorker struct {
	river.WorkerDefaults[usageArgs]
	p *Pipeline
}

// Timeout implements river.Worker.
func (w *usageWorker) Timeout(*river.Job[usageArgs]) time.Duration { return usageTimeout }

// Work implements river.Worker.
func (w *usageWorker) Work(ctx context.Context, _ *river.Job[usageArgs]) error {
	return w.p.ReadUsage(ctx)
}

// ReadUsage asks the vendor once and writes down what it said, or why it said
// nothing. While the read gate is closed it asks nothing: jobs come first.
func (p *Pipeline) ReadUsage(ctx context.Context) error {
	wait, err := p.gates.wait(ctx, store.GateRead)
	if err != nil || wait > 0 {
		return err
	}
	u := p.askUsage(ctx)
	if ctx.Err() != nil {
		return ctx.Err() // The process ends; the next page asks again.
	}
	text, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("encode the vendor's usage: %w", err)
	}
	return p.store.SetSetting(ctx, usageKey, string(text), p.now())
}

// askUsage makes the two calls. Neither is needed for the other.
func (p *Pipeline) askUsage(ctx context.Context) Usage {
	u := Usage{At: p.now(), Account: p.cfg.Account}
	got, err := p.vendor.Usage(ctx)
	if err == nil {
		err = p.heard(ctx, got.Reply)
		p.cfg.Fields.readQuota(got.Reply.Raw, &u)
	}
	switch u.Known = u.Remaining != nil; {
	case err != nil:
		u.Why = usageProblem(err)
		p.log.WarnContext(ctx, "vendor usage not read", slog.Any("error", err))
	case !u.Known:
		u.Why = "the vendor's answer does not say what is left"
	}
	if err := p.askStatistics(ctx, &u); err != nil {
		p.log.WarnContext(ctx, "vendor statistics not read", slog.Any("error", err))
	}
	return u
}

func (p *Pipeline) askStatistics(ctx context.Context, u *Usage) error {
	got, err := p.vendor.Statistics(ctx, time.Time{}, time.Time{})
	if err != nil {
		return err
	}
	if got.TokensUsed.Known {
		u.Period = &got.TokensUsed.N
	}
	for _, day := range got.DailyTokens {
		if day.Used.Known && !day.Date.IsZero() {
			u.Days = append(u.Days, UsageDay{Day: day.Date.Time, Used: day.Used.N})
		}
	}
	slices.SortFunc(u.Days, func(a, b UsageDay) int { return a.Day.Compare(b.Day) })
	// A vendor that lists more days than were asked for must not fill the row.
	u.Days = u.Days[max(0, len(u.Days)-maxUsageDays):]
	return p.heard(ctx, got.Reply)
}

// maxUsageDays bounds the days that are kept.
const maxUsageDays = 62

// usageProblem says why a call brought nothing, without the vendor's own text.
func usageProblem(err error) string {
	e, ok := errors.AsType[*geonode.Error](err)
	switch {
	case ok && e.Status == 0:
		return "the vendor did not answer"
	case ok:
		return fmt.Sprintf("the vendor answered %d", e.Status)
	}
	return "the vendor's answer could not be read"
}

// readQuota finds the numbers in a report whose members the vendor hasn't
// published. Two of the three give the third.
func (f FieldSettings) readQuota(body []byte, u *Usage) {
	root, ok := readObject(body)
	if !ok {
		return
	}
	u.Limit, u.Used, u.Remaining = countAt(root, f.QuotaLimit), countAt(root, f.QuotaUsed), countAt(root, f.QuotaLeft)
	if u.Remaining == nil && u.Limit != nil && u.Used != nil {
		left := max(0, *u.Limit-*u.Used)
		u.Remaining = &left
	}
}

// countAt is the first path that leads to a whole number.
func countAt(root gjson.Result, paths []string) *int64 {
	for _, path := range paths {
		var n geonode.Count
		text := textAt(root, strings.SplitN(path, ".", maxDepth))
		if err := n.UnmarshalJSON([]byte(strconv.Quote(text))); err == nil && n.Known {
			return &n.N
		}
	}
	return nil
}
