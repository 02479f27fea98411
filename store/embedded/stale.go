package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// takeOver puts in order what an earlier owner left: it ends a server that still runs, and makes its pid file harmless.
//
// The pid file is never removed, since it names the shared memory by which a new server finds out that back ends of
// the old one still run. A new server refuses when the pid in it is alive, which may by now be anybody's; but it
// ignores the pid of its own parent, so ours is put there.
func (f folder) takeOver(ctx context.Context) error {
	path := filepath.Join(f.data, "postmaster.pid")
	text, err := os.ReadFile(path) //nolint:gosec // The folder is a setting.
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pid file of the database: %w", err)
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err == nil && f.runsServer(ctx, pid) {
		if err := endProcess(ctx, pid, func() bool { return f.runsServer(ctx, pid) }); err != nil {
			return err
		}
		return f.takeOver(ctx) // Ended by force, it may have left its files.
	}
	if len(bytes.TrimSpace(text)) == 0 { // A crash while it was made; it names no memory, and the server won't have it.
		return os.Remove(path)
	}
	// Written in place, so that it stays the server's file.
	mine := strconv.Itoa(os.Getpid()) + "\n" + rest
	if err := os.WriteFile(path, []byte(mine), 0o600); err != nil { //nolint:gosec // The folder is a setting.
		return fmt.Errorf("pid file of the database: %w", err)
	}
	// The socket has a pid file too, which names no memory.
	err = os.Remove(filepath.Join(f.run, ".s.PGSQL."+port+".lock"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lock of the database's socket: %w", err)
	}
	return nil
}

// endProcess asks a server that isn't our child to shut down, at last without ceremony.
func endProcess(ctx context.Context, pid int, runs func() bool) error {
	for _, step := range []struct {
		signal   syscall.Signal
		patience time.Duration
	}{{syscall.SIGINT, 30 * time.Second}, {syscall.SIGQUIT, 10 * time.Second}} {
		if err := syscall.Kill(pid, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end the earlier database server %d: %w", pid, err)
		}
		if waitUntil(ctx, step.patience, func() bool { return !runs() }) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("end the earlier database server %d: %w", pid, err)
		}
	}
	return fmt.Errorf("%w: an earlier database server, process %d, doesn't end", ErrInUse, pid)
}

// waitUntil tells whether the condition came true in time.
func waitUntil(ctx context.Context, patience time.Duration, condition func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if condition() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// runsServer tells whether pid is a live server of this folder, not a zombie and not a stranger with a reused pid.
func (f folder) runsServer(ctx context.Context, pid int) bool {
	if pid <= 1 || pid == os.Getpid() {
		return false
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return f.runsServerProc(pid)
	}
	return f.runsServerPS(ctx, pid)
}

// runsServerProc asks Linux's /proc. A server's working folder is its data.
func (f folder) runsServerProc(pid int) bool {
	proc := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(filepath.Join(proc, "stat")) //nolint:gosec // The path is made from a number.
	if err != nil {
		return false
	}
	// "pid (name) state ...", where the name may hold anything.
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	if len(state) == 0 || state[0] == 'Z' || state[0] == 'X' {
		return false
	}
	cwd, err := os.Stat(filepath.Join(proc, "cwd"))
	if err != nil {
		return false
	}
	data, err := os.Stat(f.data)
	return err == nil && os.SameFile(cwd, data)
}

// runsServerPS asks ps. A server's command line names its data folder.
func (f folder) runsServerPS(ctx context.Context, pid int) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-ww", "-o", "stat=", "-o", "command=", "-p", strconv.Itoa(pid)).Output() //nolint:gosec // The argument is a number.
	if err != nil {
		return false
	}
	words := strings.Fields(string(out))
	return len(words) > 1 && !strings.HasPrefix(words[0], "Z") &&
		filepath.Base(words[1]) == "postgres" && strings.Contains(string(out), f.data)
}

// serving tells whether the pid file says that server pid accepts connections.
func (f folder) serving(pid int) bool {
	text, err := os.ReadFile(filepath.Join(f.data, "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines[0] == strconv.Itoa(pid) && slices.Contains(lines[1:], "ready")
}
