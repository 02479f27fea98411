package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/geonode/contracttest"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// turning is a rig whose vendor makes secrets that the test knows: testSecret
// at first, then turned(1), turned(2) and so on, one for each call to rotate.
type turning struct {
	*rig
	hook     *store.Webhook
	calls    atomic.Int64
	answered atomic.Pointer[func(call int64, w http.ResponseWriter)]
}

func turned(n int64) string { return fmt.Sprintf("whsec_turned-for-the-%d-th-time", n) }

func newTurning(t *testing.T, s setup) *turning {
	t.Helper()
	s.noWebhooks = true
	r := &turning{rig: newRig(t, s)}
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		switch {
		case req.Method == http.MethodPost && req.URL.Path == "/v1/webhooks":
			rewrite(w, req, next, "", func(_ int, body map[string]any) { body["secret"] = testSecret })
		case strings.HasSuffix(req.URL.Path, "/rotate-secret"):
			call := r.calls.Add(1)
			if do := r.answered.Load(); do != nil {
				(*do)(call, w)
				return
			}
			r.tell(w, call)
		default:
			next.ServeHTTP(w, req)
		}
	})
	hooks, err := r.pipe.RegisterWebhooks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hooks {
		if h.EventType == "extract_completed" {
			r.hook = h
		}
	}
	return r
}

// answer decides what becomes of calls to rotate from now on.
func (r *turning) answer(do func(call int64, w http.ResponseWriter)) { r.answered.Store(&do) }

// tell answers a call to rotate with its secret.
func (r *turning) tell(w http.ResponseWriter, call int64) {
	answerJSON(w, http.StatusOK, map[string]any{"secret": turned(call)}, "")
}

// lose makes the secret and cuts the connection.
func lose() { panic(http.ErrAbortHandler) }

func (r *turning) rotate(emergency bool) *store.Rotation {
	r.t.Helper()
	got, err := r.pipe.Rotate(r.t.Context(), r.hook.ID, emergency)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

// turnedTo waits for a rotation's end.
func (r *turning) turnedTo(id int64, want store.RotationState) *store.Rotation {
	r.t.Helper()
	var got *store.Rotation
	eventually(r.t, "the rotation to end", func() bool {
		var err error
		if got, err = r.store.Rotation(r.t.Context(), id); err != nil {
			r.t.Fatal(err)
		}
		return !got.Open()
	})
	if got.State != want {
		r.t.Fatalf("got %+v, want it %s", got, want)
	}
	return got
}

// replica is another process on the same database.
func (r *turning) replica() *pipeline.Pipeline {
	r.t.Helper()
	other := r.newPipeline(setup{})
	if err := other.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := other.Stop(context.Background()); err != nil {
			r.t.Error(err)
		}
	})
	return other
}

// signed is a delivery for a vendor's job, signed with the secret.
func (r *turning) signed(secret, job string) pipeline.Incoming {
	return signedDelivery(r.hook.Endpoint, "extract_completed", secret, envelopeFor("extract_completed", job))
}

// deliver sends a delivery for a vendor's job, signed with the secret.
func (r *turning) deliver(secret, job string) pipeline.Answer {
	return r.pipe.Receive(r.t.Context(), r.signed(secret, job))
}

func (r *turning) wantAnswer(secret, job string, want int) {
	r.t.Helper()
	if got := r.deliver(secret, job); got.Status != want {
		r.t.Errorf("%s signed with %s: got %+v, want %d", job, secret, got, want)
	}
}

// kept waits until n deliveries of the verdict are kept.
func (r *turning) kept(verdict string, n int64) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%d %s deliveries", n, verdict), func() bool {
		return r.number(`SELECT count(*) FROM deliveries WHERE verdict = $1`, verdict) == n
	})
}

func (r *turning) state() string {
	return r.text(`SELECT state FROM webhooks WHERE id = $1`, r.hook.ID)
}

// TestRotation: deliveries signed with the old secret and with the new one are
// taken up, whichever comes when.
func TestRotation(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{})
	asked := newOnce()
	t.Cleanup(asked.release)
	r.answer(func(call int64, w http.ResponseWriter) {
		asked.hold()
		r.tell(w, call)
	})
	rotation := r.rotate(false)
	await(t, "the call", asked.began)
	if got := r.state(); got != "rotating" {
		t.Errorf("the webhook is %s during the call, want rotating", got)
	}
	r.wantAnswer(testSecret, "old-during", http.StatusOK)
	r.wantAnswer(turned(1), "new-before-we-know", http.StatusServiceUnavailable)
	r.wantAnswer("whsec_forged-by-somebody-else", "forged", http.StatusServiceUnavailable)
	r.kept("refused", 2)
	asked.release()
	got := r.turnedTo(rotation.ID, store.RotationDone)
	if got.Quarantined != 2 || got.Recovered != 1 || got.RefusedSecretLost != 0 || *got.Version != 2 {
		t.Errorf("got %+v, want one of two recovered, by version 2", got)
	}
	if got := r.text(`SELECT verdict || ' ' || status || ' ' || secret_version FROM deliveries WHERE recovered_at IS NOT NULL`); got != "accepted 503 2" {
		t.Errorf("the recovered delivery is %q", got)
	}
	if got := r.number(`SELECT count(*) FROM processed_events WHERE vendor_job_id = 'new-before-we-know'`); got != 1 {
		t.Errorf("got %d events for it, want 1", got)
	}
	if got := r.state(); got != "live" {
		t.Errorf("the webhook is %s afterwards, want live", got)
	}
	r.wantAnswer(turned(1), "new-after", http.StatusOK)
	r.wantAnswer(testSecret, "old-after", http.StatusOK)
	r.wantAnswer("whsec_forged-by-somebody-else", "forged-after", http.StatusUnauthorized)
}

// TestRotationTwiceInTheGraceTime: a later rotation does not move an earlier
// version's end.
func TestRotationTwiceInTheGraceTime(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newTurning(t, setup{pipeline: func(c *pipeline.Config) { c.Now, c.GraceTime = clock.now, 24*time.Hour }})
	r.turnedTo(r.rotate(false).ID, store.RotationDone)
	end := r.text(`SELECT valid_until::text FROM webhook_secrets WHERE webhook_id = $1 AND version = 1`, r.hook.ID)
	clock.forward(12 * time.Hour)
	r.turnedTo(r.rotate(false).ID, store.RotationDone)
	if got := r.text(`SELECT valid_until::text FROM webhook_secrets WHERE webhook_id = $1 AND version = 1`, r.hook.ID); got != end || got == "" {
		t.Errorf("version 1 ends at %q, want %q as before", got, end)
	}
	for i, secret := range []string{testSecret, turned(1), turned(2)} {
		r.wantAnswer(secret, fmt.Sprintf("within-%d", i), http.StatusOK)
	}
	clock.forward(13 * time.Hour)
	r.wantAnswer(testSecret, "past-its-end", http.StatusUnauthorized)
	r.wantAnswer(turned(1), "within-its-end", http.StatusOK)
}

// TestRotationInAnEmergency: every older secret ends with the storing, and a
// press during a change that is none makes it one.
func TestRotationInAnEmergency(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{})
	other := r.replica()
	r.turnedTo(r.rotate(false).ID, store.RotationDone)
	if got := other.Receive(t.Context(), r.signed(testSecret, "known-to-the-other")); got.Status != http.StatusOK {
		t.Fatalf("got %+v from another process, want the secret of before taken", got)
	}
	asked := newOnce()
	t.Cleanup(asked.release)
	r.answer(func(call int64, w http.ResponseWriter) {
		asked.hold()
		r.tell(w, call)
	})
	begun := r.rotate(false)
	await(t, "the call", asked.began)
	if joined := r.rotate(true); joined.ID != begun.ID || !joined.Emergency {
		t.Errorf("got %+v, want the one under way as an emergency", joined)
	}
	asked.release()
	if got := r.turnedTo(begun.ID, store.RotationDone); got.OldUntil == nil || got.OldUntil.After(*got.EndedAt) {
		t.Errorf("got %+v, want the older secrets ended by its end", got)
	}
	// A cached secret may accept for half a second after its end.
	eventually(t, "the first secret's end", func() bool { return r.deliver(testSecret, "leaked-1").Status == http.StatusUnauthorized })
	r.wantAnswer(turned(1), "leaked-2", http.StatusUnauthorized)
	r.wantAnswer(turned(2), "new", http.StatusOK)
	// The other process has the first secret in memory and was told nothing.
	eventually(t, "the first secret's end elsewhere", func() bool {
		return other.Receive(t.Context(), r.signed(testSecret, "leaked-3")).Status == http.StatusUnauthorized
	})
	if got := other.Receive(t.Context(), r.signed(turned(2), "new-elsewhere")); got.Status != http.StatusOK {
		t.Errorf("got %+v from another process, want the new secret taken", got)
	}
}

// TestRotationLosesTheAnswer: the secret that nobody saw is replaced by
// another call, and what it signed is counted and its job settled all the same.
func TestRotationLosesTheAnswer(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{pipeline: deaf})
	again := newOnce()
	t.Cleanup(again.release)
	r.answer(func(call int64, w http.ResponseWriter) {
		if call == 1 {
			lose()
		}
		again.hold()
		r.tell(w, call)
	})
	rotation := r.rotate(false)
	await(t, "the second call", again.began)
	if got := r.state(); got != "secret_unknown" {
		t.Errorf("the webhook is %s, want secret_unknown", got)
	}
	r.wantAnswer(turned(1), "nobody-knows", http.StatusServiceUnavailable)
	r.wantAnswer(turned(2), "soon-known", http.StatusServiceUnavailable)
	r.kept("refused", 2)
	again.release()
	got := r.turnedTo(rotation.ID, store.RotationDone)
	if got.Lost != 1 || got.Recovered != 1 || got.RefusedSecretLost != 1 {
		t.Errorf("got %+v, want one answer lost, one delivery recovered and one lost", got)
	}
	if n := r.number(`SELECT count(*) FROM deliveries WHERE secret_lost AND verdict = 'refused'`); n != 1 {
		t.Errorf("%d deliveries are marked, want 1", n)
	}
	if got := r.state(); got != "live" {
		t.Errorf("the webhook is %s afterwards, want live", got)
	}
}

// TestRotationSettlesWhatNothingCanVerify: the job of a delivery that was
// refused during the change comes home by the vendor's own log.
func TestRotationSettlesWhatNothingCanVerify(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{pipeline: deaf})
	asked := newOnce()
	t.Cleanup(asked.release)
	r.answer(func(call int64, w http.ResponseWriter) {
		asked.hold()
		r.tell(w, call)
	})
	rotation := r.rotate(false)
	await(t, "the call", asked.began)
	// The sandbox signs with the secret it made, which the test's answer hid.
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	eventually(t, "its delivery to be refused", func() bool { return r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'refused'`) > 0 })
	asked.release()
	got := r.turnedTo(rotation.ID, store.RotationDone)
	if got.Refused == 0 || got.Woken != 1 {
		t.Errorf("got %+v, want a refusal in the log and its job woken", got)
	}
	if b := r.ended(id); b.StoredReplay != 1 {
		t.Errorf("got %+v, want it stored by replay", b)
	}
	r.balanced()
}

// TestRotationPressedTwice: two replicas asked at once make one secret.
func TestRotationPressedTwice(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{})
	other := r.replica()
	asked := newOnce()
	t.Cleanup(asked.release)
	r.answer(func(call int64, w http.ResponseWriter) {
		asked.hold()
		r.tell(w, call)
	})
	ids := make([]int64, 8)
	var presses sync.WaitGroup
	for i := range ids {
		presses.Go(func() {
			p := []*pipeline.Pipeline{r.pipe, other}[i%2]
			got, err := p.Rotate(t.Context(), r.hook.ID, false)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = got.ID
		})
	}
	presses.Wait()
	asked.release()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("the presses made rotations %v, want one", ids)
		}
	}
	r.turnedTo(ids[0], store.RotationDone)
	if got := r.calls.Load(); got != 1 {
		t.Errorf("the vendor was asked %d times, want once", got)
	}
	if got := r.number(`SELECT count(*) FROM audit_log WHERE what = 'webhook.rotate'`); got != int64(len(ids)) {
		t.Errorf("got %d presses in the audit log, want %d", got, len(ids))
	}
}

// TestRotationRefused: what the vendor refuses for good leaves the secret as
// it was; a webhook that it does not know is gone.
func TestRotationRefused(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{http.StatusForbidden: "live", http.StatusNotFound: "gone"} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			r := newTurning(t, setup{pipeline: silent(nil)})
			r.answer(func(_ int64, w http.ResponseWriter) {
				w.Header().Set(contracttest.DeliberateHeader, "refused by the test")
				answerJSON(w, status, refusal("REFUSED", false), "refused by the test")
			})
			if want == "gone" {
				if _, err := r.client.DeleteWebhook(t.Context(), *r.hook.VendorWebhookID); err != nil {
					t.Fatal(err)
				}
			}
			got := r.turnedTo(r.rotate(false).ID, store.RotationFailed)
			if got.Note != "said by the test" {
				t.Errorf("the note is %q, want the vendor's words", got.Note)
			}
			if got := r.state(); got != want {
				t.Errorf("the webhook is %s, want %s", got, want)
			}
			r.wantAnswer(testSecret, "still-good", http.StatusOK)
			if want != "gone" {
				return
			}
			if _, err := r.pipe.Rotate(t.Context(), r.hook.ID, false); !errors.Is(err, pipeline.ErrNotRotatable) {
				t.Errorf("got %v, want %v", err, pipeline.ErrNotRotatable)
			}
		})
	}
}

// TestRotationWaitsForABusyVendor: a refusal that passes is no end.
func TestRotationWaitsForABusyVendor(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{pipeline: silent(nil)})
	r.answer(func(call int64, w http.ResponseWriter) {
		switch call {
		case 1:
			answerJSON(w, http.StatusServiceUnavailable, refusal("UNAVAILABLE", true), "")
		case 2:
			w.Header().Set("Retry-After", "1")
			answerJSON(w, http.StatusTooManyRequests, refusal("RATE_LIMITED", true), "")
		default:
			r.tell(w, call)
		}
	})
	if got := r.turnedTo(r.rotate(false).ID, store.RotationDone); got.Attempt != 3 {
		t.Errorf("got %+v, want the third call to do it", got)
	}
	r.wantAnswer(turned(3), "after-all", http.StatusOK)
}
