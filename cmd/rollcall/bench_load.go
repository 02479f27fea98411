package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// benchPatience is how long one request of a load may take.
const benchPatience = 30 * time.Second

// load is what sending requests came to.
type load struct {
	sent      int
	took      time.Duration
	latencies []time.Duration // In rising order.
}

func (l *load) perSecond() float64 { return float64(l.sent) / max(l.took.Seconds(), 0.000_001) }

// millis is the latency under which this part of the requests stayed.
func (l *load) millis(part float64) float64 {
	if len(l.latencies) == 0 {
		return 0
	}
	at := min(len(l.latencies)-1, int(part*float64(len(l.latencies))))
	return float64(l.latencies[at].Microseconds()) / 1000
}

// sendAll sends each of the requests, written out ready, over so many connections that stay open, one after another on
// each. It does as little as a client can, since it shares the cores with what it measures. An answer that isn't 2xx is
// an error.
func sendAll(ctx context.Context, now func() time.Time, base string, connections int, requests [][]byte) (*load, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("address of the measured process: %w", err)
	}
	conns, err := dialAll(ctx, u.Host, connections)
	defer func() {
		for _, c := range conns {
			_ = c.Close() // All answers are in.
		}
	}()
	if err != nil {
		return nil, err
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	parts, errs := make([][]time.Duration, connections), make([]error, connections)
	began := now()
	for i := range conns {
		wg.Go(func() { parts[i], errs[i] = sendSome(now, conns[i], requests, &next) })
	}
	wg.Wait()
	out := &load{sent: len(requests), took: now().Sub(began), latencies: slices.Concat(parts...)}
	slices.Sort(out.latencies)
	return out, errors.Join(errs...)
}

func dialAll(ctx context.Context, address string, n int) ([]net.Conn, error) {
	var conns []net.Conn
	for range n {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return conns, fmt.Errorf("reach the measured process: %w", err)
		}
		conns = append(conns, c)
	}
	return conns, nil
}

// sendSome is one connection: it takes the next request as long as there is one.
func sendSome(now func() time.Time, conn net.Conn, requests [][]byte, next *atomic.Int64) ([]time.Duration, error) {
	answers := bufio.NewReader(conn)
	took := make([]time.Duration, 0, len(requests))
	for {
		i := int(next.Add(1)) - 1
		if i >= len(requests) {
			return took, nil
		}
		began := now()
		if err := conn.SetDeadline(began.Add(benchPatience)); err != nil {
			return took, fmt.Errorf("request %d: %w", i, err)
		}
		if _, err := conn.Write(requests[i]); err != nil {
			return took, fmt.Errorf("send request %d: %w", i, err)
		}
		if err := readAnswer(answers); err != nil {
			return took, fmt.Errorf("answer to request %d: %w", i, err)
		}
		took = append(took, now().Sub(began))
	}
}

// readAnswer reads one answer, of which only the status and the length matter.
func readAnswer(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	good := bytes.HasPrefix(line, []byte("HTTP/1.1 2"))
	first := string(bytes.TrimSpace(line))
	length := -1
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if !good || length < 0 {
		return fmt.Errorf("%s, %d bytes", first, length)
	}
	_, err = io.CopyN(io.Discard, r, int64(length))
	return err
}

// middle is the median.
func middle(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return round((sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2)
}
