package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rollcall/internal/sandbox"
)

const (
	// stepPatience is how long a server may take to reach a step it is to die at, before it is killed wherever it is.
	stepPatience = 5 * time.Second
	stepTick     = 20 * time.Millisecond
)

// carryOut does one act of the script. What it returns is a fault of the drill, not of what is drilled.
func (d *drill) carryOut(ctx context.Context, a act, load []drillBatch) error {
	switch a.kind {
	case actSubmit:
		return d.submit(ctx, load[a.n])
	case actKill:
		return d.killServer(ctx, a.server, syscall.SIGKILL, actKill)
	case actTerm:
		return d.killServer(ctx, a.server, syscall.SIGTERM, actTerm)
	case actStep:
		return d.killAtStep(ctx, a)
	case actRestart:
		return d.endPostgres(ctx, a.kind, syscall.SIGINT)
	case actPGKill:
		return d.endPostgres(ctx, a.kind, syscall.SIGKILL)
	case actCut:
		return d.cut(ctx)
	case actDisk:
		return d.forAWhile(ctx, a, "disk", strconv.FormatFloat(a.rate, 'f', 3, 64), diskFor)
	case actClock:
		return d.forAWhile(ctx, a, "clock", a.step.String(), clockFor)
	case actVendor:
		return d.setFaults(ctx, a.faults)
	case actSwitches:
		return d.setSwitches(ctx, sandbox.SwitchPairs()[a.n])
	case actRotate:
		return d.rotate(ctx)
	case actRepair:
		return d.insist(ctx, "look at the webhooks", d.repair)
	}
	return fmt.Errorf("the script has an unknown act %q", a.kind)
}

// note puts something on the time line; the function it returns ends it.
func (d *drill) note(ctx context.Context, kind, detail string) func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log.InfoContext(ctx, "act", slog.String("kind", kind), slog.String("detail", detail))
	i := len(d.timeline)
	d.timeline = append(d.timeline, happening{From: d.now(), Kind: kind, Detail: detail})
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.timeline[i].To = d.now()
	}
}

// problem notes what must not be.
func (d *drill) problem(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = append(d.problems, fmt.Sprintf(format, args...))
}

// killServer ends a server, which is started again, and waits until it is ready and has had a while to work.
func (d *drill) killServer(ctx context.Context, i int, sig syscall.Signal, how string) error {
	server := d.servers[i]
	for {
		if err := server.waitReady(ctx); err != nil {
			return err
		}
		end := d.note(ctx, how, server.name)
		err := server.strike(ctx, sig, how)
		end()
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			d.problem("%v", err)
		}
		return d.letWork(ctx, server)
	}
}

// letWork waits until a server that was killed is ready, and then for as long as that took: where starting is slow the
// next kill, which may be due already, would otherwise find a server that has done nothing.
func (d *drill) letWork(ctx context.Context, server *child) error {
	began := d.now()
	if err := server.waitReady(ctx); err != nil {
		return err
	}
	pauseFor(ctx, d.now().Sub(began))
	return nil
}

// killAtStep has a server kill itself at a step, one that the fewest have died at yet. Without the hooks, or when it
// doesn't get to any, it is killed where it is, and the step is told to be left out.
func (d *drill) killAtStep(ctx context.Context, a act) error {
	server := d.servers[a.server]
	if err := server.waitReady(ctx); err != nil {
		return err
	}
	if steps := d.rarest(server); len(steps) > 0 {
		died, err := d.armed(ctx, server, steps)
		if err != nil || died {
			return errors.Join(err, d.letWork(ctx, server))
		}
	}
	if err := d.killServer(ctx, a.server, syscall.SIGKILL, actKill); err != nil {
		return err
	}
	if !hooksCompiled {
		return errNoHooks
	}
	return errNoStep
}

// rarest are the steps of the server that the fewest have died at.
func (d *drill) rarest(server *child) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	deaths := map[string]int{}
	for _, k := range d.kills {
		deaths[k.step]++
	}
	least, best := 0, []string(nil)
	for _, step := range server.seen() {
		if n := deaths[step]; best == nil || n < least {
			least, best = n, []string{step}
		} else if n == least {
			best = append(best, step)
		}
	}
	return best
}

// armed has the server die at the first of the steps that it comes to, and tells whether it did in time.
func (d *drill) armed(ctx context.Context, server *child, steps []string) (bool, error) {
	server.mu.Lock()
	done, began := server.done, d.now()
	server.mu.Unlock()
	if err := server.set("arm", strings.Join(steps, "\n")); err != nil {
		return false, err
	}
	limit := time.NewTimer(stepPatience)
	defer limit.Stop()
	select {
	case <-done:
		return d.diedAtStep(server, began), nil
	case <-ctx.Done():
	case <-limit.C:
	}
	if err := server.set("arm", ""); err != nil {
		return false, err
	}
	// It may have come to one just now.
	select {
	case <-done:
		return d.diedAtStep(server, began), nil
	case <-time.After(5 * stepTick):
		return false, ctx.Err()
	}
}

// diedAtStep tells whether the server died at a step since then, rather than because the database was away.
func (d *drill) diedAtStep(server *child, since time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.kills, func(k *kill) bool { return k.child == server.name && k.step != "" && !k.at.Before(since) })
}

// endPostgres ends the database server, whose keeper starts it again, and waits until it answers.
func (d *drill) endPostgres(ctx context.Context, kind string, sig syscall.Signal) error {
	pid := d.private.PID()
	for ; pid == 0 && pauseFor(ctx, readyTick); pid = d.private.PID() { // It is being started.
		select {
		case <-d.private.Done():
			return fmt.Errorf("the private Postgres is gone: %w", d.private.Err())
		default:
		}
	}
	if pid == 0 {
		return ctx.Err()
	}
	end := d.note(ctx, kind, "pid "+strconv.Itoa(pid))
	defer end()
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end Postgres: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for d.private.PID() == pid || d.store.SQL().PingContext(limited) != nil {
		if !pauseFor(limited, readyTick) {
			return fmt.Errorf("Postgres did not come back after %s: %w", kind, limited.Err()) //nolint:staticcheck // A name.
		}
	}
	return nil
}

// errNothingCut reports that no server has a connection.
var errNothingCut = errors.New("no server has a connection")

// cut ends every connection to the database but the drill's.
func (d *drill) cut(ctx context.Context) error {
	defer d.note(ctx, actCut, "all connections of the servers")()
	return d.insist(ctx, "cut connections", func(ctx context.Context) error {
		var n int
		err := d.store.SQL().QueryRowContext(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> ALL ($1::bigint[])`, d.own.list()).Scan(&n)
		if err == nil && n == 0 {
			return errNothingCut
		}
		return err
	})
}

// forAWhile writes a file of a server's hooks and takes it away again.
func (d *drill) forAWhile(ctx context.Context, a act, file, text string, length time.Duration) error {
	if !hooksCompiled {
		return errNoHooks
	}
	server := d.servers[a.server]
	end := d.note(ctx, a.kind, server.name+" "+text)
	defer end()
	if err := server.set(file, text); err != nil {
		return err
	}
	pauseFor(ctx, length)
	return server.set(file, "")
}

func (d *drill) setFaults(ctx context.Context, rates map[string]float64) error {
	faults := sandbox.Faults(maps.Clone(rates))
	d.mu.Lock()
	before := d.mixed
	d.mu.Unlock()
	if before != nil {
		before()
	}
	for name, rate := range faults {
		faults[name] = float64(int(rate*1000)) / 1000
	}
	end := d.note(ctx, actVendor, faults.String())
	d.mu.Lock()
	d.mixed = end
	d.mu.Unlock()
	return d.admin(ctx, http.MethodPut, "/_sandbox/faults", faults.String(), nil)
}

// rotate changes every secret. What goes wrong with it is what the servers must get over, unless it never ends, or not
// one of all rotations is made.
func (d *drill) rotate(ctx context.Context) error {
	defer d.note(ctx, actRotate, "all webhooks")()
	if err := d.rotateAll(ctx); err != nil {
		d.log.InfoContext(ctx, "not all secrets changed", slog.Any("error", err))
		d.mu.Lock()
		d.rotationFailed = err.Error()
		d.mu.Unlock()
		return errActFailed
	}
	return nil
}

// admin asks the vendor's admin API.
func (d *drill) admin(ctx context.Context, method, path, body string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, d.vendor.url+path, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask the sandbox: %w", err)
	}
	res, err := new(http.Client).Do(req)
	if err != nil {
		return fmt.Errorf("ask the sandbox: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // It was read.
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("ask the sandbox: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("ask the sandbox: %s %s: %s: %s", method, path, res.Status, text)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("ask the sandbox: %w", err)
	}
	return nil
}
