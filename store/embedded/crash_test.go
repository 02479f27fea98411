package embedded

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

func pidOf(a *application) string { return strconv.Itoa(a.cmd.Process.Pid) }

func uidText(a account) string { return strconv.FormatUint(uint64(a.uid), 10) }

// listing is every file below dir with its size and time of change.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			list = append(list, fmt.Sprint(path, info.Size(), info.ModTime()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestKilledApp(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	app := startApp(t, dir, nil)
	write(t, app.dsn)
	_ = app.signal(syscall.SIGKILL)
	next := startApp(t, dir, nil) // At once, while the old server may still run.
	wantRow(t, next.dsn)
	if running(app.server) {
		t.Errorf("the server %d of the killed owner still runs beside %d", app.server, next.server)
	}
}

func TestServerEndsWithKilledApp(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process that its parent is gone")
	}
	app := startApp(t, newDir(t), nil)
	_ = app.signal(syscall.SIGKILL)
	eventually(t, "the server is gone", func() bool { return !running(app.server) })
}

// TestOrphan makes sure that a server left over where the system doesn't end it with its owner is taken over.
func TestOrphan(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	server := startServer(t, dir)
	write(t, server.DSN())
	bin := server.run.bin.Dir
	stopServer(t, server)

	f := mustLayout(t, dir)
	orphan := exec.Command(filepath.Join(bin, "postgres"), "-D", f.data)
	orphan.Dir, orphan.Env, orphan.SysProcAttr = "/", childEnv(), serverAccount(t, dir).process()
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the orphan serves", func() bool { return f.serving(orphan.Process.Pid) })
	conn, err := pgx.Connect(t.Context(), f.dsn(appName)) // It has a client as well.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })

	next := startServer(t, dir)
	wantRow(t, next.DSN())
	if err := orphan.Wait(); err != nil {
		t.Errorf("the orphan didn't end in order: %v", err)
	}
}

func TestKilledPostmasterIsStartedAgain(t *testing.T) {
	t.Parallel()
	server := startServer(t, newDir(t))
	write(t, server.DSN())
	for range 2 {
		old := server.PID()
		kill(t, old)
		eventually(t, "a new server answers", func() bool {
			if server.PID() == old {
				return false
			}
			conn, err := pgx.Connect(t.Context(), server.DSN())
			return err == nil && conn.Close(t.Context()) == nil
		})
	}
	wantRow(t, server.DSN())
}

func TestKilledAppAndPostmaster(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	app := startApp(t, dir, nil)
	write(t, app.dsn)
	kill(t, app.cmd.Process.Pid)
	kill(t, app.server)
	_ = app.wait()
	next := startApp(t, dir, nil)
	wantRow(t, next.dsn)
}

// TestKilledWithBusyBackEnd kills both while a query runs that notices nothing; its memory must not be shared by a new server.
func TestKilledWithBusyBackEnd(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	app := startApp(t, dir, nil)
	write(t, app.dsn)
	conn, err := pgx.Connect(t.Context(), app.dsn)
	if err != nil {
		t.Fatal(err)
	}
	pid := int(conn.PgConn().PID())
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		_, _ = conn.Exec(t.Context(), "SELECT count(*) FROM generate_series(1, 30000000)") // Its server dies.
	}()
	eventually(t, "the query runs", func() bool {
		return query(t, app.dsn, "SELECT count(*)::text FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%generate_series(1,%' AND pid <> pg_backend_pid()") == "1"
	})
	kill(t, app.cmd.Process.Pid)
	kill(t, app.server)
	_ = app.wait()
	next := startApp(t, dir, nil)
	wantRow(t, next.dsn)
	if running(pid) {
		t.Error("a back end of the killed server runs beside the new one")
	}
	<-busy
}

func TestReusedPID(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		first func(t *testing.T, dir string) string // The first line of the pid file.
	}{
		{"a stranger of the same user", func(t *testing.T, dir string) string {
			t.Helper()
			stranger := exec.Command("sleep", "600")
			stranger.SysProcAttr = serverAccount(t, dir).process()
			if err := stranger.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if !running(stranger.Process.Pid) {
					t.Error("the stranger was killed")
				}
				_ = stranger.Process.Kill()
				_ = stranger.Wait()
			})
			return strconv.Itoa(stranger.Process.Pid)
		}},
		{"a zombie", func(t *testing.T, dir string) string {
			t.Helper()
			zombie := exec.Command("true")
			zombie.SysProcAttr = serverAccount(t, dir).process()
			if err := zombie.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = zombie.Wait() })
			eventually(t, "it is a zombie", func() bool { return !running(zombie.Process.Pid) })
			return strconv.Itoa(zombie.Process.Pid)
		}},
		{"this process", func(*testing.T, string) string { return strconv.Itoa(os.Getpid()) }},
		{"nobody", func(*testing.T, string) string { return "4194999" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			app := startApp(t, dir, nil)
			write(t, app.dsn)
			path := filepath.Join(dir, "data", "postmaster.pid")
			socket := filepath.Join(dir, "run", ".s.PGSQL."+port+".lock")
			kill(t, app.cmd.Process.Pid)
			kill(t, app.server)
			_ = app.wait()
			for _, path := range []string{path, socket} {
				replaceFirstLine(t, path, tt.first(t, dir))
			}
			wantRow(t, startServer(t, dir).DSN())
		})
	}
}

func replaceFirstLine(t *testing.T, path, line string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(path, []byte(line+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEmptyPIDFile(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	server := startServer(t, dir)
	write(t, server.DSN())
	stopServer(t, server)
	if err := os.WriteFile(filepath.Join(dir, "data", "postmaster.pid"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantRow(t, startServer(t, dir).DSN())
}

func TestInterruptedInitdb(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	f := mustLayout(t, dir)
	app := launch(t, dir, nil)
	eventually(t, "initdb works", func() bool {
		_, err := os.Stat(filepath.Join(f.init, "PG_VERSION"))
		return err == nil
	})
	kill(t, app.cmd.Process.Pid)
	_ = app.wait()
	if _, err := os.Stat(f.data); !os.IsNotExist(err) {
		t.Fatalf("half a database looks complete: %v", err)
	}
	next := startApp(t, dir, nil) // At once, while the old initdb may still run.
	write(t, next.dsn)
	if _, err := os.Stat(f.init); !os.IsNotExist(err) {
		t.Errorf("the half database is still there: %v", err)
	}
}

func TestOrderlyEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*application) error{
		"SIGTERM": func(a *application) error { return syscall.Kill(a.cmd.Process.Pid, syscall.SIGTERM) },
		// A terminal sends the signal to the whole process group.
		"Ctrl-C": func(a *application) error { return syscall.Kill(-a.cmd.Process.Pid, syscall.SIGINT) },
	}
	for name, send := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			app := startApp(t, dir, nil)
			write(t, app.dsn)
			if err := send(app); err != nil {
				t.Fatal(err)
			}
			if got := app.line(); got != "stopped" {
				t.Errorf("got %q, want stopped: %s", got, app.errOut)
			}
			if err := app.wait(); err != nil {
				t.Errorf("%v: %s", err, app.errOut)
			}
			if running(app.server) {
				t.Error("the server outlived its owner")
			}
			log, err := os.ReadFile(filepath.Join(dir, "postgres.log"))
			if err != nil || !strings.Contains(string(log), "database system is shut down") {
				t.Errorf("no orderly shutdown in the log: %v\n%s", err, log)
			}
			next := startApp(t, dir, nil)
			wantRow(t, next.dsn)
			if log, _ := os.ReadFile(filepath.Join(dir, "postgres.log")); strings.Contains(string(log), "not properly shut down") {
				t.Errorf("the next start had to recover:\n%s", log)
			}
		})
	}
}

func TestServerThatDiesAgainAndAgainIsGivenUp(t *testing.T) {
	t.Parallel()
	server, err := Start(t.Context(), Config{Dir: newDir(t), pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopServer(t, server) })
	for {
		select {
		case <-server.Done():
			if err := server.Err(); err == nil || !strings.Contains(err.Error(), "times in a row") {
				t.Errorf("got %v", err)
			}
			return
		default:
		}
		if pid := server.PID(); pid != 0 && running(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		waitUntil(t.Context(), 20*time.Millisecond, func() bool { return false })
	}
}

func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	log, err := openLog(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	log.limit = 100
	for i := range 50 {
		if _, err := fmt.Fprintf(log, "line number %d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	var sizes []bool
	for _, name := range []string{path, path + ".1"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size() > 0 && info.Size() <= 100)
	}
	if !cmp.Equal(sizes, []bool{true, true}) {
		t.Errorf("got %v", sizes)
	}
	if text, _ := os.ReadFile(path); !strings.Contains(string(text), "line number 49") {
		t.Errorf("the end is missing: %s", text)
	}
}
