// Package store keeps Rollcall's state in Postgres: batches, items, jobs,
// results, deliveries, webhooks, people. It alone knows SQL. Every move of a
// state is a guarded update that returns how many rows it touched; zero rows
// means that somebody else did it, and that is fine. Times are parameters, in
// UTC: no statement here asks the database for the time.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

// Config says how to reach the database.
type Config struct {
	DSN      string
	MaxConns int32 // Zero means 16.
	// Tracer sees every statement, for measurements; nil otherwise.
	Tracer pgx.QueryTracer

	// Step and Fail are for drills, nil otherwise. Step is called right before
	// and right after each commit, with the name of the function that asked for
	// it and ".commit.before" or ".commit.after". Fail is asked before each
	// statement, whether it writes or not, and before each commit of what was
	// written; an error fails it.
	Step func(name string)
	Fail func(write bool) error
}

// Queries are the statements that run alike inside and outside a transaction.
type Queries struct {
	db  bun.IDB
	hot hot
}

// Store is the database. It is safe for use by many goroutines.
type Store struct {
	Queries
	bun  *bun.DB
	pool *pgxpool.Pool
	// planned are connections whose statements with parameters are planned once;
	// see Tx.plannedOnce.
	planned     *sql.DB
	plannedPool *pgxpool.Pool
}

// Tx is one transaction; see Store.InTx.
type Tx struct {
	Queries
	tx    bun.Tx
	ended *[]BatchEnd
}

// plannedConns is how many of the connections are kept for what is written in
// groups: one for each committer of deliveries.
const plannedConns = 2

// connectTimeout bounds one attempt to reach the server.
const connectTimeout = 10 * time.Second

// Open connects and checks that the server answers. The caller closes it.
func Open(ctx context.Context, c Config) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, fmt.Errorf("database address: %w", err)
	}
	cfg.MaxConns = max(1, cmp.Or(c.MaxConns, 16)-plannedConns)
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	cfg.ConnConfig.Tracer = c.Tracer
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	cfg.ConnConfig.RuntimeParams["application_name"] = "rollcall"
	// Values become literals here, in which a backslash is none but itself: a
	// database that is set otherwise would let a text out of its quotes.
	cfg.ConnConfig.RuntimeParams["standard_conforming_strings"] = "on"
	pool, db, err := open(ctx, cfg, c, jitOff)
	if err != nil {
		return nil, err
	}
	once := cfg.Copy()
	once.MaxConns = plannedConns
	plannedPool, planned, err := open(ctx, once, c, jitOff+", "+connectionPlans)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s := &Store{bun: bun.NewDB(db, pgdialect.New()), pool: pool, planned: planned, plannedPool: plannedPool}
	s.Queries = Queries{db: s.bun, hot: newHot(s.bun)}
	if err := db.PingContext(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("reach the database: %w", err)
	}
	return s, nil
}

// open makes a pool whose connections begin with the settings, and its
// database/sql side. Not every pooler lets a connection begin with them, so they
// are a statement.
func open(ctx context.Context, cfg *pgxpool.Config, c Config, settings string) (*pgxpool.Pool, *sql.DB, error) {
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT "+settings)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("database pool: %w", err)
	}
	db := sql.OpenDB(newConnector(pool, c))
	// database/sql must not keep connections of its own: the pool does.
	db.SetMaxIdleConns(0)
	return pool, db, nil
}

// Close ends every connection.
func (s *Store) Close() error {
	err := errors.Join(s.bun.Close(), s.planned.Close())
	s.pool.Close()
	s.plannedPool.Close()
	return err
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.bun.PingContext(ctx) }

// SQL is the plain database, for River's driver.
func (s *Store) SQL() *sql.DB { return s.bun.DB }

// Pool is the pgx pool, for River's listener and for Listen.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// InTx runs do in one transaction, committed when do returns nil and rolled
// back otherwise. No network call belongs inside do.
func (s *Store) InTx(ctx context.Context, do func(context.Context, Tx) error) error {
	return s.bun.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		return do(ctx, Tx{Queries: Queries{db: tx, hot: s.hot.within(tx)}, tx: tx, ended: &[]BatchEnd{}})
	})
}

// SQL is the transaction as database/sql knows it, so that River's inserts
// join it. Only pipeline/queue.go uses it.
func (t Tx) SQL() *sql.Tx { return t.tx.Tx }

// jitOff: compiling a plan takes longer than any of ours takes to run.
const jitOff = `set_config('jit', 'off', false)`

// Settings under which statements with parameters are planned once: of a
// transaction, see Tx.plannedOnce, and of a connection.
const (
	transactionPlans = `set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`
	connectionPlans  = `set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false)`
)

// plannedOnce has the statements with parameters that follow in this
// transaction planned once a connection. Postgres would plan those that take
// arrays anew each time, as an array of one looks cheaper than the ten it
// expects, and that takes longer than to run them. Whatever their tables held at
// that moment, they look rows up by index.
func (t Tx) plannedOnce(ctx context.Context) error {
	_, err := t.tx.Tx.ExecContext(ctx, `SELECT `+transactionPlans)
	return translate(err)
}

// Shared is plannedOnce for a transaction that many share: it fails rather than
// wait longer than a moment for whoever holds a row of one of them.
func (t Tx) Shared(ctx context.Context) error {
	_, err := t.tx.Tx.ExecContext(ctx, `SELECT set_config('lock_timeout', '1s', true), `+transactionPlans)
	return translate(err)
}

// affected turns a statement's result into its row count.
func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, translate(err)
	}
	return res.RowsAffected()
}
