package embedded

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	server := startServer(t, dir)
	write(t, server.DSN())
	if server.Version == "" || !strings.HasPrefix(query(t, server.DSN(), "SHOW server_version"), server.Version) {
		t.Errorf("version %q isn't the server's", server.Version)
	}
	if dsn, ok := Find(dir); !ok || dsn != server.DSN() {
		t.Errorf("Find: got %q, %v", dsn, ok)
	}
	pid := server.PID()
	stopServer(t, server)
	if running(pid) {
		t.Error("the server still runs after Stop")
	}
	if _, ok := Find(dir); ok {
		t.Error("Find: got a stopped server")
	}
	wantRow(t, startServer(t, dir).DSN())
}

func TestPrivate(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	dsn := startServer(t, dir).DSN()
	for setting, want := range map[string]string{
		"listen_addresses":        "",
		"unix_socket_permissions": "0700",
		"server_encoding":         "UTF8",
		"TimeZone":                "UTC",
		"max_connections":         "100",
		"data_checksums":          query(t, dsn, "SHOW data_checksums"), // Only that it can be asked.
	} {
		if got := query(t, dsn, "SHOW "+setting); got != want {
			t.Errorf("%s: got %q, want %q", setting, got, want)
		}
	}
	f := mustLayout(t, dir)
	for path, want := range map[string]os.FileMode{f.run: 0o700, f.data: 0o700, f.lock: 0o600, f.log: 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v, want mode %v", path, info, err, want)
		}
	}
	if got, want := query(t, dsn, "SELECT upper('é')"), "É"; got != want && query(t, dsn, "SHOW lc_ctype") != "C" {
		t.Errorf("letters beyond ASCII: got %q, want %q", got, want)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	server, err := Start(t.Context(), Config{Dir: dir, Settings: map[string]string{"max_connections": "37", "search_path": `"it's", public`}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopServer(t, server) })
	for setting, want := range map[string]string{"max_connections": "37", "search_path": `"it's", public`} {
		if got := query(t, server.DSN(), "SHOW "+setting); got != want {
			t.Errorf("%s: got %q, want %q", setting, got, want)
		}
	}
}

// TestOperatorsSettings makes sure that an operator's change stays and wins, and that the server never opens a port
// because its configuration was replaced.
func TestOperatorsSettings(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	stopServer(t, startServer(t, dir))
	path := filepath.Join(dir, "data", "postgresql.conf")
	made, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(made, "jit = on\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	server := startServer(t, dir)
	if got := query(t, server.DSN(), "SHOW jit"); got != "on" {
		t.Errorf("jit: got %q, want on", got)
	}
	stopServer(t, server)
	if err := os.WriteFile(path, []byte("# replaced\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := query(t, startServer(t, dir).DSN(), "SHOW listen_addresses"); got != "" {
		t.Errorf("listens on %q", got)
	}
}

func TestSettingThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Config{Dir: newDir(t), Settings: map[string]string{"shared_buffers": "some"}})
	if err == nil || !strings.Contains(err.Error(), "shared_buffers") {
		t.Errorf("got %v, want what the server said", err)
	}
}

func TestPathThatNeedsQuotes(t *testing.T) {
	t.Parallel()
	dir := newDir(t) + ` a'b"c?&%d`
	server := startServer(t, dir)
	if got := query(t, server.DSN(), "SELECT 'hello'"); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestSecondOwnerIsRefused(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	first := startApp(t, dir, nil)
	write(t, first.dsn)
	_, err := Start(t.Context(), Config{Dir: dir})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "belongs to the running process "+pidOf(first)) {
		t.Errorf("got %v", err)
	}
	wantRow(t, first.dsn) // The first isn't disturbed.
	if dsn, ok := Find(dir); !ok || dsn != first.dsn {
		t.Errorf("Find: got %q, %v", dsn, ok)
	}
}

func TestOtherMajorIsRefusedAndNeverWiped(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"13\n":  "holds data of PostgreSQL 13",
		"9.6\n": "holds data of PostgreSQL 9",
		"new\n": "has version",
	} {
		t.Run(strings.TrimSpace(version), func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			stopServer(t, startServer(t, dir))
			data := filepath.Join(dir, "data")
			if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(version), 0o600); err != nil {
				t.Fatal(err)
			}
			before := listing(t, data)
			_, err := Start(t.Context(), Config{Dir: dir})
			if !errors.Is(err, ErrOtherVersion) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(before, listing(t, data)); diff != "" {
				t.Errorf("the folder was changed:\n%s", diff)
			}
		})
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	mine := filepath.Join(dir, "data", "thesis.txt")
	if err := os.MkdirAll(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		owner := serverAccount(t, newDir(t))
		if err := os.Chown(filepath.Dir(mine), int(owner.uid), int(owner.gid)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Start(t.Context(), Config{Dir: dir}); !errors.Is(err, ErrFolder) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "years of work" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestLongPathIsRefused(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Config{Dir: newDir(t) + strings.Repeat("x", 100)})
	if !errors.Is(err, ErrFolder) || !strings.Contains(err.Error(), "shorter path") {
		t.Errorf("got %v", err)
	}
}

func TestPathWithCommaIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := Start(t.Context(), Config{Dir: newDir(t) + ",b"}); !errors.Is(err, ErrFolder) {
		t.Errorf("got %v", err)
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Config{Dir: newDir(t), BinDir: t.TempDir()})
	if !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v", err)
	}
}

func TestServerThatIsTooOld(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for name, text := range map[string]string{"initdb": "", "postgres": "#!/bin/sh\necho 'postgres (PostgreSQL) 13.22'\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Start(t.Context(), Config{Dir: newDir(t), BinDir: bin})
	if !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "13.22 is too old") {
		t.Errorf("got %v", err)
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := newDir(t)
	server := startServer(t, dir)
	want := serverAccount(t, dir)
	if want.uid == 0 {
		t.Fatal("the data belongs to root")
	}
	if name := query(t, server.DSN(), "SELECT pg_read_file('/proc/self/status')"); !strings.Contains(name, "Uid:\t"+uidText(want)) {
		t.Errorf("the server doesn't run as %s:\n%s", want.name, name)
	}
}

func TestRootFolderThatTheServerCantReach(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	closed := filepath.Join(newDir(t), "closed")
	if err := os.MkdirAll(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Dir: filepath.Join(closed, "a", "b")})
	if !errors.Is(err, ErrFolder) || !strings.Contains(err.Error(), "may not enter "+closed) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(closed, "a")); !os.IsNotExist(err) {
		t.Error("a refused folder was made")
	}
}

// TestRootMakesItsFolderPassable starts in a folder as os.MkdirTemp makes it.
func TestRootMakesItsFolderPassable(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, startServer(t, dir).DSN())
}

// TestNonRoot runs the application as an ordinary user, then as root on the same folder, which keeps its owner.
func TestNonRoot(t *testing.T) {
	t.Parallel()
	other := nobody(t)
	dir := newDir(t)
	if err := os.Chown(filepath.Dir(dir), int(other.uid), int(other.gid)); err != nil {
		t.Fatal(err)
	}
	app := startApp(t, dir, other)
	write(t, app.dsn) // Root may enter too.
	if err := app.signal(15); err != nil {
		t.Fatalf("%v: %s", err, app.errOut)
	}
	wantRow(t, startServer(t, dir).DSN())
	if got := serverAccount(t, dir).uid; got != other.uid {
		t.Errorf("the data belongs to %d, want %d", got, other.uid)
	}
}

// TestFolderOfAnotherUser makes sure that an ordinary user is told whose folder it is.
func TestFolderOfAnotherUser(t *testing.T) {
	t.Parallel()
	other := nobody(t)
	if u, err := user.Lookup("postgres"); err != nil || u.Uid == uidText(*other) {
		t.Skip("there is no user postgres")
	}
	dir := newDir(t)
	stopServer(t, startServer(t, dir))
	app := launch(t, dir, other)
	if err := app.wait(); err == nil || !strings.Contains(app.errOut.String(), "run Rollcall as that user or as root") {
		t.Errorf("got %v: %s", err, app.errOut)
	}
}

func TestCanceledStartLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		waitUntil(ctx, 30*time.Second, func() bool {
			_, err := os.Stat(filepath.Join(dir, "data.init", "PG_VERSION"))
			return err == nil
		})
	}()
	if _, err := Start(ctx, Config{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	write(t, startServer(t, dir).DSN())
}

func TestStopByForce(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	server, err := Start(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	write(t, server.DSN())
	conn, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	// The time is over already, so either the orderly way was quick enough or force is told.
	if err := server.Stop(over); err != nil && !strings.Contains(err.Error(), "by force") {
		t.Errorf("got %v", err)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	wantRow(t, startServer(t, dir).DSN())
}
