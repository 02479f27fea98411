package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"rollcall/internal/sandbox"
)

// benchPipelineCmd lets a server of its own process bring URLs home from a kind vendor with canned pages: in batch mode,
// then extract jobs whose webhooks all came while nobody settled, then extract jobs from the submit on, as fast as it goes
// and at half the speed of that.
type benchPipelineCmd struct {
	JSON     bool `name:"json" help:"Print one JSON object: name, machine, rows, aims."`
	URLs     int  `name:"urls" default:"20000" help:"URLs in batch mode."`
	Extracts int  `default:"3000" help:"Extract jobs: drained, the whole way, and at half load each."`
	Runs     int  `default:"5" help:"Runs of each kind, in turns; medians count."`
}

// The kinds of load.
const (
	loadBatch   = "batch"
	loadDrained = "extract, drained"
	loadWhole   = "extract, whole way"
	loadHalf    = "extract, half load"
)

// The vendor of the measurement: its latency decides when it has finished, not its cores.
const (
	benchVendorRun      = time.Second
	benchVendorParallel = 1000
	benchPollEvery      = 50 * time.Millisecond
	benchHomeTime       = 5 * time.Minute
)

// benchWebhooks is the part of the jobs that their webhooks must have brought home. When the poller was first with more,
// the times from delivery to stored are those of a few.
const benchWebhooks = 0.95

// pipelineRow is one kind of load, in medians. Delivery to stored is until the moment that is written with the
// result, or in batch mode with the first page of results: the transaction that writes it has begun then, so its own time,
// a few milliseconds, is left out.
type pipelineRow struct {
	Load       string  `json:"load"`
	URLs       int     `json:"urls"` // A run's; each is stored, which was counted.
	Runs       int     `json:"runs"`
	Seconds    float64 `json:"seconds"`
	PerSecond  float64 `json:"urls_per_second"`
	Vendor     float64 `json:"vendor_seconds"` // The vendor's own finish; 0 where it had finished before.
	P50        float64 `json:"delivery_to_stored_p50_ms"`
	P99        float64 `json:"delivery_to_stored_p99_ms"`
	ByWebhook  float64 `json:"settled_by_webhook"` // Part of the jobs: those times are theirs alone.
	Calls      float64 `json:"vendor_calls_per_url"`
	CPU        float64 `json:"cpu_seconds_per_1000"` // Of the server and of Postgres.
	Statements float64 `json:"statements_per_url"`
	Cores      cores   `json:"cores"`
	Peak       float64 `json:"peak_memory_mb"`
}

// Run measures and exits 1 when an aim isn't held.
func (c *benchPipelineCmd) Run(ctx context.Context, a *app) error {
	if c.URLs < 1 || c.Extracts < 1 || c.Runs < 1 {
		return errors.New("--urls, --extracts and --runs must be at least 1")
	}
	ctx, end := measuring(ctx, a)
	defer end()
	w, err := openBenchWorld(ctx, a, sandbox.Config{
		RunTime: benchVendorRun, Parallelism: benchVendorParallel, MaxURLs: 10_000_000, DeliveryParallel: mostConnections, MaxQueued: 1_000_000,
	})
	if err != nil {
		return err
	}
	report, err := c.measure(ctx, a, w)
	if err := errors.Join(err, w.close(ctx)); err != nil {
		return err
	}
	return conclude(a, c.JSON, report, func(out io.Writer) error { return pipelineTable(out, report) })
}

func (c *benchPipelineCmd) measure(ctx context.Context, a *app, w *benchWorld) (benchReport[pipelineRow], error) {
	report := benchReport[pipelineRow]{Name: "pipeline"}
	var err error
	if report.Machine, err = thisMachine(ctx, w.store); err != nil {
		return report, err
	}
	d := &driving{benchWorld: w, app: a}
	if err := d.begin(ctx); err != nil {
		return report, err
	}
	runs := map[string][]pipelineRun{}
	for round := range c.Runs {
		if _, err := fmt.Fprintf(a.err, "round %d of %d ...\n", round+1, c.Runs); err != nil {
			return report, err
		}
		if err := c.round(ctx, d, round, runs); err != nil {
			return report, err
		}
	}
	report.Rows = []pipelineRow{
		pipelineMedians(loadBatch, c.URLs, runs[loadBatch]), pipelineMedians(loadDrained, c.Extracts, runs[loadDrained]),
		pipelineMedians(loadWhole, c.Extracts, runs[loadWhole]), pipelineMedians(loadHalf, c.Extracts, runs[loadHalf]),
	}
	report.Aims = pipelineAims(report.Rows)
	return report, nil
}

// round runs each load once. Half load is half of what went the whole way in the first round: who settles is not
// alone then, as the same cores submit and take deliveries up.
func (c *benchPipelineCmd) round(ctx context.Context, d *driving, round int, runs map[string][]pipelineRun) error {
	for _, each := range []struct {
		load string
		do   func() (pipelineRun, error)
	}{
		{loadBatch, func() (pipelineRun, error) { return d.batch(ctx, round, c.URLs) }},
		{loadDrained, func() (pipelineRun, error) { return d.drained(ctx, round, c.Extracts) }},
		{loadWhole, func() (pipelineRun, error) { return d.extracts(ctx, round, c.Extracts, benchSubmits) }},
		{loadHalf, func() (pipelineRun, error) {
			return d.extracts(ctx, round, c.Extracts, runs[loadWhole][0].perSecond()/2)
		}},
	} {
		got, err := each.do()
		if err != nil {
			return fmt.Errorf("%s: %w", each.load, err)
		}
		runs[each.load] = append(runs[each.load], got)
	}
	return nil
}

// pipelineRun is one run of a load.
type pipelineRun struct {
	urls       int
	took       time.Duration
	vendor     time.Duration
	delays     delays
	calls      int
	statements int64
	used       usage
	peak       int64
}

func (r pipelineRun) perSecond() float64 { return float64(r.urls) / max(r.took.Seconds(), 0.001) }

func pipelineMedians(load string, urls int, runs []pipelineRun) pipelineRow {
	of := func(value func(pipelineRun) float64) float64 {
		var all []float64
		for _, r := range runs {
			all = append(all, value(r))
		}
		return middle(all)
	}
	n := float64(urls)
	return pipelineRow{
		Load: load, URLs: urls, Runs: len(runs),
		Seconds:    of(func(r pipelineRun) float64 { return r.took.Seconds() }),
		PerSecond:  of(pipelineRun.perSecond),
		Vendor:     of(func(r pipelineRun) float64 { return r.vendor.Seconds() }),
		P50:        of(func(r pipelineRun) float64 { return r.delays.p50 }),
		P99:        of(func(r pipelineRun) float64 { return r.delays.p99 }),
		ByWebhook:  of(func(r pipelineRun) float64 { return r.delays.byWebhook }),
		Calls:      of(func(r pipelineRun) float64 { return float64(r.calls) / n * 1000 }) / 1000,
		CPU:        of(func(r pipelineRun) float64 { return (r.used.server + r.used.postgres).Seconds() / n * 1000 }),
		Statements: of(func(r pipelineRun) float64 { return float64(r.statements) / n }),
		Cores: cores{
			of(func(r pipelineRun) float64 { return r.used.cores(r.took).Server }),
			of(func(r pipelineRun) float64 { return r.used.cores(r.took).Postgres }),
			of(func(r pipelineRun) float64 { return r.used.cores(r.took).Load }),
		},
		Peak: of(func(r pipelineRun) float64 { return megabytes(r.peak) }),
	}
}

// pipelineAims are what the rows, in the order of the loads, must show.
func pipelineAims(rows []pipelineRow) []aim {
	batch, drained, whole, half := rows[0], rows[1], rows[2], rows[3]
	calls := atMost("batch: vendor calls a URL", batch.Calls, 0.03)
	calls.Got = batch.Calls // Two places would say 0.03 of 0.034.
	return []aim{
		atMost("batch: end, as part of the vendor's own", batch.Seconds/max(batch.Vendor, 0.001), 1.1),
		calls,
		below("half load: delivery to stored, p50 in ms", half.P50, 100),
		below("half load: delivery to stored, p99 in ms", half.P99, 1000),
		below("batch: delivery to first page, p50 in ms", batch.P50, 100),
		below("batch: delivery to first page, p99 in ms", batch.P99, 1000),
		atLeast("half load: part of the jobs that those times are of", half.ByWebhook, benchWebhooks),
		atLeast("batch: part of the jobs that those times are of", batch.ByWebhook, benchWebhooks),
		atLeast("drained: extract jobs settled a second", drained.PerSecond, 1000),
		below("memory in MB, at most", max(batch.Peak, drained.Peak, whole.Peak, half.Peak), 200),
	}
}

func pipelineTable(out io.Writer, report benchReport[pipelineRow]) error {
	if _, err := fmt.Fprint(out, "A kind vendor on loopback, pages of 4 KB, every URL counted as stored.\n\n"+
		"load\tURLs\tseconds\tvendor's\tURLs/s\tdelivery to stored p50\tp99\tcalls/URL\tCPU s/1,000\tstatements/URL\tcores: server\tPostgres\tvendor\tpeak\n"); err != nil {
		return err
	}
	for i := range report.Rows {
		r := &report.Rows[i]
		if _, err := fmt.Fprintf(out, "%s\t%d\t%.2f\t%.2f\t%.0f\t%.1f ms\t%.1f ms\t%.4f\t%.2f\t%.1f\t%.2f\t%.2f\t%.2f\t%.0f MB\n", r.Load, r.URLs, r.Seconds, r.Vendor,
			r.PerSecond, r.P50, r.P99, r.Calls, r.CPU, r.Statements, r.Cores.Server, r.Cores.Postgres, r.Cores.Load, r.Peak); err != nil {
			return err
		}
	}
	return tellBound(out, report.Machine.CPUs, loadDrained, report.Rows[1].Cores)
}
