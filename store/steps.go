package store

import (
	"context"
	"database/sql/driver"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// hooks are what a drill puts into the database's connections: see Config.
type hooks struct {
	step  func(name string)
	fail  func(write bool) error
	names sync.Map // The name of each callers.
}

// steppedConnector hands out the connections of a drill.
type steppedConnector struct {
	splitConnector
	hooks *hooks
}

// Connect implements driver.Connector.
func (c steppedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	return &steppedConn{splitConn: conn, hooks: c.hooks}, nil
}

// steppedConn tells of each commit, be it of a transaction or of a statement
// that writes outside one, and lets writes fail as the server would fail them.
type steppedConn struct {
	splitConn
	hooks  *hooks
	inTx   bool
	wrote  bool  // In this transaction.
	failed error // Why this transaction is aborted.
}

// BeginTx implements driver.ConnBeginTx.
func (c *steppedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.splitConn.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	c.inTx, c.wrote, c.failed = true, false, nil
	return &steppedTx{Tx: tx, conn: c}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *steppedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, done, err := around(c, query, func() (driver.Result, error) { return c.splitConn.ExecContext(ctx, query, args) })
	if err == nil {
		done()
	}
	return result, err
}

// QueryContext implements driver.QueryerContext. The commit of a statement that
// returns rows has been when they are read.
func (c *steppedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, done, err := around(c, query, func() (driver.Rows, error) { return c.splitConn.QueryContext(ctx, query, args) })
	if err != nil {
		return nil, err
	}
	return &steppedRows{Rows: rows, done: done}, nil
}

// steppedRows are the rows of a statement that may be a commit.
type steppedRows struct {
	driver.Rows
	done func()
}

// Close implements driver.Rows.
func (r *steppedRows) Close() error {
	if err := r.Rows.Close(); err != nil {
		return err
	}
	r.done()
	r.done = func() {}
	return nil
}

// around runs a statement. One that writes outside a transaction is a commit:
// what it returns tells that it has been.
func around[T any](c *steppedConn, query string, run func() (T, error)) (T, func(), error) {
	write := Writes(query)
	if err := c.refused(query, write); err != nil {
		var none T
		return none, nil, err
	}
	done := func() {}
	if !c.inTx && write {
		done = c.hooks.commit()
	}
	got, err := run()
	return got, done, err
}

// refused is the error of a statement that must not reach the server: a write
// that is to fail, or any that follows one in its transaction.
func (c *steppedConn) refused(query string, write bool) error {
	if c.failed != nil {
		if !strings.HasPrefix(strings.ToUpper(query), "ROLLBACK TO") {
			return &pgconn.PgError{Severity: "ERROR", Code: "25P02", Message: "current transaction is aborted, commands ignored until end of transaction block"}
		}
		c.failed = nil
	}
	if c.hooks.fail == nil {
		return nil
	}
	err := c.hooks.fail(write)
	if c.inTx {
		c.wrote, c.failed = c.wrote || write, err
	}
	return err
}

// steppedTx is a transaction on a steppedConn.
type steppedTx struct {
	driver.Tx
	conn *steppedConn
}

// Commit implements driver.Tx. A commit that is to fail rolls back.
func (t *steppedTx) Commit() error {
	c := t.conn
	c.inTx = false
	err := c.failed
	if err == nil && c.wrote {
		err = c.hooks.fail(true)
	}
	if err != nil {
		_ = t.Tx.Rollback() // The failure is what to tell.
		return err
	}
	done := c.hooks.commit()
	if err := t.Tx.Commit(); err != nil {
		return err
	}
	done()
	return nil
}

// Rollback implements driver.Tx.
func (t *steppedTx) Rollback() error {
	t.conn.inTx = false
	return t.Tx.Rollback()
}

// commit tells that a commit comes, and returns what tells that it has been.
func (h *hooks) commit() func() {
	if h.step == nil {
		return func() {}
	}
	name := h.name()
	h.step(name + ".commit.before")
	return func() { h.step(name + ".commit.after") }
}

// writing is a common table expression that writes.
var writing = regexp.MustCompile(`(?i)\b(insert\s+into|update\s+\S+\s+(as\s+\S+\s+)?set|delete\s+from)\b`)

// Writes reports whether a statement changes rows. Outside of a transaction it
// then commits.
func Writes(query string) bool {
	for strings.HasPrefix(query, "--") { // River names its statements in a comment.
		_, query, _ = strings.Cut(query, "\n")
		query = strings.TrimSpace(query)
	}
	query = strings.TrimSpace(query)
	switch verb := strings.ToUpper(query[:min(len(query), 6)]); verb {
	case "INSERT", "UPDATE", "DELETE":
		return true
	default:
		return strings.HasPrefix(verb, "WITH") && writing.MatchString(query)
	}
}

// callers is where a commit was asked for.
type callers [48]uintptr

// name is the function whose commit this is: of the pipeline or the pages the
// one that asked the store, of the store itself the one that was asked, and of
// River what it was doing.
func (h *hooks) name() string {
	var at callers
	n := runtime.Callers(4, at[:]) // Without Callers, name, commit and its caller.
	if known, ok := h.names.Load(at); ok {
		return known.(string)
	}
	name := nameOf(at[:n])
	h.names.Store(at, name)
	return name
}

func nameOf(callers []uintptr) string {
	frames, inStore, other := runtime.CallersFrames(callers), "", "other"
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		switch f := frame.Function; {
		case strings.HasPrefix(f, "rollcall/store.(*stepped"), strings.HasPrefix(f, "rollcall/store.(*Store).InTx"),
			strings.HasPrefix(f, "rollcall/internal/pipeline.(*Pipeline).inTx"):
		case strings.HasPrefix(f, "rollcall/store."):
			inStore = f
		case inStore != "":
			return shortName(inStore)
		case strings.HasPrefix(f, "rollcall/"):
			return shortName(f)
		case other == "other" && strings.HasPrefix(f, "github.com/riverqueue/river") && !strings.Contains(f, "/river/riverdriver"):
			other = "river." + shortName(f)
		}
	}
	if inStore != "" {
		return shortName(inStore)
	}
	return other
}

// shortName is a function's name without its package, its pointer, its types
// and the closures in it: settler.writePage.
func shortName(function string) string {
	function = function[strings.LastIndex(function, "/")+1:]
	_, function, _ = strings.Cut(function, ".")
	function, _, _ = strings.Cut(function, ".func")
	function, _, _ = strings.Cut(function, "[")
	return strings.TrimSuffix(strings.NewReplacer("(*", "", ")", "").Replace(function), "-fm")
}
