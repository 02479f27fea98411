package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/migrate"
)

const (
	// turnPause is how long a process waits before it asks again for its turn.
	turnPause = 50 * time.Millisecond
	// lockWait is how long a statement of a migration waits for a lock: whoever
	// comes after it waits as well, to read too. lockPause is for those to get
	// through before it is tried again.
	lockWait  = 2 * time.Second
	lockPause = 2 * time.Second
	// lockPatience is how long it is tried. A dump holds all tables for its length.
	lockPatience = 15 * time.Minute
)

// takeTurn takes the advisory lock under which migrations run. It asks again and
// again and doesn't wait in the database: a statement that waits there is a
// transaction older than the index that is being built CONCURRENTLY under the
// lock, which would wait for it in turn, and for ever.
func takeTurn(ctx context.Context, guard *sql.Conn) error {
	for {
		var mine bool
		if err := guard.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", lockID).Scan(&mine); err != nil || mine {
			return err
		}
		if err := pause(ctx, turnPause); err != nil {
			return err
		}
	}
}

// bounded keeps a migration that is one transaction from having others wait for
// longer than a moment behind a lock that it doesn't get. One that isn't waits
// for what it must, and holds nobody up. Neither is cut short by a timeout that
// is meant for pages.
func bounded(ctx context.Context, conn bun.IConn, _ *migrate.Migration) error {
	settings := "SET statement_timeout = 0; SET lock_timeout = 0"
	if _, is := conn.(bun.Tx); is {
		settings = fmt.Sprintf("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = %d", lockWait.Milliseconds())
	}
	_, err := conn.ExecContext(ctx, settings)
	return err
}

// patiently runs the migrations that are missing, again from the one that didn't
// get a lock, or got into the way of somebody.
func patiently(ctx context.Context, m *migrate.Migrator) error {
	for left := lockPatience; ; left -= lockWait + lockPause {
		_, err := m.Migrate(ctx)
		if !inTheWay(err) {
			return err
		}
		if left <= 0 {
			return fmt.Errorf("somebody, such as a dump, has kept a table locked for %s: %w", lockPatience, err)
		}
		if err := pause(ctx, lockPause); err != nil {
			return err
		}
	}
}

// inTheWay reports a lock that was not to be had, or a deadlock.
func inTheWay(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "55P03" || pg.Code == "40P01")
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
