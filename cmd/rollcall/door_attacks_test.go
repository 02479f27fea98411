package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// strictDoor is a door that bears long with its clients but in one way, in which they have far less than any of those below
// would like. With no more in any way, a busy machine would be such a client.
func strictDoor(t *testing.T, tight func(*doorBounds) *time.Duration, next http.Handler) *door {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounds := doorBounds{header: time.Hour, body: time.Hour, answer: time.Hour, idle: time.Hour}
	*tight(&bounds) = 100 * time.Millisecond
	d := openDoorWithin(listener, bounds, slog.New(slog.DiscardHandler), time.Now)
	t.Cleanup(func() {
		if err := d.close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	d.admit(next)
	return d
}

// call opens a connection and sends this; what isn't answered in a minute is never.
func (d *door) call(t *testing.T, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", d.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // It may be closed.
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, text) // The server may close before it has taken all.
	return conn, bufio.NewReader(conn)
}

// TestSlowClientsAreLeft: whoever sends a request a letter at a time, or none, or doesn't read the answer, loses the
// connection, while others are served.
func TestSlowClientsAreLeft(t *testing.T) {
	t.Parallel()
	broken := make(chan error, 10)
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/quick" {
			return
		}
		_, err := io.Copy(io.Discard, r.Body)
		for err == nil && r.URL.Path == "/endless" {
			_, err = w.Write(make([]byte, 1<<20))
		}
		broken <- err
	})
	header := strictDoor(t, func(b *doorBounds) *time.Duration { return &b.header }, next)
	idle := strictDoor(t, func(b *doorBounds) *time.Duration { return &b.idle }, next)
	body := strictDoor(t, func(b *doorBounds) *time.Duration { return &b.body }, next)
	answer := strictDoor(t, func(b *doorBounds) *time.Duration { return &b.answer }, next)
	const begun = "POST /body HTTP/1.1\r\nHost: a\r\n"
	for name, c := range map[string]struct {
		door *door
		text string
	}{
		"nothing": {header, ""}, "half a line": {header, "GET / HT"}, "headers without an end": {header, "GET / HTTP/1.1\r\nHost: a\r\nX-A: b\r\n"},
		"an idle connection": {idle, "GET /quick HTTP/1.1\r\nHost: a\r\n\r\n"},
		"half a body":        {body, begun + "Content-Length: 10\r\n\r\nabc"}, "half a chunk": {body, begun + "Transfer-Encoding: chunked\r\n\r\n5\r\nab"},
	} {
		conn, _ := c.door.call(t, c.text)
		if c.door == body {
			if got := statusOf(t.Context(), body.url()+"/quick"); got != http.StatusOK {
				t.Errorf("another client beside %s: got %d", name, got)
			}
			if err := <-broken; err == nil {
				t.Errorf("%s: the body was read whole", name)
			}
		}
		// The end of the connection, not of a bound of ours.
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			t.Errorf("%s: the connection stays open: %v", name, err)
		}
	}
	answer.call(t, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
	if err := <-broken; err == nil {
		t.Error("an answer that nobody reads is written on")
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestHeadersAreBounded: what is over 64 KiB is 431, however it is cut.
func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	served := make(chan struct{}, 10)
	d.admit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served <- struct{}{} }))
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, "X-%d: a\r\n", i)
	}
	for name, text := range map[string]string{
		"one": "X-A: " + strings.Repeat("a", 1<<20) + "\r\n", "many": many.String(), "a cookie": "Cookie: " + strings.Repeat("a=b; ", 40_000) + "\r\n",
	} {
		_, reader := d.call(t, "GET / HTTP/1.1\r\nHost: a\r\n"+text+"\r\n")
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			continue // The connection was cut before the answer was read, which refuses it as well.
		}
		_ = res.Body.Close() // Only the status is wanted.
		if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: got %s, want 431", name, res.Status)
		}
	}
	_, reader := d.call(t, "GET /"+strings.Repeat("a", 200_000)+" HTTP/1.1\r\nHost: a\r\n\r\n")
	if res, err := http.ReadResponse(reader, nil); err == nil {
		_ = res.Body.Close() // Only the status is wanted.
		if res.StatusCode < 400 {
			t.Errorf("an endless address: got %s", res.Status)
		}
	}
	if len(served) > 0 {
		t.Errorf("%d of them were let in", len(served))
	}
}

// TestHTTP2IsNotSpoken: so neither its floods of resets nor its other weaknesses are ours. A connection that begins in it,
// or asks for it, is refused or answered in HTTP/1.1.
func TestHTTP2IsNotSpoken(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	d.admit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frames := preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + strings.Repeat("\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x08", 1000)
	var flood sync.WaitGroup
	for range 20 {
		flood.Go(func() {
			_, reader := d.call(t, frames)
			if res, err := http.ReadResponse(reader, nil); err == nil {
				_ = res.Body.Close() // Only the status is wanted.
				if res.StatusCode < 400 || res.ProtoMajor != 1 {
					t.Errorf("the preface: got %s %s", res.Proto, res.Status)
				}
			}
		})
	}
	flood.Wait()
	_, reader := d.call(t, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // It was only read.
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || string(body) != "HTTP/1.1" {
		t.Errorf("the upgrade: got %s, %q, %v", res.Status, body, err)
	}
}
