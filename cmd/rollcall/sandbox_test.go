package main

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"rollcall/internal/sandbox"
)

func TestSandboxCommand(t *testing.T) {
	t.Parallel()
	run := start(t, nil, "sandbox", "--address", "127.0.0.1:0", "--faults", "drop=0.5", "--api-key", "k3y")
	base := run.log.match(t, regexp.MustCompile(`SCRAPER_API_BASE_URL=(\S+)`))
	run.log.match(t, regexp.MustCompile(`GEONODE_SCRAPER_API_KEY=(k3y)`))
	run.log.match(t, regexp.MustCompile(`Faults: (drop=0.5)`))
	if got := statusOf(t.Context(), base+"/health"); got != http.StatusOK {
		t.Errorf("health: got %d, want 200", got)
	}
	run.signal(terminated)
	if code := run.exit(10 * time.Second); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}

func TestSandboxCommandRefuses(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"there is no fault": {"--faults", "gremlins=1"},
		"listen on":         {"--address", "nowhere"},
	} {
		if got := rollcall(t, emptyEnv, append([]string{"sandbox"}, args...)...); got.code != 1 || !strings.Contains(got.errOut, want) {
			t.Errorf("%v: got %+v, want %q", args, got, want)
		}
	}
}

func TestStackClosesInReverse(t *testing.T) {
	t.Parallel()
	s := newStack(new(Config), nil, time.Now)
	var order string
	for _, name := range []string{"a", "b", "c"} {
		s.onClose(name, func(ctx context.Context) error {
			order += name
			return ctx.Err()
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.close(ended); err != nil || order != "cba" {
		t.Errorf("got %q, %v, want cba", order, err)
	}
}

func TestSandboxListsItsFaults(t *testing.T) {
	t.Parallel()
	got := rollcall(t, emptyEnv, "sandbox", "--list-faults")
	if want := strings.Join(sandbox.FaultNames(), "\n") + "\n"; got.code != 0 || got.out != want {
		t.Errorf("exit %d, %q; want %q", got.code, got.out, want)
	}
}
