package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// The runs of the measurement.
const (
	benchRunMedian = 30 * time.Second
	benchRunSigma  = 0.5 // Of the log-normal spread.
	benchMostJobs  = 10_000
)

// benchPollCmd lets jobs run at a simulated vendor, all submitted together and without webhooks, until the last is home,
// and counts what learning of their ends costs. Rollcall's part is the actual pipeline on a real database; only its clock
// is made to jump from turn to turn. The two simple ways are computed for the same runs. A call takes no time, whoever
// makes it.
type benchPollCmd struct {
	JSON bool   `name:"json" help:"Print one JSON object: name, machine, rows, aims."`
	Seed uint64 `default:"1" help:"Decides how long each job runs: log-normal with a median of 30 s and a sigma of 0.5."`
	Jobs []int  `default:"200,2000" help:"How many extract jobs are in flight; one round for each number."`
}

// pollRow is one round by one way. Calls are those that ask how jobs are, singly or by list; a call that brings a job's
// result is needed in any case and counted apart.
type pollRow struct {
	Jobs           int     `json:"jobs"`
	Way            string  `json:"way"`
	StatusCalls    int     `json:"status_calls"`
	ListCalls      int     `json:"list_calls"`
	ResultCalls    int     `json:"result_calls"`
	TotalCalls     int     `json:"total_calls"`
	Minutes        float64 `json:"minutes"` // From the first submit to the last end at the vendor.
	CallsPerMinute float64 `json:"calls_per_minute"`
	MedianDelay    float64 `json:"median_delay_seconds"` // From a job's end to the call that brings its result.
	P95Delay       float64 `json:"p95_delay_seconds"`
}

// The ways that are compared.
const (
	wayEverySecond = "every second"
	wayBackoff     = "backoff 1 s to 30 s"
	wayRollcall    = "rollcall"
)

// Run measures and exits 1 when an aim isn't held.
func (c *benchPollCmd) Run(ctx context.Context, a *app) error {
	for _, n := range c.Jobs {
		if n < 1 || n > benchMostJobs {
			return fmt.Errorf("--jobs=%d: must be from 1 to %d", n, benchMostJobs)
		}
	}
	ctx, end := measuring(ctx, a)
	defer end()
	s, err := benchStack(ctx, a)
	if err != nil {
		return err
	}
	report, err := c.measure(ctx, a, s)
	if err := errors.Join(err, s.close(ctx)); err != nil {
		return err
	}
	return conclude(a, c.JSON, report, func(w io.Writer) error { return pollTable(w, report.Rows) })
}

func (c *benchPollCmd) measure(ctx context.Context, a *app, s *stack) (benchReport[pollRow], error) {
	report := benchReport[pollRow]{Name: "poll"}
	var err error
	if report.Machine, err = thisMachine(ctx, s.store); err != nil {
		return report, err
	}
	clock := &benchClock{at: a.now().UTC().Truncate(time.Second)}
	for _, n := range c.Jobs {
		if _, err := fmt.Fprintf(a.err, "%d jobs ...\n", n); err != nil {
			return report, err
		}
		runs := runLengths(n, c.Seed)
		own, err := pollByRollcall(ctx, s, clock, runs)
		if err != nil {
			return report, fmt.Errorf("%d jobs: %w", n, err)
		}
		rows := []pollRow{
			pollSimply(runs, wayEverySecond, everySecond), pollSimply(runs, wayBackoff, backoff(c.Seed)), own,
		}
		report.Rows = append(report.Rows, rows...)
		report.Aims = append(report.Aims, pollAims(rows)...)
	}
	return report, nil
}

// pollAims are what the rows of one round, in the order of the ways, must show.
func pollAims(rows []pollRow) []aim {
	second, backoff, own := rows[0], rows[1], rows[2]
	at := fmt.Sprintf("%d jobs: ", own.Jobs)
	return []aim{
		atLeast(at+"times fewer calls than "+second.Way, second.CallsPerMinute/max(own.CallsPerMinute, 0.001), 100),
		atMost(at+"median delay in seconds", own.MedianDelay, 2),
		below(at+"calls a minute, beside "+backoff.Way, own.CallsPerMinute, backoff.CallsPerMinute),
		below(at+"median delay in seconds, beside "+backoff.Way, own.MedianDelay, backoff.MedianDelay),
	}
}

// runLengths decides how long each job runs at the vendor.
func runLengths(n int, seed uint64) []time.Duration {
	dice := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // Chance that a seed repeats is what is wanted.
	runs := make([]time.Duration, n)
	for i := range runs {
		runs[i] = time.Duration(float64(benchRunMedian) * math.Exp(benchRunSigma*dice.NormFloat64()))
	}
	return runs
}

// pollSimply asks about each job by itself: gap is how long to wait before the call with this number, from 0.
func pollSimply(runs []time.Duration, way string, gap func(call int) time.Duration) pollRow {
	row := pollRow{Jobs: len(runs), Way: way, ResultCalls: len(runs)}
	delays := make([]time.Duration, len(runs))
	for i, run := range runs {
		at, calls := time.Duration(0), 0
		for at < run {
			at += gap(calls)
			calls++
		}
		row.StatusCalls += calls - 1 // The last brought the result.
		delays[i] = at - run
	}
	row.finish(slices.Max(runs), delays)
	return row
}

func everySecond(int) time.Duration { return time.Second }

// backoff is full jitter under a limit that doubles from 1 s to 30 s.
func backoff(seed uint64) func(int) time.Duration {
	dice := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // As above.
	return func(call int) time.Duration {
		limit := min(30*time.Second, time.Second<<min(call, 5))
		return time.Duration(dice.Float64() * float64(limit))
	}
}

// finish computes what follows from the counts.
func (r *pollRow) finish(span time.Duration, delays []time.Duration) {
	slices.Sort(delays)
	r.TotalCalls = r.StatusCalls + r.ListCalls + r.ResultCalls
	r.Minutes = round(span.Minutes())
	r.CallsPerMinute = round(float64(r.StatusCalls+r.ListCalls) / span.Minutes())
	r.MedianDelay = round(delays[len(delays)/2].Seconds())
	r.P95Delay = round(delays[len(delays)*95/100].Seconds())
}

// round keeps two places, which is more than such a measurement is good for.
func round(x float64) float64 { return math.Round(x*100) / 100 }

func pollTable(w io.Writer, rows []pollRow) error {
	if _, err := fmt.Fprintf(w, "Extract jobs submitted together, without webhooks; run lengths log-normal, median %s, sigma %g.\n\n"+
		"jobs\tway\tcalls a minute\tstatus\tlist\tresult\tmedian delay\tp95 delay\n", benchRunMedian, benchRunSigma); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%d\t%s\t%.1f\t%d\t%d\t%d\t%.2f s\t%.2f s\n", r.Jobs, r.Way, r.CallsPerMinute, r.StatusCalls,
			r.ListCalls, r.ResultCalls, r.MedianDelay, r.P95Delay); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\nWhat bounds it: a call for a list tells of 100 jobs at most, and a job that ends waits for the next reading of the lists.")
	return err
}
