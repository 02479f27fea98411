package embedded

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// helperDir tells the test binary to be an application that owns this folder, instead of running tests.
const helperDir = "ROLLCALL_EMBEDDED_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		os.Exit(helper(dir))
	}
	// These tests wait for Postgres and its disk; more of them than there are cores may wait at a time. -parallel still wins.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// helper starts the server, says so, and stops it in order when it is told to.
func helper(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := Start(ctx, Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready", server.PID(), server.DSN())
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := server.Stop(end); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("stopped")
	return 0
}

// application is a helper process.
type application struct {
	cmd    *exec.Cmd
	out    *bufio.Scanner
	errOut *tail
	server int    // The pid of its server.
	dsn    string // The address of its database.
	waited sync.Once
	err    error
}

// launch starts a helper on dir, as another user when uid isn't 0, without waiting for anything.
func launch(t *testing.T, dir string, as *account) *application {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	app := &application{cmd: exec.Command(binary), errOut: new(tail)}
	app.cmd.Env = append(os.Environ(), helperDir+"="+dir)
	app.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if as != nil {
		app.cmd.Path = passable(t, binary, filepath.Dir(dir))
		app.cmd.Dir = "/"
		app.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid}
	}
	out, err := app.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	app.out, app.cmd.Stderr = bufio.NewScanner(out), app.errOut
	if err := app.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.signal(syscall.SIGTERM) })
	return app
}

// startApp starts a helper and waits until its database answers.
func startApp(t *testing.T, dir string, as *account) *application {
	t.Helper()
	app := launch(t, dir, as)
	if line := app.line(); line != "" {
		if _, err := fmt.Sscanf(line, "ready %d %s", &app.server, &app.dsn); err == nil {
			return app
		}
	}
	_ = app.wait()
	t.Fatalf("helper: %v: %s", app.err, app.errOut)
	return nil
}

func (a *application) line() string {
	a.out.Scan()
	return a.out.Text()
}

func (a *application) wait() error {
	a.waited.Do(func() {
		for a.out.Scan() { // Wait closes the pipe, so it is read to its end first.
			continue
		}
		a.err = a.cmd.Wait()
	})
	return a.err
}

// signal sends a signal and waits for the end of the helper.
func (a *application) signal(sig syscall.Signal) error {
	_ = a.cmd.Process.Signal(sig)
	return a.wait()
}

// passable copies the test binary to where others may run it.
func passable(t *testing.T, binary, dir string) string {
	t.Helper()
	in, err := os.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(dir, "helper"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Name()
}

// newDir is a place for a database folder that other users may pass, with a short path.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rc") //nolint:usetesting // Others may not pass t.TempDir, and its path is long.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "pg")
}

// startServer starts a server in this process and stops it after the test.
func startServer(t *testing.T, dir string) *Server {
	t.Helper()
	server, err := Start(t.Context(), Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopServer(t, server) })
	return server
}

func stopServer(t *testing.T, server *Server) {
	t.Helper()
	if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// query runs one statement and returns its first value.
func query(t *testing.T, dsn, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var value string
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

const (
	writeRow = "WITH made AS (INSERT INTO kept VALUES ('still here') RETURNING what) SELECT what FROM made"
	readRow  = "SELECT string_agg(what, ',') FROM kept"
)

// write stores a row that must survive.
func write(t *testing.T, dsn string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept (what text)"); err != nil {
		t.Fatal(err)
	}
	if got := query(t, dsn, writeRow); got != "still here" {
		t.Fatalf("got %q", got)
	}
}

// wantRow checks that the row of write is there, once.
func wantRow(t *testing.T, dsn string) {
	t.Helper()
	if got, want := query(t, dsn, readRow), "still here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// eventually waits for what another process does.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if !waitUntil(t.Context(), 30*time.Second, condition) {
		t.Fatalf("still not: %s", what)
	}
}

// mustLayout names the parts of a folder.
func mustLayout(t *testing.T, dir string) folder {
	t.Helper()
	f, err := layout(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// serverAccount is whom the server of this process runs as.
func serverAccount(t *testing.T, dir string) account {
	t.Helper()
	a, err := mustLayout(t, dir).chooseAccount()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// nobody is another user, or a skip when this process can't become one.
func nobody(t *testing.T) *account {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process as another user")
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("there is no user nobody")
	}
	a, err := accountOf(u)
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

// running tells whether a process lives.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if os.IsNotExist(err) {
		if _, err := os.Stat("/proc/self/stat"); err == nil {
			return false
		}
		return syscall.Kill(pid, 0) == nil
	}
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
