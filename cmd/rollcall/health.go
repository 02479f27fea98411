package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// healthCmd asks the server of these settings whether it is ready. Made for a container's health check.
type healthCmd struct {
	Timeout time.Duration `default:"3s" help:"How long to wait for the answer."`
}

// Run prints the server's answer; exit 1 when it isn't 200.
func (c *healthCmd) Run(ctx context.Context, a *app) error {
	if err := checkListen(a.config.Listen); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	url := "http://" + reachable(a.config.Listen) + "/readyz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // No proxy: the server is this machine's.
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // It was only read.
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("health: %s: %w", url, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("health: %s answered %s: %s", url, res.Status, strings.TrimSpace(string(body)))
	}
	_, err = fmt.Fprintln(a.out, strings.TrimSpace(string(body)))
	return err
}

// reachable turns an address to listen on into one to connect to: every interface becomes loopback.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	addr, err := netip.ParseAddr(host)
	switch {
	case host == "", err == nil && addr == netip.IPv4Unspecified():
		host = "127.0.0.1"
	case err == nil && addr == netip.IPv6Unspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
