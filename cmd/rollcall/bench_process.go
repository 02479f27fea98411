package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"time"
)

// benchProcess is the measured side of a measurement: this program once more, so that its CPU time and its memory can be
// told from those of the load. It ends when the measurement does, however that ends, since its input is then closed.
type benchProcess struct {
	url string
	pid int

	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said *json.Encoder
}

// benchReady is the first line of a benchProcess, benchCounts its answer to each line that it is told.
type benchReady struct {
	URL string `json:"url"`
}

// benchCounts is what a process has sent to the database so far.
type benchCounts struct {
	Statements int64 `json:"statements"`
	Commits    int64 `json:"commits"`
}

// startBench starts a command line with these settings; all others have their defaults, whatever the environment says.
func startBench(ctx context.Context, a *app, vars map[string]string, args ...string) (*benchProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, args...) //nolint:gosec // It is this very program.
	cmd.Env = benchEnvironment(cmd.Environ(), vars)
	cmd.Stderr = a.err
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("a pipe to the measured process: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("a pipe from the measured process: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the measured process: %w", err)
	}
	p := &benchProcess{pid: cmd.Process.Pid, cmd: cmd, in: in, out: bufio.NewReader(out), said: json.NewEncoder(in)}
	var ready benchReady
	if err := p.read(&ready); err != nil {
		return nil, errors.Join(fmt.Errorf("start the measured process: %w", err), p.stop())
	}
	p.url = ready.URL
	return p, nil
}

// benchEnvironment is the environment with every setting of Rollcall empty, which is the same as unset, but for vars.
func benchEnvironment(given []string, vars map[string]string) []string {
	env := slices.Clone(given)
	for _, s := range settings(&Config{}) {
		env = append(env, s.env+"=")
		if s.secret {
			env = append(env, s.env+"_FILE=")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

func (p *benchProcess) read(into any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("hear from the measured process: %w", err)
	}
	return json.Unmarshal(line, into)
}

// counts asks the process what it has sent to the database so far.
func (p *benchProcess) counts() (benchCounts, error) {
	var counts benchCounts
	if err := p.said.Encode("counts"); err != nil {
		return counts, fmt.Errorf("ask the measured process: %w", err)
	}
	err := p.read(&counts)
	return counts, err
}

// stop ends the process in order and waits until it is gone.
func (p *benchProcess) stop() error {
	err := p.in.Close()
	if waited := p.cmd.Wait(); waited != nil {
		err = errors.Join(err, fmt.Errorf("the measured process ended badly: %w", waited))
	}
	return err
}

// usage is CPU time by who used it.
type usage struct{ server, postgres, load time.Duration }

func (u usage) minus(before usage) usage {
	return usage{u.server - before.server, u.postgres - before.postgres, u.load - before.load}
}

// cores is how many cores each kept busy over the time that was measured.
type cores struct {
	Server   float64 `json:"server"`
	Postgres float64 `json:"postgres"`
	Load     float64 `json:"load"`
}

func (u usage) cores(took time.Duration) cores {
	of := func(d time.Duration) float64 { return round(d.Seconds() / max(took.Seconds(), 0.001)) }
	return cores{of(u.server), of(u.postgres), of(u.load)}
}
