package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// holdReconcile is the class of the advisory locks that say that the run of a
// reconcile task goes on; the second number is the task's.
const holdReconcile = 0x7272

// HoldRun says that the run of a reconcile task goes on, until release or the
// end of this process: it is an advisory lock on a connection of its own, which
// the database lets go of with that connection.
func (s *Store) HoldRun(ctx context.Context, task int64) (func(), error) {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("hold reconcile task %d: %w", task, err)
	}
	release := func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		_ = conn.Close(closing) // Closed or broken, the database lets go.
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1::int, ($2::bigint % 2147483647)::int)", holdReconcile, task); err != nil {
		release()
		return nil, fmt.Errorf("hold reconcile task %d: %w", task, err)
	}
	return release, nil
}

// RunLetGo reports whether nobody holds the run of a reconcile task; then
// nobody else can find the same before this transaction ends.
func (t Tx) RunLetGo(ctx context.Context, task int64) (bool, error) {
	var free bool
	err := t.db.NewRaw("SELECT pg_try_advisory_xact_lock(?::int, (?::bigint % 2147483647)::int)", holdReconcile, task).Scan(ctx, &free)
	return free, translate(err)
}
