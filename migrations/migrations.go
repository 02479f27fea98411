// Package migrations brings a Postgres database to the schema this release of
// Rollcall needs: River's queue tables first, then ours, which are plain SQL
// files run by bun/migrate. schema.sql beside them is a dump to read.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/migrate"
)

//go:embed *.up.sql *.down.sql
var files embed.FS

// Release is this program's release number for the schema. A database whose
// schema_release.requires is higher was changed by a newer Rollcall in a way
// this one cannot live with.
const Release = 1

// lockID is the advisory lock under which every migration runs: any number of
// processes may start at once and exactly one does the work.
const lockID = 0x726f6c6c63616c6c // "rollcall"

// ErrNewerSchema reports a database that needs a newer release of Rollcall.
var ErrNewerSchema = errors.New("the database was migrated by a newer, incompatible release of Rollcall")

// ErrNotMigrated reports a database that lacks migrations of this release.
var ErrNotMigrated = errors.New("the database lacks migrations of this release")

// Status is one migration of ours and whether the database has it.
type Status struct {
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
}

// Up brings the database at dsn to this release's schema. It may be called by
// many processes at once and is harmless to repeat. It refuses, with
// ErrNewerSchema, a database that a newer release has made incompatible. While
// others use the database it keeps none of them waiting for more than moments:
// what it needs alone it tries to get again and again.
func Up(ctx context.Context, dsn string) error {
	return locked(ctx, dsn, func(db *bun.DB) error {
		if err := checkRelease(ctx, db); err != nil {
			return err
		}
		if err := river(ctx, db.DB, rivermigrate.DirectionUp, -1); err != nil {
			return err
		}
		m, err := migrator(ctx, db, markApplied)
		if err != nil {
			return err
		}
		return patiently(ctx, m)
	})
}

// Down takes everything away again, ours and River's: the data is lost.
func Down(ctx context.Context, dsn string) error {
	return locked(ctx, dsn, func(db *bun.DB) error {
		m, err := migrator(ctx, db, markUnapplied)
		if err != nil {
			return err
		}
		for {
			group, err := m.Rollback(ctx)
			if err != nil {
				return err
			}
			if group.IsZero() {
				break
			}
		}
		if err := river(ctx, db.DB, rivermigrate.DirectionDown, -1); err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, "DROP TABLE IF EXISTS bun_migrations, bun_migration_locks")
		return err
	})
}

// List tells which of this release's migrations the database has, oldest
// first. An empty database has none; listing changes nothing.
func List(ctx context.Context, dsn string) ([]Status, error) {
	db, err := open(dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	applied, err := appliedNames(ctx, db)
	if err != nil {
		return nil, err
	}
	known, err := discover()
	if err != nil {
		return nil, err
	}
	var out []Status
	for _, m := range known.Sorted() {
		out = append(out, Status{Name: m.String(), Applied: applied[m.Name]})
	}
	return out, nil
}

// Check reports whether this release may run on the database as it is:
// ErrNewerSchema or ErrNotMigrated when not.
func Check(ctx context.Context, dsn string) error {
	db, err := open(dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := checkRelease(ctx, db); err != nil {
		return err
	}
	list, err := List(ctx, dsn)
	if err != nil {
		return err
	}
	for _, s := range list {
		if !s.Applied {
			return fmt.Errorf("%w: %s", ErrNotMigrated, s.Name)
		}
	}
	return nil
}

// Newer lists migrations that the database has and this release doesn't know,
// oldest first: a newer release ran them. This one may run on it all the same
// when Check says so.
func Newer(ctx context.Context, dsn string) ([]string, error) {
	db, err := open(dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	applied, err := appliedNames(ctx, db)
	if err != nil {
		return nil, err
	}
	known, err := discover()
	if err != nil {
		return nil, err
	}
	for _, m := range known.Sorted() {
		delete(applied, m.Name)
	}
	return slices.Sorted(maps.Keys(applied)), nil
}

// locked runs do on its own connections while holding the advisory lock on a
// further one, so that a crash in between frees the lock with its connection.
func locked(ctx context.Context, dsn string, do func(*bun.DB) error) error {
	db, err := open(dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	guard, err := db.DB.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer guard.Close()
	if err := takeTurn(ctx, guard); err != nil {
		return fmt.Errorf("take the migration lock: %w", err)
	}
	err = do(db)
	_, unlockErr := guard.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", lockID)
	return errors.Join(err, unlockErr)
}

// open connects with the simple protocol, since a migration file holds many
// statements and the extended one takes them singly.
func open(dsn string) (*bun.DB, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database address: %w", err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	cfg.RuntimeParams["standard_conforming_strings"] = "on" // As the files are written, whatever the database is set to.
	return bun.NewDB(stdlib.OpenDB(*cfg), pgdialect.New()), nil
}

func discover() (*migrate.Migrations, error) {
	known := migrate.NewMigrations()
	if err := known.Discover(files); err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return known, nil
}

// migrator is bun's, with a hook that writes the mark inside the migration's
// own transaction: bun's mark comes after the commit, and a crash between the
// two would leave a migration that can neither run again nor count as done.
// Files without .tx in their name are no transaction, for what goes through a
// large table: they are written so that they can run again from any point.
func migrator(ctx context.Context, db *bun.DB, mark migrate.MigrationHook) (*migrate.Migrator, error) {
	known, err := discover()
	if err != nil {
		return nil, err
	}
	m := migrate.NewMigrator(db, known, migrate.WithMarkAppliedOnSuccess(true),
		migrate.WithUpsert(true), migrate.BeforeMigration(bounded), migrate.AfterMigration(mark))
	if err := m.Init(ctx); err != nil {
		return nil, fmt.Errorf("prepare the migration table: %w", err)
	}
	return m, nil
}

func markApplied(ctx context.Context, tx bun.IConn, m *migrate.Migration) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO bun_migrations (name, group_id) VALUES (?, ?)
		ON CONFLICT (name) DO NOTHING`, m.Name, m.GroupID)
	return err
}

func markUnapplied(ctx context.Context, tx bun.IConn, m *migrate.Migration) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM bun_migrations WHERE name = ?", m.Name)
	return err
}

func appliedNames(ctx context.Context, db *bun.DB) (map[string]bool, error) {
	applied := map[string]bool{}
	ok, err := exists(ctx, db, "bun_migrations")
	if err != nil || !ok {
		return applied, err
	}
	rows, err := db.QueryContext(ctx, "SELECT name FROM bun_migrations")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		applied[name] = true
	}
	return applied, rows.Err()
}

func exists(ctx context.Context, db *bun.DB, table string) (bool, error) {
	var found sql.NullString
	if err := db.DB.QueryRowContext(ctx, "SELECT to_regclass($1)::text", table).Scan(&found); err != nil {
		return false, fmt.Errorf("look for table %s: %w", table, err)
	}
	return found.Valid, nil
}

func checkRelease(ctx context.Context, db *bun.DB) error {
	ok, err := exists(ctx, db, "schema_release")
	if err != nil || !ok {
		return err
	}
	var requires int
	if err := db.DB.QueryRowContext(ctx, "SELECT requires FROM schema_release").Scan(&requires); err != nil {
		return fmt.Errorf("read schema_release: %w", err)
	}
	if requires > Release {
		return fmt.Errorf("%w: it requires release %d, this is %d", ErrNewerSchema, requires, Release)
	}
	return nil
}

func river(ctx context.Context, db *sql.DB, way rivermigrate.Direction, target int) error {
	m, err := rivermigrate.New(riverdatabasesql.New(db), nil)
	if err != nil {
		return fmt.Errorf("queue migrations: %w", err)
	}
	opts := &rivermigrate.MigrateOpts{}
	if way == rivermigrate.DirectionDown {
		opts.TargetVersion = target
	}
	if _, err := m.Migrate(ctx, way, opts); err != nil {
		return fmt.Errorf("queue migrations: %w", err)
	}
	return nil
}
