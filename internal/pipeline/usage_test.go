package pipeline_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
)

// TestUsageIsKnownOrSaysWhy walks what a page may learn of what is left, from
// an account that was never asked about to one whose answer is old.
func TestUsageIsKnownOrSaysWhy(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)
	r := newRig(t, setup{
		stopped: true, noWebhooks: true,
		sandbox:  func(c *sandbox.Config) { c.Balance = 500 },
		pipeline: func(c *pipeline.Config) { c.Now = func() time.Time { return now } },
	})
	look := func() pipeline.Usage {
		t.Helper()
		u, err := r.pipe.Usage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	read := func() pipeline.Usage {
		t.Helper()
		if err := r.pipe.ReadUsage(t.Context()); err != nil {
			t.Fatal(err)
		}
		return look()
	}
	unknown := func(u pipeline.Usage, why string) {
		t.Helper()
		if u.Known || !strings.Contains(u.Why, why) {
			t.Errorf("got %+v, want unknown: %s", u, why)
		}
	}
	unknown(look(), "not been asked")
	if u := read(); !u.Known || *u.Remaining != 500 || *u.Limit != 500 || *u.Used != 0 || u.Period == nil || !u.At.Equal(now) {
		t.Errorf("got %+v, want 500 of 500 left", u)
	}
	now = now.Add(7 * time.Hour)
	unknown(look(), "over six hours old")
	r.sandbox.SetBalance(-1)
	unknown(read(), "does not say what is left")
	r.front.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte(`{"code": "BAD_GATEWAY", "message": "away"}`))
	})
	unknown(read(), "answered 502")
}
