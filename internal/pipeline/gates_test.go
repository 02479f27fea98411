package pipeline_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestRefusedAccountPausesAndResumesByItself: 401 and 402 pause dispatch and
// spend nothing; a probe finds out when the account works again.
func TestRefusedAccountPausesAndResumesByItself(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusPaymentRequired} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.Logger = slog.New(slog.DiscardHandler) }})
			var refusing atomic.Bool
			var calls atomic.Int64
			refusing.Store(true)
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if isSubmit(req) && refusing.Load() {
					calls.Add(1)
					answerJSON(w, status, refusal("ACCOUNT", false), "")
					return
				}
				next.ServeHTTP(w, req)
			})
			id := r.submit(store.KindExtract, sandbox.MadeURLs(12, 3)...)
			eventually(t, "the pause", func() bool {
				return r.number(`SELECT count(*) FROM gates WHERE name = 'submit' AND paused_at IS NOT NULL AND paused_status = $1`, status) == 1
			})
			eventually(t, "a probe", func() bool { return calls.Load() > 12 || r.number(`SELECT max(call_no) FROM jobs`) > 1 })
			if got := r.number(`SELECT max(attempt) FROM river_job WHERE kind = 'dispatch'`); got > 1 {
				t.Errorf("got %d attempts of a task, want none spent", got)
			}
			if b, err := r.store.Batch(t.Context(), id); err != nil || b.Outstanding != 12 {
				t.Errorf("got %+v, %v, want nothing failed", b, err)
			}
			refusing.Store(false)
			r.wantBatch(r.ended(id), 12, 0, 0)
			if got := r.number(`SELECT count(*) FROM gates WHERE paused_at IS NOT NULL`); got != 0 {
				t.Errorf("got %d paused gates, want none", got)
			}
			r.balanced(id)
		})
	}
}

// TestForbiddenIsAboutOneRequest: a 403 in the vendor's words ends its job and
// pauses nobody; one from something on the way passes.
func TestForbiddenIsAboutOneRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.Logger = slog.New(slog.DiscardHandler) }})
	var firewall atomic.Int64
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case isSubmit(req) && bytes.Contains(body, []byte("/item/1")):
			answerJSON(w, http.StatusForbidden, refusal("NOT_THIS_ONE", false), "")
		case isSubmit(req) && firewall.Add(1) == 1:
			breach(w, "a firewall's page")
			http.Error(w, "<h1>Forbidden</h1>", http.StatusForbidden)
		default:
			next.ServeHTTP(w, req)
		}
	})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1", "https://shop.sandbox.test/item/2")
	r.wantBatch(r.ended(id), 1, 1, 0)
	if got := r.code(id, "https://shop.sandbox.test/item/1"); got != "NOT_THIS_ONE" {
		t.Errorf("got %q, want the vendor's word", got)
	}
	if got := r.number(`SELECT count(*) FROM gates WHERE paused_at IS NOT NULL`); got != 0 {
		t.Errorf("got %d paused gates, want none", got)
	}
}

// TestResumeDispatchOpensAPausedGate: a person need not wait for the probe.
func TestResumeDispatchOpensAPausedGate(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.Logger = slog.New(slog.DiscardHandler) }})
	var refused atomic.Bool
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSubmit(req) && !refused.Swap(true) {
			answerJSON(w, http.StatusPaymentRequired, refusal("NO_BALANCE", false), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	eventually(t, "the pause", func() bool {
		return r.number(`SELECT count(*) FROM gates WHERE name = 'submit' AND paused_at IS NOT NULL`) == 1
	})
	r.exec(`UPDATE gates SET probe_at = $1 WHERE name = 'submit'`, time.Now().Add(time.Hour))
	if err := r.pipe.ResumeDispatch(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.wantBatch(r.ended(id), 1, 0, 0)
}

// TestPlanLimitSplitsInHalves: a batch that the plan does not allow is halved
// until it fits.
func TestPlanLimitSplitsInHalves(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{
		sandbox:  func(c *sandbox.Config) { c.MaxURLsPerBatch = 6 },
		pipeline: func(c *pipeline.Config) { c.URLsPerJob = 40 },
	})
	id := r.submit(store.KindBatch, sandbox.MadeURLs(40, 4)...)
	r.wantBatch(r.ended(id), 40, 0, 0)
	if got := r.text(`SELECT string_agg(url_count::text, ' ' ORDER BY id) FROM jobs WHERE state = 'split'`); got != "40 20 20 10 10 10 10" {
		t.Errorf("got split jobs of %q, want 40, 20, 20 and four of 10", got)
	}
	for _, j := range r.sandbox.Books().Jobs {
		if len(j.Submitted) != 5 {
			t.Errorf("got a vendor job of %d URLs, want 5", len(j.Submitted))
		}
	}
	r.balanced(id)
}

// TestRefusedForGoodFailsItsItems: a no that no repetition changes ends the
// job and its items, with the vendor's reason.
func TestRefusedForGoodFailsItsItems(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.Logger = slog.New(slog.DiscardHandler) }})
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSubmit(req) {
			answerJSON(w, http.StatusBadRequest, refusal("BAD\x00REQUEST", false), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	url := "https://shop.sandbox.test/item/1"
	id := r.submit(store.KindExtract, url)
	r.wantBatch(r.ended(id), 0, 1, 0)
	if got := r.code(id, url); got != "BAD\uFFFDREQUEST" {
		t.Errorf("got code %q, want the vendor's, cleaned", got)
	}
	if got := r.text(`SELECT state FROM jobs`); got != "refused" {
		t.Errorf("the job is %s, want refused", got)
	}
}

// TestClosedGateHoldsUntilRetryAfter: after a 429 nobody submits before the
// time that the vendor named, though calls under way still succeed.
func TestClosedGateHoldsUntilRetryAfter(t *testing.T) {
	t.Parallel()
	for form, header := range map[string]func() string{
		"seconds": func() string { return "3" },
		"date":    func() string { return time.Now().Add(4 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{})
			var mu sync.Mutex
			var submits []time.Time
			var n atomic.Int64
			closed := make(chan struct{})
			open := sync.OnceFunc(func() { close(closed) })
			t.Cleanup(open)
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if isSubmit(req) {
					mu.Lock()
					submits = append(submits, time.Now())
					mu.Unlock()
					if n.Add(1) == 1 {
						w.Header().Set("Retry-After", header())
						answerJSON(w, http.StatusTooManyRequests, refusal("RATE_LIMITED", true), "")
						return
					}
					<-closed
				}
				next.ServeHTTP(w, req)
			})
			id := r.submit(store.KindExtract, sandbox.MadeURLs(20, 5)...)
			eventually(t, "the closed gate", func() bool { return r.number(`SELECT count(*) FROM gates WHERE closed_until IS NOT NULL`) == 1 })
			until := time.UnixMilli(r.number(`SELECT (extract(epoch FROM closed_until) * 1000)::bigint FROM gates WHERE closed_until IS NOT NULL`))
			// Tasks that passed the gate before it closed are under way still.
			eventually(t, "those calls to arrive", func() bool {
				return r.number(`SELECT count(*) FROM river_job WHERE kind = 'dispatch' AND state = 'running'`) == n.Load()-1
			})
			before := int(n.Load())
			open()
			r.wantBatch(r.ended(id), 20, 0, 0)
			mu.Lock()
			defer mu.Unlock()
			for _, s := range submits[before:] {
				if s.Before(until.Add(-10 * time.Millisecond)) {
					t.Errorf("a call %s before the gate was to open", until.Sub(s))
				}
			}
		})
	}
}

// TestReplicasShareTheGates: what closes a gate for one process keeps another,
// which saw nothing of it, from calling too early.
func TestReplicasShareTheGates(t *testing.T) {
	t.Parallel()
	for gate, goesThrough := range map[string]func(*http.Request) bool{store.GateSubmit: isSubmit, store.GateRead: isJob} {
		t.Run(gate, func(t *testing.T) {
			t.Parallel()
			s := setup{noWebhooks: true}
			r := newRig(t, s)
			var refused, other atomic.Bool
			var first atomic.Pointer[time.Time]
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if goesThrough(req) && !refused.Swap(true) {
					w.Header().Set("Retry-After", "3")
					answerJSON(w, http.StatusTooManyRequests, refusal("RATE_LIMITED", true), "")
					return
				}
				if now := time.Now(); goesThrough(req) && other.Load() {
					first.CompareAndSwap(nil, &now)
				}
				next.ServeHTTP(w, req)
			})
			id := r.submit(store.KindExtract, sandbox.MadeURLs(1, 5)...)
			eventually(t, "the closed gate", func() bool {
				return r.number(`SELECT count(*) FROM gates WHERE name = $1 AND closed_until IS NOT NULL`, gate) == 1
			})
			until := time.UnixMilli(r.number(`SELECT (extract(epoch FROM closed_until) * 1000)::bigint FROM gates WHERE name = $1`, gate))
			if err := r.pipe.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			other.Store(true)
			r.pipe = r.newPipeline(s)
			r.start(s)
			r.wantBatch(r.ended(id), 1, 0, 0)
			if at := first.Load(); at == nil || at.Before(until.Add(-10*time.Millisecond)) {
				t.Errorf("the other process called at %v, want it to wait until %s", at, until)
			}
			r.balanced(id)
		})
	}
}
