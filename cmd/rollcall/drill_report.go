package main

import (
	"context"
	"encoding/json"
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
	RefusedKilled     int            `json:"refused_secret_killed"` // Signed with a secret that died with a process.
	SecretsKilled     int            `json:"secrets_killed"`        // Told to Rollcall, and lost to a fault before they were stored.
	SecretsMissing    int            `json:"secrets_missing"`       // Told to Rollcall, or present, and not here.
	ChargedTwice      int            `json:"charged_twice"`
	LostAnswer        int            `json:"charged_twice_lost_answer"` // Those of them that a lost answer excuses.
	ChargedGivenUp    int            `json:"charged_given_up"`          // Charged once, and given up before the job was found.
	ChargedCounted    int64          `json:"charged_twice_counted"`     // What Rollcall itself counts of them.
	Leaks             leakReport     `json:"leaks"`
	Asked             askedURLs      `json:"asked"`
	KillsAsked        int            `json:"kills_asked"`
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
	Notes             []string       `json:"notes"`      // What is no problem and worth a look.
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

// stepCount tells how many named steps were seen, at how many of them a server died, and how many kills that were.
// Without the build tag drill there are none.
type stepCount struct {
	Compiled bool `json:"compiled"`
	Seen     int  `json:"seen"`
	Killed   int  `json:"killed"`
	Kills    int  `json:"kills"`
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

// report makes the roll call and the figures, when nothing moves any more, and looks for secrets in all of it.
func (d *drill) report(ctx context.Context, took time.Duration, pages map[string]string) (*drillReport, error) {
	r, err := d.rollCall(ctx, took)
	if err != nil {
		return nil, err
	}
	var page strings.Builder
	if err := r.html(&page); err != nil {
		return nil, err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("the report: %w", err)
	}
	if r.Leaks, err = d.searchForSecrets(ctx, pages, r.text()+string(line)+page.String()); err != nil {
		return nil, err
	}
	r.Problems = slices.Concat(r.Leaks.told, r.Problems)
	r.judge()
	return r, nil
}

// rollCall is the report but for the search for secrets.
func (d *drill) rollCall(ctx context.Context, took time.Duration) (*drillReport, error) {
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
		Cancelled: s.Cancelled, Outstanding: s.Outstanding, Rotations: s.Rotations,
		Seconds: s.Seconds, Seed: d.cmd.Seed, VendorCalls: s.VendorCalls, ByNet: s.ByNet, Sandbox: s.Sandbox, began: d.began,
	}
	if r.RefusedSecretLost, err = d.store.CountSecretLost(ctx); err != nil {
		return nil, err
	}
	refused, err := d.refused(ctx)
	if err != nil {
		return nil, err
	}
	r.RefusedValid, r.RefusedKilled, r.SecretsKilled, r.SecretsMissing = refused.Valid, refused.Killed, refused.Lost, refused.Missing
	found, err := d.check(ctx, books)
	if err != nil {
		return nil, err
	}
	found.told = append(found.told, refused.told...)
	all, err := readErrors(d.dir)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	explained, unexplained := sortErrors(slices.Concat(d.falls, all), d.timeline)
	omitted, notes := d.omitted(r.Rotations)
	r.take(found, slices.Concat(d.problems, omitted), explained, unexplained)
	r.Notes = append(r.Notes, notes...)
	d.figures(r)
	return r, nil
}

// judge says whether all is well. Of what was charged twice only a lost answer is an excuse.
func (r *drillReport) judge() {
	wrong := r.Lost + r.Doubled + r.WrongContent + r.Imbalance + r.Stuck + r.RefusedValid + r.SecretsMissing + r.ErrorsUnexplained + r.Misbehaved
	r.OK = wrong == 0 && r.ChargedGivenUp == 0 && r.Outstanding == 0 && r.ChargedTwice == r.LostAnswer && r.Leaks.Found == 0
}

// take puts down what was found, in figures and, of each the first, in words.
func (r *drillReport) take(f *findings, problems []string, explained int, unexplained []logError) {
	r.Lost, r.Doubled, r.WrongContent, r.Imbalance, r.Stuck = f.Lost, f.Doubled, f.WrongContent, f.Imbalance, f.Stuck
	r.ChargedTwice, r.LostAnswer, r.ChargedCounted = f.charges.Twice, f.charges.LostAnswer, f.charges.Counted
	r.ChargedGivenUp = f.charges.GivenUp
	r.ErrorsExplained, r.ErrorsUnexplained = explained, len(unexplained)
	r.Misbehaved, r.Problems = len(problems), slices.Concat(problems, f.told)
	if r.ChargedTwice > r.LostAnswer || r.ChargedGivenUp > 0 || f.charges.miscounted > 0 {
		r.Problems = append(r.Problems, f.charges.told...)
	} else {
		r.Notes = f.charges.told
	}
	for _, l := range unexplained {
		r.Problems = append(r.Problems, l.process+": "+l.text)
	}
}

// figures are those of the kills, the steps and the faults. The caller holds mu.
func (d *drill) figures(r *drillReport) {
	r.Kills, r.KillsAsked, r.Faults, r.timeline = len(d.kills), d.cmd.Kills, map[string]int{}, d.timeline
	r.Asked, r.Steps.Compiled = d.cmd.asked(), hooksCompiled
	for _, h := range d.timeline {
		r.Faults[h.Kind]++
	}
	steps := map[string]*stepLine{}
	for _, server := range d.servers {
		for _, step := range server.seen() {
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
			r.Steps.Kills += s.Kills
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
