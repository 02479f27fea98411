package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a rollcall of its own, this test binary started again.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{}
	code int
}

// hasty spares every process that is built with the race detector the second it sleeps at its end.
const hasty = "GORACE=atexit_sleep_ms=0"

// start runs a command line as a process with nothing but these variables in its environment. It is told to end, and
// then killed, when the test ends before it.
func start(t *testing.T, vars map[string]string, args ...string) *process {
	t.Helper()
	p := &process{t: t, log: newLogBuffer(), done: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Env = []string{asProgram + "=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GOGC=" + os.Getenv("GOGC"), hasty}
	for name, value := range vars {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		err := p.cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			p.code = exit.ExitCode()
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(terminated) // It may have ended.
		select {
		case <-p.done:
		case <-time.After(patience):
			_ = p.cmd.Process.Kill() // It may have ended.
		}
		<-p.done
		if t.Failed() {
			t.Logf("%v said:\n%s", args, p.log)
		}
	})
	return p
}

// signal sends a signal to the process.
func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// insist sends the signal again until the process ends, and returns its exit code: a further signal counts only once
// the first is a moment old, since one Ctrl-C can arrive twice.
func (p *process) insist(sig os.Signal, within time.Duration) int {
	p.t.Helper()
	limit := time.After(within)
	for {
		_ = p.cmd.Process.Signal(sig) // It may have ended.
		select {
		case <-p.done:
			return p.code
		case <-time.After(200 * time.Millisecond):
		case <-limit:
			p.t.Fatalf("the process did not end within %s; it said:\n%s", within, p.log)
		}
	}
}

// exit waits for the end of the process and returns its exit code, -1 when a signal ended it.
func (p *process) exit(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.code
	case <-time.After(within):
		p.t.Fatalf("the process did not end within %s; it said:\n%s", within, p.log)
		return 0
	}
}

// address waits until the server is ready and returns its address.
func (p *process) address() string {
	p.t.Helper()
	return p.log.match(p.t, regexp.MustCompile(`msg=ready role=\w+ open=(\S+)`))
}

// logBuffer collects what a process or command prints, and lets tests wait for it.
type logBuffer struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newLogBuffer() *logBuffer { return &logBuffer{changed: make(chan struct{})} }

// Write implements io.Writer.
func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
	return b.text.Write(p)
}

// String is all that was printed.
func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBuffer) see() (string, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String(), b.changed
}

// match waits until what is printed matches and returns the first group.
func (b *logBuffer) match(t *testing.T, pattern *regexp.Regexp) string {
	t.Helper()
	limit := time.After(patience)
	for {
		text, changed := b.see()
		if found := pattern.FindStringSubmatch(text); found != nil {
			return strings.Trim(found[1], `"`)
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%s never came in\n%s", pattern, text)
		}
	}
}

// handedOut are the ports that tests of this process were given.
//
//nolint:gochecknoglobals // Two tests must not be given one port.
var handedOut sync.Map

// freeAddress returns an address of loopback that nothing listens on. Its port lies below those that the system gives to
// outgoing connections, so that none takes it before the test listens there.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 200 {
		port := 10_000 + rand.IntN(20_000)
		if _, taken := handedOut.LoadOrStore(port, true); taken {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("no free port")
	return ""
}

// statusOf is the status of a GET, or 0 when nobody answers.
func statusOf(ctx context.Context, url string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	res, err := client.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close() // Only the status is wanted.
	return res.StatusCode
}

// terminated is SIGTERM, what a service manager sends.
const terminated = syscall.SIGTERM
