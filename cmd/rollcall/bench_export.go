package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"rollcall/internal/export"
)

// benchExportCmd writes stored results to files in each format, each by a process of its own.
type benchExportCmd struct {
	JSON    bool  `name:"json" help:"Print one JSON object: name, machine, rows, aims."`
	Results []int `default:"2000,20000" help:"Results of 8 KB in the batch, in rising order; rows for each number."`
	Runs    int   `default:"5" help:"Runs of each kind, in turns; medians count."`
}

// exportRow is one format at one size, in medians.
type exportRow struct {
	Format    string  `json:"format"`
	Results   int     `json:"results"`
	Megabytes float64 `json:"file_mb"`
	Seconds   float64 `json:"seconds"`        // The whole process, less one that exports a single result.
	PerSecond float64 `json:"mb_per_second"`  // Of content.
	Cores     float64 `json:"cores"`          // That the process kept busy meanwhile; the rest is Postgres.
	Memory    float64 `json:"more_memory_mb"` // Peak, beyond that of a single result.
}

// benchResult is how many bytes of Markdown a result has.
const benchResult = 8 << 10

// exportMemory is how many megabytes more an export may take, whatever its size.
const exportMemory = 60

// Run measures and exits 1 when an aim isn't held.
func (c *benchExportCmd) Run(ctx context.Context, a *app) error {
	if c.Runs < 1 || len(c.Results) == 0 || !slices.IsSorted(c.Results) || c.Results[0] < 2 {
		return errors.New("--runs must be at least 1, and --results at least 2 and in rising order")
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
	return conclude(a, c.JSON, report, func(out io.Writer) error { return exportTable(out, report.Rows) })
}

func (c *benchExportCmd) measure(ctx context.Context, a *app, w *benchWorld) (benchReport[exportRow], error) {
	report := benchReport[exportRow]{Name: "export"}
	var err error
	if report.Machine, err = thisMachine(ctx, w.store); err != nil {
		return report, err
	}
	dir, err := os.MkdirTemp("", "rollcall-bench-")
	if err != nil {
		return report, fmt.Errorf("a folder for the files: %w", err)
	}
	w.onClose("folder of the files", func(context.Context) error { return os.RemoveAll(dir) })
	e := &exporting{benchWorld: w, app: a, dir: dir}
	single, err := e.seed(ctx, 1)
	if err != nil {
		return report, err
	}
	for _, n := range c.Results {
		batch, err := e.seed(ctx, n)
		if err != nil {
			return report, err
		}
		rows, err := c.rows(ctx, e, single, batch, n)
		if err != nil {
			return report, err
		}
		report.Rows = append(report.Rows, rows...)
	}
	for _, r := range report.Rows {
		report.Aims = append(report.Aims, noMore(fmt.Sprintf("%s, %d results: more memory in MB", r.Format, r.Results), r.Memory, exportMemory))
	}
	return report, nil
}

// rows exports the batch and the single result in each format, in turns.
func (c *benchExportCmd) rows(ctx context.Context, e *exporting, single, batch int64, n int) ([]exportRow, error) {
	formats := export.Formats()
	took, busy, more, size := make([][]float64, len(formats)), make([][]float64, len(formats)), make([][]float64, len(formats)), make([]float64, len(formats))
	for range c.Runs {
		for i, format := range formats {
			base, err := e.once(ctx, single, string(format))
			if err != nil {
				return nil, err
			}
			full, err := e.once(ctx, batch, string(format))
			if err != nil {
				return nil, err
			}
			took[i] = append(took[i], max(0.001, full.seconds-base.seconds))
			busy[i] = append(busy[i], max(0, full.cpu-base.cpu)/max(0.001, full.seconds-base.seconds))
			more[i] = append(more[i], max(0, full.memory-base.memory))
			size[i] = full.megabytes
		}
	}
	var out []exportRow
	for i, format := range formats {
		seconds := middle(took[i])
		out = append(out, exportRow{
			Format: string(format), Results: n, Megabytes: size[i], Seconds: seconds, Cores: middle(busy[i]), Memory: middle(more[i]),
			PerSecond: round(megabytes(int64(n)*benchResult) / max(seconds, 0.001)),
		})
	}
	return out, nil
}

func exportTable(out io.Writer, rows []exportRow) error {
	if _, err := fmt.Fprint(out, "Results of 8 KB written to a file, by a process of its own.\n\nformat\tresults\tfile\tseconds\tMB/s\tcores\tmore memory\n"); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(out, "%s\t%d\t%.1f MB\t%.2f\t%.0f\t%.2f\t%.0f MB\n",
			r.Format, r.Results, r.Megabytes, r.Seconds, r.PerSecond, r.Cores, r.Memory); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, "\nWhat bounds it: one process reads and writes in turns. Where it keeps most of a core busy, that is the format; else it waits for Postgres and the disk.")
	return err
}

// exporting is a measurement of the exports under way.
type exporting struct {
	*benchWorld
	app *app
	dir string
}

// exportRun is one export.
type exportRun struct{ seconds, cpu, memory, megabytes float64 }

// once exports a batch and looks at the file.
func (e *exporting) once(ctx context.Context, batch int64, format string) (exportRun, error) {
	var out exportRun
	self, err := os.Executable()
	if err != nil {
		return out, fmt.Errorf("find this program: %w", err)
	}
	file := filepath.Join(e.dir, "export."+format)
	cmd := exec.CommandContext(ctx, self, "export", "--batch", strconv.FormatInt(batch, 10), "--format", format, "-o", file) //nolint:gosec // It is this very program.
	cmd.Env = benchEnvironment(cmd.Environ(), map[string]string{
		"DATABASE_URL": e.dsn, "ROLLCALL_DATA_DIR": e.dir, "ROLLCALL_LOG_LEVEL": "error", "GEONODE_SCRAPER_API_KEY": "bench",
	})
	cmd.Stderr = e.app.err
	began := e.now()
	if err := cmd.Run(); err != nil {
		return out, fmt.Errorf("export as %s: %w", format, err)
	}
	out.seconds = e.now().Sub(began).Seconds()
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok || used.Maxrss <= 0 {
		return out, fmt.Errorf("export as %s: the system doesn't tell how much memory it took", format)
	}
	out.memory = megabytes(used.Maxrss << 10)
	out.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	info, err := os.Stat(file)
	if err != nil {
		return out, fmt.Errorf("look at the file: %w", err)
	}
	out.megabytes = megabytes(info.Size())
	return out, os.Remove(file)
}

// seed writes a batch of n results of 8 KB, which compress as pages do.
func (e *exporting) seed(ctx context.Context, n int) (int64, error) {
	return e.count(ctx, `WITH batch AS (
			INSERT INTO batches (name, kind, options, created_at, submitted, accepted, stored_webhook, ended_at)
			VALUES ('bench export', 'extract', '{"formats":["markdown"]}', $2::timestamptz, $1::int, $1::int, $1::int, $2) RETURNING id),
		made AS (
			INSERT INTO items (batch_id, position, url, url_hash, created_at, state, net, ended_at)
			SELECT batch.id, n - 1, 'https://canned.sandbox.test/' || batch.id || '/' || n, sha256(n::text::bytea), $2, 'stored', 'webhook', $2
			FROM batch, generate_series(1, $1::int) n RETURNING id),
		kept AS (
			INSERT INTO results (item_id, net, stored_at, title, markdown, http_status, duration_ms, charged, markdown_sha256)
			SELECT id, 'webhook', $2, 'Canned', body, 200, 1000, 1, sha256(body)
			FROM made, LATERAL (SELECT convert_to('# Canned ' || id || E'\n\n' || (SELECT string_agg(md5(id::text || i) || ' kettle harbor in a row ', '') FROM generate_series(1, 146) i), 'UTF8') AS body) b)
		SELECT id FROM batch`, n, e.now().UTC())
}
