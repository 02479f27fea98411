package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"rollcall/internal/sandbox"
)

// benchReceiverCmd sends signed deliveries over real sockets to a server of its own process, each durable before it is
// answered, and beside it in turns to two others: one that verifies only, which nothing durable can beat, and the same
// server with a transaction for each delivery.
type benchReceiverCmd struct {
	JSON       bool `name:"json" help:"Print one JSON object: name, machine, rows, aims."`
	Deliveries int  `default:"6000" help:"How many deliveries of 2 KB a run sends over 64 connections; all other runs follow from it."`
	Runs       int  `default:"5" help:"Runs of each kind, in turns; medians count."`
	Quick      bool `help:"Only what the aims are about: 64 connections, 2 KB, all new, no workers."`
}

// The sizes of deliveries, and how many connections send them.
const (
	smallBody, largeBody = 2 << 10, 200 << 10
	mostConnections      = 64
	// manyDuplicates is the percentage of deliveries that repeat an earlier one.
	manyDuplicates = 20
)

// receiverCell is what one row measures.
type receiverCell struct {
	Way         string `json:"way"`
	Bytes       int    `json:"bytes"`
	Connections int    `json:"connections"`
	Duplicates  int    `json:"duplicates_percent"`
	Workers     bool   `json:"workers"` // Settling meanwhile.
}

// receiverRow is what a cell came to, in medians.
type receiverRow struct {
	receiverCell
	Deliveries int     `json:"deliveries"` // Sent in all runs, and found in the database.
	PerSecond  float64 `json:"per_second"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Statements float64 `json:"statements_each"`
	Commits    float64 `json:"commits_each"`
	WALBytes   float64 `json:"wal_bytes_each"`
	Settled    float64 `json:"settled_per_second"` // By the workers meanwhile.
	Cores      cores   `json:"cores"`
	Memory     float64 `json:"memory_mb"`      // At the end of the last run.
	First      float64 `json:"first_mb"`       // At the end of the first.
	Peak       float64 `json:"peak_memory_mb"` // Of the process, whatever it received.
}

// Run measures and exits 1 when an aim isn't held.
func (c *benchReceiverCmd) Run(ctx context.Context, a *app) error {
	if c.Deliveries < 1 || c.Runs < 1 {
		return errors.New("--deliveries and --runs must be at least 1")
	}
	ctx, end := measuring(ctx, a)
	defer end()
	w, err := openBenchWorld(ctx, a, sandbox.Config{})
	if err != nil {
		return err
	}
	report, err := c.measure(ctx, a, w)
	if err := errors.Join(err, w.close(ctx)); err != nil {
		return err
	}
	return conclude(a, c.JSON, report, func(out io.Writer) error { return receiverTable(out, report) })
}

// cells are all that is measured, in the order of the turns.
func (c *benchReceiverCmd) cells() []receiverCell {
	head := receiverCell{Bytes: smallBody, Connections: mostConnections}
	if c.Quick {
		return eachWay(head)
	}
	var out []receiverCell
	for _, size := range []int{smallBody, largeBody} {
		for _, connections := range []int{1, 16, mostConnections} {
			out = append(out, eachWay(receiverCell{Bytes: size, Connections: connections})...)
			for _, more := range []receiverCell{{Duplicates: manyDuplicates}, {Workers: true}, {Duplicates: manyDuplicates, Workers: true}} {
				more.Way, more.Bytes, more.Connections = wayGroup, size, connections
				out = append(out, more)
			}
		}
	}
	return out
}

func eachWay(of receiverCell) []receiverCell {
	var out []receiverCell
	for _, way := range []string{wayVerify, wayPlain, wayGroup} {
		of.Way = way
		out = append(out, of)
	}
	return out
}

// number is how many deliveries a run of the cell sends: a second's worth, about, where the aims look, and less elsewhere.
func (c *benchReceiverCmd) number(of receiverCell) int {
	n := c.Deliveries
	if !of.headline() {
		n /= 3
	}
	switch of.Connections {
	case 1:
		n /= 8
	case 16:
		n /= 2
	}
	if of.Bytes > smallBody {
		n /= 10
	}
	switch {
	case of.Way == wayVerify:
		n *= 4
	case of.Way == wayPlain && of.Connections > 1:
		n /= 3
	}
	return max(n, min(c.Deliveries, of.Connections))
}

func (c *benchReceiverCmd) measure(ctx context.Context, a *app, w *benchWorld) (benchReport[receiverRow], error) {
	report := benchReport[receiverRow]{Name: "receiver"}
	var err error
	if report.Machine, err = thisMachine(ctx, w.store); err != nil {
		return report, err
	}
	r := &receiving{benchWorld: w, app: a, processes: map[string]*benchProcess{}}
	err = r.begin(ctx)
	if err == nil {
		report.Rows, err = c.rounds(ctx, r)
	}
	if err := errors.Join(err, r.end()); err != nil {
		return report, err
	}
	report.Aims = receiverAims(report.Rows)
	return report, nil
}

// rounds runs every cell once, then every cell again.
func (c *benchReceiverCmd) rounds(ctx context.Context, r *receiving) ([]receiverRow, error) {
	cells := c.cells()
	runs := make([][]receiverRun, len(cells))
	for round := range c.Runs {
		if _, err := fmt.Fprintf(r.app.err, "round %d of %d ...\n", round+1, c.Runs); err != nil {
			return nil, err
		}
		for i, cell := range cells {
			got, err := r.run(ctx, cell, fmt.Sprintf("%d-%d", round, i), c.number(cell))
			if err != nil {
				return nil, fmt.Errorf("%s, %d bytes, %d connections: %w", cell.Way, cell.Bytes, cell.Connections, err)
			}
			runs[i] = append(runs[i], got)
		}
	}
	rows := make([]receiverRow, len(cells))
	for i, cell := range cells {
		rows[i] = receiverMedians(cell, runs[i])
	}
	return rows, nil
}

func receiverMedians(cell receiverCell, runs []receiverRun) receiverRow {
	of := func(value func(receiverRun) float64) float64 {
		var all []float64
		for _, r := range runs {
			all = append(all, value(r))
		}
		return middle(all)
	}
	each := func(value func(receiverRun) int64) float64 {
		return of(func(r receiverRun) float64 { return float64(value(r)) / float64(r.load.sent) })
	}
	row := receiverRow{
		receiverCell: cell,
		PerSecond:    of(func(r receiverRun) float64 { return r.load.perSecond() }),
		P50:          of(func(r receiverRun) float64 { return r.load.millis(0.5) }),
		P99:          of(func(r receiverRun) float64 { return r.load.millis(0.99) }),
		Statements:   each(func(r receiverRun) int64 { return r.counts.Statements }),
		Commits:      each(func(r receiverRun) int64 { return r.counts.Commits }),
		WALBytes:     each(func(r receiverRun) int64 { return r.wal }),
		Settled:      of(func(r receiverRun) float64 { return float64(r.settled) / r.load.took.Seconds() }),
		Cores: cores{
			of(func(r receiverRun) float64 { return r.used.cores(r.load.took).Server }),
			of(func(r receiverRun) float64 { return r.used.cores(r.load.took).Postgres }),
			of(func(r receiverRun) float64 { return r.used.cores(r.load.took).Load }),
		},
		First: megabytes(runs[0].memory.now),
	}
	for _, r := range runs {
		row.Deliveries += r.load.sent
		row.Memory, row.Peak = megabytes(r.memory.now), max(row.Peak, megabytes(r.memory.peak))
	}
	return row
}

func megabytes(n int64) float64 { return round(float64(n) / (1 << 20)) }

// receiverAims are what the rows of 64 connections, 2 KB, all new and without workers must show.
func receiverAims(rows []receiverRow) []aim {
	by := headline(rows)
	own, floor, ceiling := by[wayGroup], by[wayPlain], by[wayVerify]
	return []aim{
		atLeast("times the deliveries of "+wayPlain, own.PerSecond/max(floor.PerSecond, 0.01), 4),
		atLeast("part of the deliveries of "+wayVerify, own.PerSecond/max(ceiling.PerSecond, 0.01), 0.15),
		atMost("p99 in ms, beside the p50 of "+wayPlain, own.P99, floor.P50),
		atMost("statements a delivery", own.Statements, 1),
		atMost("memory in MB, at most", own.Peak, 150),
		atMost("memory after the last run, as part of that after the first", own.Memory/max(own.First, 0.01), 1.25),
	}
}

// headline reports whether the aims are about this cell.
func (c receiverCell) headline() bool {
	return c.Bytes == smallBody && c.Connections == mostConnections && c.Duplicates == 0 && !c.Workers
}

// headline is the row of each way that the aims are about.
func headline(rows []receiverRow) map[string]receiverRow {
	by := map[string]receiverRow{}
	for i := range rows {
		if r := &rows[i]; r.headline() {
			by[r.Way] = *r
		}
	}
	return by
}

func receiverTable(out io.Writer, report benchReport[receiverRow]) error {
	if _, err := fmt.Fprint(out, "Signed deliveries over loopback, durable before the answer.\n\n"+
		"way\tsize\tconnections\tduplicates\tworkers\tper second\tp50\tp99\tstatements\tcommits\tWAL\tsettled/s\tcores: server\tPostgres\tload\tmemory\tpeak\n"); err != nil {
		return err
	}
	for i := range report.Rows {
		r := &report.Rows[i]
		workers := "none"
		if r.Workers {
			workers = "settling"
		}
		if _, err := fmt.Fprintf(out, "%s\t%d KB\t%d\t%d %%\t%s\t%.0f\t%.2f ms\t%.2f ms\t%.2f\t%.3f\t%.0f B\t%.0f\t%.2f\t%.2f\t%.2f\t%.0f MB\t%.0f MB\n",
			r.Way, r.Bytes>>10, r.Connections, r.Duplicates, workers, r.PerSecond, r.P50, r.P99, r.Statements, r.Commits, r.WALBytes,
			r.Settled, r.Cores.Server, r.Cores.Postgres, r.Cores.Load, r.Memory, r.Peak); err != nil {
			return err
		}
	}
	return tellBound(out, report.Machine.CPUs, "64 connections, 2 KB, all new", headline(report.Rows)[wayGroup].Cores)
}

// tellBound says what used the machine up.
func tellBound(out io.Writer, cpus int, which string, c cores) error {
	_, err := fmt.Fprintf(out, "\nWhat bounds it (%s): of %d cores %.2f were busy: %.2f the server, %.2f Postgres, %.2f the load itself.\n", which, cpus,
		c.Server+c.Postgres+c.Load, c.Server, c.Postgres, c.Load)
	return err
}

// receiverRun is one run of a cell.
type receiverRun struct {
	load    *load
	counts  benchCounts
	wal     int64
	settled int64
	used    usage
	memory  memory
}
