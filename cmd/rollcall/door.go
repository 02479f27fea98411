package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of the HTTP server. There is no write timeout, since live pages are answers without an end: those bound
// each of their writes, and so does the webhook endpoint its reads.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	// answerTimeout bounds an answer that is not a live page; a download of the largest result fits.
	answerTimeout = 5 * time.Minute
	// bodyTimeout bounds the arrival of a request's body; handlers may set a shorter one.
	bodyTimeout = 2 * time.Minute
)

// doorBounds are how long a client may take: tests shorten them.
type doorBounds struct{ header, body, answer, idle time.Duration }

func defaultBounds() doorBounds {
	return doorBounds{header: headerTimeout, body: bodyTimeout, answer: answerTimeout, idle: idleTimeout}
}

// door is an HTTP server with an orderly begin and end: it answers 503 until admit, and again from refuseNew on while
// what is in flight goes on; close ends it.
type door struct {
	listener net.Listener
	bounds   doorBounds
	server   *http.Server
	now      func() time.Time
	ended    chan struct{} // Closed when the server has ended; failure tells why, if it wasn't close.
	failure  error

	mu       sync.Mutex
	next     http.Handler // Nil until admit.
	draining bool
	inFlight int
	idle     chan struct{} // Closed when draining and nothing is in flight.
}

// openDoor answers on the listener until close.
func openDoor(listener net.Listener, log *slog.Logger, now func() time.Time) *door {
	return openDoorWithin(listener, defaultBounds(), log, now)
}

// openDoorWithin is openDoor with other bounds. HTTP/1.1 is all that it speaks: HTTP/2 needs TLS, which ends before us,
// and a connection that asks to be upgraded to it stays what it is.
func openDoorWithin(listener net.Listener, bounds doorBounds, log *slog.Logger, now func() time.Time) *door {
	d := &door{
		listener: listener, bounds: bounds, now: now, ended: make(chan struct{}), idle: make(chan struct{}),
	}
	d.server = &http.Server{
		Handler: d, ReadHeaderTimeout: bounds.header, IdleTimeout: bounds.idle, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(d.ended)
		if err := d.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			d.failure = err
		}
	}()
	return d
}

// admit lets requests in to next.
func (d *door) admit(next http.Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = next
}

// ServeHTTP lets a request in, unless the process isn't ready yet or is about to end.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 { // net/http hands on the preface of HTTP/2 as if it were a request.
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusHTTPVersionNotSupported)
		return
	}
	next := d.enter()
	if next == nil {
		refuse(w, r)
		return
	}
	defer d.leave()
	d.bound(w, r)
	next.ServeHTTP(w, r)
}

// bound sets how long this request may take to arrive and to be answered. A live page counts its time anew with
// every event it sends.
func (d *door) bound(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	// The errors would mean a connection that knows no deadlines, which net/http has not.
	_ = control.SetWriteDeadline(d.now().Add(d.bounds.answer))
	if r.ContentLength != 0 {
		_ = control.SetReadDeadline(d.now().Add(d.bounds.body))
	}
}

// refuse answers when work is not taken: a process that is starting or ending is alive but not ready.
func refuse(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/healthz" {
		_, _ = w.Write([]byte(`{"status":"ok"}` + "\n")) // The client may have gone.
		return
	}
	w.Header().Set("Retry-After", "5")
	w.Header().Set("Connection", "close")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(`{"ready":false,"message":"this process is starting or shutting down"}` + "\n")) // The client may have gone.
}

// enter counts a request in and returns who serves it, or nil.
func (d *door) enter() http.Handler {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining || d.next == nil {
		return nil
	}
	d.inFlight++
	return d.next
}

func (d *door) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight--
	d.closeWhenIdle()
}

// closeWhenIdle tells drain that nothing is left. The caller holds mu.
func (d *door) closeWhenIdle() {
	if d.draining && d.inFlight == 0 {
		close(d.idle)
	}
}

// refuseNew turns readiness to 503 and refuses all further requests.
func (d *door) refuseNew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.draining {
		d.draining = true
		d.closeWhenIdle()
	}
}

// wait returns when no request is in flight any more, which needs refuseNew before, or when ctx ends.
func (d *door) wait(ctx context.Context) error {
	select {
	case <-d.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("requests in flight: %w", ctx.Err())
	}
}

// close ends the server and every connection.
func (d *door) close(ctx context.Context) error {
	d.refuseNew()
	err := d.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, d.server.Close())
	}
	<-d.ended
	return err
}

// url is where a browser on this machine finds the door.
func (d *door) url() string { return "http://" + reachable(d.listener.Addr().String()) }

// portsTried is how many ports after the wanted one listenNear looks at.
const portsTried = 100

// listenNear listens on the address or, when its port is taken, on the next free one.
func listenNear(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, wrong("ROLLCALL_LISTEN", address, "must be an address and a port")
	}
	var config net.ListenConfig
	first, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	for n := first; ; n++ {
		listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(n)))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || n-first >= portsTried || n >= 65535 {
			return listener, err
		}
	}
}

// loopbackOnly refuses an address that other machines could reach.
func loopbackOnly(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !isLoopback(strings.TrimSuffix(host, ".")) {
		return wrong("ROLLCALL_LISTEN", address, "must be a loopback address such as 127.0.0.1:8080 here")
	}
	return nil
}
