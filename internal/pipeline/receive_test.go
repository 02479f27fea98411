package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// TestAnswersOfTheReceiver goes through the verdicts of DESIGN.md section 7
// that are the pipeline's.
func TestAnswersOfTheReceiver(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(nil)})
	name := r.newWebhook("batch_completed")
	good := func(body string) pipeline.Incoming {
		return signedDelivery(name, "batch_completed", testSecret, []byte(body))
	}
	body := func(job string) string { return string(envelopeFor("batch_completed", job)) }
	with := func(in pipeline.Incoming, change func(*pipeline.Incoming)) pipeline.Incoming {
		change(&in)
		return in
	}
	header := func(name, value string) func(*pipeline.Incoming) {
		return func(in *pipeline.Incoming) { in.Header.Set(name, value) }
	}
	for _, c := range []struct {
		name    string
		in      pipeline.Incoming
		status  int
		verdict store.Verdict
	}{
		{"good", good(body("job-1")), 200, store.VerdictAccepted},
		{"again", good(body("job-1")), 200, store.VerdictDuplicate},
		{"no event header", with(good(body("job-2")), func(in *pipeline.Incoming) { in.Header.Del("X-Webhook-Event") }), 200, store.VerdictAccepted},
		{"job id at the top", good(`{"job_id":"job-3","event":"batch_completed"}`), 200, store.VerdictAccepted},
		{"job id a number", good(`{"data":{"job_id":12345}}`), 200, store.VerdictAccepted},
		{"larger than is kept", good(`{"data":{"job_id":"job-4"},"fill":"` + strings.Repeat("x", 300<<10) + `"}`), 200, store.VerdictAccepted},
		{"no signature", with(good(body("job-5")), func(in *pipeline.Incoming) { in.Header.Del("X-Webhook-Signature") }), 401, store.VerdictRefused},
		{"wrong signature", with(good(body("job-5")), header("X-Webhook-Signature", strings.Repeat("ab", 32))), 401, store.VerdictRefused},
		{"signature that is none", with(good(body("job-5")), header("X-Webhook-Signature", "\x00?")), 401, store.VerdictRefused},
		{"body changed after signing", with(good(body("job-5")), func(in *pipeline.Incoming) { in.Body = append(in.Body, ' ') }), 401, store.VerdictRefused},
		{"not JSON", good("hello"), 400, store.VerdictUnreadable},
		{"empty", good(""), 400, store.VerdictUnreadable},
		{"a list", good(`["job-6"]`), 400, store.VerdictUnreadable},
		{"no job id", good(`{"event":"batch_completed","data":{}}`), 400, store.VerdictUnreadable},
		{"job id of another type", good(`{"data":{"job_id":{"a":1}}}`), 400, store.VerdictUnreadable},
		{"job id too long", good(`{"data":{"job_id":"` + strings.Repeat("j", 201) + `"}}`), 400, store.VerdictUnreadable},
		{"job id unprintable", good(`{"data":{"job_id":"a\u0000b"}}`), 400, store.VerdictUnreadable},
		{"header event differs", with(good(body("job-7")), header("X-Webhook-Event", "crawl_completed")), 400, store.VerdictUnreadable},
		{"unknown endpoint", with(good(body("job-8")), func(in *pipeline.Incoming) { in.Endpoint = "nobody-is-listening-here" }), 404, ""},
		{"no endpoint", with(good(body("job-8")), func(in *pipeline.Incoming) { in.Endpoint = "" }), 404, ""},
		{"endpoint that is no text", with(good(body("job-8")), func(in *pipeline.Incoming) { in.Endpoint = "\x00\xff" }), 404, ""},
	} {
		a := r.pipe.Receive(t.Context(), c.in)
		if a.Status != c.status || a.Verdict != c.verdict {
			t.Errorf("%s: got %d %s, want %d %s", c.name, a.Status, a.Verdict, c.status, c.verdict)
		}
	}
	eventually(t, "the refused ones to be kept", func() bool {
		return r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'refused' AND status = 401`) == 4 &&
			r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'unreadable' AND status = 400 AND secret_version = 1`) == 8
	})
	if got := r.text(`SELECT octet_length(body) || ' ' || body_size FROM deliveries WHERE vendor_job_id = 'job-4'`); got != "262144 307237" {
		t.Errorf("got %s bytes kept and sent, want 262144 of 307237", got)
	}
	if got := r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'unreadable' AND body = 'hello'`); got != 1 {
		t.Errorf("got %d unreadable bodies kept as they came, want 1", got)
	}
}

// TestAChangingSecretIsOurFault: while nobody knows which secret is right, a
// signature that does not match is answered 503, so that the vendor tries
// again.
func TestAChangingSecretIsOurFault(t *testing.T) {
	t.Parallel()
	for state, want := range map[store.WebhookState]int{
		store.WebhookRegistering: 503, store.WebhookRotating: 503, store.WebhookSecretUnknown: 503,
		store.WebhookLive: 401, store.WebhookInactive: 401, store.WebhookMoved: 401, store.WebhookGone: 401, store.WebhookRemoved: 404,
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{noWebhooks: true, pipeline: silent(nil)})
			in := r.ownWebhook("batch_completed", "job-1")
			r.exec(`UPDATE webhooks SET state = $1`, string(state))
			in.Header.Set("X-Webhook-Signature", strings.Repeat("ab", 32))
			if a := r.pipe.Receive(t.Context(), in); a.Status != want {
				t.Errorf("got %+v, want %d", a, want)
			}
			if state == store.WebhookRemoved {
				return
			}
			eventually(t, "it to be kept", func() bool {
				return r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'refused' AND status = $1`, want) == 1
			})
		})
	}
}

// TestNoSecretRefusesAll: a webhook without one accepts nothing, not even what
// is signed with an empty key; nor does one whose secret is too short.
func TestNoSecretRefusesAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(nil)})
	name := r.newWebhook("batch_completed")
	body := envelopeFor("batch_completed", "job-1")
	for what, secret := range map[string]string{"none": "", "short": "fifteen bytes.."} {
		r.exec(`DELETE FROM webhook_secrets`)
		if secret != "" {
			r.addSecret(r.number(`SELECT id FROM webhooks`), 9, secret)
		}
		// The secret before it may still be in the cache.
		eventually(t, "the refusal with "+what, func() bool {
			old := r.pipe.Receive(t.Context(), signedDelivery(name, "batch_completed", testSecret, body)).Status
			return old == http.StatusUnauthorized && r.pipe.Receive(t.Context(), signedDelivery(name, "batch_completed", secret, body)).Status == http.StatusUnauthorized
		})
	}
}

// TestFirstVerifiedDeliveryPinsTheForm: from then on another form of the same
// secret's signature is refused.
func TestFirstVerifiedDeliveryPinsTheForm(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(nil)})
	name := r.newWebhook("batch_completed")
	deliver := func(form sandbox.SignatureForm, job string) pipeline.Answer {
		in := signedDelivery(name, "batch_completed", testSecret, envelopeFor("batch_completed", job))
		in.Header.Set("X-Webhook-Signature", sandbox.Sign(form, testSecret, in.Header.Get("X-Webhook-Delivery-Id"), "2026-11-29T12:00:00Z", in.Body))
		return r.pipe.Receive(t.Context(), in)
	}
	first := sandbox.SignatureForm{Encoding: "base64", Prefix: "v1,", Signed: "id.body", Key: "base64"}
	if a := deliver(first, "job-1"); a.Status != http.StatusOK {
		t.Fatalf("got %+v, want 200", a)
	}
	if got := r.text(`SELECT signature_form FROM webhooks`); got != "delivery_id.body base64_after_whsec v1, base64" {
		t.Errorf("got the form %q pinned", got)
	}
	if a := deliver(first, "job-2"); a.Status != http.StatusOK {
		t.Errorf("got %+v for the pinned form, want 200", a)
	}
	eventually(t, "another form to be refused", func() bool { return deliver(sandbox.SignatureForm{}, "job-3").Status == http.StatusUnauthorized })
}

// TestClientThatGoesAwayDoesNotCancelTheGroup: its delivery and its
// neighbors' are committed.
func TestClientThatGoesAwayDoesNotCancelTheGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true})
	in := r.ownWebhook("batch_completed", "job-gone")
	neighbor := signedDelivery(in.Endpoint, "batch_completed", testSecret, envelopeFor("batch_completed", "job-there"))
	ctx, leave := context.WithCancel(t.Context())
	gone, there := make(chan pipeline.Answer, 1), make(chan pipeline.Answer, 1)
	go func() { gone <- r.pipe.Receive(ctx, in) }()
	go func() { there <- r.pipe.Receive(t.Context(), neighbor) }()
	eventually(t, "both to queue", func() bool { return r.pipe.Queued() == 2 })
	leave()
	r.startQuietly()
	for _, a := range []pipeline.Answer{<-gone, <-there} {
		if a.Status != http.StatusOK {
			t.Errorf("got %+v, want 200", a)
		}
	}
	if got := r.number(`SELECT count(*) FROM processed_events`); got != 2 {
		t.Errorf("got %d events, want 2", got)
	}
}

// TestNothing2xxBeforeTheCommit: while the commit hangs there is no answer.
func TestNothing2xxBeforeTheCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	in := r.ownWebhook("batch_completed", "job-1")
	// A deferred constraint trigger runs within COMMIT itself.
	r.exec(`CREATE FUNCTION held_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NULL; END $$`)
	b := r.newBarrier(nil)
	r.exec(`CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON deliveries DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION held_at_commit()`)
	answer := make(chan pipeline.Answer, 1)
	go func() { answer <- r.pipe.Receive(t.Context(), in) }()
	eventually(t, "the commit", func() bool { return b.waiting() == 1 })
	select {
	case a := <-answer:
		t.Errorf("got %+v before the commit", a)
	default:
	}
	b.lift()
	if a := <-answer; a.Status != http.StatusOK {
		t.Errorf("got %+v, want 200", a)
	}
}

// TestStoppingReceiverSendsDeliveriesBack: what comes after Stop is 503.
func TestStoppingReceiverSendsDeliveriesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(nil)})
	in := r.ownWebhook("batch_completed", "job-1")
	if err := r.pipe.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := r.pipe.Receive(t.Context(), in); a.Status != http.StatusServiceUnavailable {
		t.Errorf("got %+v, want 503", a)
	}
}

// TestStaleTimestampIsRefusedWhenThereIsALimit: the limit is off by default.
func TestStaleTimestampIsRefusedWhenThereIsALimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.Signature.MaxAge = time.Hour })})
	name := r.newWebhook("batch_completed")
	for stamp, want := range map[string]int{
		time.Now().Add(-time.Minute).Format(time.RFC3339): 200, time.Now().Add(-2 * time.Hour).Format(time.RFC3339): 401, "yesterday": 401,
	} {
		body := fmt.Appendf(nil, `{"event":"batch_completed","timestamp":%q,"data":{"job_id":"job-1"}}`, stamp)
		if a := r.pipe.Receive(t.Context(), signedDelivery(name, "batch_completed", testSecret, body)); a.Status != want {
			t.Errorf("%s: got %+v, want %d", stamp, a, want)
		}
	}
}

// TestSecretsAreNeitherStoredNorLoggedInTheOpen looks for one in the database
// and the log.
func TestSecretsAreNeitherStoredNorLoggedInTheOpen(t *testing.T) {
	t.Parallel()
	log := &safeBuffer{}
	r := newRig(t, setup{pipeline: func(c *pipeline.Config) {
		c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}})
	got, err := r.pipe.Submit(t.Context(), pipeline.Submission{
		Text: "https://shop.sandbox.test/item/1", Headers: map[string]string{"X-Site-Token": "open-sesame-4711"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.ended(got.BatchID)
	if n := r.number(`SELECT count(*) FROM webhook_secrets WHERE position('whsec_'::bytea IN sealed) > 0`); n != 0 {
		t.Errorf("%d secrets are stored in the open", n)
	}
	if n := r.number(`SELECT count(*) FROM batches WHERE position('sesame'::bytea IN headers_sealed) > 0 OR options::text LIKE '%sesame%'`); n != 0 {
		t.Error("custom headers are stored in the open")
	}
	if text := log.String(); strings.Contains(text, "whsec_") || strings.Contains(text, "sesame") {
		t.Errorf("got a secret in the log:\n%s", text)
	}
	if bytes.Contains([]byte(r.text(`SELECT string_agg(coalesce(convert_from(metadata, 'UTF8'), ''), ' ') FROM results`)), []byte("sesame")) {
		t.Error("the vendor's echo of a custom header is stored")
	}
}

// TestLongestJobIDIsTakenUpWhole: 200 characters of any script are a job id,
// and half of one would be another job's.
func TestLongestJobIDIsTakenUpWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true})
	name, id := r.newWebhook("batch_completed"), strings.Repeat("\u00fc", 200)
	a := r.pipe.Receive(t.Context(), signedDelivery(name, "batch_completed", testSecret, envelopeFor("batch_completed", id)))
	if a.Status != http.StatusOK {
		t.Fatalf("got %+v, want it taken up", a)
	}
	if got := r.text(`SELECT vendor_job_id FROM processed_events`); got != id {
		t.Errorf("taken up for %q, want the whole id", got)
	}
}

// TestTaskOfAnArrivalIsAsRiverWritesIt: the statement that keeps a delivery adds
// the row that River would add, neither adds a second one beside the other's,
// and one that waits behind live work is brought forward. The workers are told of
// it, whatever came right before.
func TestTaskOfAnArrivalIsAsRiverWritesIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: func(c *pipeline.Config) { c.OnlySubmit = true }})
	name := r.newWebhook("extract_completed")
	r.benchJobs("row", 2)
	jobs := []int64{r.number(`SELECT min(id) FROM jobs`), r.number(`SELECT max(id) FROM jobs`)}
	told := r.listen("river_insert")
	deliver := func(n int) {
		body := envelopeFor("extract_completed", fmt.Sprint("row-", n))
		if a := r.pipe.Receive(t.Context(), signedDelivery(name, "extract_completed", testSecret, body)); a.Verdict != store.VerdictAccepted {
			t.Fatalf("delivery %d: got %+v", n, a)
		}
	}
	byRiver := func(n int) {
		if err := r.pipe.SettleNow(t.Context(), jobs[n-1]); err != nil {
			t.Fatal(err)
		}
	}
	task := func(n int) string {
		return r.text(`SELECT string_agg((to_jsonb(t) - '{id,args,unique_key,created_at,scheduled_at}'::text[])::text, ' and ')
			FROM river_job t WHERE args = jsonb_build_object('job_id', $1::bigint)`, jobs[n-1])
	}
	deliver(99) // Nobody's.
	deliver(1)
	if got, want := told(), `{"queue": "settle"}`; got != want {
		t.Errorf("workers were told %q, want %q", got, want)
	}
	byRiver(2)
	want := task(2)
	if got := task(1); got != want {
		t.Errorf("the row of a delivery's task\ngot  %s\nwant %s", got, want)
	}
	byRiver(1)
	r.exec(`UPDATE river_job SET priority = 3`)
	deliver(2)
	if got := task(2); got != want {
		t.Errorf("the task of a job that was woken again\ngot  %s\nwant %s", got, want)
	}
	if got := r.number(`SELECT count(*) FROM river_job`); got != 2 {
		t.Errorf("got %d tasks, want one for each job", got)
	}
}

// listen hears what is told to a topic of River's from now on, one notice a call.
func (r *rig) listen(topic string) func() string {
	r.t.Helper()
	conn, err := pgx.Connect(r.t.Context(), r.dsn)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(r.t.Context())) })
	if _, err := conn.Exec(r.t.Context(), `LISTEN `+pgx.Identifier{"public." + topic}.Sanitize()); err != nil {
		r.t.Fatal(err)
	}
	return func() string {
		r.t.Helper()
		ctx, cancel := context.WithTimeout(r.t.Context(), patienceOfTests)
		defer cancel()
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			r.t.Fatalf("no notice came: %v", err)
		}
		return n.Payload
	}
}
