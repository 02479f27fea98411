package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// readyWithin is how long a process of the drill may take to be ready, a database that recovers included.
	readyWithin = 90 * time.Second
	// termWithin is how long a process that was told to end may take before it counts as stuck and is killed.
	termWithin = 40 * time.Second
	readyTick  = 25 * time.Millisecond
	// restartAfter is how long a keeper of processes waits before it starts one again.
	restartAfter = 100 * time.Millisecond
)

// spawner starts processes from one thread that lives as long as the drill: the kernel ends them with that thread.
type spawner struct {
	asks chan func()
	once sync.Once
}

func newSpawner() *spawner {
	s := &spawner{asks: make(chan func())}
	go func() {
		runtime.LockOSThread() // Ending locked ends the thread too.
		for do := range s.asks {
			do()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	s.asks <- func() { started <- cmd.Start() }
	return <-started
}

// close ends the thread, and with it what still runs.
func (s *spawner) close() { s.once.Do(func() { close(s.asks) }) }

// death is how a process ended.
type death struct {
	at     time.Time
	status string // As the system tells it.
	doom   string // What the drill did to it: kill, term or "" when it ended by itself.
	step   string // The named step it killed itself at.
	clean  bool   // Exit code 0.
	ready  bool   // It had been ready.
}

// child is a process of the drill. It is started again whenever it ends, until halt.
type child struct {
	name    string
	program string
	args    []string
	env     []string
	url     string // Where it is ready.
	probe   string // The path that tells so.
	hooks   string // The folder of its hooks; "" for none.
	spawner *spawner
	log     *os.File
	now     func() time.Time
	died    func(*child, death)
	ready   func(*child, time.Time)

	mu     sync.Mutex
	cmd    *exec.Cmd
	done   chan struct{} // Closed when the present process has ended.
	up     chan struct{} // Closed when the present process is ready.
	doom   string
	gone   bool // The present process has ended, and the next isn't there yet.
	halted bool
	ended  chan struct{} // Closed when it is not started again.
}

// begin starts the process and sees to it until halt.
func (c *child) begin(ctx context.Context) error {
	c.ended = make(chan struct{})
	if err := c.spawn(ctx); err != nil {
		close(c.ended)
		return err
	}
	go func() {
		defer close(c.ended)
		for c.attend(ctx) {
		}
	}()
	return nil
}

// attend waits for the end of the process, tells of it, and starts the next; false when there is none.
func (c *child) attend(ctx context.Context) bool {
	err := c.cmd.Wait() // Only this goroutine and spawn, before it, change cmd.
	c.mu.Lock()
	how := death{at: c.now(), doom: c.doom, clean: err == nil, status: c.cmd.ProcessState.String()}
	c.doom = ""
	select {
	case <-c.up:
		how.ready = true
	default:
	}
	done := c.done
	c.gone = true
	halted := c.halted
	c.mu.Unlock()
	how.step = c.takeReached()
	c.died(c, how)
	close(done)
	if halted || !pauseFor(ctx, restartAfter) || c.isHalted() {
		return false
	}
	if err := c.spawn(ctx); err != nil {
		c.died(c, death{at: c.now(), status: err.Error()})
		return false
	}
	return true
}

func (c *child) isHalted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halted
}

func (c *child) spawn(ctx context.Context) error {
	cmd := exec.Command(c.program, c.args...) //nolint:gosec,noctx // This program itself; halt ends it, not a context.
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = c.env, c.log, c.log, ownGroup()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.spawner.start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	c.cmd, c.done, c.up, c.gone = cmd, make(chan struct{}), make(chan struct{}), false
	go c.awaitReady(ctx, c.done, c.up)
	return nil
}

// awaitReady asks until the process answers that it is ready, or has ended.
func (c *child) awaitReady(ctx context.Context, done <-chan struct{}, up chan struct{}) {
	tick := time.NewTicker(readyTick)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if answersOK(ctx, c.url+c.probe) {
			c.ready(c, c.now())
			close(up)
			return
		}
	}
}

// answersOK tells whether a GET is answered 200.
func answersOK(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return false
	}
	req.Close = true
	res, err := new(http.Client).Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil && res.StatusCode == http.StatusOK
}

// waitReady waits until the process is ready, or one that comes after it is.
func (c *child) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		c.mu.Lock()
		up, done := c.up, c.done
		if c.gone {
			up = nil
		}
		c.mu.Unlock()
		select {
		case <-up:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", c.name, ctx.Err())
		case <-done:
		}
		if !pauseFor(ctx, readyTick) {
			return fmt.Errorf("%s is not ready: %w", c.name, ctx.Err())
		}
	}
}

// errGone reports that there is no process to strike.
var errGone = errors.New("it has ended already")

// strike sends a signal and waits for the end of the process. One that doesn't heed it is killed, and counts as stuck.
func (c *child) strike(ctx context.Context, sig syscall.Signal, doom string) error {
	c.mu.Lock()
	cmd, done := c.cmd, c.done
	if c.gone {
		c.mu.Unlock()
		return errGone
	}
	c.doom = doom
	err := cmd.Process.Signal(sig)
	c.mu.Unlock()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", c.name, err)
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), termWithin)
	defer cancel()
	select {
	case <-done:
		return nil
	case <-patience.Done():
	}
	_ = cmd.Process.Kill() // It may just have ended.
	<-done
	return fmt.Errorf("%s did not end within %s of %s", c.name, termWithin, sig)
}

// halt ends the process for good.
func (c *child) halt(ctx context.Context, sig syscall.Signal) error {
	c.mu.Lock()
	c.halted = true
	c.mu.Unlock()
	select {
	case <-c.ended:
		return nil
	default:
	}
	err := c.strike(ctx, sig, "halt")
	<-c.ended
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// The files of the hooks, see hooks_drill.go.
func (c *child) hook(name string) string { return filepath.Join(c.hooks, name) }

// takeReached is the step at which the process killed itself, or "". The hooks that belong to one process end with it.
func (c *child) takeReached() string {
	if c.hooks == "" {
		return ""
	}
	text, err := os.ReadFile(c.hook("reached"))
	_ = os.Remove(c.hook("arm")) // It may not be there.
	if err != nil {
		return ""
	}
	_ = os.Remove(c.hook("reached")) // It was just read.
	return strings.TrimSpace(string(text))
}

// set writes a file of the hooks at once or not at all; "" removes it.
func (c *child) set(name, text string) error {
	if text == "" {
		if err := os.Remove(c.hook(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("hooks of %s: %w", c.name, err)
		}
		return nil
	}
	temp := c.hook("new." + name)
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		return fmt.Errorf("hooks of %s: %w", c.name, err)
	}
	if err := os.Rename(temp, c.hook(name)); err != nil {
		return fmt.Errorf("hooks of %s: %w", c.name, err)
	}
	return nil
}

// seen lists the steps that the processes of this name have reached so far.
func (c *child) seen() []string {
	text, err := os.ReadFile(c.hook("seen"))
	if err != nil {
		return nil // None, or no hooks.
	}
	steps := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }) // Each process adds its own; "call.GET /v1/usage.after" is one.
	slices.Sort(steps)
	return slices.Compact(steps)
}

// pauseFor waits and tells whether ctx still lasts.
func pauseFor(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
