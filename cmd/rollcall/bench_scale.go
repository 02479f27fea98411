package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"rollcall/internal/sandbox"
)

// benchScaleCmd drains extract jobs whose webhooks have come: by one process and by two, in a database with few settled
// jobs and in one with many, all in turns.
type benchScaleCmd struct {
	JSON   bool  `name:"json" help:"Print one JSON object: name, machine, rows, aims."`
	Drain  int   `default:"3000" help:"Jobs that are drained in each run."`
	Before []int `default:"10000,1000000" help:"Settled jobs that are in the database before, in rising order."`
	Runs   int   `default:"5" help:"Runs of each kind; medians count."`
}

// The aims: two processes bring at least so much of what one does, and a job among many costs at most so many times one
// among few.
const (
	scaleKept = 0.9
	scaleFlat = 1.25
)

// scaleProcesses is how many processes there are at most.
const scaleProcesses = 2

// scaleRow is one kind of run, in medians.
type scaleRow struct {
	Settled    int     `json:"settled_before"`
	Processes  int     `json:"processes"`
	Drained    int     `json:"drained"` // A run's; each is stored, which was counted.
	PerSecond  float64 `json:"per_second"`
	CPU        float64 `json:"cpu_ms_each"` // Of the servers and of Postgres.
	Statements float64 `json:"statements_each"`
	Cores      cores   `json:"cores"`
}

// Run measures and exits 1 when an aim isn't held.
func (c *benchScaleCmd) Run(ctx context.Context, a *app) error {
	if c.Drain < 1 || c.Runs < 1 || len(c.Before) == 0 || !slices.IsSorted(c.Before) {
		return errors.New("--drain and --runs must be at least 1, and --before in rising order")
	}
	ctx, end := measuring(ctx, a)
	defer end()
	worlds, err := c.open(ctx, a)
	var report benchReport[scaleRow]
	if err == nil {
		report, err = c.measure(ctx, a, worlds)
	}
	for _, w := range worlds {
		err = errors.Join(err, w.close(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	return conclude(a, c.JSON, report, func(out io.Writer) error { return scaleTable(out, report) })
}

// open makes a database for each number of settled jobs, so that they can be measured in turns. On an error too it returns
// those that are open.
func (c *benchScaleCmd) open(ctx context.Context, a *app) ([]*driving, error) {
	var worlds []*driving
	for _, before := range c.Before {
		if _, err := fmt.Fprintf(a.err, "%d settled jobs ...\n", before); err != nil {
			return worlds, err
		}
		w, err := openBenchWorld(ctx, a, sandbox.Config{})
		if err != nil {
			return worlds, err
		}
		d := &driving{benchWorld: w, app: a}
		worlds = append(worlds, d)
		if err := d.begin(ctx); err != nil {
			return worlds, err
		}
		if err := d.seedSettled(ctx, "before", before, d.now()); err != nil {
			return worlds, err
		}
	}
	return worlds, nil
}

func (c *benchScaleCmd) measure(ctx context.Context, a *app, worlds []*driving) (benchReport[scaleRow], error) {
	report := benchReport[scaleRow]{Name: "scale"}
	var err error
	if report.Machine, err = thisMachine(ctx, worlds[0].store); err != nil {
		return report, err
	}
	runs := make([][scaleProcesses][]pipelineRun, len(worlds))
	for round := range c.Runs {
		if _, err := fmt.Fprintf(a.err, "round %d of %d ...\n", round+1, c.Runs); err != nil {
			return report, err
		}
		for i, d := range worlds {
			for more := range scaleProcesses {
				run, err := d.drain(ctx, fmt.Sprintf("scale%d-%d", round, more), c.Drain, more+1)
				if err != nil {
					return report, fmt.Errorf("%d settled jobs: %w", c.Before[i], err)
				}
				runs[i][more] = append(runs[i][more], run)
			}
		}
	}
	for i, before := range c.Before {
		for more := range scaleProcesses {
			of := pipelineMedians("", c.Drain, runs[i][more])
			report.Rows = append(report.Rows, scaleRow{
				Settled: before, Processes: more + 1, Drained: c.Drain, PerSecond: of.PerSecond, CPU: of.CPU, Statements: of.Statements, Cores: of.Cores,
			})
		}
	}
	report.Aims = scaleAims(report.Rows)
	return report, nil
}

// scaleAims are what two processes must show beside one, and many jobs beside few. CPU seconds of 1,000 jobs are
// milliseconds of one.
func scaleAims(rows []scaleRow) []aim {
	var out []aim
	for i := 0; i+1 < len(rows); i += 2 {
		out = append(out, atLeast(fmt.Sprintf("%d settled jobs: two processes, as part of the speed of one", rows[i].Settled),
			rows[i+1].PerSecond/max(rows[i].PerSecond, 0.001), scaleKept))
	}
	if first, last := rows[0], rows[len(rows)-2]; first.Settled != last.Settled {
		flat := atMost(fmt.Sprintf("CPU a job at %d jobs, as part of that at %d", last.Settled, first.Settled), last.CPU/max(first.CPU, 0.001), scaleFlat)
		// The part of a Postgres that runs elsewhere can't be read, and is most of it.
		flat.Held = flat.Held && first.Cores.Postgres > 0 && last.Cores.Postgres > 0
		out = append(out, flat)
	}
	return out
}

func scaleTable(out io.Writer, report benchReport[scaleRow]) error {
	if _, err := fmt.Fprint(out, "Extract jobs that ended, drained beside settled ones.\n\n"+
		"settled before\tprocesses\tdrained\tjobs/s\tCPU each\tstatements each\tcores: servers\tPostgres\tvendor\n"); err != nil {
		return err
	}
	for _, r := range report.Rows {
		if _, err := fmt.Fprintf(out, "%d\t%d\t%d\t%.0f\t%.2f ms\t%.1f\t%.2f\t%.2f\t%.2f\n", r.Settled, r.Processes, r.Drained, r.PerSecond, r.CPU,
			r.Statements, r.Cores.Server, r.Cores.Postgres, r.Cores.Load); err != nil {
			return err
		}
	}
	last := report.Rows[len(report.Rows)-1]
	return tellBound(out, report.Machine.CPUs, fmt.Sprintf("two processes, %d settled jobs", last.Settled), last.Cores)
}
