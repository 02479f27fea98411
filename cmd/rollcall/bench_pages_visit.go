package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	"rollcall/internal/sandbox"
	"rollcall/store"
	"rollcall/web"
)

// reader is a browser in which the admin of the measurement is signed in, and the desk that it reads.
type reader struct {
	stack  *stack
	web    *web.Server
	base   string
	client *http.Client
	said   *listener
}

// openReader serves the pages of the stack's database over loopback and signs in.
func openReader(ctx context.Context, s *stack) (*reader, error) {
	r := &reader{stack: s, said: &listener{}}
	desk := newStack(s.config, s.log, s.now)
	s.onClose("desk", desk.close)
	st, err := store.Open(ctx, store.Config{DSN: s.dsn, MaxConns: int32(s.config.DatabaseConnections), Tracer: r.said}) //nolint:gosec // Check bounds it.
	if err != nil {
		return nil, err
	}
	desk.onClose("store", func(context.Context) error { return st.Close() })
	desk.store = st
	vendor, err := openBenchVendor(ctx, desk)
	if err != nil {
		return nil, err
	}
	if desk.pipeline, err = quietPipeline(desk, s.now, vendor, sandbox.DefaultAPIKey); err != nil {
		return nil, err
	}
	if err := desk.pipeline.Start(ctx); err != nil {
		return nil, err
	}
	desk.onClose("pipeline", desk.pipeline.Stop)
	if _, err := desk.pipeline.RollUp(ctx); err != nil {
		return nil, err
	}
	listener, err := listenNear(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	front := openDoor(listener, s.log, s.now)
	desk.onClose("server", front.close)
	if err := desk.openWeb(front); err != nil { //nolint:contextcheck // A request's context is its own.
		return nil, err
	}
	front.admit(desk.web.Handler())
	r.web, r.base = desk.web, front.url()
	if err := r.signIn(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// openBenchVendor starts a vendor that some pages ask, and returns its address.
func openBenchVendor(ctx context.Context, s *stack) (string, error) {
	box, err := sandbox.New(sandbox.Config{Now: s.now, Logger: s.log, Seed: 1})
	if err != nil {
		return "", err
	}
	s.onClose("sandbox", box.Shutdown)
	listener, err := listenNear(ctx, "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	vendor := openDoor(listener, s.log, s.now)
	s.onClose("sandbox's server", vendor.close)
	vendor.admit(box.Handler())
	return vendor.url(), nil
}

// signIn gives the admin of the seeded database a password of this measurement and signs in with it.
func (r *reader) signIn(ctx context.Context) error {
	password := randomPassword()
	_, err := r.stack.store.SetPassword(ctx, 1, web.HashPassword(password), r.stack.now())
	if err != nil {
		return err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{}
	r.stack.onClose("client", func(context.Context) error {
		transport.CloseIdleConnections()
		return nil
	})
	r.client = &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	form := url.Values{"name": {seedAdmin}, "password": {password}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base+"/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := r.client.Do(req)
	if err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	_ = res.Body.Close() // It was only sent.
	if res.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("sign in: got %s", res.Status)
	}
	return nil
}

// visitTime bounds one visit.
const visitTime = time.Minute

// get reads an address, or only the beginning of an answer that may not end, and tells how long that took.
func (r *reader) get(ctx context.Context, address string, beginning bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, visitTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+address, http.NoBody)
	if err != nil {
		return 0, err
	}
	began := r.stack.now()
	res, err := r.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("visit %s: %w", address, err)
	}
	defer func() { _ = res.Body.Close() }() // It was only read.
	if beginning {
		_, err = io.ReadFull(res.Body, make([]byte, 1))
	} else {
		_, err = io.Copy(io.Discard, res.Body)
	}
	took := r.stack.now().Sub(began)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read %s: %w", address, err)
	}
	if res.StatusCode != http.StatusOK && !mayDiffer(address, res.StatusCode) {
		return 0, fmt.Errorf("%s: got %s", address, res.Status)
	}
	return took, nil
}

// mayDiffer reports answers that are as they should be beside 200: there is nothing to set up any more, or a file is too
// large to be sent at once.
func mayDiffer(address string, status int) bool {
	if strings.Contains(address, "/export?") {
		return status == http.StatusSeeOther
	}
	switch address {
	case "/sign-in":
		return status == http.StatusSeeOther
	case "/readyz":
		return status == http.StatusServiceUnavailable // No workers run beside the measurement.
	case "/setup", "/invite/nosuchtoken":
		return status == http.StatusNotFound || status == http.StatusGone || status == http.StatusTooManyRequests
	}
	return false
}
