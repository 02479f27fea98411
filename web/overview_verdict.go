package web

import (
	"context"
	"fmt"
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
	look := lookNow(p, faulty)
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
		bad = append(bad, views.Trouble{Text: "Alarm: " + system.Alarm})
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
func lookNow(p *views.OverviewProps, faulty *store.FaultyRuns) []views.Trouble {
	var look []views.Trouble
	if len(p.Webhooks) > 0 && p.System.Effective == string(pipeline.ModePoll) {
		look = append(look, views.Trouble{At: p.System.ModeSince, Text: "Webhooks aren't relied on: " + p.System.ModeReason})
	}
	if faulty != nil && faulty.Over == nil {
		first, _, _ := strings.Cut(faulty.Note, "\n")
		look = append(look, views.Trouble{
			At: faulty.Since, Text: fmt.Sprintf("Each of the last %d reconcile runs met an error: %s", faulty.Runs, first), Path: "/reconcile",
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
		v.Last = &views.Trouble{At: last[0].At, Text: troubleText(&last[0]), Path: troublePath(&last[0])}
	}
	alarm, at, err := s.store.Alarm(ctx, time.Time{})
	if err != nil {
		return err
	}
	if alarm != "" && (v.Last == nil || at.After(v.Last.At)) {
		v.Last = &views.Trouble{At: at, Text: "alarm: " + alarm}
	}
	if v.Last != nil && v.Last.At.After(v.Since) {
		v.Since = v.Last.At
	}
	return nil
}

// troubleText says what was the matter.
func troubleText(h *store.Happening) string {
	switch h.What {
	case store.HappenedResumed:
		return gateName(h.State) + " stood still for " + views.Lasted(time.Duration(h.N)*time.Second)
	case store.HappenedMode:
		return "webhooks were not relied on"
	case store.HappenedRefused:
		return "a delivery was refused"
	case store.HappenedErrors:
		return fmt.Sprintf("%d reconcile runs in a row met errors", h.N)
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

// gateName is what a gate lets through.
func gateName(gate string) string {
	if gate == store.GateSubmit {
		return "dispatch"
	}
	return "asking the vendor"
}

// overviewHappened lists what happened last. It leads only to pages that
// everybody may open: who looks isn't known here.
func (s *Server) overviewHappened(ctx context.Context, p *views.OverviewProps) error {
	list, err := s.store.PageHappenings(ctx, happenedShown)
	if err != nil {
		return err
	}
	for i := range list {
		p.Happened = append(p.Happened, happenedRow(&list[i]))
	}
	return nil
}

func happenedRow(h *store.Happening) views.HappenedRow {
	row := views.HappenedRow{At: h.At, Text: h.Text, Icon: "activity"}
	switch h.What {
	case store.HappenedBatch:
		row.Icon, row.Path = "stack-2", batchesPath+"/"+idText(h.ID)
		row.Text = fmt.Sprintf("%s ended: %d of %d stored", h.Text, h.N, h.M)
	case store.HappenedRotation:
		row.Icon, row.Text = "key", rotationHappened(h)
	case store.HappenedReplay:
		row.Icon, row.Text = "history", replayHappened(h)
	case store.HappenedReconcile:
		row.Icon, row.Path = "list-check", "/reconcile"
		row.Text = fmt.Sprintf("Reconcile found %s that nobody had told of", counted(h.N, "job", "jobs"))
	case store.HappenedMode:
		row.Icon, row.Text = "webhook", "Webhooks are relied on"
		if h.State == string(pipeline.ModePoll) {
			row.Icon, row.Text = "rotate-clockwise", "Polling instead of webhooks: "+h.Text
		}
	case store.HappenedResumed:
		row.Icon = "player-play"
		row.Text = "After " + views.Lasted(time.Duration(h.N)*time.Second) + " " + gateName(h.State) + " goes on"
	}
	return row
}

// replayHappened is how far a replay has come. One whose jobs had all settled
// before has not failed at any.
func replayHappened(h *store.Happening) string {
	if h.M <= 0 {
		return fmt.Sprintf("Replay %d is %s: no job was left to settle", h.ID, h.State)
	}
	return fmt.Sprintf("Replay %d is %s: it settled %d of the %s that had not settled before", h.ID, h.State, h.N, counted(h.M, "job", "jobs"))
}

func rotationHappened(h *store.Happening) string {
	switch h.State {
	case "done":
		return "The secret of " + h.Text + " was changed"
	case "failed":
		return "The secret of " + h.Text + " was not changed"
	}
	return "The secret of " + h.Text + " is being changed"
}

func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
