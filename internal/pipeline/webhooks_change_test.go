package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// vendorCall makes a call as somebody else with the account's key would, past
// whatever stands in front of the vendor.
func (r *rig) vendorCall(method, path, body string) map[string]any {
	r.t.Helper()
	req := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	req.Header.Set("X-Api-Key", sandbox.DefaultAPIKey)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	r.sandbox.Handler().ServeHTTP(rec, req)
	out := map[string]any{}
	if rec.Code >= 300 {
		r.t.Fatalf("%s %s: %d %s", method, path, rec.Code, rec.Body)
	}
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
			r.t.Fatal(err)
		}
	}
	return out
}

// hook is the webhook of an event, as it stands here.
func (r *rig) hook(event string) *store.Webhook {
	r.t.Helper()
	hooks, err := r.store.Webhooks(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, w := range hooks {
		if w.EventType == event {
			return w
		}
	}
	r.t.Fatalf("no webhook for %s", event)
	return nil
}

// there is how a webhook of ours stands at the vendor.
func (r *rig) there(w *store.Webhook) map[string]any {
	r.t.Helper()
	return r.vendorCall(http.MethodGet, "/v1/webhooks/"+*w.VendorWebhookID, "")
}

// wantHook compares how a webhook stands here.
func (r *rig) wantHook(event string, state store.WebhookState) *store.Webhook {
	r.t.Helper()
	w := r.hook(event)
	if w.State != state {
		r.t.Errorf("the webhook for %s is %s, want %s", event, w.State, state)
	}
	return w
}

// wantRefused wants a change that was refused, for a reason that people are
// told.
func (r *rig) wantRefused(err error, why string) {
	r.t.Helper()
	refused, ok := errors.AsType[*pipeline.WebhookError](err)
	if !ok || !strings.Contains(refused.Text, why) {
		r.t.Errorf("got %v, want a refusal that says %q", err, why)
	}
}

// auditLines is the audit log, a line each.
func (r *rig) auditLines() string {
	r.t.Helper()
	return r.text(`SELECT string_agg(who || ' ' || what || ' ' || on_id || ' ' || coalesce(before->>'state', '-') || ' ' || coalesce(after->>'state', '-'), E'\n' ORDER BY id)
		FROM audit_log WHERE what LIKE 'webhook.%' AND what <> 'webhook.register'`)
}

const extractEvent = "extract_completed"

// isHooks reports whether a request is about webhooks, with that method.
func isHooks(req *http.Request, method string) bool {
	return req.Method == method && strings.HasPrefix(req.URL.Path, "/v1/webhooks")
}

// TestPausedWebhookIsNoFault: the vendor sends it nothing, jobs come home by
// polling, nobody is alarmed, and both changes name who made them.
func TestPausedWebhookIsNoFault(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	ctx := store.WithActor(t.Context(), store.Actor{Name: "carol", Source: "192.0.2.9"})
	w := r.hook(extractEvent)
	for range 2 {
		if err := r.pipe.PauseWebhook(ctx, w.ID); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.there(w)["is_active"]; got != false {
		t.Errorf("at the vendor it is active: %v", got)
	}
	if err := r.pipe.CheckWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.wantHook(extractEvent, store.WebhookPaused)
	r.wantTrusted(false)
	if troubled, err := r.store.PageTroubledWebhooks(t.Context()); err != nil || len(troubled) != 0 {
		t.Errorf("got %d troubled, %v, want none", len(troubled), err)
	}
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	r.wantBatch(r.ended(id), 1, 0, 0)
	if n := r.number(`SELECT count(*) FROM deliveries`); n != 0 {
		t.Errorf("got %d deliveries while it was paused, want none", n)
	}
	if err := r.pipe.ResumeWebhook(ctx, w.ID); err != nil {
		t.Fatal(err)
	}
	r.wantHook(extractEvent, store.WebhookLive)
	r.wantTrusted(true)
	want := fmt.Sprintf("carol webhook.pause %d live paused\ncarol webhook.resume %d paused live", w.ID, w.ID)
	if got := r.auditLines(); got != want {
		t.Errorf("audit log: got\n%s\nwant\n%s", got, want)
	}
}

// TestLostAnswerOfAChangeIsReadFromTheList: whether the vendor did it before
// the answer was lost, or not, what is written here is what is there.
func TestLostAnswerOfAChangeIsReadFromTheList(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{true, false} {
		t.Run(fmt.Sprintf("done %v", done), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{})
			w := r.hook(extractEvent)
			var patches atomic.Int32
			r.front.set(func(rw http.ResponseWriter, req *http.Request, next http.Handler) {
				if isHooks(req, http.MethodPatch) && patches.Add(1) == 1 {
					if done {
						next.ServeHTTP(httptest.NewRecorder(), req)
					}
					panic(http.ErrAbortHandler)
				}
				next.ServeHTTP(rw, req)
			})
			if err := r.pipe.PauseWebhook(t.Context(), w.ID); err != nil {
				t.Fatal(err)
			}
			r.wantHook(extractEvent, store.WebhookPaused)
			if got := r.there(w)["is_active"]; got != false {
				t.Errorf("at the vendor it is active: %v", got)
			}
			if want := map[bool]int32{true: 1, false: 2}[done]; patches.Load() != want {
				t.Errorf("got %d calls, want %d", patches.Load(), want)
			}
		})
	}
}

// TestRefusedChangeChangesNothingHere.
func TestRefusedChangeChangesNothingHere(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	r.front.set(func(rw http.ResponseWriter, req *http.Request, next http.Handler) {
		if isHooks(req, http.MethodPatch) || isHooks(req, http.MethodDelete) {
			answerJSON(rw, http.StatusUnprocessableEntity, refusal("LOCKED", false), "")
			return
		}
		next.ServeHTTP(rw, req)
	})
	w := r.hook(extractEvent)
	r.wantRefused(r.pipe.PauseWebhook(t.Context(), w.ID), "said by the test")
	r.wantRefused(r.pipe.DescribeWebhook(t.Context(), w.ID, "other"), "said by the test")
	r.wantRefused(r.pipe.RemoveWebhook(t.Context(), w.ID), "said by the test")
	if got := r.wantHook(extractEvent, store.WebhookLive); got.Description != "Rollcall" {
		t.Errorf("got the description %q", got.Description)
	}
	if got := r.auditLines(); got != "" {
		t.Errorf("audit log: got %s, want nothing", got)
	}
}

// TestTwoAdminsPressAtOnce: the vendor and the audit log see each change once.
func TestTwoAdminsPressAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	other := r.newPipeline(setup{})
	both := func(press func(*pipeline.Pipeline) error) {
		var pressing sync.WaitGroup
		for _, p := range []*pipeline.Pipeline{r.pipe, other, r.pipe} {
			pressing.Go(func() {
				if err := press(p); err != nil {
					t.Error(err)
				}
			})
		}
		pressing.Wait()
	}
	both(func(p *pipeline.Pipeline) error { _, err := p.RegisterWebhooks(t.Context()); return err })
	calls := r.sandbox.Books().Calls
	if n := r.number(`SELECT count(*) FROM webhooks`); n != 3 || calls["webhooks.create"].Total != 3 || calls["webhooks.rotate"].Total != 0 {
		t.Errorf("got %d webhooks, %+v, want three made", n, calls)
	}
	w := r.hook(extractEvent)
	both(func(p *pipeline.Pipeline) error { return p.PauseWebhook(t.Context(), w.ID) })
	both(func(p *pipeline.Pipeline) error { return p.ResumeWebhook(t.Context(), w.ID) })
	if got := r.sandbox.Books().Calls["webhooks.update"].Total; got != 2 {
		t.Errorf("got %d changes at the vendor, want 2", got)
	}
	if got := strings.Count(r.auditLines(), "\n"); got != 1 {
		t.Errorf("audit log: got\n%s\nwant two lines", r.auditLines())
	}
	both(func(p *pipeline.Pipeline) error {
		if err := p.RemoveWebhook(t.Context(), w.ID); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return nil
	})
	if got := r.sandbox.Books().Calls["webhooks.delete"].Total; got != 1 {
		t.Errorf("got %d deletions at the vendor, want 1", got)
	}
}

// TestRotationUnderWayIsLeftAlone: nothing that would mix with it is done; and
// one that begins in the middle of a pause finds the webhook as it was.
func TestRotationUnderWayIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	w := r.hook(extractEvent)
	for _, state := range []string{"rotating", "secret_unknown"} {
		r.exec(`UPDATE webhooks SET state = $2 WHERE id = $1`, w.ID, state)
		r.exec(`INSERT INTO rotations (webhook_id, state, webhook_was, started_at) VALUES ($1, 'calling', 'live', now()) ON CONFLICT DO NOTHING`, w.ID)
		for _, change := range []func(context.Context, int64) error{
			r.pipe.PauseWebhook, r.pipe.ResumeWebhook, r.pipe.RepairWebhook, r.pipe.RemoveWebhook,
		} {
			r.wantRefused(change(t.Context(), w.ID), "Wait until that has ended")
		}
		r.wantHook(extractEvent, store.WebhookState(state))
	}
	r.exec(`UPDATE webhooks SET state = 'live' WHERE id = $1`, w.ID)
	r.front.set(func(rw http.ResponseWriter, req *http.Request, next http.Handler) {
		if isHooks(req, http.MethodPatch) {
			r.exec(`UPDATE webhooks SET state = 'rotating' WHERE id = $1`, w.ID)
		}
		next.ServeHTTP(rw, req)
	})
	r.wantRefused(r.pipe.PauseWebhook(t.Context(), w.ID), "at the same moment")
	r.wantHook(extractEvent, store.WebhookRotating)
	if got := r.there(w)["is_active"]; got != true {
		t.Errorf("at the vendor it is active: %v, want it switched back on", got)
	}
	if got := r.auditLines(); got != "" {
		t.Errorf("audit log: got %s, want nothing", got)
	}
}

// TestRepairPutsRightWhatHappenedThere, whatever it was, and turns auto mode
// back.
func TestRepairPutsRightWhatHappenedThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state store.WebhookState
		harm  func(*rig, *store.Webhook)
	}{
		"inactive": {store.WebhookInactive, func(r *rig, w *store.Webhook) {
			r.vendorCall(http.MethodPatch, "/v1/webhooks/"+*w.VendorWebhookID, `{"is_active": false}`)
		}},
		"moved": {store.WebhookMoved, func(r *rig, w *store.Webhook) {
			r.vendorCall(http.MethodPatch, "/v1/webhooks/"+*w.VendorWebhookID, `{"url": "https://elsewhere.example/x", "is_active": true}`)
		}},
		"another event": {store.WebhookMoved, func(r *rig, w *store.Webhook) {
			r.vendorCall(http.MethodPatch, "/v1/webhooks/"+*w.VendorWebhookID, `{"event_type": "crawl_completed"}`)
		}},
		"gone": {store.WebhookGone, func(r *rig, w *store.Webhook) {
			r.vendorCall(http.MethodDelete, "/v1/webhooks/"+*w.VendorWebhookID, "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{})
			before := r.hook(extractEvent)
			c.harm(r, before)
			if err := r.pipe.CheckWebhooks(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.wantHook(extractEvent, c.state)
			r.wantTrusted(false)
			if troubled, err := r.store.PageTroubledWebhooks(t.Context()); err != nil || len(troubled) != 1 {
				t.Errorf("got %d troubled, %v, want it", len(troubled), err)
			}
			if err := r.pipe.RepairWebhook(t.Context(), before.ID); err != nil {
				t.Fatal(err)
			}
			after := r.wantHook(extractEvent, store.WebhookLive)
			if after.ID != before.ID || after.URL != before.URL {
				t.Errorf("got %+v, want the same row and address", after)
			}
			there := r.there(after)
			if there["is_active"] != true || there["url"] != after.URL || there["event_type"] != extractEvent {
				t.Errorf("at the vendor: got %+v", there)
			}
			r.wantTrusted(true)
			id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
			r.wantBatch(r.ended(id), 1, 0, 0)
			eventually(t, "its delivery", func() bool {
				return r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'accepted' AND webhook_id = $1`, after.ID) == 1
			})
		})
	}
}

// TestRepairFollowsThePublicAddress: when this installation has moved, so has
// the webhook's address.
func TestRepairFollowsThePublicAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	w := r.hook(extractEvent)
	moved := r.newPipeline(setup{pipeline: func(c *pipeline.Config) { c.OnlySubmit, c.PublicURL = true, "https://new.example" }})
	if err := moved.RepairWebhook(t.Context(), w.ID); err != nil {
		t.Fatal(err)
	}
	want := "https://new.example/webhooks/geonode/" + w.Endpoint
	if got := r.wantHook(extractEvent, store.WebhookLive); got.URL != want || r.there(w)["url"] != want {
		t.Errorf("got %s here and %v there, want %s", got.URL, r.there(w)["url"], want)
	}
}

// TestRegisterLeavesWhatIsThere: what needs a repair or a person is not made a
// second time; what is gone is made anew.
func TestRegisterLeavesWhatIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	if err := r.pipe.PauseWebhook(t.Context(), r.hook(extractEvent).ID); err != nil {
		t.Fatal(err)
	}
	r.exec(`UPDATE webhooks SET state = 'inactive' WHERE event_type = 'batch_completed'`)
	r.vendorCall(http.MethodDelete, "/v1/webhooks/"+*r.hook("crawl_completed").VendorWebhookID, "")
	r.exec(`UPDATE webhooks SET state = 'gone' WHERE event_type = 'crawl_completed'`)
	hooks, err := r.pipe.RegisterWebhooks(t.Context())
	if err != nil || len(hooks) != 3 {
		t.Fatalf("got %d, %v, want three", len(hooks), err)
	}
	r.wantHook(extractEvent, store.WebhookPaused)
	r.wantHook("batch_completed", store.WebhookInactive)
	r.wantHook("crawl_completed", store.WebhookLive)
	if got := r.sandbox.Books().Calls["webhooks.create"].Total; got != 4 {
		t.Errorf("got %d made, want the three and the one that was gone", got)
	}
}
