// Package storetest gives tests a real Postgres: a fresh, migrated database a
// test, made from a template. The server is the one DATABASE_URL names or,
// without it, a private one that lives as long as the test binary.
package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"rollcall/migrations"
	"rollcall/store"
	"rollcall/store/embedded"
)

// server is the Postgres under test and the migrated template in it.
type server struct {
	dsn      string
	template string
	how      string // How the template is copied.
	stop     func(context.Context) error
}

// shared starts the server on first use, once a test binary.
//
//nolint:gochecknoglobals // One server a test binary; it never changes.
var shared = sync.OnceValues(start)

// started says whether a test asked for the server at all.
//
//nolint:gochecknoglobals // Set once, by the one start.
var started atomic.Bool

// Runner is *testing.M, or what wraps one.
type Runner interface{ Run() int }

// Main runs a package's tests, stops the server and fails on a goroutine that
// outlived them. Call it from TestMain.
func Main(m Runner) {
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "storetest:", err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "storetest:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// New returns a store on a fresh, migrated database that goes with the test.
func New(tb testing.TB) *store.Store {
	tb.Helper()
	return Open(tb, DSN(tb))
}

// Open returns a further store on an existing database, as a second process
// would have; it is closed with the test.
func Open(tb testing.TB, dsn string) *store.Store {
	tb.Helper()
	return OpenWith(tb, dsn, 12)
}

// OpenWith is Open with so many connections at most. Each costs its server as
// much as a small test.
func OpenWith(tb testing.TB, dsn string, conns int32) *store.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), store.Config{DSN: dsn, MaxConns: conns})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// Eyes returns what a test looks at a database with, and changes or holds it
// with, as psql would: connections that no process of Rollcall counts or takes.
func Eyes(tb testing.TB, dsn string) *sql.DB {
	tb.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.RuntimeParams["timezone"], cfg.RuntimeParams["application_name"] = "UTC", "the test"
	db := sql.OpenDB(stdlib.GetConnector(*cfg))
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// DSN returns the address of a fresh, migrated database.
func DSN(tb testing.TB) string {
	tb.Helper()
	srv, err := shared()
	if err != nil {
		tb.Fatal(err)
	}
	return create(tb, srv, "TEMPLATE "+srv.template+srv.how)
}

// EmptyDSN returns the address of a fresh database without any table.
func EmptyDSN(tb testing.TB) string {
	tb.Helper()
	srv, err := shared()
	if err != nil {
		tb.Fatal(err)
	}
	return create(tb, srv, "TEMPLATE template0 ENCODING 'UTF8'")
}

func create(tb testing.TB, srv server, how string) string {
	tb.Helper()
	name := "rollcall_test_" + token()
	if err := admin(tb.Context(), srv.dsn, "CREATE DATABASE "+name+" "+how); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := admin(context.Background(), srv.dsn, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			tb.Log(err)
		}
	})
	return withDatabase(srv.dsn, name)
}

func start() (server, error) {
	started.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	srv, err := locate(ctx)
	if err != nil {
		return server{}, err
	}
	srv.template = "rollcall_template_" + token()
	if err := admin(ctx, srv.dsn, "CREATE DATABASE "+srv.template+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return server{}, errors.Join(err, srv.stop(ctx))
	}
	if err := migrations.Up(ctx, withDatabase(srv.dsn, srv.template)); err != nil {
		return server{}, errors.Join(err, srv.stop(ctx))
	}
	return srv, nil
}

// locate finds the server that DATABASE_URL names, or starts one.
func locate(ctx context.Context) (server, error) {
	//nolint:forbidigo // Tests take the server the caller names, as `make test` documents.
	if dsn := os.Getenv("DATABASE_URL"); dsn != "" {
		return server{dsn: dsn, stop: func(context.Context) error { return nil }}, nil
	}
	sweep(base())
	dir, err := os.MkdirTemp(base(), prefix)
	if err != nil {
		return server{}, fmt.Errorf("make a folder for Postgres: %w", err)
	}
	srv, err := embedded.Start(ctx, embedded.Config{
		Dir: dir,
		// Nothing here outlives the tests, so nothing needs to reach the disk. Tests that run side by side, some with
		// three processes, need more connections than a server has by itself.
		Settings: map[string]string{
			"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "400",
			"wal_level": "minimal", "max_wal_senders": "0", "max_wal_size": "256MB",
		},
		Logger: slog.New(slog.DiscardHandler),
		Now:    time.Now, //nolint:forbidigo // The server's supervisor runs on real time.
	})
	if err != nil {
		return server{}, errors.Join(err, os.RemoveAll(dir))
	}
	end := func(ctx context.Context) error { return errors.Join(srv.Stop(ctx), os.RemoveAll(dir)) }
	how, err := copying(ctx, srv.DSN())
	if err != nil {
		return server{}, errors.Join(err, end(ctx))
	}
	return server{dsn: srv.DSN(), how: how, stop: end}, nil
}

// copying is how a private server copies a database: as files, which is cheaper
// than a journal of their pages where nothing has to reach a disk. Postgres 14
// knows no other way and no word for it.
func copying(ctx context.Context, dsn string) (string, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", fmt.Errorf("reach the test server: %w", err)
	}
	defer conn.Close(ctx)
	var version int
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return "", fmt.Errorf("version of the test server: %w", err)
	}
	if version < 150000 {
		return "", nil
	}
	return " STRATEGY FILE_COPY", nil
}

// prefix is how the folders of private servers are called.
const prefix = "rollcall-test-"

// sweep takes away what test binaries that were killed have left: in memory
// it would be missed. A young folder may be one whose server is about to start.
func sweep(dir string) {
	folders, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return // Only for a pattern that is none.
	}
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil || time.Since(info.ModTime()) < 10*time.Minute {
			continue
		}
		if _, running := embedded.Find(folder); !running {
			_ = os.RemoveAll(folder) // Somebody else's stays; that harms no test.
		}
	}
}

// stop drops the template and ends a private server; a server that was never
// asked for is not started just to be stopped.
func stop() error {
	if !started.Load() {
		return nil
	}
	srv, err := shared()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dropped := admin(ctx, srv.dsn, "DROP DATABASE IF EXISTS "+srv.template+" WITH (FORCE)")
	return errors.Join(dropped, srv.stop(ctx))
}

// admin runs one statement on the server's maintenance database.
func admin(ctx context.Context, dsn, statement string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("reach the test server: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// withDatabase is the address with another database's name in it.
func withDatabase(dsn, name string) string {
	if !strings.Contains(dsn, "://") {
		return dsn + " dbname=" + name
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	u.Path = "/" + name
	return u.String()
}

func token() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
