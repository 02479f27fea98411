package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// holdReconcile is the class of the advisory locks that say that the run of a
// reconcile task goes on; the second number is the task's.
const holdReconcile = 0x7272

// holdWebhooks is the class of the advisory lock of those who change webhooks
// at the vendor.
const holdWebhooks = 0x7768

// HoldWebhooks keeps every other process from changing webhooks at the vendor,
// and from comparing them with it, until release or the end of this process:
// such a change is a call and a move, and two of them must not be mixed.
// Rotations don't take it; their moves are guarded.
func (s *Store) HoldWebhooks(ctx context.Context) (func(), error) {
	release, err := s.hold(ctx, holdWebhooks, 1)
	if err != nil {
		return nil, fmt.Errorf("wait for a change of webhooks under way: %w", err)
	}
	return release, nil
}

// HoldRun says that the run of a reconcile task goes on, until release or the
// end of this process: it is an advisory lock on a connection of its own, which
// the database lets go of with that connection.
func (s *Store) HoldRun(ctx context.Context, task int64) (func(), error) {
	release, err := s.hold(ctx, holdReconcile, task)
	if err != nil {
		return nil, fmt.Errorf("hold reconcile task %d: %w", task, err)
	}
	return release, nil
}

// hold takes an advisory lock on a connection of its own, waiting for whoever
// has it.
func (s *Store) hold(ctx context.Context, class int32, key int64) (func(), error) {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	release := func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		_ = conn.Close(closing) // Closed or broken, the database lets go.
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1::int, ($2::bigint % 2147483647)::int)", class, key); err != nil {
		release()
		return nil, err
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
