package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rollcall/store"
)

// clockTick is the unit of CPU times in /proc, the same on every Linux.
const clockTick = 10 * time.Millisecond

// procStat is what /proc tells of one process; all zero where there is no such process, or no /proc.
type procStat struct {
	parent   int
	alive    bool
	own      time.Duration
	children time.Duration // Of those that have ended.
}

func readProc(pid int) (procStat, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if gone(err) {
		return procStat{}, nil // It has ended, or this is no Linux.
	}
	if err != nil {
		return procStat{}, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	// The name, in brackets, may hold anything; the third field follows it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return procStat{}, fmt.Errorf("CPU time of process %d: %q", pid, text)
	}
	ticks := make([]time.Duration, 4)
	for i := range ticks {
		n, err := strconv.ParseInt(fields[11+i], 10, 64)
		if err != nil {
			return procStat{}, fmt.Errorf("CPU time of process %d: %w", pid, err)
		}
		ticks[i] = time.Duration(n) * clockTick
	}
	parent, err := strconv.Atoi(fields[1])
	alive := fields[0] != "Z" && fields[0] != "X" // One that died stays as a zombie until somebody has waited for it.
	return procStat{parent: parent, alive: alive, own: ticks[0] + ticks[1], children: ticks[2] + ticks[3]}, err
}

// readServer is readProc of a process that must live: what has died would seem to use nothing.
func readServer(pid int) (procStat, error) {
	stat, err := readProc(pid)
	if err == nil && !stat.alive {
		err = fmt.Errorf("CPU time of process %d: it has ended, or this system has no /proc", pid)
	}
	return stat, err
}

// gone tells that there is no such process, or none any more: one may end between opening its file and reading it.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// memory is how many bytes of memory a process has now, and had at most.
type memory struct{ now, peak int64 }

// readMemory is an error for a process that has ended.
func readMemory(pid int) (memory, error) {
	var m memory
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return m, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(text)) {
		for name, at := range map[string]*int64{"VmRSS:": &m.now, "VmHWM:": &m.peak} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
				if err != nil {
					return m, fmt.Errorf("memory of process %d: %w", pid, err)
				}
				*at = n << 10
			}
		}
	}
	if m.now == 0 || m.peak == 0 {
		return m, fmt.Errorf("memory of process %d: it has ended", pid)
	}
	return m, nil
}

// meter reads CPU times: of the measured processes, of all of Postgres, and of this process, which makes the load.
type meter struct {
	servers    []int
	postmaster int
}

// newMeter finds the server behind the store. One that is shared counts with all that others do on it.
func newMeter(ctx context.Context, s *store.Store, servers ...*benchProcess) (*meter, error) {
	var backend int
	if err := s.SQL().QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return nil, fmt.Errorf("find the database's processes: %w", err)
	}
	stat, err := readProc(backend)
	m := &meter{postmaster: stat.parent}
	for _, p := range servers {
		m.servers = append(m.servers, p.pid)
	}
	return m, err
}

func (m *meter) read() (usage, error) {
	var servers time.Duration
	for _, pid := range m.servers {
		server, err := readServer(pid)
		if err != nil {
			return usage{}, err
		}
		servers += server.own
	}
	load, err := readProc(os.Getpid())
	if err != nil {
		return usage{}, err
	}
	postgres, err := m.readPostgres()
	return usage{server: servers, postgres: postgres, load: load.own}, err
}

// readPostgres adds up the postmaster, its processes, and those that have ended.
func (m *meter) readPostgres() (time.Duration, error) {
	if m.postmaster == 0 {
		return 0, nil
	}
	postmaster, err := readProc(m.postmaster)
	if err != nil {
		return 0, err
	}
	sum := postmaster.own + postmaster.children
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, fmt.Errorf("look at the processes: %w", err)
	}
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue // No process.
		}
		stat, err := readProc(pid)
		if err != nil {
			return 0, err
		}
		if stat.parent == m.postmaster {
			sum += stat.own
		}
	}
	return sum, nil
}
