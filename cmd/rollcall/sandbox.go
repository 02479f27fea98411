package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"rollcall/internal/sandbox"
)

// sandboxCmd is the simulated vendor as a program.
type sandboxCmd struct {
	Address      string  `default:"127.0.0.1:9090" help:"Address and port to serve on. Rollcall calls a vendor without TLS on loopback only."`
	Faults       string  `default:"none" placeholder:"NAME=RATE,..." help:"What goes wrong and how often, such as drop=0.1,dup=0.1; default for the demo's mix, none for nothing."`
	Seed         uint64  `default:"1" help:"Decides all that is left to chance."`
	PagesChange  float64 `default:"0" placeholder:"RATE" help:"Share of the made pages that changed a little since they were last submitted, from 0 to 1."`
	APIKey       string  `name:"api-key" default:"sandbox-key" help:"The key that is accepted."`
	AllowPrivate bool    `help:"Fetch pages from loopback and private addresses too."`
	ListFaults   bool    `help:"Print the names of the faults, a line each, and end."`
}

// Run serves until ctx ends. Jobs and webhooks are held in memory and end with it.
func (c *sandboxCmd) Run(ctx context.Context, a *app) error {
	if c.ListFaults {
		_, err := fmt.Fprintln(a.out, strings.Join(sandbox.FaultNames(), "\n"))
		return err
	}
	faults, err := readFaults(c.Faults)
	if err != nil {
		return err
	}
	box, err := sandbox.New(sandbox.Config{
		Now: a.now, Logger: a.log, Seed: c.Seed, Faults: faults, AllowPrivate: c.AllowPrivate, PagesChange: c.PagesChange,
		APIKeys: map[string]string{c.APIKey: sandbox.DefaultAccount},
	})
	if err != nil {
		return err
	}
	s := newStack(a.config, a.log, a.now)
	s.onClose("sandbox", box.Shutdown)
	err = c.serve(ctx, a, s, box)
	if closed := s.close(ctx); err == nil {
		err = closed
	}
	return err
}

func (c *sandboxCmd) serve(ctx context.Context, a *app, s *stack, box *sandbox.Sandbox) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", c.Address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Address, err)
	}
	front := openDoor(listener, a.log, a.now)
	s.onClose("server", front.close)
	front.admit(box.Handler())
	if err := c.introduce(a, front.url(), box.Faults()); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-front.ended:
		return fmt.Errorf("the server ended: %w", front.failure)
	}
}

// introduce prints the settings that point Rollcall at this vendor.
func (c *sandboxCmd) introduce(a *app, url string, faults sandbox.Faults) error {
	_, err := fmt.Fprintf(a.out, `# The simulated vendor listens. Settings for Rollcall:
SCRAPER_API_BASE_URL=%s
GEONODE_SCRAPER_API_KEY=%s
# Webhooks reach a Rollcall on this machine with ROLLCALL_PUBLIC_URL=http://127.0.0.1:8080
# Faults: %s; change them with curl -X PUT -d 'drop=0.5' %s/_sandbox/faults
# Books: %s/_sandbox/books
`, url, c.APIKey, faults, url, url)
	return err
}

// readFaults reads faults by name and rate; "" and default are the mix of the demo.
func readFaults(text string) (sandbox.Faults, error) {
	if text == "" || text == "default" {
		return sandbox.DefaultFaults(), nil
	}
	faults, err := sandbox.ParseFaults(text)
	if err != nil {
		return nil, fmt.Errorf("--faults: %w", err)
	}
	return faults, nil
}
