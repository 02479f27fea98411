package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// launcher starts the server in a folder.
type launcher struct {
	folder   folder
	bin      Binaries
	out      *serverLog
	settings map[string]string
}

// postmaster is one server process.
type postmaster struct {
	cmd    *exec.Cmd
	said   *tail
	exited chan struct{} // Closed when the process is gone and reaped.
	err    error         // How it ended; written before exited is closed.
}

// spawn starts the process. It must run on a locked thread that lives as long as the process should: where the
// system can, it shuts the server down when that thread ends, and so when this process is killed.
func (l launcher) spawn() (*postmaster, error) {
	p := &postmaster{said: new(tail), exited: make(chan struct{})}
	cmd := exec.Command(filepath.Join(l.bin.Dir, "postgres"), "-D", l.folder.data) //nolint:gosec,noctx // A known program; its life isn't a context's, stop ends it.
	cmd.Dir = l.folder.data
	cmd.Env = childEnv()
	cmd.SysProcAttr = endWithUs(l.folder.account.process())
	cmd.Stderr = io.MultiWriter(p.said, l.out)
	cmd.Stdout = cmd.Stderr
	cmd.WaitDelay = 5 * time.Second // Back ends of a killed server may hold the pipe a little longer.
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	p.cmd = cmd
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

func (p *postmaster) pid() int { return p.cmd.Process.Pid }

// stop shuts the server down: in order (connections are ended), and when ctx or half a minute is over by force.
func (p *postmaster) stop(ctx context.Context) error {
	patience, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if p.end(patience, syscall.SIGINT) {
		return nil
	}
	hurry, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if !p.end(hurry, syscall.SIGQUIT) {
		_ = p.cmd.Process.Kill() // It may just have ended.
		<-p.exited
	}
	return errors.New("the database server didn't shut down in time and was ended by force; its next start recovers")
}

// end sends a signal and tells whether the process was gone before ctx was.
func (p *postmaster) end(ctx context.Context, signal os.Signal) bool {
	_ = p.cmd.Process.Signal(signal) // It may have ended by itself.
	select {
	case <-p.exited:
		return true
	case <-ctx.Done():
		return false
	}
}

// ready waits until the server accepts connections.
func (p *postmaster) ready(ctx context.Context, f folder) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !f.serving(p.pid()) {
		select {
		case <-p.exited:
			return &startError{said: p.said.String(), err: p.err}
		case <-ctx.Done():
			return fmt.Errorf("start PostgreSQL: %w", ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// startError is a server that ended before it was ready.
type startError struct {
	said string
	err  error
}

// Error shows what the server said, which names the cause.
func (e *startError) Error() string {
	return fmt.Sprintf("PostgreSQL ended while starting (%v): %s", e.err, e.said)
}

// passing tells whether the cause goes away by itself: back ends of a killed server that haven't noticed yet, or a
// server that a killed owner had just started.
func (e *startError) passing() bool {
	return strings.Contains(e.said, "pre-existing shared memory block") ||
		strings.Contains(e.said, "lock file \"postmaster.pid\" already exists") ||
		strings.Contains(e.said, ".lock\" already exists")
}

// ensureDatabase makes the application's database in a new server.
func (f folder) ensureDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, f.dsn("postgres"))
	if err != nil {
		return fmt.Errorf("private database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // It did its work or told why not.
	var there bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", appName).Scan(&there)
	if err == nil && !there {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+appName)
	}
	if err != nil {
		return fmt.Errorf("private database: %w", err)
	}
	return nil
}
