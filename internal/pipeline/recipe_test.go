package pipeline_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// The tests of this file are named after the faults of the published recipe,
// DESIGN.md section 6.

// TestFault1_EventAndTaskAreOneTransaction: neither a refused task nor a
// connection killed before the commit leaves an event row behind.
func TestFault1_EventAndTaskAreOneTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, sandbox: func(c *sandbox.Config) { c.Faults = sandbox.Faults{sandbox.FaultDrop: 1} }, pipeline: func(c *pipeline.Config) {
		deaf(c)
		c.Logger = slog.New(slog.DiscardHandler)
	}})
	name := r.newWebhook("extract_completed")
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	job := r.accepted(id)
	in := signedDelivery(name, "extract_completed", testSecret, envelopeFor("extract_completed", r.text(`SELECT vendor_job_id FROM jobs WHERE id = $1`, job)))
	nothing := func(after string) {
		t.Helper()
		if n := r.number(`SELECT (SELECT count(*) FROM processed_events) + (SELECT count(*) FROM deliveries)
			+ (SELECT sum(wake_seq) FROM jobs) + (SELECT count(*) FROM river_job WHERE kind = 'settle')`); n != 0 {
			t.Errorf("after %s: got %d rows of a delivery that was not committed", after, n)
		}
	}

	r.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no task today'; END $$`)
	r.exec(`CREATE TRIGGER no_task BEFORE INSERT ON river_job FOR EACH ROW WHEN (NEW.kind = 'settle') EXECUTE FUNCTION refuse()`)
	if a := r.pipe.Receive(t.Context(), in); a.Status != http.StatusServiceUnavailable {
		t.Errorf("got %+v, want 503", a)
	}
	nothing("a task that was refused")
	r.exec(`DROP TRIGGER no_task ON river_job`)

	b := r.newBarrier(map[string]string{"task": `BEFORE INSERT ON river_job FOR EACH ROW WHEN (NEW.kind = 'settle')`})
	answer := make(chan pipeline.Answer, 1)
	go func() { answer <- r.pipe.Receive(t.Context(), in) }()
	eventually(t, "the task at the barrier", func() bool { return b.waiting() == 1 })
	r.exec(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = $1
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, barrierKey)
	if a := <-answer; a.Status != http.StatusServiceUnavailable {
		t.Errorf("got %+v, want 503", a)
	}
	nothing("a killed connection")
	b.lift()

	if a := r.pipe.Receive(t.Context(), in); a.Status != http.StatusOK || a.Verdict != store.VerdictAccepted {
		t.Errorf("got %+v, want it taken up", a)
	}
	r.wantBatch(r.ended(id), 1, 0, 0)
}

// TestFault2_UnfinishedJobIsNotGivenUp: a job that is not finished when it is
// looked at is looked at again, though its event row exists already: by the
// poller, and by a reconciler that asks for settled jobs and not for rows.
func TestFault2_UnfinishedJobIsNotGivenUp(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*pipeline.Config){"poll": func(c *pipeline.Config) { c.Mode = pipeline.ModePoll }, "reconcile": deaf} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{noWebhooks: true, sandbox: func(c *sandbox.Config) { c.Faults = sandbox.Faults{sandbox.FaultDrop: 1} }, pipeline: change})
			hook := r.newWebhook("extract_completed")
			finish := r.unfinished()
			id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
			job := r.accepted(id)
			vendor := r.text(`SELECT vendor_job_id FROM jobs WHERE id = $1`, job)
			if a := r.pipe.Receive(t.Context(), signedDelivery(hook, "extract_completed", testSecret, envelopeFor("extract_completed", vendor))); a.Status != http.StatusOK {
				t.Fatalf("got %+v, want 200", a)
			}
			// Not just any look: the poller may have had its first before the delivery came.
			r.idle(job)
			if got := r.text(`SELECT vendor_status FROM jobs`); got != "processing" {
				t.Fatalf("the look for the delivery found %q, want it unfinished", got)
			}
			finish()
			if name == "reconcile" {
				eventually(t, "the end at the vendor", func() bool { return r.sandbox.Books().Jobs[0].Status == "completed" })
				if _, err := r.pipe.Reconcile(t.Context(), "person"); err != nil {
					t.Fatal(err)
				}
			}
			b := r.ended(id)
			if got := map[string]int64{"poll": b.StoredPoll, "reconcile": b.StoredReconcile}[name]; got != 1 {
				t.Errorf("got %+v, want one stored by %s", b, name)
			}
		})
	}
}

// TestFault3_ReplayOnlyWakes: a job that a person asks for again goes the way
// of every other wake. One that is settled costs no call and changes nothing.
func TestFault3_ReplayOnlyWakes(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: deaf})
	id := r.submit(store.KindExtract, "https://shop.sandbox.test/item/1")
	job := r.accepted(id)
	eventually(t, "the end at the vendor", func() bool { return r.sandbox.Books().Jobs[0].Status == "completed" })
	if err := r.pipe.SettleNow(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if b := r.ended(id); b.StoredReplay != 1 {
		t.Errorf("got %+v, want one stored by replay", b)
	}
	eventually(t, "the job to be settled", func() bool { return r.text(`SELECT state FROM jobs`) == "settled" })
	reads, stored := r.sandbox.Books().Calls["extract.status"].Total, r.text(`SELECT stored_at::text FROM results`)
	if err := r.pipe.SettleNow(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if n := r.number(`SELECT count(*) FROM river_job WHERE kind = 'settle' AND state <> 'completed'`); n != 0 {
		t.Errorf("got %d tasks for a settled job, want none", n)
	}
	if got := r.sandbox.Books().Calls["extract.status"].Total; got != reads {
		t.Errorf("got %d reads, want the %d before", got, reads)
	}
	if got := r.text(`SELECT stored_at::text FROM results`); got != stored {
		t.Errorf("the result was stored again at %s, want it left as of %s", got, stored)
	}
	r.balanced(id)
}

// TestFault4_ReconcilerReadsEveryPage: with every webhook lost and no poller,
// 130 jobs come home though a page of the vendor's list holds 100.
func TestFault4_ReconcilerReadsEveryPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{
		sandbox: func(c *sandbox.Config) {
			c.Faults = sandbox.Faults{sandbox.FaultDrop: 1}
			c.RunTime = time.Millisecond
		},
		pipeline: func(c *pipeline.Config) { c.NoPoll, c.VendorConcurrency = true, 16 },
	})
	id := r.submit(store.KindExtract, sandbox.MadeURLs(130, 12)...)
	eventually(t, "the vendor to end all jobs", func() bool {
		books := r.sandbox.Books()
		return len(books.Jobs) == 130 && !slices.ContainsFunc(books.Jobs, func(j sandbox.JobRecord) bool { return j.EndedAt.IsZero() }) &&
			r.number(`SELECT count(*) FROM jobs WHERE state = 'accepted'`) == 130
	})
	run, err := r.pipe.Reconcile(t.Context(), "person")
	if err != nil {
		t.Fatal(err)
	}
	if run.Missing != 130 || run.Woken != 130 || run.Singly != 0 || run.Pages < 2 || run.Errors != 0 {
		t.Errorf("got %+v, want 130 missing, woken, none singly, from 2 pages or more", run)
	}
	b := r.ended(id)
	if b.StoredReconcile != 130 {
		t.Errorf("got %+v, want 130 stored by reconcile", b)
	}
	r.balanced(id)
}

// TestFault5_PollingOn429KeepsItsDeadline: a vendor that answers every read
// with 429 and a Retry-After in the form of a date does not keep a job open
// for ever.
func TestFault5_PollingOn429KeepsItsDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) {
		c.Mode, c.GiveUpAfter = pipeline.ModePoll, 3*time.Second
	}})
	var reads atomic.Int64
	r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if isJob(req) {
			reads.Add(1)
			w.Header().Set("Retry-After", time.Now().Add(time.Second).UTC().Format(http.TimeFormat))
			answerJSON(w, http.StatusTooManyRequests, refusal("RATE_LIMITED", true), "")
			return
		}
		next.ServeHTTP(w, req)
	})
	url := "https://shop.sandbox.test/item/1"
	id := r.submit(store.KindExtract, url)
	r.wantBatch(r.ended(id), 0, 1, 0)
	if got := r.code(id, url); got != "GAVE_UP" {
		t.Errorf("got code %s, want GAVE_UP", got)
	}
	if got := reads.Load(); got > 10 {
		t.Errorf("got %d reads in the few seconds, want the vendor's dates obeyed", got)
	}
}

// TestFault6_ResubmissionHasALimitAndKeepsItsItem: a failure that passes is
// tried again three times under the same item, and no more.
func TestFault6_ResubmissionHasALimitAndKeepsItsItem(t *testing.T) {
	t.Parallel()
	for _, kind := range []store.Kind{store.KindExtract, store.KindBatch} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{})
			forever, once := "https://shop.sandbox.test/fail-retryable/99", "https://shop.sandbox.test/fail-retryable/1"
			never := "https://shop.sandbox.test/fail/NOT_FOUND"
			id := r.submit(kind, forever, once, never)
			r.wantBatch(r.ended(id), 1, 2, 0)
			for url, jobs := range map[string]int64{forever: 4, once: 2, never: 1} {
				got := r.number(`SELECT count(*) FROM job_items ji JOIN items i ON i.id = ji.item_id WHERE i.url = $1`, url)
				if got != jobs || int64(r.vendorJobs(url)) != jobs {
					t.Errorf("%s: got a lineage of %d and %d vendor jobs, want %d", url, got, r.vendorJobs(url), jobs)
				}
			}
			if got := r.text(`SELECT string_agg(coalesce(ji.outcome, '-'), ' ' ORDER BY ji.job_id) FROM job_items ji
				JOIN items i ON i.id = ji.item_id WHERE i.url = $1`, forever); got != "retry retry retry failed" {
				t.Errorf("got outcomes %q, want three retries and the failure", got)
			}
			if got := r.code(id, forever); got != "TIMEOUT" {
				t.Errorf("got code %s, want TIMEOUT", got)
			}
			if got := r.text(`SELECT state || ' ' || retries FROM items WHERE url = $1`, once); got != "stored 1" {
				t.Errorf("got %q, want it stored after one retry", got)
			}
			r.balanced(id)
		})
	}
}

// TestFault7_SecretIsReadFresh: a secret that another process stores is good
// at once, and one that it ends is refused within a second.
func TestFault7_SecretIsReadFresh(t *testing.T) {
	t.Parallel()
	clock := &shifted{}
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.Now = clock.now }})
	name := r.newWebhook("batch_completed")
	with := func(secret string, n int) pipeline.Answer {
		return r.pipe.Receive(t.Context(), signedDelivery(name, "batch_completed", secret, envelopeFor("batch_completed", fmt.Sprintf("job-%d", n))))
	}
	newer := "whsec_newer-secret-of-the-test-0123456789"
	if a := with(testSecret, 1); a.Status != http.StatusOK {
		t.Fatalf("got %+v, want 200", a)
	}
	if a := with(newer, 2); a.Status != http.StatusUnauthorized {
		t.Fatalf("got %+v, want 401 before the secret is stored", a)
	}
	hook := r.number(`SELECT id FROM webhooks`)
	r.addSecret(hook, 2, newer)
	if a := with(newer, 2); a.Status != http.StatusOK {
		t.Errorf("got %+v, want the new secret to be good at once", a)
	}
	r.exec(`UPDATE webhook_secrets SET valid_until = $1 WHERE version = 1`, time.Now())
	clock.forward(time.Second)
	if a := with(testSecret, 3); a.Status != http.StatusUnauthorized {
		t.Errorf("got %+v a second after the old secret's end, want it refused", a)
	}
}

// TestFault8_TwoSecretsAreValidAtOnce: what is in flight over a rotation is
// accepted, and each delivery records which secret verified it.
func TestFault8_TwoSecretsAreValidAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	name := r.newWebhook("batch_completed")
	newer := "whsec_newer-secret-of-the-test-0123456789"
	r.addSecret(r.number(`SELECT id FROM webhooks`), 2, newer)
	for i, secret := range []string{testSecret, newer, testSecret, newer} {
		a := r.pipe.Receive(t.Context(), signedDelivery(name, "batch_completed", secret, envelopeFor("batch_completed", fmt.Sprintf("job-%d", i))))
		if a.Status != http.StatusOK {
			t.Errorf("delivery %d: got %+v, want 200", i, a)
		}
	}
	if got := r.text(`SELECT string_agg(secret_version::text, ' ' ORDER BY vendor_job_id) FROM deliveries`); got != "1 2 1 2" {
		t.Errorf("got versions %q, want 1 2 1 2", got)
	}
}

// TestFault9_OneStuckConnectionDoesNotStopTheOthers: there is a pool, and a
// statement that hangs is given up and answered 503, not waited for.
func TestFault9_OneStuckConnectionDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.Logger = slog.New(slog.DiscardHandler) }})
	stuckName, name := r.newWebhook("crawl_completed"), r.newWebhook("batch_completed")
	b := r.newBarrier(map[string]string{"stuck": `BEFORE INSERT ON deliveries FOR EACH ROW WHEN (NEW.event_type = 'crawl_completed')`})
	stuck := make(chan pipeline.Answer, 1)
	go func() {
		stuck <- r.pipe.Receive(t.Context(), signedDelivery(stuckName, "crawl_completed", testSecret, envelopeFor("crawl_completed", "job-stuck")))
	}()
	eventually(t, "the stuck delivery", func() bool { return b.waiting() == 1 })
	for i := range 20 {
		a := r.pipe.Receive(t.Context(), signedDelivery(name, "batch_completed", testSecret, envelopeFor("batch_completed", fmt.Sprintf("job-%d", i))))
		if a.Status != http.StatusOK {
			t.Errorf("got %+v beside a stuck connection, want 200", a)
		}
	}
	if a := <-stuck; a.Status != http.StatusServiceUnavailable {
		t.Errorf("got %+v, want 503 for the delivery that hung", a)
	}
}

// TestFault10_DisabledWebhookIsNoticed: a webhook that the vendor switched off,
// moved or lost is marked by the next reconcile, and auto mode polls at once.
func TestFault10_DisabledWebhookIsNoticed(t *testing.T) {
	t.Parallel()
	for state, change := range map[store.WebhookState]func(list []any) []any{
		store.WebhookInactive: func(list []any) []any { list[0].(map[string]any)["is_active"] = false; return list },
		store.WebhookMoved:    func(list []any) []any { list[0].(map[string]any)["url"] = "https://elsewhere.test/hook"; return list },
		store.WebhookGone:     func(list []any) []any { return list[1:] },
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{pipeline: func(c *pipeline.Config) { c.WebhookFallback, c.NoPoll = time.Hour, false }})
			r.wantTrusted(true)
			r.front.set(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				if req.Method != http.MethodGet || req.URL.Path != "/v1/webhooks" {
					next.ServeHTTP(w, req)
					return
				}
				rewrite(w, req, next, "", func(_ int, body map[string]any) {
					for key, member := range body {
						if list, ok := member.([]any); ok {
							body[key] = change(list)
						}
					}
				})
			})
			if _, err := r.pipe.Reconcile(t.Context(), "timer"); err != nil {
				t.Fatal(err)
			}
			if got := r.number(`SELECT count(*) FROM webhooks WHERE state = $1`, string(state)); got != 1 {
				t.Errorf("got %d webhooks %s, want 1", got, state)
			}
			r.wantTrusted(false)
			r.front.set(nil)
			if _, err := r.pipe.Reconcile(t.Context(), "timer"); err != nil {
				t.Fatal(err)
			}
			if got := r.number(`SELECT count(*) FROM webhooks WHERE state = 'live'`); got != 3 {
				t.Errorf("got %d live webhooks after the vendor's change of mind, want 3", got)
			}
		})
	}
}

// wantTrusted asks a fresh process whether it waits for webhooks.
func (r *rig) wantTrusted(want bool) {
	r.t.Helper()
	p := r.newPipeline(setup{pipeline: func(c *pipeline.Config) { c.OnlySubmit = true }})
	got, err := p.WebhooksTrusted(r.t.Context())
	if err != nil || got != want {
		r.t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
