package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// replayCmd replays what matches: lines of the vendor's delivery log or, with --received, deliveries of ours.
type replayCmd struct {
	Webhook  int64     `help:"Of this webhook, by its number as webhook list shows it."`
	Event    string    `help:"Of this event, such as batch_completed."`
	Status   string    `help:"With this status of the vendor's log, such as failed or abandoned."`
	Standing string    `help:"With this standing in the log: received, absent, refused, given_up, pending or lost."`
	HTTP     int       `name:"http" help:"With this HTTP status."`
	Attempt  int       `help:"Of this attempt."`
	Job      string    `help:"About this job, by our id or the vendor's."`
	Batch    int64     `help:"About the jobs of this batch."`
	Since    sinceTime `help:"Since then: a time span back from now such as 2h, or a moment such as 2026-11-28 or 2026-11-28T15:00:00Z."`
	Until    sinceTime `help:"Until then, in the same forms."`
	Received bool      `help:"Take our own list of deliveries instead; refused ones are verified again from the archive."`
	Verdict  string    `help:"With --received: accepted, duplicate, refused or unreadable."`
	Refetch  bool      `help:"Fetch settled jobs once more too, and note what differs from what is stored."`
	DryRun   bool      `help:"Say what the plan would be, and do nothing."`
	JSON     bool      `name:"json" help:"Print one JSON object."`
}

// sinceTime is a moment, or a time span back from now.
type sinceTime string

// end is at for a time up to which something is meant: a day alone is the whole of it.
func (s sinceTime) end(now time.Time) (time.Time, error) {
	t, err := s.at(now)
	if _, day := time.Parse(time.DateOnly, strings.TrimSpace(string(s))); err == nil && day == nil {
		t = t.AddDate(0, 0, 1)
	}
	return t, err
}

// at is the moment; zero when none was given.
func (s sinceTime) at(now time.Time) (time.Time, error) {
	text := strings.TrimSpace(string(s))
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a time span such as 2h, nor a day such as 2026-11-28, nor a moment such as 2026-11-28T15:00:00Z", text)
}

// Run plans the replay, runs it and waits for its end. It needs no running server: this process runs the replay itself.
// A job that could not be asked about makes it exit 1.
func (c *replayCmd) Run(ctx context.Context, a *app) error {
	if err := errors.Join(a.check(), a.config.requireVendor()); err != nil {
		return err
	}
	picks, err := c.picks(a.now())
	if err != nil {
		return err
	}
	return a.withStore(ctx, func(ctx context.Context, s *stack) error {
		if err := s.openVendor(); err != nil {
			return err
		}
		err := s.openPipeline(ctx, func(p *pipeline.Config) { p.OnlySubmit, p.OnlyReplay = c.DryRun, !c.DryRun })
		if err != nil {
			return err
		}
		if err := c.readLog(ctx, s); err != nil {
			return err
		}
		return c.replay(ctx, a, s, picks)
	})
}

// readLog brings the mirrored log up to date. What the vendor won't tell now is no reason to replay nothing.
func (c *replayCmd) readLog(ctx context.Context, s *stack) error {
	if c.Received {
		return nil
	}
	hooks, err := s.store.Webhooks(ctx)
	if err != nil {
		return fmt.Errorf("list webhooks: %w", err)
	}
	if c.Webhook != 0 && !slices.ContainsFunc(hooks, func(w *store.Webhook) bool { return w.ID == c.Webhook }) {
		return fmt.Errorf("there is no webhook %d: rollcall webhook list shows their numbers", c.Webhook)
	}
	for _, w := range hooks {
		if w.VendorWebhookID == nil || w.State == store.WebhookGone || w.State == store.WebhookRemoved || c.Webhook != 0 && w.ID != c.Webhook {
			continue
		}
		if _, err := s.pipeline.MirrorLog(ctx, w, false); err != nil {
			s.log.WarnContext(ctx, "the vendor's delivery log could not be read anew; what is known of it is replayed",
				slog.Int64("webhook_id", w.ID), slog.Any("error", err))
		}
	}
	return nil
}

// picks is the filter that the flags say.
func (c *replayCmd) picks(now time.Time) (store.ReplayPicks, error) {
	from, err := c.Since.at(now)
	until, err2 := c.Until.end(now)
	if err := errors.Join(err, err2); err != nil {
		return store.ReplayPicks{}, err
	}
	if c.Received {
		if c.Status+c.Standing != "" || c.Attempt != 0 {
			return store.ReplayPicks{}, errors.New("--status, --standing and --attempt are of the vendor's log; with --received use --verdict or --http")
		}
		switch store.Verdict(c.Verdict) {
		case "", store.VerdictAccepted, store.VerdictDuplicate, store.VerdictRefused, store.VerdictUnreadable:
		default:
			return store.ReplayPicks{}, fmt.Errorf("--verdict %s: choose one of accepted, duplicate, refused, unreadable", c.Verdict)
		}
		f := store.DeliveryFilter{
			Webhook: c.Webhook, Event: c.Event, Verdict: store.Verdict(c.Verdict), Status: c.HTTP, Job: c.Job, Batch: c.Batch, From: from, Until: until,
		}
		return store.ReplayPicks{Received: &f}, c.someFilter(f == store.DeliveryFilter{})
	}
	if c.Verdict != "" {
		return store.ReplayPicks{}, errors.New("--verdict is of our own list: use it with --received")
	}
	if c.Standing != "" && !slices.Contains(store.Standings(), store.Standing(c.Standing)) {
		return store.ReplayPicks{}, fmt.Errorf("--standing %s: choose one of received, absent, refused, given_up, pending, lost", c.Standing)
	}
	f := store.LogFilter{
		Webhook: c.Webhook, Event: c.Event, Status: c.Status, Standing: store.Standing(c.Standing), HTTPStatus: c.HTTP, Attempt: c.Attempt,
		Job: c.Job, Batch: c.Batch, From: from, Until: until,
	}
	return store.ReplayPicks{Log: &f}, c.someFilter(f == store.LogFilter{})
}

// someFilter refuses a command that was to replay everything, most likely by mistake.
func (c *replayCmd) someFilter(none bool) error {
	if none {
		return errors.New("say what to replay: --webhook, --status, --since or another filter (see rollcall replay --help)")
	}
	return nil
}

// words says the filter for whoever looks at the plan later.
func (c *replayCmd) words() string {
	words := []string{"all of the vendor's delivery log"}
	if c.Received {
		words = []string{"all deliveries received"}
	}
	for _, each := range []struct{ name, value string }{
		{"webhook", number(c.Webhook)},
		{"event", c.Event},
		{"status", c.Status},
		{"standing", c.Standing},
		{"verdict", c.Verdict},
		{"HTTP status", number(int64(c.HTTP))},
		{"attempt", number(int64(c.Attempt))},
		{"job", c.Job},
		{"batch", number(c.Batch)},
		{"since", string(c.Since)},
		{"until", string(c.Until)},
	} {
		if each.value != "" {
			words = append(words, each.name+" "+each.value)
		}
	}
	return strings.Join(words, ", ")
}

// number is a number that was given, or nothing.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func (c *replayCmd) replay(ctx context.Context, a *app, s *stack, picks store.ReplayPicks) error {
	plan, err := s.pipeline.PlanReplay(ctx, pipeline.ReplayRequest{Picks: picks, Picked: c.words(), DryRun: c.DryRun})
	if err != nil || c.DryRun {
		return errors.Join(err, c.tell(a.out, plan))
	}
	if !c.JSON {
		if err := c.printPlan(a.out, plan); err != nil {
			return err
		}
	}
	if _, err := s.pipeline.RunReplay(ctx, plan.ID, c.Refetch); err != nil {
		return err
	}
	ended, err := s.pipeline.FollowReplay(ctx, plan.ID)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("no longer waiting: replay %d goes on while a server runs, and its page shows how far it is", plan.ID)
	}
	if err != nil {
		return err
	}
	if err := c.tell(a.out, ended); err != nil {
		return err
	}
	if ended.Errors > 0 || ended.State == store.ReplayCancelled {
		return exitError(1)
	}
	return nil
}

// toldReplay is a replay, or what one would be, as the command tells of it.
type toldReplay struct {
	ID              int64             `json:"id,omitempty"`
	State           store.ReplayState `json:"state"`
	DryRun          bool              `json:"dry_run"`
	Picked          string            `json:"picked"`
	Lines           int64             `json:"lines"`
	Unnamed         int64             `json:"unnamed"`
	ForeignJobs     int64             `json:"foreign_jobs"`
	PrunedJobs      int64             `json:"pruned_jobs"`
	Jobs            int64             `json:"jobs"`
	SettledBefore   int64             `json:"settled_before"`
	Calls           int64             `json:"calls"`
	RefetchCalls    int64             `json:"refetch_calls"`
	Deliveries      int64             `json:"deliveries"`
	AlreadySettled  int64             `json:"already_settled"`
	SettledNow      int64             `json:"settled_now"`
	StillRunning    int64             `json:"still_running"`
	Failed          int64             `json:"failed"`
	UnknownToVendor int64             `json:"unknown_to_vendor"`
	Errors          int64             `json:"errors"`
	Recovered       int64             `json:"recovered"`
	Refused         int64             `json:"refused"`
	Refetched       int64             `json:"refetched"`
	Differing       int64             `json:"differing"`
}

func (c *replayCmd) tell(out io.Writer, r *store.Replay) error {
	if r == nil {
		return nil
	}
	if c.JSON {
		told := toldReplay{
			ID: r.ID, State: r.State, DryRun: c.DryRun, Picked: r.Picked, Lines: r.Lines, Unnamed: r.Unnamed, ForeignJobs: r.ForeignJobs, PrunedJobs: r.PrunedJobs,
			Jobs: r.Jobs, SettledBefore: r.SettledBefore, Calls: r.Calls, RefetchCalls: r.RefetchCalls, Deliveries: r.Deliveries,
			AlreadySettled: r.AlreadySettled, SettledNow: r.SettledNow, StillRunning: r.StillRunning, Failed: r.Failed,
			UnknownToVendor: r.UnknownToVendor, Errors: r.Errors, Recovered: r.Recovered, Refused: r.Refused, Refetched: r.Refetched, Differing: r.Differing,
		}
		if c.DryRun {
			told.ID = 0
		}
		return json.NewEncoder(out).Encode(told)
	}
	if c.DryRun {
		return c.printPlan(out, r)
	}
	return c.printOutcomes(out, r)
}

func (c *replayCmd) printPlan(out io.Writer, r *store.Replay) error {
	name := fmt.Sprintf("replay %d", r.ID)
	if c.DryRun {
		name = "dry run"
	}
	lines := fmt.Sprintf("%s: %s\n%d lines, %d jobs of ours: %d settled already, %d to ask about in about %d calls\n",
		name, r.Picked, r.Lines, r.Jobs, r.SettledBefore, r.Jobs-r.SettledBefore, r.Calls)
	if c.Refetch {
		lines += fmt.Sprintf("refetching the settled ones: about %d further calls\n", r.RefetchCalls)
	}
	if r.Deliveries > 0 {
		lines += fmt.Sprintf("%d refused deliveries to verify again\n", r.Deliveries)
	}
	if r.ForeignJobs+r.Unnamed > 0 {
		lines += fmt.Sprintf("left out: %d jobs that are not ours, %d lines that name no job\n", r.ForeignJobs, r.Unnamed)
	}
	if r.PrunedJobs > 0 {
		lines += fmt.Sprintf("left out: %d jobs of batches that were removed\n", r.PrunedJobs)
	}
	_, err := io.WriteString(out, lines)
	return err
}

func (c *replayCmd) printOutcomes(out io.Writer, r *store.Replay) error {
	lines := fmt.Sprintf("%s: %d already settled, %d settled now, %d still running, %d failed, %d unknown to the vendor, %d errors\n",
		r.State, r.AlreadySettled, r.SettledNow, r.StillRunning, r.Failed, r.UnknownToVendor, r.Errors)
	if r.Deliveries > 0 {
		lines += fmt.Sprintf("refused deliveries: %d taken up, %d still refused\n", r.Recovered, r.Refused)
	}
	if r.Refetch {
		lines += fmt.Sprintf("fetched once more: %d jobs, %d results differ: /replays/%d/differences\n", r.Refetched, r.Differing, r.ID)
	}
	_, err := io.WriteString(out, lines)
	return err
}
