package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// newDoor opens a door on loopback, not admitting anybody yet.
func newDoor(t *testing.T) *door {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := openDoor(listener, slog.New(slog.DiscardHandler), time.Now)
	t.Cleanup(func() {
		if err := d.close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestDoorOpensWhenReady(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	if got := statusOf(t.Context(), d.url()+"/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("before: got %d, want 503", got)
	}
	if got := statusOf(t.Context(), d.url()+"/healthz"); got != http.StatusOK {
		t.Errorf("before: got %d, want alive", got)
	}
	d.admit(http.NotFoundHandler())
	if got := statusOf(t.Context(), d.url()+"/readyz"); got != http.StatusNotFound {
		t.Errorf("after: got %d, want the handler's own 404", got)
	}
}

func TestDoorWaitsForWhatIsInFlight(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	d.admit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	}))
	answered := make(chan int, 1)
	go func() { answered <- statusOf(t.Context(), d.url()+"/slow") }()
	<-entered
	d.refuseNew()
	d.refuseNew() // A second time does nothing.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.wait(ended); err == nil {
		t.Error("wait returned although a request was in flight")
	}
	close(leave)
	if err := d.wait(t.Context()); err != nil {
		t.Error(err)
	}
	if got := <-answered; got != http.StatusOK {
		t.Errorf("the request in flight: got %d, want 200", got)
	}
}

func TestListenNear(t *testing.T) {
	t.Parallel()
	first, err := listenNear(t.Context(), freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }() // Nothing was sent through it.
	second, err := listenNear(t.Context(), first.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }() // Nothing was sent through it.
	if first.Addr().String() == second.Addr().String() {
		t.Errorf("both listen on %s", first.Addr())
	}
	if _, err := listenNear(t.Context(), "nowhere"); err == nil {
		t.Error("an address without a port is accepted")
	}
}

func TestLoopbackOnly(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:8080": true, "[::1]:80": true, "localhost:1": true, ":8080": false, "0.0.0.0:80": false, "192.0.2.1:80": false, "x": false,
	} {
		if err := loopbackOnly(address); (err == nil) != want {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

func TestSimulated(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{"http://127.0.0.1:9090": true, "https://scraper.geonode.io": false} {
		if got := (&Config{ScraperAPIBaseURL: url}).simulated(); got != want {
			t.Errorf("%s: got %t", url, got)
		}
	}
	if got := fingerprint("key"); len(got) != 16 || got == fingerprint("other") {
		t.Errorf("got %q", got)
	}
}
