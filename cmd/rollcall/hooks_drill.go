//go:build drill

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// hooksCompiled tells that a drill can have servers die at named steps.
const hooksCompiled = true

// rereadEvery is how old may be what is known of a file of the drill's.
const rereadEvery = 20 * time.Millisecond

// drillHooks are those of the drill whose folder the environment names, or none.
func drillHooks(now func() time.Time, env lookup) (hooks, error) {
	dir, _ := env("ROLLCALL_DRILL_DIR")
	if dir == "" {
		return hooks{now: now}, nil
	}
	seen, err := os.OpenFile(filepath.Join(dir, "seen"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // The drill names its folder.
	if err != nil {
		return hooks{}, fmt.Errorf("drill: %w", err)
	}
	d := &drilled{dir: dir, seen: seen, met: map[string]bool{}}
	for file, name := range map[*dial]string{&d.arm: "arm", &d.clock: "clock", &d.disk: "disk"} {
		file.path = filepath.Join(dir, name)
	}
	return hooks{now: d.now(now), step: d.step, fail: d.fail, wrap: d.wrap}, nil
}

// drilled is a process under a drill, which sets its dials.
type drilled struct {
	dir              string
	arm, clock, disk dial

	mu   sync.Mutex
	seen *os.File
	met  map[string]bool // The steps in seen.
}

// dial is a small file that the drill may write or remove at any time.
type dial struct {
	path string

	mu   sync.Mutex
	read time.Time
	text string
}

// value is what the file holds, "" when there is none.
func (d *dial) value() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.read) < rereadEvery {
		return d.text
	}
	d.read = time.Now()
	text, err := os.ReadFile(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.text
	}
	d.text = strings.TrimSpace(string(text))
	return d.text
}

// now is a clock that goes wrong by what its dial says.
func (d *drilled) now(right func() time.Time) func() time.Time {
	return func() time.Time {
		if wrong, err := time.ParseDuration(d.clock.value()); err == nil {
			return right().Add(wrong)
		}
		return right()
	}
}

// fail fails a share of all writes as a full disk would.
func (d *drilled) fail(write bool) error {
	if !write || rand.Float64() >= d.full() { //nolint:gosec // Nothing hangs on its being guessed.
		return nil
	}
	return &pgconn.PgError{
		Severity: "ERROR", Code: "53100",
		Message: "could not extend file: No space left on device (by the drill)",
	}
}

// full is the share of writes that fail.
func (d *drilled) full() float64 {
	if rate, err := strconv.ParseFloat(d.disk.value(), 64); err == nil {
		return rate
	}
	return 0
}

// step notes a step that is new and, at one that is armed, kills the process.
func (d *drilled) step(name string) {
	d.note(name)
	if !slices.Contains(strings.Fields(d.arm.value()), name) {
		return
	}
	d.mu.Lock() // For good: no other step is to be reached any more.
	reached := filepath.Join(d.dir, "reached")
	if err := errors.Join(os.WriteFile(reached+".new", []byte(name), 0o600), os.Rename(reached+".new", reached), os.Remove(d.arm.path)); err != nil {
		fmt.Fprintln(os.Stderr, "rollcall: drill:", err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		fmt.Fprintln(os.Stderr, "rollcall: drill:", err)
	}
	select {} // The signal is on its way.
}

func (d *drilled) note(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.met[name] {
		return
	}
	d.met[name] = true
	if _, err := d.seen.WriteString(name + "\n"); err != nil {
		fmt.Fprintln(os.Stderr, "rollcall: drill:", err)
	}
}

// wrap makes steps of the vendor's calls.
func (d *drilled) wrap(inner http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		name := "call." + callName(r)
		d.step(name + ".before")
		answer, err := inner.RoundTrip(r)
		d.step(name + ".after")
		return answer, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// callName is a call as the contract names it, with {id} for an id: GET /v1/batch/{id}.
func callName(r *http.Request) string {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	for i := 3; i < len(parts); i += 2 {
		if parts[i] != "jobs" {
			parts[i] = "{id}"
		}
	}
	return r.Method + " " + strings.Join(parts, "/")
}
