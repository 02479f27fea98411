package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// answers has do answer what it takes, before the vendor that is there.
func (r *turning) answers(do func(w http.ResponseWriter, req *http.Request) bool) {
	before := *r.front.do.Load()
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if !do(w, req) {
			before(w, req, next)
		}
	})
}

// failing makes a statement fail until what it returns is called.
func (r *rig) failing(on string) func() {
	r.t.Helper()
	r.exec(`CREATE TABLE broken (it bool)`)
	r.exec(`CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF EXISTS (SELECT FROM broken) THEN RETURN NEW; END IF; RAISE 'broken by the test'; END $$`)
	r.exec(`CREATE TRIGGER failing ` + on + ` EXECUTE FUNCTION fails()`)
	return func() { r.exec(`INSERT INTO broken VALUES (false)`) }
}

// taskFailed waits until the task that takes a rotation further has failed.
func (r *rig) taskFailed() {
	r.t.Helper()
	eventually(r.t, "the task to fail", func() bool {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'rotate' AND cardinality(errors) > 0`) > 0
	})
}

// TestRotationOfALogWithoutEnd: a vendor whose delivery log never ends doesn't
// keep a rotation open, which the next press would only join.
func TestRotationOfALogWithoutEnd(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newTurning(t, setup{pipeline: silent(func(c *pipeline.Config) { c.Now, c.MirrorPages = clock.now, 2 })})
	read := newOnce()
	read.release()
	var rows atomic.Int64
	r.answers(func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.HasSuffix(req.URL.Path, "/deliveries") {
			return false
		}
		items := make([]map[string]any, 100)
		for i := range items {
			items[i] = attemptRow(int(rows.Add(1)))
		}
		read.hold()
		answerJSON(w, http.StatusOK, map[string]any{"items": items, "page_size": 100, "page_count": 1_000_000_000}, "a log without end")
		return true
	})
	begun := r.rotate(false)
	await(t, "the log to be read", read.began)
	clock.forward(time.Hour)
	if got := r.turnedTo(begun.ID, store.RotationDone); got.Note == "" {
		t.Errorf("got %+v, want a note that the log was not read to its end", got)
	}
	if next := r.rotate(false); next.ID == begun.ID {
		t.Error("the next press joined a rotation that has ended")
	}
}

// TestRotationCountsOnce: what a look through the quarantine took up is counted
// though the look itself came to nothing, and done again.
func TestRotationCountsOnce(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{pipeline: silent(nil)})
	asked := newOnce()
	t.Cleanup(asked.release)
	r.answer(func(call int64, w http.ResponseWriter) {
		asked.hold()
		r.tell(w, call)
	})
	mended := r.failing(`BEFORE UPDATE ON rotations FOR EACH ROW WHEN (NEW.verified_at IS NOT NULL AND OLD.verified_at IS NULL)`)
	begun := r.rotate(false)
	await(t, "the call", asked.began)
	r.wantAnswer(turned(1), "good", http.StatusServiceUnavailable)
	r.wantAnswer("whsec_forged-by-somebody-else", "forged", http.StatusServiceUnavailable)
	r.kept("refused", 2)
	asked.release()
	r.taskFailed()
	mended()
	if got := r.turnedTo(begun.ID, store.RotationDone); got.Quarantined != 2 || got.Recovered != 1 {
		t.Errorf("got %d of %d taken up, want 1 of 2", got.Recovered, got.Quarantined)
	}
}

// TestRotationKeepsWhatItWillVerify: the room that a change of the secret has in
// the quarantine stays its own until that has been looked through.
func TestRotationKeepsWhatItWillVerify(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newTurning(t, setup{pipeline: silent(func(c *pipeline.Config) { c.Now, c.QuarantineRows = clock.now, 2 })})
	forged := r.signed("whsec_forged-by-somebody-else", "forged")
	r.refuse(forged, "198.51.100.9", 2, 0)
	r.accounted(2)
	asked := newOnce()
	t.Cleanup(asked.release)
	r.answer(func(call int64, w http.ResponseWriter) {
		asked.hold()
		r.tell(w, call)
	})
	mended := r.failing(`BEFORE UPDATE ON deliveries FOR EACH ROW WHEN (NEW.recovered_at IS NOT NULL)`)
	begun := r.rotate(false)
	await(t, "the call", asked.began)
	r.wantAnswer(turned(1), "good-1", http.StatusServiceUnavailable)
	r.wantAnswer(turned(1), "good-2", http.StatusServiceUnavailable)
	r.accounted(4)
	asked.release()
	r.taskFailed()
	clock.forward(2 * time.Second) // What was counted of the quarantine is counted anew.
	r.refuse(forged, "198.51.100.9", 1, 0)
	r.accounted(5)
	mended()
	if got := r.turnedTo(begun.ID, store.RotationDone); got.Recovered != 2 {
		t.Errorf("got %+v, want both that the new secret signed taken up", got)
	}
}

// TestRotationNotBelievesOneRefusal: a 404 for a webhook that the vendor lists
// is no reason to leave a secret unknown.
func TestRotationNotBelievesOneRefusal(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{pipeline: silent(nil)})
	r.answer(func(call int64, w http.ResponseWriter) {
		switch call {
		case 1:
			lose()
		case 2:
			answerJSON(w, http.StatusNotFound, refusal("NOT_FOUND", false), "said of a webhook that is listed")
		default:
			r.tell(w, call)
		}
	})
	r.turnedTo(r.rotate(false).ID, store.RotationDone)
	if got := r.state(); got != "live" {
		t.Errorf("the webhook is %s, want live", got)
	}
	r.wantAnswer(turned(3), "after-all", http.StatusOK)
}

// TestRotationOfAWebhookRegisteredAnew: one that was lost and is being made
// again has no id at the vendor meanwhile, and no secret to rotate.
func TestRotationOfAWebhookRegisteredAnew(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{stopped: true, pipeline: silent(nil)})
	begun := r.rotate(false)
	r.exec(`UPDATE webhooks SET state = 'registering', vendor_webhook_id = NULL WHERE id = $1`, r.hook.ID)
	ended, err := r.pipe.FollowRotation(t.Context(), begun.ID)
	if err != nil || ended.State != store.RotationFailed {
		t.Fatalf("got %+v, %v, want it failed", ended, err)
	}
	if got := r.state(); got != "registering" {
		t.Errorf("the webhook is %s, want it registering as before", got)
	}
}

// TestRecoveredBodiesAreBounded: of a delivery that is good after all no more
// of the body is kept than of any other.
func TestRecoveredBodiesAreBounded(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{})
	asked := newOnce()
	t.Cleanup(asked.release)
	r.answer(func(call int64, w http.ResponseWriter) {
		asked.hold()
		r.tell(w, call)
	})
	begun := r.rotate(false)
	await(t, "the call", asked.began)
	body := append(envelopeFor("extract_completed", "large"), bytes.Repeat([]byte{' '}, 300<<10)...)
	got := r.pipe.Receive(t.Context(), signedDelivery(r.hook.Endpoint, "extract_completed", turned(1), body))
	if got.Status != http.StatusServiceUnavailable {
		t.Fatalf("got %+v, want 503", got)
	}
	r.kept("refused", 1)
	asked.release()
	r.turnedTo(begun.ID, store.RotationDone)
	want := fmt.Sprintf("accepted %d %d", len(body), 256<<10)
	if got := r.text(`SELECT verdict || ' ' || body_size || ' ' || octet_length(body) FROM deliveries`); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRotationAnsweredLate: a secret whose answer comes when the rotation has
// ended without it verifies what it signed, that which was refused before too.
func TestRotationAnsweredLate(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	now := func(c *pipeline.Config) { c.Now = clock.now }
	r := newTurning(t, setup{stopped: true, pipeline: silent(now)})
	first := newOnce()
	t.Cleanup(first.release)
	r.answer(func(call int64, w http.ResponseWriter) {
		first.hold()
		r.tell(w, call)
	})
	begun := r.rotate(false)
	late := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := r.pipe.FollowRotation(ctx, begun.ID)
		late <- err
	}()
	await(t, "the first call", first.began)
	clock.forward(time.Minute)
	other := r.newPipeline(setup{pipeline: silent(now)})
	if ended, err := other.FollowRotation(t.Context(), begun.ID); err != nil || ended.State != store.RotationDone || ended.Lost != 1 {
		t.Fatalf("got %+v, %v, want it done by the second call", ended, err)
	}
	if err := other.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if got := other.Receive(t.Context(), r.signed(turned(1), "signed-between")); got.Status != http.StatusUnauthorized {
		t.Fatalf("got %+v, want it refused", got)
	}
	r.kept("refused", 1)
	first.release()
	if err := <-late; err != nil {
		t.Fatal(err)
	}
	r.kept("accepted", 1)
}

// TestRotationOverALargeQuarantine: what one stretch of looking does not reach
// is looked at by others, from there on, and the rotation ends all the same.
func TestRotationOverALargeQuarantine(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	var slow atomic.Bool // Each look at the clock then finds that a stretch is over.
	r := newTurning(t, setup{pipeline: silent(func(c *pipeline.Config) {
		c.Now = func() time.Time {
			if slow.Load() {
				clock.forward(11 * time.Second)
			}
			return clock.now()
		}
	})})
	r.refuse(r.signed("whsec_forged-by-somebody-else", "forged"), "198.51.100.9", 120, 0)
	r.accounted(120)
	asked := newOnce()
	t.Cleanup(asked.release)
	r.answer(func(call int64, w http.ResponseWriter) {
		asked.hold()
		slow.Store(true)
		r.tell(w, call)
	})
	begun := r.rotate(false)
	await(t, "the call", asked.began)
	r.wantAnswer(turned(1), "good", http.StatusServiceUnavailable)
	r.kept("refused", 121)
	asked.release()
	eventually(t, "the good one to be taken up", func() bool {
		return r.number(`SELECT count(*) FROM deliveries WHERE vendor_job_id = 'good' AND verdict = 'accepted'`) == 1
	})
	slow.Store(false)
	r.turnedTo(begun.ID, store.RotationDone)
	if n := r.number(`SELECT count(*) FROM river_job WHERE kind = 'reverify' AND (args->>'after')::bigint > 0`); n == 0 {
		t.Error("no task goes on where the first look was cut short")
	}
}

// TestRotationFindsRefusalsOfTheFirstSecond: the vendor may write its times in
// whole seconds, which puts an attempt before the rotation that refused it.
func TestRotationFindsRefusalsOfTheFirstSecond(t *testing.T) {
	t.Parallel()
	r := newTurning(t, setup{})
	asked := newOnce()
	t.Cleanup(asked.release)
	r.answer(func(call int64, w http.ResponseWriter) {
		asked.hold()
		r.tell(w, call)
	})
	begun := r.rotate(false)
	await(t, "the call", asked.began)
	row := attemptRow(1)
	row["status"], row["http_status"] = "failed", http.StatusServiceUnavailable
	row["created_at"] = begun.StartedAt.UTC().Truncate(time.Second).Format(time.RFC3339)
	r.answers(func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.HasSuffix(req.URL.Path, "/deliveries") {
			return false
		}
		w.Header().Set("Date", time.Now().Add(time.Second).UTC().Format(http.TimeFormat))
		answerJSON(w, http.StatusOK, map[string]any{"items": []any{row}, "page": 1, "page_size": 100, "page_count": 1}, "a row as no sandbox makes it")
		return true
	})
	asked.release()
	if got := r.turnedTo(begun.ID, store.RotationDone); got.Refused != 1 {
		t.Errorf("got %+v, want the refusal of the vendor's log counted", got)
	}
}
