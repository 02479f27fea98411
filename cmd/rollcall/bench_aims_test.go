package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func heldOf(aims []aim) []bool {
	held := make([]bool, len(aims))
	for i, a := range aims {
		held[i] = a.Held
	}
	return held
}

// TestAimsNotMeasured: a figure of 0 holds no aim, but where 0 is a figure like any other.
func TestAimsNotMeasured(t *testing.T) {
	t.Parallel()
	got := heldOf([]aim{
		atLeast("x", 2, 2), atLeast("x", 1, 2), atLeast("x", 0, 0),
		atMost("x", 2, 2), atMost("x", 3, 2), atMost("x", 0, 2),
		below("x", 1, 2), below("x", 2, 2), below("x", 0, 2),
		noMore("x", 0, 2), noMore("x", 3, 2),
	})
	if want := []bool{true, false, false, true, false, false, true, false, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestPipelineAims: times of a few jobs stand for none, nor does a run that measured nothing.
func TestPipelineAims(t *testing.T) {
	t.Parallel()
	rows := func(change func(batch, drained, half *pipelineRow)) []pipelineRow {
		batch := pipelineRow{Seconds: 10.9, Vendor: 10, Calls: 0.02, P50: 50, P99: 500, ByWebhook: 0.99, Peak: 90}
		drained := pipelineRow{PerSecond: 1000, Peak: 90}
		half := pipelineRow{P50: 50, P99: 500, ByWebhook: 0.99, Peak: 90}
		change(&batch, &drained, &half)
		return []pipelineRow{batch, drained, {Peak: 90}, half}
	}
	missed := func(rows []pipelineRow) []string {
		var names []string
		for _, a := range pipelineAims(rows) {
			if !a.Held {
				names = append(names, a.Name)
			}
		}
		return names
	}
	if got := missed(rows(func(_, _, _ *pipelineRow) {})); got != nil {
		t.Errorf("all is well: missed %v", got)
	}
	for name, change := range map[string]func(batch, drained, half *pipelineRow){
		"half load: part of the jobs that those times are of": func(_, _, half *pipelineRow) { half.ByWebhook = 0.9 },
		"batch: part of the jobs that those times are of":     func(batch, _, _ *pipelineRow) { batch.ByWebhook = 0.9 },
		"half load: delivery to stored, p99 in ms":            func(_, _, half *pipelineRow) { half.P99 = 0 },
		"batch: end, as part of the vendor's own":             func(batch, _, _ *pipelineRow) { batch.Vendor = 0 },
		"batch: vendor calls a URL":                           func(batch, _, _ *pipelineRow) { batch.Calls = 0.034 },
		"drained: extract jobs settled a second":              func(_, drained, _ *pipelineRow) { drained.PerSecond = 999 },
		"memory in MB, at most":                               func(_, drained, _ *pipelineRow) { drained.Peak = 201 },
	} {
		if got := missed(rows(change)); !slices.Equal(got, []string{name}) {
			t.Errorf("missed %v, want %s", got, name)
		}
	}
}

// TestGrowthAim: a statement that lost its index is caught however quick it still is.
func TestGrowthAim(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row  growthRow
		want bool
	}{
		{growthRow{Young: 10, Old: 15, Times: 1.5, Slack: growthSlack}, true},
		{growthRow{Young: 10, Old: 16, Times: 1.6, Slack: growthSlack}, false},
		{growthRow{Young: 0.05, Old: 0.5, Times: 10, Slack: growthSlack}, true},
		{growthRow{Young: 0.05, Old: 4.9, Times: 98, Slack: growthSlack}, false},
		{growthRow{Young: 1, Old: 5.9, Times: 5.9, Slack: pageSlack}, true},
		{growthRow{Young: 1, Old: 6.1, Times: 6.1, Slack: pageSlack}, false},
		{growthRow{Young: 1, Old: 0, Times: 0, Slack: pageSlack}, false},
		{growthRow{Young: 0, Old: 1, Times: 1000, Slack: pageSlack}, false},
	} {
		if got := c.row.aim(); got.Held != c.want {
			t.Errorf("%+v: got %+v", c.row, got)
		}
	}
	for _, act := range append(growthActs(), growthWork(1)...) {
		if want := strings.HasPrefix(act.what, "page ") || strings.Contains(act.what, "submit to stored"); (act.slack == pageSlack) != want {
			t.Errorf("%s: a slack of %g ms", act.what, act.slack)
		}
	}
}

// TestScaleAims: what Postgres used must have been read.
func TestScaleAims(t *testing.T) {
	t.Parallel()
	rows := []scaleRow{
		{Settled: 10, Processes: 1, PerSecond: 100, CPU: 4, Cores: cores{Postgres: 1}},
		{Settled: 10, Processes: 2, PerSecond: 89, CPU: 4, Cores: cores{Postgres: 1}},
		{Settled: 1000, Processes: 1, PerSecond: 100, CPU: 5, Cores: cores{Postgres: 1}},
		{Settled: 1000, Processes: 2, PerSecond: 90, CPU: 5, Cores: cores{Postgres: 1}},
	}
	if got, want := heldOf(scaleAims(rows)), []bool{false, true, true}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	rows[2].Cores.Postgres = 0
	if got, want := heldOf(scaleAims(rows)), []bool{false, true, false}; !slices.Equal(got, want) {
		t.Errorf("Postgres unread: got %v, want %v", got, want)
	}
}

// TestDeadServerIsNoFigure: a measured process that died is an error, not one that uses nothing.
func TestDeadServerIsNoFigure(t *testing.T) {
	t.Parallel()
	if stat, err := readServer(os.Getpid()); err != nil || !stat.alive {
		t.Errorf("this process: %+v, %v", stat, err)
	}
	if m, err := readMemory(os.Getpid()); err != nil || m.peak < m.now {
		t.Errorf("this process: %+v, %v", m, err)
	}
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	m := &meter{servers: []int{pid}}
	if _, err := m.read(); err != nil {
		t.Errorf("a process that lives: %v", err)
	}
	_ = in.Close() // It ends for that.
	if _, err := out.Read(make([]byte, 1)); err == nil {
		t.Fatal("it said something")
	}
	eventually(t, "the end of the process", benchStopTime, func() bool {
		stat, err := readProc(pid)
		return err == nil && !stat.alive
	})
	dead := func(when string) {
		if used, err := m.read(); err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("%s: got %+v, %v", when, used, err)
		}
		if m, err := readMemory(pid); err == nil {
			t.Errorf("%s: got %+v", when, m)
		}
	}
	dead("before anybody has waited for it")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	dead("gone")
}
