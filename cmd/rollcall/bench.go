package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"

	"rollcall/store"
)

// benchCmd is the measurements: each is a command of its own, in a file named after it.
type benchCmd struct {
	Seed      benchSeedCmd      `cmd:"" help:"Fill a database as years of work would: a million items, and all that belongs to them."`
	Pages     benchPagesCmd     `cmd:"" help:"How long every page and fragment takes, and the search, at a million items."`
	Growth    benchGrowthCmd    `cmd:"" help:"A database of a year held against that of the first day: what takes longer."`
	Receiver  benchReceiverCmd  `cmd:"" help:"How fast deliveries are taken up, beside verification only and a transaction each."`
	Pipeline  benchPipelineCmd  `cmd:"" help:"How fast URLs come home from a kind vendor, what it costs, and how late."`
	Reconcile benchReconcileCmd `cmd:"" help:"How many calls the reconciler needs to find what is missing among many jobs."`
	Export    benchExportCmd    `cmd:"" help:"How fast results are written to files, in each format, and in how much memory."`
	Start     benchStartCmd     `cmd:"" help:"How long a server takes until it is ready."`
	Scale     benchScaleCmd     `cmd:"" help:"What two processes bring, and what a job costs beside a million others."`
	Child     benchChildCmd     `cmd:"" hidden:"" help:"The measured side of a measurement."`
	Poll      benchPollCmd      `cmd:"" help:"How many calls polling costs and how late it learns of ends, beside two simple ways."`
}

// measuring readies a measurement: it is quiet, and it ends in order, leaving nothing behind, when nobody reads its progress
// any more or its terminal is closed.
func measuring(ctx context.Context, a *app) (context.Context, func()) {
	a.log = quietly(a)
	ctx, out, end := untilCutOff(ctx, a.err)
	a.err = out
	return ctx, end
}

// benchReport is what a measurement prints. Its names are read by programs.
type benchReport[row any] struct {
	Name    string  `json:"name"`
	Machine machine `json:"machine"`
	Rows    []row   `json:"rows"`
	Aims    []aim   `json:"aims"`
}

// machine is what it was measured on.
type machine struct {
	CPUs     int    `json:"cpus"`
	Go       string `json:"go"`
	Postgres string `json:"postgres"`
}

// aim is one thing that a measurement must show.
type aim struct {
	Name string  `json:"name"`
	Want string  `json:"want"`
	Got  float64 `json:"got"`
	Held bool    `json:"held"`
}

// atLeast, atMost and below are aims at a figure. Nothing takes no time and no memory: a 0 wasn't measured and holds none
// of them.
func atLeast(name string, got, want float64) aim {
	return aim{name, fmt.Sprintf("at least %g", want), round(got), got >= want && got > 0}
}

func atMost(name string, got, want float64) aim {
	return aim{name, fmt.Sprintf("at most %g", want), round(got), got <= want && got > 0}
}

func below(name string, got, want float64) aim {
	return aim{name, fmt.Sprintf("less than %g", round(want)), round(got), got < want && got > 0}
}

// noMore is atMost for a figure that may well be 0.
func noMore(name string, got, want float64) aim {
	return aim{name, fmt.Sprintf("at most %g", want), round(got), got <= want && got >= 0}
}

// thisMachine asks the database for its version.
func thisMachine(ctx context.Context, s *store.Store) (machine, error) {
	m := machine{CPUs: runtime.NumCPU(), Go: runtime.Version()}
	if err := s.SQL().QueryRowContext(ctx, "SHOW server_version").Scan(&m.Postgres); err != nil {
		return m, fmt.Errorf("ask for the version of Postgres: %w", err)
	}
	return m, nil
}

// conclude prints a measurement, as one JSON object or for a person, and is an error when an aim isn't held.
func conclude[row any](a *app, asJSON bool, r benchReport[row], table func(io.Writer) error) error {
	if asJSON {
		if err := json.NewEncoder(a.out).Encode(r); err != nil {
			return fmt.Errorf("print the measurement: %w", err)
		}
	} else if err := printBench(a.out, r.Machine, r.Aims, table); err != nil {
		return fmt.Errorf("print the measurement: %w", err)
	}
	for _, each := range r.Aims {
		if !each.Held {
			return exitError(1)
		}
	}
	return nil
}

func printBench(out io.Writer, m machine, aims []aim, table func(io.Writer) error) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if err := table(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	for _, each := range aims {
		verdict := "held"
		if !each.Held {
			verdict = "NOT HELD"
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\t%g\t%s\n", each.Name, each.Want, each.Got, verdict); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nOn %d CPUs with %s and Postgres %s.\n", m.CPUs, m.Go, m.Postgres)
	return err
}

// benchStack is a stack on an empty database of its own: a private Postgres in a temporary folder or, on the server that
// DATABASE_URL names, a database that is dropped at the end. What else is on that server is never touched.
func benchStack(ctx context.Context, a *app) (*stack, error) {
	config := *a.config
	config.DataDir, config.SecretKey = "", ""
	s := newStack(&config, a.log, a.now)
	err := s.benchDatabase(ctx)
	if err == nil {
		err = s.openStore(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

func (s *stack) benchDatabase(ctx context.Context) error {
	if s.config.DatabaseURL == "" {
		if err := s.temporaryDataDir(); err != nil {
			return err
		}
		return s.ownDatabase(ctx)
	}
	given, err := url.Parse(s.config.DatabaseURL)
	if err != nil {
		return errors.New("DATABASE_URL is no postgres:// URL") // The error of url.Parse would show the password.
	}
	name := benchPrefix(given) + strings.ToLower(rand.Text())
	if err := onServer(ctx, s.config.DatabaseURL, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return err
	}
	s.onClose("database of the measurement", func(ctx context.Context) error {
		return onServer(ctx, s.config.DatabaseURL, "DROP DATABASE "+name+" WITH (FORCE)")
	})
	own := *given
	own.Path = "/" + name
	s.dsn = own.String()
	return nil
}

// benchPrefix begins the names of databases that are made beside the one that was given.
func benchPrefix(given *url.URL) string { return "rollcall_bench_" + fingerprint(given.Path)[:8] + "_" }

// onServer runs one statement on the server that the address names.
func onServer(ctx context.Context, dsn, statement string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("reach the database server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // The statement's own error tells.
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("a database for the measurement: %w", err)
	}
	return nil
}
