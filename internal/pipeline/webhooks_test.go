package pipeline_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

func recordSubmits(sent chan<- string) intercept {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSubmit(req) {
			sent <- peek(req)
		}
		next.ServeHTTP(w, req)
	}
}

// TestRegisteringTwiceMakesNoSecondSet of subscriptions.
func TestRegisteringTwiceMakesNoSecondSet(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	hooks, err := r.pipe.RegisterWebhooks(t.Context())
	if err != nil || len(hooks) != 3 {
		t.Fatalf("got %d, %v, want 3", len(hooks), err)
	}
	events := map[string]bool{}
	for _, w := range hooks {
		events[w.EventType] = true
		if w.State != store.WebhookLive || w.VendorWebhookID == nil || !strings.HasSuffix(w.URL, "/webhooks/geonode/"+w.Endpoint) {
			t.Errorf("got %+v, want it live and known to the vendor", w)
		}
	}
	if len(events) != 3 {
		t.Errorf("got the events %v, want three", events)
	}
	if got := r.sandbox.Books().Calls["webhooks.create"].Total; got != 3 {
		t.Errorf("got %d calls, want 3", got)
	}
}

// TestLostRegistrationIsFoundAndRotated: the vendor made the webhook and the
// answer with its secret was lost. It is found by its address, not made again.
func TestLostRegistrationIsFoundAndRotated(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	var lost atomic.Bool
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == http.MethodPost && req.URL.Path == "/v1/webhooks" && !lost.Swap(true) {
			next.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
	})
	hooks, err := r.pipe.RegisterWebhooks(t.Context())
	if err != nil || len(hooks) != 3 {
		t.Fatalf("got %d, %v, want 3", len(hooks), err)
	}
	if got := r.sandbox.Books().Calls["webhooks.create"].Total; got != 3 {
		t.Errorf("got %d webhooks made, want 3", got)
	}
	if got := r.sandbox.Books().Calls["webhooks.rotate"].Total; got != 1 {
		t.Errorf("got %d rotations, want 1", got)
	}
	id := r.submit(store.KindMixed, sandbox.MadeURLs(4, 3)...)
	r.wantBatch(r.ended(id), 4, 0, 0)
	eventually(t, "deliveries of both events to be verified", func() bool {
		return r.number(`SELECT count(DISTINCT event_type) FROM deliveries WHERE verdict = 'accepted'`) == 2
	})
}

// TestBegunRegistrationIsCarriedOn: the process ended after the vendor made the
// webhook and before its secret was stored; what is more, the first list that
// would show it fails. The next registration takes it over.
func TestBegunRegistrationIsCarriedOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	ctx, end := context.WithCancel(t.Context())
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == http.MethodPost && req.URL.Path == "/v1/webhooks" {
			next.ServeHTTP(httptest.NewRecorder(), req)
			end()
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
	})
	if _, err := r.pipe.RegisterWebhooks(ctx); err == nil {
		t.Fatal("a registration that was cut off reported success")
	}
	var listed atomic.Bool
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == http.MethodGet && req.URL.Path == "/v1/webhooks" && !listed.Swap(true) {
			answerJSON(w, http.StatusServiceUnavailable, refusal("BUSY", true), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	hooks, err := r.pipe.RegisterWebhooks(t.Context())
	if err != nil || len(hooks) != 3 {
		t.Fatalf("got %d, %v, want 3", len(hooks), err)
	}
	if got := r.sandbox.Books().Calls["webhooks.create"].Total; got != 3 {
		t.Errorf("got %d webhooks made, want 3", got)
	}
	if got := r.number(`SELECT count(*) FROM webhooks w JOIN webhook_secrets s ON s.webhook_id = w.id WHERE state = 'live'`); got != 3 {
		t.Errorf("got %d live webhooks with a secret, want 3", got)
	}
}

// TestRefusedRegistrationLeavesNoWebhook that deliveries could come to.
func TestRefusedRegistrationLeavesNoWebhook(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == http.MethodPost && req.URL.Path == "/v1/webhooks" {
			answerJSON(w, http.StatusBadRequest, refusal("LIMIT", false), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	if _, err := r.pipe.RegisterWebhooks(t.Context()); err == nil || !strings.Contains(err.Error(), "LIMIT") {
		t.Errorf("got %v, want the vendor's reason", err)
	}
	if hooks, err := r.store.Webhooks(t.Context()); err != nil || len(hooks) != 0 {
		t.Errorf("got %d webhooks, %v, want none", len(hooks), err)
	}
}

// TestAutoModeFollowsTheWebhooksRecord: with enough jobs whose webhooks came it
// waits for them; when fewer than four in five come in time it polls.
func TestAutoModeFollowsTheWebhooksRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		jobs   int
		inTime int
		want   bool
	}{
		{"no record", 0, 0, true},
		{"too short a record", 9, 0, true},
		{"all in time", 50, 50, true},
		{"four in five", 50, 40, true},
		{"fewer", 50, 39, false},
		{"none", 20, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{stopped: true, noWebhooks: true})
			r.wantTrusted(false) // There is no webhook.
			r.newWebhook("extract_completed")
			r.exec(`INSERT INTO batches (name, kind, options, created_at) VALUES ('b', 'extract', '{}', now())`)
			r.exec(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, ended_at, webhook_at, vendor_status)
				SELECT 1, 'extract', 'settled', 'submit', '', 1, now(), now() - interval '2 min', now() - interval '2 min' + CASE WHEN n <= $2 THEN interval '50 s' WHEN n % 2 = 0 THEN interval '70 s' END, 'completed'
				FROM generate_series(1, $1::int) n`, c.jobs, c.inTime)
			// The vendor has no event for jobs that failed, so these say nothing.
			r.exec(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, ended_at, vendor_status)
				SELECT 1, 'extract', 'settled', 'submit', '', 1, now(), now(), 'failed' FROM generate_series(1, 100)`)
			r.wantTrusted(c.want)
		})
	}
}

// TestPollModeNeedsNoAddress: an installation that nobody can reach works.
func TestPollModeNeedsNoAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.PublicURL, c.Mode = "", pipeline.ModePoll }})
	if _, err := r.pipe.RegisterWebhooks(t.Context()); err == nil || !strings.Contains(err.Error(), "ROLLCALL_PUBLIC_URL") {
		t.Errorf("got %v, want the missing setting named", err)
	}
	id := r.submit(store.KindMixed, sandbox.MadeURLs(10, 3)...)
	if b := r.ended(id); b.StoredPoll != 10 {
		t.Errorf("got %+v, want ten stored by poll", b)
	}
	r.balanced(id)
}

// TestOverdueJobIsFlaggedAndStillAsked once it has run longer than expected.
func TestOverdueJobIsFlaggedAndStillAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) {
		c.Mode, c.PollMaxWait = pipeline.ModePoll, 300*time.Millisecond
	}})
	finish := r.unfinished()
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	eventually(t, "the flag", func() bool { return r.number(`SELECT count(*) FROM jobs WHERE overdue`) == 1 })
	finish()
	r.wantBatch(r.ended(id), 1, 0, 0)
}

// TestTwoReplicasShareTheWork: nothing is called for, counted or stored twice.
func TestTwoReplicasShareTheWork(t *testing.T) {
	t.Parallel()
	s := setup{sandbox: func(c *sandbox.Config) { c.Faults = sandbox.Faults{sandbox.FaultDup: 0.5, sandbox.FaultDrop: 0.2} }}
	r := newRig(t, s)
	second := r.newPipeline(s)
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	urls := sandbox.MadeURLs(120, 30)
	id := r.submit(store.KindMixed, urls...)
	r.wantBatch(r.ended(id), 120, 0, 0)
	if err := second.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	for _, u := range urls {
		if n := r.vendorJobs(u); n != 1 {
			t.Errorf("the vendor made %d jobs for %s, want 1", n, u)
		}
	}
	r.balanced(id)
}

// TestStopFinishesWhatIsInFlight: an answer that comes while the process stops
// is still recorded.
func TestStopFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	answering := newOnce()
	t.Cleanup(answering.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isSubmit(req) {
			answering.hold()
		}
		next.ServeHTTP(w, req)
	})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	await(t, "the call", answering.began)
	stopped := make(chan error, 1)
	go func() { stopped <- r.pipe.Stop(t.Context()) }()
	eventually(t, "the workers to be told", func() bool { return r.pipe.WorkersHealthy() != nil })
	answering.release()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if got := r.text(`SELECT state FROM jobs WHERE batch_id = $1`, id); got != "accepted" && got != "settled" {
		t.Errorf("the job is %s, want its answer recorded", got)
	}
}

// TestRequestsRefusedUnreadAreKept: for an endpoint of ours, with the reason.
func TestRequestsRefusedUnreadAreKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	name := r.newWebhook("batch_completed")
	for endpoint, want := range map[string]bool{name: true, "nobody-is-listening": false, "": false, strings.Repeat("x", 100): false, "\x00": false} {
		if got, err := r.pipe.KnownEndpoint(t.Context(), endpoint); err != nil || got != want {
			t.Errorf("%.20q: got %v, %v, want %v", endpoint, got, err, want)
		}
		r.pipe.RefuseUnread(t.Context(), endpoint, http.Header{"Authorization": {"Bearer secret"}, "X-A": {"b"}}, "192.0.2.1", http.StatusRequestEntityTooLarge, "over the limit")
	}
	eventually(t, "the one that is ours", func() bool {
		return r.number(`SELECT count(*) FROM deliveries WHERE status = 413 AND verdict = 'refused' AND reason = 'over the limit'`) == 1
	})
	if got := r.text(`SELECT convert_from(headers, 'UTF8') FROM deliveries`); strings.Contains(got, "secret") || !strings.Contains(got, "X-A") {
		t.Errorf("got the headers %s, want them without the credential", got)
	}
}
