package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"

	"rollcall/migrations"
	"rollcall/store"
)

// migrateCmd looks after the schema; serve brings it up to date by itself.
type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Bring the database to this release's schema."`
	Down   migrateDownCmd   `cmd:"" help:"Take everything away again: all data is lost."`
	Status migrateStatusCmd `cmd:"" help:"Tell which migrations the database has."`
	Schema migrateSchemaCmd `cmd:"" help:"Print the schema that the migrations make, from a fresh private Postgres."`
}

// withDatabase runs do with the address of the database of the settings.
func (a *app) withDatabase(ctx context.Context, do func(context.Context, *stack) error) error {
	if err := a.check(); err != nil {
		return err
	}
	s := newStack(a.config, a.log, a.now)
	err := s.shareDatabase(ctx)
	if err == nil {
		err = do(ctx, s)
	}
	return errors.Join(err, s.close(ctx))
}

// withStore is withDatabase with a store on the present schema. It is for commands whose terminal is for what they say:
// unless more is asked for than by default, only warnings and errors are logged.
func (a *app) withStore(ctx context.Context, do func(context.Context, *stack) error) error {
	quiet := *a
	quiet.log = newLogger(a.err, a.config.loggedFrom("warn"))
	return quiet.withDatabase(ctx, func(ctx context.Context, s *stack) error {
		if err := s.openStore(ctx); err != nil {
			return err
		}
		return do(store.WithActor(ctx, commandActor()), s)
	})
}

// commandActor is who the audit log names for what a command changes: the
// system's user. Whoever may run it with the database's address may do all.
func commandActor() store.Actor {
	a := store.Actor{Name: "command line", Source: "command line"}
	if who, err := user.Current(); err == nil && who.Username != "" {
		a.Name = who.Username
	}
	return a
}

type migrateUpCmd struct{}

// Run migrates up. Any number of processes may do it at once.
func (c *migrateUpCmd) Run(ctx context.Context, a *app) error {
	return a.withDatabase(ctx, func(ctx context.Context, s *stack) error {
		if err := migrations.Up(ctx, s.dsn); err != nil {
			return fmt.Errorf("migrate up: %w", err)
		}
		_, err := fmt.Fprintln(a.out, "the database has this release's schema")
		return err
	})
}

type migrateDownCmd struct {
	Yes bool `help:"Yes, lose all data."`
}

// Run takes the schema away.
func (c *migrateDownCmd) Run(ctx context.Context, a *app) error {
	if !c.Yes {
		return errors.New("migrate down removes every table with all its data; say --yes to do it")
	}
	return a.withDatabase(ctx, func(ctx context.Context, s *stack) error {
		if err := migrations.Down(ctx, s.dsn); err != nil {
			return fmt.Errorf("migrate down: %w", err)
		}
		_, err := fmt.Fprintln(a.out, "the database is empty")
		return err
	})
}

type migrateStatusCmd struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// migrateStatus is what migrate status tells.
type migrateStatus struct {
	Release    int                 `json:"release"`
	Compatible bool                `json:"compatible"`
	Problem    string              `json:"problem,omitempty"`
	Migrations []migrations.Status `json:"migrations"`
}

// Run prints a line for each migration; exit 1 when this release can't run on the schema.
func (c *migrateStatusCmd) Run(ctx context.Context, a *app) error {
	return a.withDatabase(ctx, func(ctx context.Context, s *stack) error {
		list, err := migrations.List(ctx, s.dsn)
		if err != nil {
			return fmt.Errorf("migrate status: %w", err)
		}
		status := migrateStatus{Release: migrations.Release, Compatible: true, Migrations: list}
		if err := migrations.Check(ctx, s.dsn); err != nil {
			status.Compatible, status.Problem = false, err.Error()
		}
		return c.print(a, status)
	})
}

func (c *migrateStatusCmd) print(a *app, status migrateStatus) error {
	if c.JSON {
		if err := json.NewEncoder(a.out).Encode(status); err != nil {
			return err
		}
	} else if err := status.write(a); err != nil {
		return err
	}
	if !status.Compatible {
		return exitError(1)
	}
	return nil
}

func (s migrateStatus) write(a *app) error {
	for _, m := range s.Migrations {
		word := "missing"
		if m.Applied {
			word = "applied"
		}
		if _, err := fmt.Fprintf(a.out, "%s  %s\n", word, m.Name); err != nil {
			return err
		}
	}
	if s.Problem == "" {
		return nil
	}
	_, err := fmt.Fprintln(a.err, s.Problem)
	return err
}
