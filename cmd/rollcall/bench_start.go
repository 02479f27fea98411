package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// benchStartCmd measures how long a server takes from its start until it is ready, on an empty database and again.
type benchStartCmd struct {
	JSON bool `name:"json" help:"Print one JSON object: name, machine, rows, aims."`
	Runs int  `default:"5" help:"Starts of each kind; medians count."`
}

// startRow is one kind of start, in medians.
type startRow struct {
	Start   string  `json:"start"`
	Seconds float64 `json:"seconds"` // Until /readyz answers 200.
	Memory  float64 `json:"memory_mb"`
}

// The kinds of start, and what each may take.
const (
	startFresh, startAgain = "fresh", "again"
	freshTime, againTime   = 5, 1
	readyEvery             = 5 * time.Millisecond
)

// Run measures and exits 1 when an aim isn't held.
func (c *benchStartCmd) Run(ctx context.Context, a *app) error {
	if c.Runs < 1 {
		return errors.New("--runs must be at least 1")
	}
	ctx, end := measuring(ctx, a)
	defer end()
	report := benchReport[startRow]{Name: "start"}
	took, mem := map[string][]float64{}, map[string][]float64{}
	for range c.Runs {
		if err := c.both(ctx, a, &report.Machine, took, mem); err != nil {
			return err
		}
	}
	for _, kind := range []string{startFresh, startAgain} {
		report.Rows = append(report.Rows, startRow{kind, middle(took[kind]), middle(mem[kind])})
	}
	report.Aims = []aim{
		atMost("seconds on an empty database", report.Rows[0].Seconds, freshTime), atMost("seconds again", report.Rows[1].Seconds, againTime),
	}
	return conclude(a, c.JSON, report, func(out io.Writer) error { return startTable(out, report.Rows) })
}

// both starts a server on a database of its own, and once more.
func (c *benchStartCmd) both(ctx context.Context, a *app, on *machine, took, mem map[string][]float64) error {
	config := *a.config
	config.DataDir, config.SecretKey = "", ""
	s := newStack(&config, a.log, a.now)
	err := s.startPlace(ctx)
	for _, kind := range []string{startFresh, startAgain} {
		if err != nil {
			break
		}
		var seconds, memory float64
		if seconds, memory, err = s.startOnce(ctx, a); err == nil {
			took[kind], mem[kind] = append(took[kind], seconds), append(mem[kind], memory)
		}
	}
	if err == nil && on.CPUs == 0 {
		*on, err = s.startedOn(ctx)
	}
	return errors.Join(err, s.close(ctx))
}

// startPlace is an empty data folder or, on the server that DATABASE_URL names, an empty database besides.
func (s *stack) startPlace(ctx context.Context) error {
	if err := s.temporaryDataDir(); err != nil {
		return err
	}
	if s.config.DatabaseURL != "" {
		return s.benchDatabase(ctx)
	}
	return nil
}

// startOnce starts a server, waits until it is ready, and ends it.
func (s *stack) startOnce(ctx context.Context, a *app) (float64, float64, error) {
	address, err := freeLoopback(ctx)
	if err != nil {
		return 0, 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, 0, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "serve") //nolint:gosec // It is this very program.
	cmd.Env = benchEnvironment(cmd.Environ(), map[string]string{
		"DATABASE_URL": s.dsn, "ROLLCALL_DATA_DIR": string(s.config.DataDir), "ROLLCALL_POSTGRES_BIN": s.config.PostgresBin,
		"ROLLCALL_LISTEN": address, "ROLLCALL_LOG_LEVEL": "error", "GEONODE_SCRAPER_API_KEY": "bench", "SCRAPER_API_BASE_URL": "http://127.0.0.1:9",
	})
	cmd.Stderr = a.err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = benchStopTime
	began := s.now()
	if err := cmd.Start(); err != nil {
		return 0, 0, fmt.Errorf("start a server: %w", err)
	}
	err = waitReady(ctx, "http://"+address+"/readyz")
	took := s.now().Sub(began)
	mem, memErr := readMemory(cmd.Process.Pid)
	stopped := cmd.Process.Signal(syscall.SIGTERM)
	return took.Seconds(), megabytes(mem.now), errors.Join(err, memErr, stopped, cmd.Wait())
}

// waitReady asks until the answer is 200.
func waitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, benchStopTime)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return fmt.Errorf("ask whether it is ready: %w", err)
		}
		if res, err := client.Do(req); err == nil {
			_ = res.Body.Close() // Only the status is wanted.
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server isn't ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// startedOn names the database; a private one ended with its server and is started once more for that.
func (s *stack) startedOn(ctx context.Context) (machine, error) {
	if s.dsn == "" {
		if err := s.ownDatabase(ctx); err != nil {
			return machine{}, err
		}
	}
	if err := s.connect(ctx); err != nil {
		return machine{}, err
	}
	return thisMachine(ctx, s.store)
}

func startTable(out io.Writer, rows []startRow) error {
	if _, err := fmt.Fprint(out, "From the start of the process until it is ready.\n\nstart\tseconds\tmemory\n"); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(out, "%s\t%.2f\t%.0f MB\n", r.Start, r.Seconds, r.Memory); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, strings.TrimSpace(`
What bounds it: a fresh start makes the database and its tables, statement by statement; a later one only connects.`))
	return err
}
