package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// namedStack is a stack on a database that somebody named, brought up to date.
func namedStack(ctx context.Context, a *app, dsn string) (*stack, error) {
	config := *a.config
	config.DataDir, config.SecretKey, config.DatabaseURL = "", "", dsn
	s := newStack(&config, a.log, a.now)
	s.dsn = dsn
	if err := s.openStore(ctx); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// filledByMigrations are the tables in which an installation that nobody has used yet has rows.
func filledByMigrations() []string {
	return []string{"bun_migrations", "bun_migration_locks", "river_migration", "schema_release", "gates", "list_sweeps", "search_backfill"}
}

// unused refuses a database in which there is anything, before its schema is changed: what would check rows is taken away
// while it is filled.
func unused(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("look into the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // It was only read from.
	rows, err := conn.Query(ctx, `SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema' AND c.relname <> ALL ($1) ORDER BY 1, 2`,
		filledByMigrations())
	if err != nil {
		return fmt.Errorf("look into the database: %w", err)
	}
	tables, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (pgx.Identifier, error) {
		name := make(pgx.Identifier, 2)
		return name, row.Scan(&name[0], &name[1])
	})
	if err != nil {
		return fmt.Errorf("look into the database: %w", err)
	}
	for _, table := range tables {
		var used bool
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table.Sanitize()+`)`).Scan(&used); err != nil {
			return fmt.Errorf("look into the database: %w", err)
		}
		if used {
			return fmt.Errorf("--database: there are rows in %s, so it is left alone: only an empty database is filled", table[1])
		}
	}
	return nil
}

// seeded refuses a database that bench seed didn't fill, before anything is changed in it: its first account is given a
// password for the measurement.
func seeded(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("look into the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // It was only read from.
	var ours bool
	err = conn.QueryRow(ctx, `SELECT (SELECT name FROM users WHERE id = 1) = $1 AND (SELECT name FROM users WHERE id = 2) = 'person 2'`, seedAdmin).Scan(&ours)
	if err != nil || !ours {
		return errors.New("--database: it was not filled by bench seed, so it is left alone")
	}
	return nil
}
