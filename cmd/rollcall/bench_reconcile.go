package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
)

// benchReconcileCmd has the reconciler find a few ended jobs among many settled ones, and counts its calls.
type benchReconcileCmd struct {
	JSON    bool  `name:"json" help:"Print one JSON object: name, machine, rows, aims."`
	Jobs    []int `default:"20000,200000" help:"Settled jobs within the window, in rising order; a row for each number."`
	Missing int   `default:"100" help:"Jobs that ended at the vendor and not here."`
	Runs    int   `default:"5" help:"Runs with each number; medians count."`
}

// reconcileRow is what one number of jobs came to, in medians.
type reconcileRow struct {
	Jobs      int     `json:"jobs"`
	Missing   int     `json:"missing"`
	Found     int     `json:"found"` // And settled, which was counted.
	ListPages int     `json:"list_pages"`
	Calls     int     `json:"calls"` // All that were made, those that brought the results included.
	Seconds   float64 `json:"seconds"`
	Memory    float64 `json:"peak_memory_mb"` // Of this whole process.
}

// Run measures and exits 1 when an aim isn't held.
func (c *benchReconcileCmd) Run(ctx context.Context, a *app) error {
	if c.Missing < 1 || c.Runs < 1 {
		return errors.New("--missing and --runs must be at least 1")
	}
	ctx, end := measuring(ctx, a)
	defer end()
	s, err := benchStack(ctx, a)
	if err != nil {
		return err
	}
	report, err := c.measure(ctx, a, &benchWorld{stack: s})
	if err := errors.Join(err, s.close(ctx)); err != nil {
		return err
	}
	return conclude(a, c.JSON, report, func(out io.Writer) error { return reconcileTable(out, report.Rows) })
}

func (c *benchReconcileCmd) measure(ctx context.Context, a *app, w *benchWorld) (benchReport[reconcileRow], error) {
	report := benchReport[reconcileRow]{Name: "reconcile"}
	var err error
	if report.Machine, err = thisMachine(ctx, w.store); err != nil {
		return report, err
	}
	w.config.GeonodeScraperAPIKey = "bench-" + rand.Text()
	for _, n := range c.Jobs {
		if _, err := fmt.Fprintf(a.err, "%d jobs ...\n", n); err != nil {
			return report, err
		}
		row, err := c.row(ctx, w, n)
		if err != nil {
			return report, fmt.Errorf("%d jobs: %w", n, err)
		}
		report.Rows = append(report.Rows, row)
	}
	report.Aims = reconcileAims(report.Rows)
	return report, nil
}

// row runs the reconciler so many times over n settled jobs, each time with other jobs missing.
func (c *benchReconcileCmd) row(ctx context.Context, w *benchWorld, n int) (reconcileRow, error) {
	row := reconcileRow{Jobs: n, Missing: c.Missing}
	if err := w.clear(ctx); err != nil {
		return row, err
	}
	if err := w.seedSettled(ctx, "settled", n, w.now().Add(-time.Hour)); err != nil {
		return row, err
	}
	var took, calls []float64
	for run := range c.Runs {
		name := "missing" + strconv.Itoa(run)
		if err := w.seedCanned(ctx, name, c.Missing, w.now().Add(-time.Hour)); err != nil {
			return row, err
		}
		vendor := &listVendor{now: w.now, groups: []listGroup{{cannedPrefix + "settled-", n}}}
		for past := range run + 1 {
			vendor.groups = append(vendor.groups, listGroup{cannedPrefix + "missing" + strconv.Itoa(past) + "-", c.Missing})
		}
		began := w.now()
		found, err := c.once(ctx, w, vendor)
		if err != nil {
			return row, err
		}
		took, calls = append(took, w.now().Sub(began).Seconds()), append(calls, float64(vendor.calls.Load()))
		row.Found += found
		row.ListPages = vendor.pages()
	}
	row.Found /= c.Runs
	row.Seconds, row.Calls = middle(took), int(middle(calls))
	m, err := readMemory(os.Getpid())
	row.Memory = megabytes(m.peak)
	return row, err
}

// once is one run, and the settling of what it found.
func (c *benchReconcileCmd) once(ctx context.Context, w *benchWorld, vendor *listVendor) (int, error) {
	client, err := geonode.New(geonode.Config{BaseURL: "http://127.0.0.1", APIKey: w.config.GeonodeScraperAPIKey, Now: w.now, Transport: vendor})
	if err != nil {
		return 0, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // It never fails.
	p, err := pipeline.New(pipeline.Config{
		Store: w.store, Vendor: client, Logger: w.log, Now: w.now, Key: key,
		Account: fingerprint(w.config.GeonodeScraperAPIKey), Mode: pipeline.ModePoll, NoPoll: true, NoReconcile: true,
	})
	if err != nil {
		return 0, err
	}
	if err := p.Start(ctx); err != nil {
		return 0, err
	}
	_, err = p.Reconcile(ctx, "command")
	if err == nil {
		err = p.Idle(ctx)
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), benchStopTime)
	defer cancel()
	if err := errors.Join(err, p.Stop(stopCtx)); err != nil {
		return 0, err
	}
	open, err := w.count(ctx, `SELECT count(*) FROM jobs WHERE state = 'accepted'`)
	return c.Missing - int(open), err
}

// reconcileAims are what each row must show, and the last beside the first.
func reconcileAims(rows []reconcileRow) []aim {
	var out []aim
	for _, r := range rows {
		at := fmt.Sprintf("%d jobs: ", r.Jobs)
		out = append(out, atMost(at+"calls", float64(r.Calls), float64(2*r.ListPages+r.Missing)),
			atLeast(at+"missing jobs found and settled", float64(r.Found), float64(r.Missing)))
	}
	if len(rows) > 1 {
		out = append(out, noMore("memory in MB that the most jobs need beyond the fewest", math.Max(0, rows[len(rows)-1].Memory-rows[0].Memory), 30))
	}
	return out
}

func reconcileTable(out io.Writer, rows []reconcileRow) error {
	if _, err := fmt.Fprint(out, "Jobs that ended at the vendor and not here, among settled ones. The vendor answers within this process.\n\n"+
		"settled\tmissing\tfound\tlist pages\tcalls\tseconds\tpeak memory\n"); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(out, "%d\t%d\t%d\t%d\t%d\t%.2f\t%.0f MB\n", r.Jobs, r.Missing, r.Found, r.ListPages, r.Calls, r.Seconds, r.Memory); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, "\nWhat bounds it: a list is read until two readings agree, twice as a rule; each job found is one call more.")
	return err
}
