package pipeline_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// elsewhere registers a webhook at the vendor that isn't ours, and returns its
// id and secret.
func (r *rig) elsewhere(event, url string) (string, string) {
	r.t.Helper()
	made := r.vendorCall(http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url": %q, "event_type": %q, "description": "theirs"}`, url, event))
	return fmt.Sprint(made["id"]), fmt.Sprint(made["secret"])
}

const theirAddress = "https://elsewhere.example/hook"

// foreign lists what the vendor has that isn't ours.
func (r *rig) foreign() pipeline.AtVendor {
	r.t.Helper()
	at, err := r.pipe.VendorWebhooks(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return at
}

// TestAdoptedWebhookDeliversHere with its own secret, which stands nowhere in
// the clear; it is listed among ours from then on.
func TestAdoptedWebhookDeliversHere(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	id, secret := r.elsewhere(extractEvent, theirAddress)
	at := r.foreign()
	if !at.Asked || at.Used != 1 || at.Most != 10 || len(at.Foreign) != 1 || at.Foreign[0].ID != id || at.Foreign[0].Here {
		t.Errorf("got %+v, want theirs, at another address", at)
	}
	w, err := r.pipe.AdoptWebhook(t.Context(), id, "  "+secret+"\n")
	if err != nil || w.State != store.WebhookLive || !w.Adopted || w.Description != "theirs" {
		t.Fatalf("got %+v, %v, want it live", w, err)
	}
	if got := r.there(w)["url"]; got != w.URL || !strings.HasPrefix(w.URL, r.hooks.URL+"/webhooks/geonode/") {
		t.Errorf("at the vendor its address is %v, want %s", got, w.URL)
	}
	if left := r.foreign(); len(left.Foreign) != 0 || left.Used != 1 {
		t.Errorf("got %+v, want none that isn't ours", left)
	}
	batch := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	r.wantBatch(r.ended(batch), 1, 0, 0)
	eventually(t, "its delivery", func() bool {
		return r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'accepted' AND webhook_id = $1 AND secret_version = 1`, w.ID) == 1
	})
	if n := r.number(`SELECT count(*) FROM audit_log WHERE position($1 IN coalesce(after::text, '')) > 0`, secret); n != 0 {
		t.Error("the secret is in the audit log")
	}
	if got := r.auditLines(); got != fmt.Sprintf("rollcall webhook.adopt %d - live", w.ID) {
		t.Errorf("audit log: got %s", got)
	}
	_, err = r.pipe.AdoptWebhook(t.Context(), id, secret)
	r.wantRefused(err, "one of ours already")
}

// TestFirstDeliveryOfAnAdoptedWebhookIsVerified: the endpoint and the secret
// stand before the vendor knows the address.
func TestFirstDeliveryOfAnAdoptedWebhookIsVerified(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	id, secret := r.elsewhere(extractEvent, theirAddress)
	status := 0
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isHooks(req, http.MethodPatch) {
			hooks, err := r.store.Webhooks(req.Context())
			if err != nil || len(hooks) != 1 {
				t.Errorf("got %d webhooks, %v, want one", len(hooks), err)
				return
			}
			first := signedDelivery(hooks[0].Endpoint, extractEvent, secret, envelopeFor(extractEvent, "first"))
			status = r.pipe.Receive(req.Context(), first).Status
		}
		next.ServeHTTP(w, req)
	})
	if _, err := r.pipe.AdoptWebhook(t.Context(), id, secret); err != nil {
		t.Fatal(err)
	}
	if status != http.StatusOK {
		t.Errorf("a delivery before the call's answer: got %d, want 200", status)
	}
}

// TestAdoptOneThatPointsHere changes nothing at the vendor: an endpoint of ours
// that lost its webhook gets it back.
func TestAdoptOneThatPointsHere(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	w := r.hook(extractEvent)
	if err := r.pipe.RemoveWebhook(t.Context(), w.ID); err != nil {
		t.Fatal(err)
	}
	id, secret := r.elsewhere(extractEvent, w.URL)
	if at := r.foreign(); len(at.Foreign) != 1 || !at.Foreign[0].Here {
		t.Errorf("got %+v, want one that points here", at)
	}
	adopted, err := r.pipe.AdoptWebhook(t.Context(), id, secret)
	if err != nil || adopted.ID != w.ID || adopted.State != store.WebhookLive {
		t.Fatalf("got %+v, %v, want the same webhook", adopted, err)
	}
	if got := r.sandbox.Books().Calls["webhooks.update"].Total; got != 0 {
		t.Errorf("got %d changes at the vendor, want none", got)
	}
	batch := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	r.ended(batch)
	eventually(t, "its delivery", func() bool {
		return r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'accepted' AND webhook_id = $1`, w.ID) == 1
	})
}

// TestAdoptOneThatIsOff leaves it off, as a paused one.
func TestAdoptOneThatIsOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	id, secret := r.elsewhere(extractEvent, theirAddress)
	r.vendorCall(http.MethodPatch, "/v1/webhooks/"+id, `{"is_active": false}`)
	w, err := r.pipe.AdoptWebhook(t.Context(), id, secret)
	if err != nil || w.State != store.WebhookPaused || r.there(w)["is_active"] != false {
		t.Fatalf("got %+v, %v, want it paused, here and there", w, err)
	}
	if err := r.pipe.ResumeWebhook(t.Context(), w.ID); err != nil {
		t.Fatal(err)
	}
	r.wantHook(extractEvent, store.WebhookLive)
}

// TestRefusedAdoptionLeavesItTheirs: nothing of ours points to it, and it may be
// tried again.
func TestRefusedAdoptionLeavesItTheirs(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	id, secret := r.elsewhere(extractEvent, theirAddress)
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isHooks(req, http.MethodPatch) {
			answerJSON(w, http.StatusUnprocessableEntity, refusal("NO", false), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	for _, wrong := range []string{"", "  \n", "short", "has a blank in the middle of it", strings.Repeat("x", 501), "sixteen\x00characters"} {
		if _, err := r.pipe.AdoptWebhook(t.Context(), id, wrong); err == nil {
			t.Errorf("the secret %q was taken", wrong)
		}
	}
	_, err := r.pipe.AdoptWebhook(t.Context(), "no-such-webhook", secret)
	r.wantRefused(err, "lists no such webhook")
	_, err = r.pipe.AdoptWebhook(t.Context(), id, secret)
	r.wantRefused(err, "said by the test")
	if hooks, err := r.store.Webhooks(t.Context()); err != nil || len(hooks) != 0 {
		t.Errorf("got %d webhooks, %v, want none", len(hooks), err)
	}
	if at := r.foreign(); len(at.Foreign) != 1 {
		t.Errorf("got %+v, want it listed as theirs", at)
	}
	r.front.set(nil)
	if _, err = r.pipe.AdoptWebhook(t.Context(), id, secret); err != nil {
		t.Error(err)
	}
}

// TestLostAnswerOfAnAdoption: a webhook that moved here is ours.
func TestLostAnswerOfAnAdoption(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	id, secret := r.elsewhere(extractEvent, theirAddress)
	var patched atomic.Bool
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case isHooks(req, http.MethodPatch):
			next.ServeHTTP(httptest.NewRecorder(), req)
			patched.Store(true)
			panic(http.ErrAbortHandler)
		case isHooks(req, http.MethodGet) && patched.Load():
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
	})
	_, err := r.pipe.AdoptWebhook(t.Context(), id, secret)
	r.wantRefused(err, "did not answer")
	r.wantHook(extractEvent, store.WebhookRegistering)
	r.front.set(nil)
	if err := r.pipe.CheckWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.wantHook(extractEvent, store.WebhookLive)
	if at := r.foreign(); len(at.Foreign) != 0 {
		t.Errorf("got %+v, want it ours", at)
	}
}

// without is a vendor that answers calls about webhooks with a status; of what
// kind, a test says.
func without(status int, methods ...string) intercept {
	return func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		for _, method := range methods {
			if isHooks(req, method) {
				answerJSON(w, status, refusal("NOT_AVAILABLE", false), "webhooks are not in every plan")
				return
			}
		}
		next.ServeHTTP(w, req)
	}
}

// TestVendorWithoutWebhooks: people are told in plain words, the app polls, and
// asks again until there are some.
func TestVendorWithoutWebhooks(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusNotImplemented} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{noWebhooks: true})
			r.front.set(without(status, http.MethodPost, http.MethodGet))
			_, err := r.pipe.RegisterWebhooks(t.Context())
			r.wantRefused(err, "aren't available on this account")
			if hooks, err := r.store.Webhooks(t.Context()); err != nil || len(hooks) != 0 {
				t.Errorf("got %d webhooks, %v, want none", len(hooks), err)
			}
			if at := r.foreign(); at.Asked || !strings.Contains(at.Unavailable, strconv.Itoa(status)) {
				t.Errorf("got %+v, want the explanation", at)
			}
			r.wantTrusted(false)
			id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
			r.wantBatch(r.ended(id), 1, 0, 0)
			if err := r.pipe.CheckWebhooks(t.Context()); err != nil {
				t.Errorf("asked again: %v", err)
			}
			r.front.set(nil)
			if err := r.pipe.CheckWebhooks(t.Context()); err != nil {
				t.Fatal(err)
			}
			if at := r.foreign(); !at.Asked || at.Unavailable != "" {
				t.Errorf("got %+v, want nothing said any more", at)
			}
			if _, err := r.pipe.RegisterWebhooks(t.Context()); err != nil {
				t.Error(err)
			}
			r.wantTrusted(true)
		})
	}
}

// TestWebhooksThatCeaseToBeAvailable: those there are can't be relied on, and
// none is taken for gone.
func TestWebhooksThatCeaseToBeAvailable(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	r.wantTrusted(true)
	r.front.set(without(http.StatusNotFound, http.MethodGet, http.MethodPatch, http.MethodDelete))
	if err := r.pipe.CheckWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := r.wantHook(extractEvent, store.WebhookLive)
	r.wantTrusted(false)
	r.wantRefused(r.pipe.PauseWebhook(t.Context(), w.ID), "404")
	r.wantRefused(r.pipe.RemoveWebhook(t.Context(), w.ID), "404")
	r.wantRefused(r.pipe.RepairWebhook(t.Context(), w.ID), "aren't available")
	r.wantHook(extractEvent, store.WebhookLive)
	r.front.set(nil)
	if err := r.pipe.CheckWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.wantTrusted(true)
}

// TestFullAccountIsSaidSo, whatever status the vendor has for it.
func TestFullAccountIsSaidSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	for i := range 10 {
		r.elsewhere(extractEvent, fmt.Sprintf("https://elsewhere.example/%d", i))
	}
	r.front.set(without(http.StatusForbidden, http.MethodPost))
	_, err := r.pipe.RegisterWebhooks(t.Context())
	r.wantRefused(err, "all the 10 webhooks")
	if at := r.foreign(); at.Unavailable != "" || at.Used != 10 || len(at.Foreign) != 10 {
		t.Errorf("got %+v, want ten used and nothing unavailable", at)
	}
}

// TestSignatureFormByHand: what is set is the only form taken; auto takes any
// and fixes the one that verifies; what is not listed is not set.
func TestSignatureFormByHand(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.OnlySubmit = true }})
	endpoint := r.newWebhook(extractEvent)
	id := r.hook(extractEvent).ID
	status := func(job string) int {
		return r.pipe.Receive(t.Context(), signedDelivery(endpoint, extractEvent, testSecret, envelopeFor(extractEvent, job))).Status
	}
	if err := r.pipe.SetSignatureForm(t.Context(), id, "body whole sha256= base64"); err != nil {
		t.Fatal(err)
	}
	if got := status("a"); got != http.StatusUnauthorized {
		t.Errorf("another form: got %d, want 401", got)
	}
	for _, wrong := range []string{"body", "body whole none hexx", "body whole none hex hex", "body  none hex"} {
		r.wantRefused(r.pipe.SetSignatureForm(t.Context(), id, wrong), "listed forms")
	}
	if err := r.pipe.SetSignatureForm(t.Context(), id, "auto"); err != nil {
		t.Fatal(err)
	}
	if got := status("b"); got != http.StatusOK {
		t.Errorf("auto: got %d, want 200", got)
	}
	if got := r.hook(extractEvent).SignatureForm; got != "body whole none hex" {
		t.Errorf("got the form %q, want the one that verified", got)
	}
	fixed := r.newPipeline(setup{pipeline: func(c *pipeline.Config) {
		c.OnlySubmit, c.Signature = true, pipeline.SignatureSettings{Encoding: "hex", Prefix: "none", Signed: "body", Key: "whole"}
	}})
	r.wantRefused(fixed.SetSignatureForm(t.Context(), id, "body whole none base64"), "settings")
	if form, by := fixed.FormInUse("body whole none base64"); form != "body whole none hex" || !by {
		t.Errorf("got %q, %v, want the one of the settings", form, by)
	}
	if n := r.number(`SELECT count(*) FROM audit_log WHERE what = 'webhook.form'`); n != 2 {
		t.Errorf("got %d lines in the audit log, want 2", n)
	}
}

// TestSendOneOfEachEvent: the smallest job of its kind brings its delivery.
func TestSendOneOfEachEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	hooks, err := r.store.Webhooks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range hooks {
		sent, err := r.pipe.SendOne(t.Context(), w.ID, " https://shop.sandbox.test/item/1 ", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.wantBatch(r.ended(sent.BatchID), 1, 0, 0)
		eventually(t, "the delivery of "+w.EventType, func() bool {
			job, err := r.store.PageTestJob(t.Context(), sent.BatchID)
			if err != nil {
				t.Fatal(err)
			}
			came, _, err := r.store.PageTestDeliveries(t.Context(), w.ID, job.VendorJobID, job.CreatedAt)
			if err != nil {
				t.Fatal(err)
			}
			return len(came) == 1 && came[0].WebhookID == w.ID && came[0].SecretVersion == 1
		})
	}
	books := r.sandbox.Books()
	if len(books.Jobs) != 3 {
		t.Errorf("the vendor made %d jobs, want three", len(books.Jobs))
	}
	if _, err := r.pipe.SendOne(t.Context(), hooks[0].ID, "https://a.example/\nhttps://b.example/", nil); err == nil {
		t.Error("two URLs were taken")
	}
	_, err = r.pipe.SendOne(t.Context(), hooks[0].ID, " ", nil)
	r.wantRefused(err, "Enter the URL.")
	if err := r.pipe.PauseWebhook(t.Context(), hooks[0].ID); err != nil {
		t.Fatal(err)
	}
	_, err = r.pipe.SendOne(t.Context(), hooks[0].ID, "https://shop.sandbox.test/item/1", nil)
	r.wantRefused(err, "paused")
}

// TestRefusedDeliveryOfATestIsFound by the job that its body names, although
// nothing in it is verified.
func TestRefusedDeliveryOfATestIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sandbox: func(c *sandbox.Config) { c.Faults = sandbox.Faults{sandbox.FaultWrongSig: 1} }})
	w := r.hook(extractEvent)
	sent, err := r.pipe.SendOne(t.Context(), w.ID, "https://shop.sandbox.test/item/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.ended(sent.BatchID)
	eventually(t, "the refused one", func() bool {
		job, err := r.store.PageTestJob(t.Context(), sent.BatchID)
		if err != nil {
			t.Fatal(err)
		}
		_, refused, err := r.store.PageTestDeliveries(t.Context(), w.ID, job.VendorJobID, job.CreatedAt)
		if err != nil {
			t.Fatal(err)
		}
		return len(refused) > 0 && refused[0].NamesJob && refused[0].Status == http.StatusUnauthorized
	})
}
