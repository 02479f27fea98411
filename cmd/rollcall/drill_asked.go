package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// asked is what the script asked for and what came of it. A drill that leaves something out would prove less than it
// says: what is left out altogether is a problem, and the rest is told.
type asked struct {
	batches, kills int
	acts           map[string]int // By kind.
	compiled       bool           // The hooks for named steps, disks and clocks.
}

// come is what came of it.
type come struct {
	batches, kills, rotations int
	rotationFailed            string // Why the last rotation that failed did.
	acts                      tally
}

// tally counts the acts that were carried out, and those that were left out, by why.
type tally struct {
	done map[string]int
	left map[string]map[string]int
}

// leftOutError is why an act was not carried out, which is no fault of the drill.
type leftOutError string

// Error says why.
func (l leftOutError) Error() string { return string(l) }

const (
	errJoined    leftOutError = "another was under way"
	errNoStep    leftOutError = "the server came to no step that it was to die at, and was killed where it was"
	errNoHooks   leftOutError = "not compiled in (go build -tags drill)"
	errActFailed leftOutError = "it failed, which drill.log tells of"
)

// count takes an act down as done, or as left out where there is a reason.
func (t *tally) count(kind string, why leftOutError) {
	if t.done == nil {
		t.done, t.left = map[string]int{}, map[string]map[string]int{}
	}
	if why == "" {
		t.done[kind]++
		return
	}
	if t.left[kind] == nil {
		t.left[kind] = map[string]int{}
	}
	t.left[kind][string(why)]++
}

// why tells how many acts of a kind were left out, by reason.
func (t *tally) why(kind string) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(t.left[kind])) {
		parts = append(parts, fmt.Sprintf("%d times %s", t.left[kind][reason], reason))
	}
	if len(parts) == 0 {
		return "its time never came"
	}
	return strings.Join(parts, ", ")
}

// missing tells of what was asked for and never came.
func (a asked) missing(c come) []string {
	var told []string
	if c.batches < a.batches {
		told = append(told, fmt.Sprintf("%d of %d batches were submitted", c.batches, a.batches))
	}
	if c.kills < a.kills {
		told = append(told, fmt.Sprintf("%d of %d kills were carried out", c.kills, a.kills))
	}
	for _, kind := range slices.Sorted(maps.Keys(a.acts)) {
		carriedOut, why := c.acts.done[kind], c.acts.why(kind)
		if kind == actRotate {
			// One that the drill could not follow is carried out by the servers; and following it is not enough.
			carriedOut = c.rotations
			if c.rotationFailed != "" {
				why += "; the last error: " + c.rotationFailed
			}
		}
		if carriedOut > 0 || !a.compiled && needsHooks(kind) {
			continue
		}
		told = append(told, fmt.Sprintf("not one of %d acts %q was carried out: %s", a.acts[kind], kind, why))
	}
	return told
}

// needsHooks tells whether acts of a kind are for a program that was built with -tags drill only.
func needsHooks(kind string) bool { return slices.Contains([]string{actStep, actDisk, actClock}, kind) }

// omissions tells how many acts were left out though others of their kind were not.
func (a asked) omissions(c come) []string {
	var told []string
	for _, kind := range slices.Sorted(maps.Keys(c.acts.left)) {
		n := 0
		for _, times := range c.acts.left[kind] {
			n += times
		}
		told = append(told, fmt.Sprintf("%d of %d acts %q were left out: %s", n, a.acts[kind], kind, c.acts.why(kind)))
	}
	return told
}

// omitted tells of what was asked for and never came, each a problem, and then of what was left out besides. The caller
// holds mu.
func (d *drill) omitted(rotations int) ([]string, []string) {
	a := asked{batches: len(d.cmd.load()), kills: d.cmd.Kills, compiled: hooksCompiled, acts: map[string]int{}}
	for _, act := range d.cmd.script(a.batches) {
		a.acts[act.kind]++
	}
	c := come{batches: len(d.batches), kills: len(d.kills), rotations: rotations, rotationFailed: d.rotationFailed, acts: d.acts}
	return a.missing(c), a.omissions(c)
}

// insist tries until it works: the database may be away.
func (d *drill) insist(ctx context.Context, what string, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		d.log.InfoContext(ctx, "not done yet", slog.String("what", what), slog.Any("error", err))
		if !pauseFor(ctx, submitGap) {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}
