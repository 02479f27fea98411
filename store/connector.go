package store

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// splitConnector hands out pgx connections that keep two kinds of statement
// apart. Bun writes its values into the text, so each text is new: pgx would
// prepare and keep 512 of them a connection, bodies included. Statements
// without arguments are therefore sent once and forgotten; statements with
// arguments (River's, and our big ones) keep pgx's statement cache.
type splitConnector struct{ driver.Connector }

func newConnector(pool *pgxpool.Pool, c Config) driver.Connector {
	split := splitConnector{stdlib.GetPoolConnector(pool)}
	if c.Step == nil && c.Fail == nil {
		return split
	}
	return steppedConnector{split, &hooks{step: c.Step, fail: c.Fail}}
}

// Connect implements driver.Connector.
func (c splitConnector) Connect(ctx context.Context) (driver.Conn, error) { return c.open(ctx) }

func (c splitConnector) open(ctx context.Context) (splitConn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return splitConn{}, err
	}
	std, ok := conn.(*stdlib.Conn)
	if !ok {
		return splitConn{}, fmt.Errorf("unexpected driver connection %T", conn)
	}
	return splitConn{std}, nil
}

type splitConn struct{ *stdlib.Conn }

// ExecContext implements driver.ExecerContext.
func (c splitConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.ExecContext(ctx, query, execMode(args))
}

// QueryContext implements driver.QueryerContext.
func (c splitConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.QueryContext(ctx, query, execMode(args))
}

// execMode asks pgx, by its own leading-option argument, not to prepare a
// statement that has no arguments.
func execMode(args []driver.NamedValue) []driver.NamedValue {
	if len(args) > 0 {
		return args
	}
	return []driver.NamedValue{{Ordinal: 1, Value: pgx.QueryExecModeExec}}
}
