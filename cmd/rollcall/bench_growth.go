package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
)

// benchGrowthCmd holds a year's database against the first day's.
type benchGrowthCmd struct {
	JSON   bool `name:"json" help:"Print one JSON object: name, machine, rows, aims."`
	Nights int  `default:"365" help:"Nights of the old database; the young one has one."`
	URLs   int  `name:"urls" default:"20000" help:"URLs a night, a multiple of 100. Their bodies are left out."`
	Jobs   int  `default:"200" hidden:"" help:"Single jobs of one round that are followed to their end; five times as many URLs are sent in a batch."`
	Rounds int  `default:"5" help:"Rounds over all that is measured, on both databases in turn; what is shown is the median."`
}

// The aim: at most so many times as long as on the first day, or so little longer that no reader notices. What is no page
// may be a few statements that take tenths of a millisecond, and one that has lost its index must not hide behind that.
const (
	growthTimes = 1.5
	pageSlack   = 5.0 // Milliseconds.
	growthSlack = 0.5
)

// growthRow is one thing that was measured on both, in milliseconds.
type growthRow struct {
	What  string  `json:"what"`
	Young float64 `json:"first_day_ms"`
	Old   float64 `json:"year_ms"`
	Times float64 `json:"times"`
	Slack float64 `json:"slack_ms"` // A difference that counts for none.

	young, old []float64
}

// Run measures and exits 1 when an aim isn't held.
func (c *benchGrowthCmd) Run(ctx context.Context, a *app) error {
	if c.Nights < 2 || c.Nights > 3650 || c.URLs < 100 || c.URLs > 100_000 || c.URLs%100 != 0 || c.Jobs < 1 || c.Rounds < 1 || c.Rounds > 100 {
		return errors.New("--nights must be from 2 to 3650, --urls a multiple of 100 up to 100000, --rounds from 1 to 100")
	}
	ctx, end := measuring(ctx, a)
	defer end()
	report, err := c.measure(ctx, a)
	if err != nil {
		return err
	}
	return conclude(a, c.JSON, report, func(w io.Writer) error { return growthTable(w, c, report.Rows) })
}

func (c *benchGrowthCmd) measure(ctx context.Context, a *app) (benchReport[growthRow], error) {
	now := a.now().UTC().Truncate(time.Second)
	young, err := openGrowthWorld(ctx, a, growthSeed{nights: 1, urls: c.URLs, now: now})
	if err != nil {
		return benchReport[growthRow]{}, err
	}
	old, err := openGrowthWorld(ctx, a, growthSeed{nights: c.Nights, urls: c.URLs, now: now})
	if err != nil {
		return benchReport[growthRow]{}, errors.Join(err, young.close(context.WithoutCancel(ctx)))
	}
	report, err := c.compare(ctx, a, [2]*growthWorld{young, old})
	return report, errors.Join(err, young.close(context.WithoutCancel(ctx)), old.close(context.WithoutCancel(ctx)))
}

// compare measures on both.
func (c *benchGrowthCmd) compare(ctx context.Context, a *app, worlds [2]*growthWorld) (benchReport[growthRow], error) {
	report := benchReport[growthRow]{Name: "growth"}
	var err error
	if report.Machine, err = thisMachine(ctx, worlds[1].store); err != nil {
		return report, err
	}
	if report.Rows, err = c.rounds(ctx, worlds, growthActs()); err != nil {
		return report, err
	}
	for _, w := range worlds {
		if err := w.startWorkers(ctx); err != nil {
			return report, err
		}
	}
	last, err := c.rounds(ctx, worlds, growthWork(c.Jobs))
	report.Rows = append(report.Rows, last...)
	for _, row := range report.Rows {
		report.Aims = append(report.Aims, row.aim())
	}
	return report, errors.Join(err, worlds[1].tellHot(ctx, a.err))
}

// rounds does each act on both databases in turn, once to warm up and then as often as asked, each time the other one first.
func (c *benchGrowthCmd) rounds(ctx context.Context, worlds [2]*growthWorld, acts []growthAct) ([]growthRow, error) {
	rows := make([]growthRow, len(acts))
	for round := range c.Rounds + 1 {
		for i, act := range acts {
			rows[i].What, rows[i].Slack = act.what, act.slack
			for turn := range worlds {
				at := (turn + round) % len(worlds)
				took, err := act.do(ctx, worlds[at])
				if err != nil {
					return nil, fmt.Errorf("%s: %w", act.what, err)
				}
				if round == 0 {
					continue
				}
				if at == 0 {
					rows[i].young = append(rows[i].young, inMS(took))
				} else {
					rows[i].old = append(rows[i].old, inMS(took))
				}
			}
		}
	}
	for i := range rows {
		rows[i].Young, rows[i].Old = round(middle(rows[i].young)), round(middle(rows[i].old))
		rows[i].Times = round(rows[i].Old / max(rows[i].Young, 0.001))
	}
	return rows, nil
}

// inMS is a time in milliseconds.
func inMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// aim fails too for what wasn't measured, on the first day or after the year.
func (r *growthRow) aim() aim {
	measured := r.Young > 0 && r.Old > 0
	return aim{
		r.What + ": times the first day's", fmt.Sprintf("at most %g, or within %g ms", growthTimes, r.Slack), r.Times,
		measured && (r.Times <= growthTimes || r.Old-r.Young <= r.Slack),
	}
}

func growthTable(w io.Writer, c *benchGrowthCmd, rows []growthRow) error {
	if _, err := fmt.Fprintf(w, "%d URLs a night, one night and %d.\n\nwhat\tfirst day\tafter %d nights\ttimes\n", c.URLs, c.Nights, c.Nights); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%s\t%.2f ms\t%.2f ms\t%.2f\n", r.What, r.Young, r.Old, r.Times); err != nil {
			return err
		}
	}
	most := slices.MaxFunc(rows, func(a, b growthRow) int { return cmp.Compare(a.Old-a.Young, b.Old-b.Young) })
	_, err := fmt.Fprintf(w, "\nWhat bounds it: indexes that are a level or two deeper, and less of them in memory. Most grew: %s, by %.2f ms.\n", most.What, most.Old-most.Young)
	return err
}

// growthWorld is one of the databases, with the vendor, the pages, and a pipeline that keeps batches for 400 days.
type growthWorld struct {
	*benchWorld
	reader   *reader
	retainer *pipeline.Pipeline
	now      func() time.Time
	lastJob  int64
	lastItem int64
	turns    int
}

func openGrowthWorld(ctx context.Context, a *app, seed growthSeed) (*growthWorld, error) {
	if _, err := fmt.Fprintf(a.err, "%d nights of %d URLs ...\n", seed.nights, seed.urls); err != nil {
		return nil, err
	}
	world, err := openBenchWorld(ctx, a, sandbox.Config{Seed: 1, RunTime: time.Millisecond})
	if err != nil {
		return nil, err
	}
	w := &growthWorld{benchWorld: world, now: a.now}
	if err := w.fill(ctx, a, seed); err != nil {
		return nil, errors.Join(err, w.close(context.WithoutCancel(ctx)))
	}
	return w, nil
}

func (w *growthWorld) fill(ctx context.Context, a *app, seed growthSeed) error {
	if err := seed.fill(ctx, &seeder{s: w.stack, out: a.err, now: a.now, began: seed.now}); err != nil {
		return err
	}
	var err error
	if w.lastItem, err = w.count(ctx, `SELECT max(id) FROM items`); err != nil {
		return err
	}
	if w.lastJob, err = w.count(ctx, `SELECT max(id) FROM jobs`); err != nil {
		return err
	}
	submits := w.pipeline
	if err := w.openPipeline(ctx, func(c *pipeline.Config) { c.OnlySubmit, c.KeepBatches = true, growthKeep }); err != nil {
		return err
	}
	w.retainer, w.pipeline = w.pipeline, submits
	w.reader, err = openReader(ctx, w.stack)
	return err
}

// startWorkers has this process do the work of the database from now on, by polling alone.
func (w *growthWorld) startWorkers(ctx context.Context) error {
	return w.openPipeline(ctx, func(c *pipeline.Config) {
		c.Mode, c.NoIndex, c.NoReconcile, c.VendorRPS = pipeline.ModePoll, true, true, benchSubmits
		c.PollFirst, c.PollCap, c.PollTick, c.ListEvery = 20*time.Millisecond, 100*time.Millisecond, 20*time.Millisecond, 50*time.Millisecond
	})
}

// tellHot says of how many updates of each table the indexes knew nothing.
func (w *growthWorld) tellHot(ctx context.Context, out io.Writer) error {
	rows, err := w.store.SQL().QueryContext(ctx, `SELECT pg_stat_force_next_flush() IS NULL, relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
		WHERE n_tup_upd > 100 ORDER BY n_tup_upd DESC`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	for rows.Next() {
		var flushed bool
		var name string
		var updates, hot int64
		if err := rows.Scan(&flushed, &name, &updates, &hot); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s: %d updates, %d %% without its indexes\n", name, updates, 100*hot/updates); err != nil {
			return err
		}
	}
	return rows.Err()
}
