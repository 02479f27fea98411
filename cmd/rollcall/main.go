// Command rollcall is the whole of Rollcall: the server and the commands that look after it.
// Settings come from flags and the environment (config.go); each command has a file of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// commands is the command line. A new command is one line here and a file named after it with its Run method,
// which may take a context.Context and the *app, in this order.
type commands struct {
	Config Config `embed:""`

	Serve     serveCmd     `cmd:"" help:"Run the server."`
	Demo      demoCmd      `cmd:"" help:"A whole Rollcall with a simulated vendor and a batch that fills."`
	Doctor    doctorCmd    `cmd:"" help:"Check everything that must be right; exit 1 with a line for each problem."`
	Bench     benchCmd     `cmd:"" help:"Measure; exit 1 when an aim isn't held."`
	Drill     drillCmd     `cmd:"" help:"Kill, cut off and starve real processes under load; exit 1 when anything is lost, doubled or stuck."`
	Sandbox   sandboxCmd   `cmd:"" help:"Run the simulated vendor."`
	Migrate   migrateCmd   `cmd:"" help:"Look after the database's schema."`
	User      userCmd      `cmd:"" help:"Look after people's accounts."`
	Webhook   webhookCmd   `cmd:"" help:"Look after the vendor's webhooks."`
	Replay    replayCmd    `cmd:"" help:"Ask again about jobs whose delivery went wrong, and wait until it is done."`
	Export    exportCmd    `cmd:"" help:"Write items and what is stored of them into a file: CSV, JSON lines, ZIP or Parquet."`
	Submit    submitCmd    `cmd:"" help:"Submit the good lines of a file as a batch; the running server fetches them."`
	Rerun     rerunCmd     `cmd:"" help:"Run a batch again, or only its failures, as a new batch tied to it."`
	Preflight preflightCmd `cmd:"" help:"Say of each line of a file whether its URL would be sent; exit 1 when one is invalid."`
	Backup    backupCmd    `cmd:"" help:"Write the whole database into one file, while the server runs or not."`
	Restore   restoreCmd   `cmd:"" help:"Bring a backup into an empty database, while no server runs."`
	Secrets   secretsCmd   `cmd:"" help:"Look after what is encrypted at rest."`
	Verify    verifyCmd    `cmd:"" help:"Verify the stored bytes of a delivery again; exit 1 with the reason when no secret does."`
	Health    healthCmd    `cmd:"" help:"Ask the running server whether it is ready; exit 0 or 1."`
	Settings  settingsCmd  `cmd:"" help:"List all settings: each is an environment variable and a flag."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
}

// app is what a command works with.
type app struct {
	config   *Config // As read; a command that relies on them calls check first.
	log      *slog.Logger
	now      func() time.Time
	in       io.Reader
	out, err io.Writer
}

// check returns an error that tells all that is wrong with the settings.
func (a *app) check() error {
	if err := a.config.Check(); err != nil {
		return fmt.Errorf("wrong settings:\n%w", err)
	}
	return nil
}

// exitError ends the program with this code; the command has said why already.
type exitError int

// Error is for the logs of tests; run never prints it.
func (e exitError) Error() string { return "exit " + strconv.Itoa(int(e)) }

// sameSignal is how soon after the first signal another one means the same.
const sameSignal = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default action is back, so a second Ctrl-C ends a shutdown that hangs. Not at once:
	// timeout(1) and others signal the process and its group, and the second of the two isn't meant as one.
	context.AfterFunc(ctx, func() {
		time.Sleep(sameSignal)
		stop()
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, processEnv))
}

// run carries out one command line and returns the exit code: 0 done, 1 the command went wrong, 2 a command line
// that can't be read. Canceling ctx asks the command to stop in order.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env lookup) int {
	var cli commands
	exited := false
	parser, err := kong.New(
		&cli,
		kong.Name("rollcall"),
		kong.Description("A self-hosted results desk for the Geonode Scraper API: every URL submitted is answered for exactly once."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { exited = true }), // Called after --help.
		kong.Help(printHelp),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return complain(stderr, err, 2)
	}
	resolver := newEnvResolver(parser.Model, env, &cli.Config)
	if err := kong.Resolvers(resolver).Apply(parser); err != nil {
		return complain(stderr, err, 2)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	switch {
	case exited:
		return 0
	case err != nil:
		return complain(stderr, fmt.Errorf("%w (see rollcall --help)", err), 2)
	}
	if cli.Config.DataDir == "" {
		cli.Config.DataDir = defaultDataDir(os.Geteuid(), env)
	}
	a := &app{
		config: &cli.Config,
		log:    newLogger(stderr, &cli.Config),
		now:    time.Now,
		in:     stdin,
		out:    stdout,
		err:    stderr,
	}
	return exitOf(command.Run(a), stderr)
}

// exitOf turns a command's error into an exit code, telling what it is unless the command has.
func exitOf(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	return complain(stderr, err, 1)
}

func complain(stderr io.Writer, err error, code int) int {
	_, _ = fmt.Fprintln(stderr, "rollcall:", err) // Nothing is left to tell it to.
	return code
}

// newLogger logs to w as the settings say; wrong settings, which Check reports, give the defaults.
func newLogger(w io.Writer, config *Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(config.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if config.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
