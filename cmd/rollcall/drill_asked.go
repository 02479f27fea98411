package main

import "fmt"

// asked is what the script asked for and what came of it. A drill that leaves something out would prove less than it
// says, so each of these is a problem.
type asked struct {
	batches, kills, steps int
	compiled              bool // The hooks for named steps.
}

// come is what came of it.
type come struct {
	batches, kills, steps, rotations int
	rotationsTried                   int
	rotationsFailed                  string // Why the last that failed did.
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
	if a.compiled && a.steps > 0 && c.steps == 0 {
		told = append(told, fmt.Sprintf("no server died at a named step, though the hooks are compiled in and it was asked for %d times", a.steps))
	}
	if c.rotationsTried > 0 && c.rotations == 0 {
		why := c.rotationsFailed
		if why == "" {
			why = "each try ended without an error"
		}
		told = append(told, fmt.Sprintf("no secret was rotated in %d tries: %s", c.rotationsTried, why))
	}
	return told
}

// omitted tells of what was asked for and never came. The caller holds mu.
func (d *drill) omitted(rotations int) []string {
	a := asked{batches: len(d.cmd.load()), kills: d.cmd.Kills, compiled: hooksCompiled}
	c := come{batches: len(d.batches), kills: len(d.kills), rotations: rotations, rotationsFailed: d.rotationFailed}
	for _, act := range d.cmd.script(a.batches) {
		if act.kind == actStep {
			a.steps++
		}
	}
	for _, k := range d.kills {
		if k.step != "" {
			c.steps++
		}
	}
	for _, h := range d.timeline {
		if h.Kind == actRotate {
			c.rotationsTried++
		}
	}
	return a.missing(c)
}
