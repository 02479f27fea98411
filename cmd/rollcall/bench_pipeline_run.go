package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// driving is a measurement of the pipeline under way.
type driving struct {
	*benchWorld
	app      *app
	endpoint string
	secret   string
}

func (d *driving) begin(ctx context.Context) error {
	own, secret, err := d.knownWebhook(ctx)
	if err != nil {
		return err
	}
	d.endpoint, d.secret = own.Endpoint, secret
	// That one is about extract jobs; the rest are registered as a server's are.
	_, err = d.pipeline.RegisterWebhooks(ctx)
	return err
}

// start starts the server where the vendor's webhooks reach it.
func (d *driving) start(ctx context.Context, vars map[string]string, workers bool) (*benchProcess, error) {
	all := map[string]string{}
	for _, more := range []map[string]string{d.vars, vars} {
		maps.Copy(all, more)
	}
	args := []string{"bench", "child"}
	if workers {
		args = append(args, "--workers")
	}
	return startBench(ctx, d.app, all, args...)
}

// batch submits n URLs in batch mode to a server that runs and waits until all are stored.
func (d *driving) batch(ctx context.Context, round, n int) (pipelineRun, error) {
	return d.submitted(ctx, round, n, store.KindBatch, nil)
}

// extracts submits n extract jobs, so many a second.
func (d *driving) extracts(ctx context.Context, round, n int, perSecond float64) (pipelineRun, error) {
	return d.submitted(ctx, round, n, store.KindExtract, map[string]string{
		"ROLLCALL_VENDOR_RPS": strconv.FormatFloat(max(1, perSecond), 'f', 1, 64),
	})
}

func (d *driving) submitted(ctx context.Context, round, n int, kind store.Kind, vars map[string]string) (pipelineRun, error) {
	if err := d.clear(ctx); err != nil {
		return pipelineRun{}, err
	}
	process, err := d.start(ctx, vars, true)
	if err != nil {
		return pipelineRun{}, err
	}
	servers := []*benchProcess{process}
	before, err := d.read(ctx, servers)
	if err != nil {
		return pipelineRun{}, errors.Join(err, process.stop())
	}
	run, err := d.measured(ctx, before, servers, n, func() (time.Duration, error) {
		began := d.now()
		_, err := d.pipeline.Submit(ctx, pipeline.Submission{
			Name: "bench", Kind: kind, Text: cannedURLs(round, n), Options: pipeline.Options{Formats: []string{"markdown"}},
		})
		if err != nil {
			return 0, err
		}
		if err := d.home(ctx, n); err != nil {
			return 0, err
		}
		ended, err := d.latest(ctx)
		return ended.Sub(began), err
	})
	if err == nil {
		run.vendor, err = d.vendorTook(ctx, run)
	}
	return run, errors.Join(err, process.stop())
}

// drained has the webhooks of n ended extract jobs come while nobody settles, then has a server that has started settle
// them.
func (d *driving) drained(ctx context.Context, round, n int) (pipelineRun, error) {
	if err := d.clear(ctx); err != nil {
		return pipelineRun{}, err
	}
	return d.drain(ctx, "drain"+strconv.Itoa(round), n, 1)
}

// drain is drained beside what is in the database, by one process or by two.
func (d *driving) drain(ctx context.Context, name string, n, processes int) (pipelineRun, error) {
	if err := d.seedCanned(ctx, name, n, d.now()); err != nil {
		return pipelineRun{}, err
	}
	if err := d.deliverAll(ctx, name, n); err != nil {
		return pipelineRun{}, err
	}
	if err := d.hold(ctx); err != nil {
		return pipelineRun{}, err
	}
	var servers []*benchProcess
	var run pipelineRun
	var err error
	for len(servers) < processes && err == nil {
		var more *benchProcess
		if more, err = d.start(ctx, map[string]string{"ROLLCALL_LISTEN": "127.0.0.1:0"}, true); err == nil {
			servers = append(servers, more)
		}
	}
	if err == nil {
		run, err = d.letGo(ctx, servers, n)
	}
	run.delays = delays{} // They waited for the server to start.
	for _, p := range servers {
		err = errors.Join(err, p.stop())
	}
	return run, err
}

// settleQueue is the queue that is held, as the pipeline calls it.
const settleQueue = "settle"

// hold has servers that start settle nothing yet.
func (d *driving) hold(ctx context.Context) error {
	_, err := d.store.SQL().ExecContext(ctx, `INSERT INTO river_queue (name, created_at, metadata, paused_at, updated_at) VALUES ($1, $2, '{}', $2, $2)
		ON CONFLICT (name) DO UPDATE SET paused_at = $2`, settleQueue, d.now())
	if err != nil {
		return fmt.Errorf("hold the queue: %w", err)
	}
	return nil
}

// letGo has the servers, all of which have started by now, settle at once, and waits for the end.
func (d *driving) letGo(ctx context.Context, servers []*benchProcess, n int) (pipelineRun, error) {
	queue, err := river.NewClient(riverdatabasesql.New(d.store.SQL()), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return pipelineRun{}, fmt.Errorf("reach the queue: %w", err)
	}
	before, err := d.read(ctx, servers)
	if err != nil {
		return pipelineRun{}, err
	}
	return d.measured(ctx, before, servers, n, func() (time.Duration, error) {
		if err := queue.QueueResume(ctx, settleQueue, nil); err != nil {
			return 0, fmt.Errorf("let the queue go: %w", err)
		}
		if err := d.home(ctx, n); err != nil {
			return 0, err
		}
		return d.spread(ctx)
	})
}

func (d *driving) deliverAll(ctx context.Context, name string, n int) error {
	r := &receiving{benchWorld: d.benchWorld, app: d.app, endpoint: d.endpoint, secret: d.secret}
	requests, _ := r.requests(receiverCell{Way: wayGroup, Bytes: smallBody, Connections: mostConnections}, name, n)
	process, err := d.start(ctx, map[string]string{"ROLLCALL_LISTEN": "127.0.0.1:0"}, false)
	if err != nil {
		return err
	}
	_, err = sendAll(ctx, d.now, process.url, min(n, mostConnections), requests)
	return errors.Join(err, process.stop())
}

// reading is what was used until a moment.
type reading struct {
	calls      int
	statements int64
	used       usage
}

// read reads what the servers, Postgres and this process have used so far.
func (d *driving) read(ctx context.Context, servers []*benchProcess) (reading, error) {
	out := reading{calls: d.calls.total()}
	for _, p := range servers {
		counts, err := p.counts()
		if err != nil {
			return out, err
		}
		out.statements += counts.Statements
	}
	m, err := newMeter(ctx, d.store, servers...)
	if err != nil {
		return out, err
	}
	out.used, err = m.read()
	return out, err
}

// measured runs do, which returns how long its part took, and says what was used since before.
func (d *driving) measured(ctx context.Context, before reading, servers []*benchProcess, n int, do func() (time.Duration, error)) (pipelineRun, error) {
	run := pipelineRun{urls: n}
	var err error
	if run.took, err = do(); err != nil {
		return run, err
	}
	after, err := d.read(ctx, servers)
	if err != nil {
		return run, err
	}
	mem, err := readMemory(servers[0].pid)
	if err != nil {
		return run, err
	}
	run.used, run.calls, run.statements = after.used.minus(before.used), after.calls-before.calls, after.statements-before.statements
	run.peak = mem.peak
	run.delays, err = d.delays(ctx)
	return run, err
}

// newest is the batch of the run; what is in the database besides is not looked at, as it may be much.
const newest = `(SELECT max(id) FROM batches)`

// home waits until all n items are stored, and the jobs that carried them closed.
func (d *driving) home(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, benchHomeTime)
	defer cancel()
	tick := time.NewTicker(benchPollEvery)
	defer tick.Stop()
	for {
		stored, err := d.count(ctx, `SELECT accepted - outstanding - failed - cancelled FROM batches WHERE id = `+newest)
		if err != nil {
			return err
		}
		if stored == int64(n) {
			if done, err := d.allClosed(ctx); err != nil || done {
				return errors.Join(err, d.holds(ctx, n))
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d URLs are stored: %w", stored, n, ctx.Err())
		case <-tick.C:
		}
	}
}

func (d *driving) allClosed(ctx context.Context) (bool, error) {
	open, err := d.count(ctx, `SELECT count(*) FROM jobs WHERE state <> 'settled' AND batch_id = `+newest)
	return open == 0, err
}

// holds counts the results themselves.
func (d *driving) holds(ctx context.Context, n int) error {
	results, err := d.count(ctx, `SELECT count(*) FROM results JOIN items ON items.id = item_id
		WHERE state = 'stored' AND markdown IS NOT NULL AND batch_id = `+newest)
	if err == nil && results != int64(n) {
		err = fmt.Errorf("%d results are in the database, and %d URLs were sent", results, n)
	}
	return err
}

// latest is when the last job closed.
func (d *driving) latest(ctx context.Context) (time.Time, error) {
	var at time.Time
	if err := d.store.SQL().QueryRowContext(ctx, `SELECT max(ended_at) FROM jobs WHERE batch_id = `+newest).Scan(&at); err != nil {
		return at, fmt.Errorf("when the last job closed: %w", err)
	}
	return at, nil
}

// spread is the time between the first job that closed and the last.
func (d *driving) spread(ctx context.Context) (time.Duration, error) {
	micros, err := d.count(ctx, `SELECT (extract(epoch FROM max(ended_at) - min(ended_at)) * 1000000)::bigint FROM jobs WHERE batch_id = `+newest)
	return time.Duration(micros) * time.Microsecond, err
}

// delays are from the delivery to the first result of its job in batch mode, else to the close of the job; see pipelineRow.
type delays struct {
	p50, p99  float64
	byWebhook float64 // Part of the jobs, which all of this is about.
}

func (d *driving) delays(ctx context.Context) (delays, error) {
	var p50, p99, part *float64
	err := d.store.SQL().QueryRowContext(ctx, `WITH took AS (SELECT CASE WHEN j.settle_net = 'webhook' THEN extract(epoch FROM CASE j.kind
				WHEN 'extract' THEN j.ended_at ELSE (SELECT min(stored_at) FROM results r WHERE r.job_id = j.id) END
				- (SELECT min(received_at) FROM deliveries d WHERE d.vendor_job_id = j.vendor_job_id AND d.vendor_job_id <> '')) * 1000 END AS ms
			FROM jobs j WHERE j.batch_id = `+newest+`)
		SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ms), percentile_cont(0.99) WITHIN GROUP (ORDER BY ms), count(ms)::float / count(*)
		FROM took`).Scan(&p50, &p99, &part)
	if err != nil {
		return delays{}, fmt.Errorf("from delivery to stored: %w", err)
	}
	if p50 == nil || p99 == nil || part == nil {
		return delays{}, errors.New("from delivery to stored: no job was settled by its webhook")
	}
	return delays{*p50, *p99, *part}, nil
}

// vendorTook is from the submit until the vendor's own finish, by its books.
func (d *driving) vendorTook(ctx context.Context, run pipelineRun) (time.Duration, error) {
	ended, err := d.latest(ctx)
	if err != nil {
		return 0, err
	}
	var last time.Time
	jobs := d.box.Books().Jobs
	for i := range jobs {
		if at := jobs[i].EndedAt; at.After(last) {
			last = at
		}
	}
	return run.took - ended.Sub(last), nil
}

// cannedURLs are n pages that cost the vendor nothing to make, a line each.
func cannedURLs(round, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(cannedPage + strconv.Itoa(round) + "-" + strconv.Itoa(i) + "\n")
	}
	return b.String()
}
