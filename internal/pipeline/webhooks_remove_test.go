package pipeline_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"rollcall/store"
)

// TestRemovedWebhookAnswersNobody: late retries are answered 404, what it told
// stays, and its jobs come home all the same.
func TestRemovedWebhookAnswersNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	w := r.hook(extractEvent)
	release := r.holdDeliveries()
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	if err := r.pipe.RemoveWebhook(t.Context(), w.ID); err != nil {
		t.Fatal(err)
	}
	release()
	r.wantBatch(r.ended(id), 1, 0, 0)
	if known, err := r.pipe.KnownEndpoint(t.Context(), w.Endpoint); err != nil || known {
		t.Errorf("its endpoint is known: %v, %v", known, err)
	}
	if a := r.pipe.Receive(t.Context(), signedDelivery(w.Endpoint, extractEvent, testSecret, envelopeFor(extractEvent, "late"))); a.Status != http.StatusNotFound {
		t.Errorf("a late retry: got %d, want 404", a.Status)
	}
	if n := r.number(`SELECT count(*) FROM webhook_secrets WHERE webhook_id = $1 AND (valid_until IS NULL OR valid_until > now())`, w.ID); n != 0 {
		t.Errorf("%d of its secrets are still good", n)
	}
	if err := r.pipe.RemoveWebhook(t.Context(), w.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removed again: got %v, want not found", err)
	}
	if got := len(r.sandbox.Books().Calls); got == 0 || r.sandbox.Books().Calls["webhooks.delete"].Total != 1 {
		t.Errorf("got %+v, want one deletion", r.sandbox.Books().Calls["webhooks.delete"])
	}
}

// TestLostAnswerOfARemoval: the list says whether it was done.
func TestLostAnswerOfARemoval(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	var lost atomic.Bool
	r.front.set(func(rw http.ResponseWriter, req *http.Request, next http.Handler) {
		if isHooks(req, http.MethodDelete) && !lost.Swap(true) {
			next.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(rw, req)
	})
	w := r.hook(extractEvent)
	if err := r.pipe.RemoveWebhook(t.Context(), w.ID); err != nil {
		t.Fatal(err)
	}
	if got := r.text(`SELECT state FROM webhooks WHERE id = $1`, w.ID); got != "removed" {
		t.Errorf("got %s, want removed", got)
	}
	if got := r.sandbox.Books().Calls["webhooks.delete"].Total; got != 1 {
		t.Errorf("got %d deletions, want one", got)
	}
}
