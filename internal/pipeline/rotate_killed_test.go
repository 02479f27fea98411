package pipeline_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/internal/geonode"
	"rollcall/store"
)

// ring is the vendor's side of rotations in a test: the secret that each
// webhook signs with, and how often it was changed.
type ring struct {
	mu     sync.Mutex
	secret map[string]string
	turns  map[string]int
}

func newRing() *ring { return &ring{secret: map[string]string{}, turns: map[string]int{}} }

// turn changes a webhook's secret.
func (r *ring) turn(vendorID string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns[vendorID]++
	r.secret[vendorID] = fmt.Sprintf("whsec_%s-turned-%d-times", vendorID, r.turns[vendorID])
	return r.secret[vendorID]
}

func (r *ring) now(vendorID string) (string, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.secret[vendorID], r.turns[vendorID]
}

// subscription makes a webhook at the vendor and here, with testSecret.
func (r *rig) subscription(name string) *store.Webhook {
	r.t.Helper()
	endpoint := "endpoint-of-the-test-" + name
	made, err := r.client.CreateWebhook(r.t.Context(), geonode.WebhookCreate{
		URL: r.hooks.URL + "/webhooks/geonode/" + endpoint, EventType: geonode.EventExtractCompleted,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	now := time.Now()
	w := &store.Webhook{Endpoint: endpoint, EventType: "extract_completed", URL: made.URL, State: store.WebhookLive, CreatedAt: now, StateAt: now}
	if err := r.store.InsertWebhook(r.t.Context(), w); err != nil {
		r.t.Fatal(err)
	}
	r.addSecret(w.ID, 1, testSecret)
	if err := r.store.SetWebhookVendorID(r.t.Context(), w.ID, made.ID); err != nil {
		r.t.Fatal(err)
	}
	w.VendorWebhookID = &made.ID
	return w
}

// TestRotationKilledAtEachStep kills a process with -9 while one rotation
// stands before each of its commits and on either side of its call. Another
// process takes each to its end, with the secret that the vendor signs with.
func TestRotationKilledAtEachStep(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true})
	names := []string{"claiming", "never-sent", "answer-lost", "storing", "looked", "log-read", "ending"}
	hooks, rotations := map[string]*store.Webhook{}, map[string]int64{}
	for _, n := range names {
		hooks[n] = r.subscription(n)
		begun, err := r.pipe.Rotate(t.Context(), hooks[n].ID, false)
		if err != nil {
			t.Fatal(err)
		}
		rotations[n] = begun.ID
	}
	on := func(name, when string) string {
		return fmt.Sprintf(`BEFORE UPDATE ON rotations FOR EACH ROW WHEN (NEW.id = %d AND %s)`, rotations[name], when)
	}
	b := r.newBarrier(map[string]string{
		"claiming": on("claiming", "NEW.attempt = 1 AND OLD.attempt = 0"),
		"storing":  fmt.Sprintf(`BEFORE INSERT ON webhook_secrets FOR EACH ROW WHEN (NEW.webhook_id = %d)`, hooks["storing"].ID),
		"looked":   on("looked", "NEW.verified_at IS NOT NULL AND OLD.verified_at IS NULL"),
		"log_read": on("log-read", "NEW.log_read_at IS NOT NULL AND OLD.log_read_at IS NULL"),
		"ending":   on("ending", "NEW.ended_at IS NOT NULL"),
	})
	vendor, unsent, lost := newRing(), newOnce(), newOnce()
	t.Cleanup(unsent.release)
	t.Cleanup(lost.release)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		id, isTurn := strings.CutSuffix(strings.TrimPrefix(req.URL.Path, "/v1/webhooks/"), "/rotate-secret")
		switch {
		case !isTurn:
			next.ServeHTTP(w, req)
			return
		case id == *hooks["never-sent"].VendorWebhookID && unsent.hold():
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(httptest.NewRecorder(), req) // The sandbox's own secret changes along.
		secret := vendor.turn(id)
		if id == *hooks["answer-lost"].VendorWebhookID && lost.hold() {
			panic(http.ErrAbortHandler)
		}
		answerJSON(w, http.StatusOK, map[string]any{"secret": secret}, "")
	})
	w := r.startWorker()
	await(t, "the call that is never sent", unsent.began)
	await(t, "the call whose answer is lost", lost.began)
	eventually(t, "five statements at the barrier", func() bool { return b.waiting() == 5 })
	r.takeOver(w, b)
	unsent.release()
	lost.release()
	turns := map[string]int{"never-sent": 1, "answer-lost": 2, "storing": 2}
	for _, n := range names {
		ended := r.rotationEnded(rotations[n])
		if ended.State != store.RotationDone {
			t.Errorf("%s: got %+v, want it done", n, ended)
		}
		secret, got := vendor.now(*hooks[n].VendorWebhookID)
		if want := max(1, turns[n]); got != want {
			t.Errorf("%s: the vendor made %d secrets, want %d", n, got, want)
		}
		r.wantTaken(hooks[n], secret, n+"-new")
		r.wantTaken(hooks[n], testSecret, n+"-old")
		if got := r.text(`SELECT state FROM webhooks WHERE id = $1`, hooks[n].ID); got != "live" {
			t.Errorf("%s: the webhook is %s, want live", n, got)
		}
	}
}

// rotationEnded waits for a rotation's end.
func (r *rig) rotationEnded(id int64) *store.Rotation {
	r.t.Helper()
	var got *store.Rotation
	eventually(r.t, "the rotation to end", func() bool {
		var err error
		if got, err = r.store.Rotation(context.Background(), id); err != nil {
			r.t.Fatal(err)
		}
		return !got.Open()
	})
	return got
}

// wantTaken sends a delivery and wants it taken up.
func (r *rig) wantTaken(hook *store.Webhook, secret, job string) {
	r.t.Helper()
	got := r.pipe.Receive(r.t.Context(), signedDelivery(hook.Endpoint, hook.EventType, secret, envelopeFor(hook.EventType, job)))
	if got.Status != http.StatusOK {
		r.t.Errorf("%s: got %+v, want it taken up", job, got)
	}
}
