package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
)

// drillReport is what came of a drill. Its names are read by programs.
type drillReport struct {
	Submitted         int64          `json:"submitted"`
	Invalid           int64          `json:"invalid"`
	Duplicate         int64          `json:"duplicate"`
	Accepted          int64          `json:"accepted"`
	Stored            int64          `json:"stored"`
	Failed            int64          `json:"failed"`
	Cancelled         int64          `json:"cancelled"`
	Outstanding       int64          `json:"outstanding"`
	Lost              int            `json:"lost"`
	Doubled           int            `json:"doubled"`
	WrongContent      int            `json:"wrong_content"`
	Imbalance         int            `json:"imbalance"`
	Stuck             int            `json:"stuck"`
	Kills             int            `json:"kills"`
	Rotations         int            `json:"rotations"`
	RefusedValid      int            `json:"refused_valid"`
	RefusedSecretLost int64          `json:"refused_secret_lost"`
	ChargedTwice      int            `json:"charged_twice"`
	RecoverySeconds   spread         `json:"recovery_seconds"`
	ReadySeconds      spread         `json:"ready_seconds"` // From a kill until the process is ready again.
	Seconds           float64        `json:"seconds"`
	Seed              uint64         `json:"seed"`
	VendorCalls       vendorCalls    `json:"vendor_calls"`
	ByNet             byNet          `json:"by_net"`
	Sandbox           vendorBooks    `json:"sandbox"`
	Steps             stepCount      `json:"steps"`
	Faults            map[string]int `json:"faults"` // By kind, the kills among them.
	ErrorsExplained   int            `json:"errors_explained"`
	ErrorsUnexplained int            `json:"errors_unexplained"`
	Misbehaved        int            `json:"misbehaved"` // Processes that did not end as they were told to.
	Problems          []string       `json:"problems"`   // In words.
	OK                bool           `json:"ok"`

	began    time.Time
	timeline []happening
	kills    []killLine
	steps    []stepLine
}

// spread is the middle and the longest of some lengths, in seconds.
type spread struct {
	P50 float64 `json:"p50"`
	Max float64 `json:"max"`
}

// stepCount tells how many named steps were seen, and how many of them a server died at. Without the build tag drill
// there are none.
type stepCount struct {
	Compiled bool `json:"compiled"`
	Seen     int  `json:"seen"`
	Killed   int  `json:"killed"`
}

// killLine is a kill as the report shows it.
type killLine struct {
	At              time.Time
	Child, How      string
	Step            string
	Recovery, Ready float64 // Seconds; -1 when nothing was under way, or it never came.
}

// stepLine is a named step with its kills.
type stepLine struct {
	Name            string
	Kills           int
	LongestRecovery float64
}

// report makes the roll call and the figures, when nothing moves any more.
func (d *drill) report(ctx context.Context, took time.Duration) (*drillReport, error) {
	books, err := d.books(ctx)
	if err != nil {
		return nil, err
	}
	sum, _, err := d.total(ctx)
	if err != nil {
		return nil, err
	}
	s := summarize(sum, books, took)
	r := &drillReport{
		Submitted: s.Submitted, Invalid: s.Invalid, Duplicate: s.Duplicate, Accepted: s.Accepted, Stored: s.Stored, Failed: s.Failed,
		Cancelled: s.Cancelled, Outstanding: s.Outstanding, Rotations: s.Rotations, RefusedValid: s.RefusedValid,
		Seconds: s.Seconds, Seed: d.cmd.Seed, VendorCalls: s.VendorCalls, ByNet: s.ByNet, Sandbox: s.Sandbox, began: d.began,
	}
	if r.RefusedSecretLost, err = d.store.CountSecretLost(ctx); err != nil {
		return nil, err
	}
	found, err := d.check(ctx, books)
	if err != nil {
		return nil, err
	}
	all, err := readErrors(d.dir)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	explained, unexplained := sortErrors(slices.Concat(d.falls, all), d.timeline)
	r.take(found, slices.Concat(d.problems, d.omitted(r.Rotations)), explained, unexplained)
	d.figures(r)
	r.judge()
	return r, nil
}

// omitted tells of what was asked for and never came: a drill without it would prove less than it says. The caller
// holds mu.
func (d *drill) omitted(rotations int) []string {
	var told []string
	if want := len(d.cmd.load()); len(d.batches) < want {
		told = append(told, fmt.Sprintf("%d of %d batches were submitted", len(d.batches), want))
	}
	if d.cmd.Kills > 0 && len(d.kills) == 0 {
		told = append(told, "no server was killed")
	}
	if asked := slices.ContainsFunc(d.timeline, func(h happening) bool { return h.Kind == actRotate }); asked && rotations == 0 {
		told = append(told, "no secret was rotated")
	}
	return told
}

// chargedTwiceShare is the part of the URLs that may be charged twice: a call whose answer is lost and that the vendor
// doesn't list when it is looked for can't be told from one that never came.
const chargedTwiceShare = 100

// judge says whether all is well.
func (r *drillReport) judge() {
	wrong := r.Lost + r.Doubled + r.WrongContent + r.Imbalance + r.Stuck + r.RefusedValid + r.ErrorsUnexplained + r.Misbehaved
	r.OK = wrong == 0 && r.Outstanding == 0 && r.ChargedTwice <= int(r.Accepted)/chargedTwiceShare
}

// take puts down what was found, in figures and, of each the first, in words.
func (r *drillReport) take(f *findings, problems []string, explained int, unexplained []logError) {
	r.Lost, r.Doubled, r.WrongContent, r.Imbalance, r.Stuck = f.Lost, f.Doubled, f.WrongContent, f.Imbalance, f.Stuck
	r.ChargedTwice, r.ErrorsExplained, r.ErrorsUnexplained = f.ChargedTwice, explained, len(unexplained)
	r.Misbehaved, r.Problems = len(problems), slices.Concat(problems, f.told)
	for _, l := range unexplained {
		r.Problems = append(r.Problems, l.process+": "+l.text)
	}
}

// figures are those of the kills, the steps and the faults. The caller holds mu.
func (d *drill) figures(r *drillReport) {
	r.Kills, r.Faults, r.timeline = len(d.kills), map[string]int{}, d.timeline
	for _, h := range d.timeline {
		r.Faults[h.Kind]++
	}
	steps := map[string]*stepLine{}
	for _, server := range d.servers {
		for _, step := range server.seen() {
			r.Steps.Compiled = true
			steps[step] = &stepLine{Name: step}
		}
	}
	var recovered, ready []float64
	for _, k := range d.kills {
		line := killLine{At: k.at, Child: k.child, How: k.how, Step: k.step, Recovery: d.recovery(k.at), Ready: -1}
		if !k.ready.IsZero() {
			line.Ready = seconds(k.ready.Sub(k.at))
			ready = append(ready, line.Ready)
		}
		if line.Recovery >= 0 {
			recovered = append(recovered, line.Recovery)
		}
		if s := steps[k.step]; s != nil {
			s.Kills++
			s.LongestRecovery = max(s.LongestRecovery, line.Recovery)
		}
		r.kills = append(r.kills, line)
	}
	r.RecoverySeconds, r.ReadySeconds = spreadOf(recovered), spreadOf(ready)
	for _, s := range steps {
		r.Steps.Seen++
		if s.Kills > 0 {
			r.Steps.Killed++
		}
		r.steps = append(r.steps, *s)
	}
	sort.Slice(r.steps, func(i, j int) bool { return r.steps[i].Name < r.steps[j].Name })
}

// recovery is how long after a moment the next URL came home, in seconds, or -1 when none was outstanding. The caller
// holds mu.
func (d *drill) recovery(at time.Time) float64 {
	after := sort.Search(len(d.samples), func(i int) bool { return d.samples[i].at.After(at) })
	if after == 0 || d.samples[after-1].outstanding == 0 {
		return -1
	}
	for _, s := range d.samples[after:] {
		if s.answered > d.samples[after-1].answered {
			return seconds(s.at.Sub(at))
		}
	}
	return -1
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*100) / 100 }

func spreadOf(lengths []float64) spread {
	if len(lengths) == 0 {
		return spread{}
	}
	slices.Sort(lengths)
	return spread{P50: lengths[len(lengths)/2], Max: lengths[len(lengths)-1]}
}

// text is the report for a person.
func (r *drillReport) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
Roll call: %d submitted = %d invalid + %d duplicate + %d accepted
           %d accepted = %d stored + %d failed + %d cancelled + %d outstanding
  wrong:    %d lost, %d doubled, %d with wrong content, %d out of balance, %d stuck; %d charged twice
  by net:   webhook %d, poll %d, reconcile %d, replay %d, sync %d
  vendor:   %d calls (%d submit, %d status, %d list, %d more pages of results, %d other); %d jobs; deliveries: %d arrived, %d dropped, %d sent twice
  secrets:  %d rotations, %d good deliveries refused, %d signed with a secret nobody saw
  kills:    %d; next URL home after %.2f s in the middle, %.2f s at most; process ready after %.2f s, %.2f s
  steps:    %s
  faults:   %s
  errors:   %d logged that the script explains, %d that it doesn't
  time:     %.1f s, seed %d
`,
		r.Submitted, r.Invalid, r.Duplicate, r.Accepted, r.Accepted, r.Stored, r.Failed, r.Cancelled, r.Outstanding,
		r.Lost, r.Doubled, r.WrongContent, r.Imbalance, r.Stuck, r.ChargedTwice,
		r.ByNet.Webhook, r.ByNet.Poll, r.ByNet.Reconcile, r.ByNet.Replay, r.ByNet.Sync,
		r.VendorCalls.Total, r.VendorCalls.Submit, r.VendorCalls.Status, r.VendorCalls.List, r.VendorCalls.Results, r.VendorCalls.other(),
		r.Sandbox.Jobs, r.Sandbox.Delivered, r.Sandbox.Dropped, r.Sandbox.Duplicated,
		r.Rotations, r.RefusedValid, r.RefusedSecretLost,
		r.Kills, r.RecoverySeconds.P50, r.RecoverySeconds.Max, r.ReadySeconds.P50, r.ReadySeconds.Max,
		r.Steps.text(), countsText(r.Faults), r.ErrorsExplained, r.ErrorsUnexplained, r.Seconds, r.Seed)
	r.writeProblems(&b)
	return b.String()
}

func (r *drillReport) writeProblems(b *strings.Builder) {
	verdict := "All is well.\n"
	if !r.OK {
		verdict = "NOT well.\n"
	}
	b.WriteString(verdict)
	for _, line := range r.Problems[:min(len(r.Problems), problemsShown)] {
		b.WriteString("  " + line + "\n")
	}
	if rest := len(r.Problems) - problemsShown; rest > 0 {
		fmt.Fprintf(b, "  and %d more\n", rest)
	}
}

func (s stepCount) text() string {
	if !s.Compiled {
		return "not compiled in (go build -tags drill)"
	}
	return fmt.Sprintf("%d seen, a server died at %d of them", s.Seen, s.Killed)
}

func countsText(counts map[string]int) string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	return strings.Join(parts, ", ")
}
