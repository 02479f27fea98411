package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"rollcall/internal/sandbox"
)

// benchScaleCmd drains extract jobs whose webhooks have come: by one process and by two, and with few settled jobs in
// the database and with many.
type benchScaleCmd struct {
	JSON   bool  `name:"json" help:"Print one JSON object: name, machine, rows, aims."`
	Drain  int   `default:"3000" help:"Jobs that are drained in each run."`
	Before []int `default:"10000,1000000" help:"Settled jobs that are in the database before, in rising order."`
	Runs   int   `default:"5" help:"Runs of each kind; medians count."`
}

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
	a.log = quietly(a)
	w, err := openBenchWorld(ctx, a, sandbox.Config{})
	if err != nil {
		return err
	}
	report, err := c.measure(ctx, a, w)
	if err := errors.Join(err, w.close(ctx)); err != nil {
		return err
	}
	return conclude(a, c.JSON, report, func(out io.Writer) error { return scaleTable(out, report) })
}

func (c *benchScaleCmd) measure(ctx context.Context, a *app, w *benchWorld) (benchReport[scaleRow], error) {
	report := benchReport[scaleRow]{Name: "scale"}
	var err error
	if report.Machine, err = thisMachine(ctx, w.store); err != nil {
		return report, err
	}
	d := &driving{benchWorld: w, app: a}
	if err := d.begin(ctx); err != nil {
		return report, err
	}
	for _, before := range c.Before {
		if _, err := fmt.Fprintf(a.err, "%d settled jobs ...\n", before); err != nil {
			return report, err
		}
		rows, err := c.rows(ctx, d, before)
		if err != nil {
			return report, fmt.Errorf("%d settled jobs: %w", before, err)
		}
		report.Rows = append(report.Rows, rows...)
	}
	report.Aims = scaleAims(report.Rows)
	return report, nil
}

// rows drains with one process and with two, in turns.
func (c *benchScaleCmd) rows(ctx context.Context, d *driving, before int) ([]scaleRow, error) {
	if err := d.clear(ctx); err != nil {
		return nil, err
	}
	if err := d.seedSettled(ctx, "before", before, d.now()); err != nil {
		return nil, err
	}
	runs := map[int][]pipelineRun{}
	for round := range c.Runs {
		for _, processes := range []int{1, 2} {
			run, err := d.drain(ctx, fmt.Sprintf("scale%d-%d-%d", before, round, processes), c.Drain, processes)
			if err != nil {
				return nil, err
			}
			runs[processes] = append(runs[processes], run)
		}
	}
	var out []scaleRow
	for _, processes := range []int{1, 2} {
		of := pipelineMedians(strconv.Itoa(processes), c.Drain, runs[processes])
		out = append(out, scaleRow{
			Settled: before, Processes: processes, Drained: c.Drain, PerSecond: of.PerSecond, CPU: of.CPU, Statements: of.Statements, Cores: of.Cores,
		})
	}
	return out, nil
}

// scaleAims are what two processes must show beside one, and many jobs beside few. CPU seconds of 1,000 jobs are
// milliseconds of one.
func scaleAims(rows []scaleRow) []aim {
	var out []aim
	for i := 0; i+1 < len(rows); i += 2 {
		out = append(out, atLeast(fmt.Sprintf("%d settled jobs: two processes, as part of the speed of one", rows[i].Settled),
			rows[i+1].PerSecond/max(rows[i].PerSecond, 0.001), 0.9))
	}
	if first, last := rows[0], rows[len(rows)-2]; first.Settled != last.Settled {
		out = append(out, atMost(fmt.Sprintf("CPU a job at %d jobs, as part of that at %d", last.Settled, first.Settled), last.CPU/max(first.CPU, 0.001), 1.25))
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
