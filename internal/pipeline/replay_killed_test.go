package pipeline_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"rollcall/store"
)

// settledBefore adds jobs that are settled and that the vendor's log says five
// times of that their event was not delivered.
func (r *rig) settledBefore(hook int64, n int) {
	r.t.Helper()
	batch := r.number(`INSERT INTO batches (name, kind, options, created_at) VALUES ('before', 'extract', '{}', now()) RETURNING id`)
	r.exec(`INSERT INTO jobs (batch_id, kind, state, origin, request_hash, url_count, created_at, vendor_job_id, accepted_at, ended_at)
		SELECT $1, 'extract', 'settled', 'submit', '\x01', 1, now(), 'before-' || g, now(), now() FROM generate_series(1, $2::int) g`, batch, n)
	r.exec(`INSERT INTO delivery_log (webhook_id, vendor_id, attempt, vendor_job_id, status, created_at, seen_at)
		SELECT $1, 'before-' || g, a, 'before-' || g, 'failed', now(), now() FROM generate_series(1, $2::int) g, generate_series(1, 5) a`, hook, n)
}

// TestReplaySurvivesKill replays "all that failed" of 10,000 lines of the
// vendor's log and kills the process with -9 in the middle, while it begins with
// more jobs: another process goes on, and each job is woken once and has one
// outcome.
func TestReplaySurvivesKill(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: asleep})
	first := r.newPipeline(setup{pipeline: asleep})
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	jobs := r.openJobs(45)
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	hook := r.logged()
	r.settledBefore(hook, 2000)
	planning := time.Now()
	plan := r.plan(hook)
	t.Logf("planned %d jobs of %d lines in %s", plan.Jobs, plan.Lines, time.Since(planning))
	if plan.Lines != 10_045 || plan.Jobs != 2045 || plan.SettledBefore != 2000 {
		t.Errorf("got %+v frozen", plan.Frozen)
	}
	// A process begins with 20 at once, by its rate, and is killed inside the
	// transaction of a later turn.
	b := r.newBarrier(map[string]string{
		"begin": fmt.Sprintf(`BEFORE UPDATE ON replay_jobs FOR EACH ROW WHEN (NEW.state = 'woken' AND NEW.job_id > %d)`, jobs[24]),
	})
	r.run(plan.ID, false)
	w := r.startWorker()
	eventually(t, "the replay to stand in the middle of a turn", func() bool { return b.waiting() >= 1 })
	begun := r.number(`SELECT count(*) FROM job_events WHERE kind = 'woken'`)
	if begun < 20 || begun >= 45 {
		t.Errorf("it stands at %d jobs begun with, want some and not all", begun)
	}
	r.takeOver(w, b)
	r.exec(`UPDATE replays SET beat_at = beat_at - interval '1 hour'`)
	got := r.replayed(plan.ID)
	if got.State != store.ReplayDone || got.SettledNow != 45 || got.AlreadySettled != 2000 || got.Ended() != plan.Jobs {
		t.Errorf("got %+v, want the 45 open ones settled and the others passed over", got)
	}
	if n := r.number(`SELECT count(*) FROM (SELECT job_id FROM job_events WHERE kind = 'woken' GROUP BY job_id HAVING count(*) = 1) once`); n != 45 {
		t.Errorf("%d jobs were woken once, want 45", n)
	}
	if n := r.number(`SELECT count(*) FROM job_events WHERE kind = 'settled'`); n != 45 { // None of those before.
		t.Errorf("jobs were settled %d times, want 45", n)
	}
	r.balanced()
}

// TestReplayThatStandsStillGoesOn: the sweep gives a running replay a task again
// when its own is gone, and leaves one alone that lives.
func TestReplayThatStandsStillGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, stopped: true, pipeline: asleep})
	plan := r.planOf(store.ReplayPicks{})
	r.run(plan.ID, false)
	tasks := func() int64 {
		return r.number(`SELECT count(*) FROM river_job WHERE kind = 'replay' AND state = 'available'`)
	}
	for _, still := range []bool{false, true} {
		r.exec(`UPDATE river_job SET state = 'running', attempted_at = now() - interval '1 minute', attempted_by = '{dead}' WHERE kind = 'replay'`)
		if still {
			r.exec(`UPDATE replays SET beat_at = now() - interval '1 minute'`)
		}
		if err := r.pipe.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := tasks(); (n == 1) != still {
			t.Errorf("standing still %v: got %d new tasks", still, n)
		}
	}
	r.start(setup{noWebhooks: true})
	if got := r.replayed(plan.ID); got.State != store.ReplayDone {
		t.Errorf("got %s, want it done", got.State)
	}
}

// is taken up from our archive like any other delivery, and settles its job.
func TestReplayVerifiesRefusedDeliveriesAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: asleep})
	job := r.openJobs(1)[0]
	hook := r.number(`INSERT INTO webhooks (endpoint, event_type, url, state, created_at, state_at)
		VALUES ('0123456789abcdef', 'extract_completed', 'https://a.example/', 'live', now(), now()) RETURNING id`)
	r.exec(`INSERT INTO webhook_secrets (webhook_id, version, sealed, valid_from) VALUES ($1, 1, $2, now() - interval '1 day')`, hook, r.pipe.SealSecret(hook, 1, "another secret, longer than 16"))
	for _, body := range [][]byte{envelopeFor("extract_completed", r.vendorID(job)), []byte("{}")} {
		secret := testSecret
		if len(body) == 2 {
			secret = "a secret that nobody here has"
		}
		if a := r.pipe.Receive(t.Context(), signedDelivery("0123456789abcdef", "extract_completed", secret, body)); a.Status != http.StatusUnauthorized {
			t.Fatalf("got %d, want 401", a.Status)
		}
	}
	eventually(t, "both to be kept", func() bool { return r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'refused'`) == 2 })
	plan := r.planOf(store.ReplayPicks{Received: &store.DeliveryFilter{Webhook: hook}})
	if plan.Deliveries != 2 || plan.Jobs != 0 {
		t.Fatalf("got %+v frozen, want the two deliveries", plan.Frozen)
	}
	// Stored behind the pipeline's back, as another process would after a crash.
	r.exec(`INSERT INTO webhook_secrets (webhook_id, version, sealed, valid_from) VALUES ($1, 2, $2, now() - interval '1 day')`, hook, r.pipe.SealSecret(hook, 2, testSecret))
	r.run(plan.ID, false)
	got := r.replayed(plan.ID)
	if got.State != store.ReplayDone || got.Recovered != 1 || got.Refused != 1 {
		t.Errorf("got %+v, want one taken up and one still refused", got)
	}
	eventually(t, "its job to settle", func() bool { return r.text(`SELECT state FROM jobs WHERE id = $1`, job) == "settled" })
	if net := r.text(`SELECT settle_net FROM jobs WHERE id = $1`, job); net != "webhook" {
		t.Errorf("settled by %s, want webhook: it is a delivery like any other", net)
	}
	words := r.text(`SELECT string_agg(outcome, ' ' ORDER BY delivery_id) FROM replay_deliveries`)
	if !strings.Contains(words, "recovered") || !strings.Contains(words, "refused") {
		t.Errorf("got outcomes %s", words)
	}
	second := r.planOf(store.ReplayPicks{Received: &store.DeliveryFilter{Webhook: hook}})
	if second.Deliveries != 1 || second.Jobs != 1 || second.SettledBefore != 1 {
		t.Errorf("planned again: got %+v, want one still refused, and the other's job settled", second.Frozen)
	}
}
