package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"rollcall/internal/sandbox"
)

// receiving is a measurement of the receiver under way: a process for each way.
type receiving struct {
	*benchWorld
	app       *app
	endpoint  string
	secret    string
	processes map[string]*benchProcess
}

// begin starts the processes of the ways; that which settles too is started for each of its runs.
func (r *receiving) begin(ctx context.Context) error {
	own, secret, err := r.knownWebhook(ctx)
	if err != nil {
		return err
	}
	r.endpoint, r.secret = own.Endpoint, secret
	r.vars["ROLLCALL_LISTEN"] = "127.0.0.1:0"
	for _, way := range []string{wayVerify, wayPlain, wayGroup} {
		if r.processes[way], err = r.start(ctx, way, false); err != nil {
			return err
		}
	}
	return nil
}

func (r *receiving) start(ctx context.Context, way string, workers bool) (*benchProcess, error) {
	args := []string{"bench", "child", "--way", way, "--secret", r.secret}
	if workers {
		args = append(args, "--workers")
	}
	return startBench(ctx, r.app, r.vars, args...)
}

func (r *receiving) end() error {
	var errs []error
	for _, p := range r.processes {
		if p != nil {
			errs = append(errs, p.stop())
		}
	}
	return errors.Join(errs...)
}

// run sends n deliveries to the cell's process and compares what is in the database with what was sent.
func (r *receiving) run(ctx context.Context, cell receiverCell, name string, n int) (receiverRun, error) {
	var out receiverRun
	if err := r.clear(ctx); err != nil {
		return out, err
	}
	requests, jobs := r.requests(cell, name, n)
	if cell.Way != wayVerify {
		if err := r.seedCanned(ctx, name, jobs, r.now()); err != nil {
			return out, err
		}
	}
	process := r.processes[cell.Way]
	if cell.Workers {
		var err error
		if process, err = r.start(ctx, cell.Way, true); err != nil {
			return out, err
		}
	}
	out, err := r.send(ctx, process, cell, requests)
	if cell.Workers {
		err = errors.Join(err, process.stop())
	}
	if err == nil && cell.Way != wayVerify {
		err = r.compare(ctx, n, jobs)
	}
	return out, err
}

// send measures one load.
func (r *receiving) send(ctx context.Context, process *benchProcess, cell receiverCell, requests [][]byte) (receiverRun, error) {
	var out receiverRun
	m, err := newMeter(ctx, r.store, process)
	if err != nil {
		return out, err
	}
	before, counted, wal, err := r.readings(ctx, m, process)
	if err != nil {
		return out, err
	}
	if out.load, err = sendAll(ctx, r.now, process.url, cell.Connections, requests); err != nil {
		return out, err
	}
	if out.settled, err = r.count(ctx, `SELECT count(*) FROM jobs WHERE state = 'settled'`); err != nil {
		return out, err
	}
	after, counts, walAfter, err := r.readings(ctx, m, process)
	if err != nil {
		return out, err
	}
	out.used, out.wal = after.minus(before), walAfter-wal
	out.counts = benchCounts{counts.Statements - counted.Statements, counts.Commits - counted.Commits}
	out.memory, err = readMemory(process.pid)
	return out, err
}

func (r *receiving) readings(ctx context.Context, m *meter, process *benchProcess) (usage, benchCounts, int64, error) {
	counts, err := process.counts()
	if err != nil {
		return usage{}, counts, 0, err
	}
	wal, err := r.count(ctx, `SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint`)
	if err != nil {
		return usage{}, counts, 0, err
	}
	used, err := m.read()
	return used, counts, wal, err
}

// compare holds the database against what was sent: each delivery is there, each job was taken up once and is marked.
func (r *receiving) compare(ctx context.Context, sent, jobs int) error {
	for _, each := range []struct {
		what, query string
		want        int
	}{
		{"deliveries", `SELECT count(*) FROM deliveries WHERE verdict IN ('accepted', 'duplicate')`, sent},
		{"accepted deliveries", `SELECT count(*) FROM deliveries WHERE verdict = 'accepted'`, jobs},
		{"processed events", `SELECT count(*) FROM processed_events WHERE state = 'claimed'`, jobs},
		{"jobs that heard of it", `SELECT count(*) FROM jobs WHERE webhook_at IS NOT NULL`, jobs},
	} {
		got, err := r.count(ctx, each.query)
		if err != nil {
			return err
		}
		if got != int64(each.want) {
			return fmt.Errorf("%d %s are in the database, and %d were sent", got, each.what, each.want)
		}
	}
	return nil
}

// requests are n signed deliveries, written out as they go over the wire, and how many jobs they are about.
func (r *receiving) requests(cell receiverCell, name string, n int) ([][]byte, int) {
	fill, jobs := filler(cell.Bytes), 0
	out := make([][]byte, n)
	// What verification costs doesn't depend on what the job is called.
	made := n
	if cell.Way == wayVerify {
		made = min(n, max(cell.Connections, n/4))
	}
	for i := range made {
		job := jobs
		if every := 100 / max(cell.Duplicates, 1); cell.Duplicates > 0 && i%every == every-1 {
			job = max(0, jobs-2) // One of the latest, which may be under way still.
		} else {
			jobs++
		}
		out[i] = r.request(cannedPrefix+name+"-"+strconv.Itoa(job+1), "d"+name+"-"+strconv.Itoa(i), fill)
	}
	for i := made; i < n; i++ {
		out[i] = out[i%made]
	}
	return out, jobs
}

func (r *receiving) request(job, delivery string, fill []byte) []byte {
	head := fmt.Sprintf(`{"event":"extract_completed","delivery_id":%q,"timestamp":"2026-11-29T12:00:00Z","data":{"job_id":%q,"url":"`, delivery, job)
	body := make([]byte, 0, len(fill))
	body = append(body, head...)
	body = append(body, fill[:max(0, len(fill)-len(head)-3)]...)
	body = append(body, `"}}`...)
	signature := sandbox.Sign(sandbox.SignatureForm{}, r.secret, delivery, "", body)
	var b bytes.Buffer
	b.Grow(len(body) + 400)
	fmt.Fprintf(&b, "POST /webhooks/geonode/%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
		"X-Webhook-Event: extract_completed\r\nX-Webhook-Delivery-Id: %s\r\nX-Webhook-Signature: %s\r\n\r\n", r.endpoint, len(body), delivery, signature)
	b.Write(body)
	return b.Bytes()
}

// filler is text that compresses as pages do: to about half.
func filler(n int) []byte {
	dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // Words, not secrets.
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(strconv.FormatUint(dice.Uint64()%1_000_000, 36) + " kettle harbor ")
	}
	return []byte(b.String()[:n])
}
