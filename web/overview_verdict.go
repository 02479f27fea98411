package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
	"rollcall/views"
)

const (
	// happenedShown is how many things are listed that happened last.
	happenedShown = 8
	// faultyRuns in a row, over faultyFor at least, are trouble. What one run
	// can't read the next one reads, so a run that met one of the vendor's errors
	// is none; nor are a few within seconds, as in a demo, where runs follow each
	// other that fast.
	faultyRuns = 3
	faultyFor  = time.Minute
)

// overviewVerdict says whether all is well and since when. It goes by what the
// parts before it found.
func (s *Server) overviewVerdict(ctx context.Context, p *views.OverviewProps) error {
	v := &p.Verdict
	var err error
	if v.Rolled, err = s.store.LastRollUp(ctx); err != nil {
		return err
	}
	bad, err := s.badNow(ctx, &p.System)
	if err != nil {
		return err
	}
	faulty, err := s.store.PageFaultyRuns(ctx, faultyRuns, faultyFor)
	if err != nil {
		return err
	}
	if faulty != nil && faulty.Over == nil {
		p.System.FaultyRuns = faulty.Runs
	}
	look := lookNow(ctx, p, faulty)
	v.Troubles = slices.Concat(bad, look)
	switch {
	case len(bad) > 0:
		v.Level = views.VerdictBad
	case len(look) > 0:
		v.Level = views.VerdictLook
	default:
		return s.wellSince(ctx, v, faulty)
	}
	return nil
}

// badNow lists what stands still or needs somebody.
func (s *Server) badNow(ctx context.Context, system *views.SystemState) ([]views.Trouble, error) {
	var bad []views.Trouble
	alerts, err := s.alerts(ctx)
	if err != nil {
		return nil, err
	}
	for _, each := range alerts {
		bad = append(bad, views.Trouble{At: each.Since, Text: each.Title})
	}
	if system.Alarm != "" {
		bad = append(bad, views.Trouble{Text: views.Textf(ctx, "Alarm: %s", system.Alarm)})
	}
	if err := s.pipeline.WorkersHealthy(); err != nil {
		bad = append(bad, views.Trouble{Text: "The background work of this server stands still"})
	}
	since, err := s.pipeline.StandsStill(ctx)
	if err != nil {
		return nil, err
	}
	if !since.IsZero() {
		bad = append(bad, views.Trouble{
			At: since, Text: "Work is due and none of it is done: no process has workers, or the vendor or the database keeps them waiting. The log says which",
		})
	}
	return bad, nil
}

// lookNow lists what goes on, but not as it should: webhooks that are there and
// not relied on, and reconcile runs that can't read all.
func lookNow(ctx context.Context, p *views.OverviewProps, faulty *store.FaultyRuns) []views.Trouble {
	var look []views.Trouble
	if len(p.Webhooks) > 0 && p.System.Effective == string(pipeline.ModePoll) {
		look = append(look, views.Trouble{At: p.System.ModeSince, Text: views.Textf(ctx, "Webhooks aren't relied on: %s", p.System.ModeReason)})
	}
	if faulty != nil && faulty.Over == nil {
		first, _, _ := strings.Cut(faulty.Note, "\n")
		look = append(look, views.Trouble{
			At: faulty.Since, Text: views.Textf(ctx, "Each of the last %d reconcile runs met an error: %s", faulty.Runs, first), Path: "/reconcile",
		})
	}
	return look
}

// wellSince finds the last trouble that is over, and where there was none the
// first batch.
func (s *Server) wellSince(ctx context.Context, v *views.Verdict, faulty *store.FaultyRuns) error {
	first, err := s.store.FirstBatch(ctx)
	if err != nil {
		return err
	}
	v.Level, v.Since = views.VerdictWell, first
	if first.IsZero() {
		v.Level = views.VerdictNew
	}
	last, err := s.store.PageLastTroubles(ctx)
	if err != nil {
		return err
	}
	if faulty != nil && (len(last) == 0 || faulty.Over.After(last[0].At)) {
		last = []store.Happening{{At: *faulty.Over, What: store.HappenedErrors, N: faulty.Runs}}
	}
	if len(last) > 0 {
		v.Last = &views.Trouble{At: last[0].At, Text: troubleText(ctx, &last[0]), Path: troublePath(&last[0])}
	}
	alarm, at, err := s.store.Alarm(ctx, time.Time{})
	if err != nil {
		return err
	}
	if alarm != "" && (v.Last == nil || at.After(v.Last.At)) {
		v.Last = &views.Trouble{At: at, Text: views.Textf(ctx, "alarm: %s", alarm)}
	}
	if v.Last != nil && v.Last.At.After(v.Since) {
		v.Since = v.Last.At
	}
	return nil
}

// troubleText says what was the matter.
func troubleText(ctx context.Context, h *store.Happening) string {
	switch h.What {
	case store.HappenedResumed:
		lasted := views.Lasted(time.Duration(h.N) * time.Second)
		if h.State == store.GateSubmit {
			return views.Textf(ctx, "dispatch stood still for %s", lasted)
		}
		return views.Textf(ctx, "asking the vendor stood still for %s", lasted)
	case store.HappenedMode:
		return views.Textf(ctx, "webhooks were not relied on")
	case store.HappenedRefused:
		return views.Textf(ctx, "a delivery was refused")
	case store.HappenedErrors:
		return views.Counted(ctx, views.Known(h.N), "%s reconcile run in a row met errors", "%s reconcile runs in a row met errors")
	}
	return h.Text
}

func troublePath(h *store.Happening) string {
	switch h.What {
	case store.HappenedRefused:
		return "/deliveries/" + idText(h.ID)
	case store.HappenedErrors:
		return "/reconcile"
	}
	return ""
}

// overviewHappened lists what happened last. It leads only to pages that
// everybody may open: who looks isn't known here.
func (s *Server) overviewHappened(ctx context.Context, p *views.OverviewProps) error {
	list, err := s.store.PageHappenings(ctx, happenedShown)
	if err != nil {
		return err
	}
	for i := range list {
		p.Happened = append(p.Happened, happenedRow(ctx, &list[i]))
	}
	return nil
}

func happenedRow(ctx context.Context, h *store.Happening) views.HappenedRow {
	row := views.HappenedRow{At: h.At, Text: h.Text, Icon: "activity"}
	switch h.What {
	case store.HappenedBatch:
		row.Icon, row.Path = "stack-2", batchesPath+"/"+idText(h.ID)
		row.Text = views.Textf(ctx, "%s ended: %s of %s stored", h.Text, number(h.N), number(h.M))
	case store.HappenedRotation:
		row.Icon, row.Text = "key", rotationHappened(ctx, h)
	case store.HappenedReplay:
		row.Icon, row.Text = "history", replayHappened(ctx, h)
	case store.HappenedReconcile:
		row.Icon, row.Path = "list-check", "/reconcile"
		row.Text = views.Counted(ctx, views.Known(h.N), "Reconcile found %s job that nobody had told of", "Reconcile found %s jobs that nobody had told of")
	case store.HappenedMode:
		row.Icon, row.Text = "webhook", "Webhooks are relied on"
		if h.State == string(pipeline.ModePoll) {
			row.Icon, row.Text = "rotate-clockwise", views.Textf(ctx, "Polling instead of webhooks: %s", h.Text)
		}
	case store.HappenedResumed:
		row.Icon, row.Text = "player-play", resumedHappened(ctx, h)
	}
	return row
}

// replayHappened is how far a replay has come. One whose jobs had all settled
// before has not failed at any.
func replayHappened(ctx context.Context, h *store.Happening) string {
	state := replayWord(ctx, store.ReplayState(h.State))
	if h.OnlyRefused() {
		return views.Textf(ctx, "Replay %d is %s: it took up %s of %s", h.ID, state, number(h.N),
			views.Counted(ctx, views.Known(h.M), "%s refused delivery", "%s refused deliveries"))
	}
	if h.M <= 0 {
		return views.Textf(ctx, "Replay %d is %s: no job was left to settle", h.ID, state)
	}
	return views.Textf(ctx, "Replay %d is %s: it settled %s of the %s that had not settled before", h.ID, state, number(h.N),
		views.Counted(ctx, views.Known(h.M), "%s job", "%s jobs"))
}

func resumedHappened(ctx context.Context, h *store.Happening) string {
	lasted := views.Lasted(time.Duration(h.N) * time.Second)
	if h.State == store.GateSubmit {
		return views.Textf(ctx, "After %s dispatch goes on", lasted)
	}
	return views.Textf(ctx, "After %s asking the vendor goes on", lasted)
}

func rotationHappened(ctx context.Context, h *store.Happening) string {
	switch h.State {
	case "done":
		return views.Textf(ctx, "The secret of %s was changed", h.Text)
	case "failed":
		return views.Textf(ctx, "The secret of %s was not changed", h.Text)
	}
	return views.Textf(ctx, "The secret of %s is being changed", h.Text)
}
