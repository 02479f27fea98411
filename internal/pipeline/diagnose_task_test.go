package pipeline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"rollcall/internal/pipeline"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// diagnosed waits until every refused delivery has a reason, and returns them
// by source.
func (r *rig) diagnosed() map[string]string {
	r.t.Helper()
	eventually(r.t, "the reasons", func() bool {
		return r.number(`SELECT count(*) FROM deliveries WHERE verdict = 'refused' AND diagnosed_at IS NULL`) == 0
	})
	rows, err := r.eyes.QueryContext(r.t.Context(), `SELECT source, diagnosis FROM deliveries WHERE verdict = 'refused'`)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var source, diagnosis string
		if err := rows.Scan(&source, &diagnosis); err != nil {
			r.t.Fatal(err)
		}
		out[source] = diagnosis
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// TestRefusedDeliveriesAreDiagnosed by a task, after the answer, from what is
// stored; and verifying the stored bytes again says the same.
func TestRefusedDeliveriesAreDiagnosed(t *testing.T) {
	t.Parallel()
	const old = "whsec_MTIzNDU2Nzg5Ojs8PT4_QEFCQ0RFRkdI"
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(func(c *pipeline.Config) { c.Signature.MaxAge = 100 * 365 * 24 * time.Hour })})
	name := r.newWebhook("batch_completed")
	id := r.number(`SELECT id FROM webhooks`)
	r.addSecret(id, 2, testSecret)
	r.exec(`UPDATE webhook_secrets SET sealed = $1, valid_until = $2 WHERE version = 1`, r.pipe.SealSecret(id, 1, old), time.Now().Add(-time.Hour))
	r.exec(`UPDATE webhooks SET signature_form = 'body whole none hex'`)
	deliver := func(source, secret string, change func(*pipeline.Incoming)) {
		in := signedDelivery(name, "batch_completed", secret, envelopeFor("batch_completed", "job-1"))
		in.Source = source
		if change != nil {
			change(&in)
		}
		if a := r.pipe.Receive(t.Context(), in); a.Verdict != store.VerdictRefused {
			t.Fatalf("%s: got %+v, want it refused", source, a)
		}
	}
	signature := func(value string) func(*pipeline.Incoming) {
		return func(in *pipeline.Incoming) { in.Header.Set("X-Webhook-Signature", value) }
	}
	deliver("retired", old, nil)
	deliver("form", testSecret, func(in *pipeline.Incoming) {
		in.Header.Set("X-Webhook-Signature", sandbox.Sign(sandbox.SignatureForm{Encoding: "base64"}, testSecret, "", "", in.Body))
	})
	deliver("missing", testSecret, func(in *pipeline.Incoming) { in.Header.Del("X-Webhook-Signature") })
	deliver("large", testSecret, func(in *pipeline.Incoming) { in.Body = append(in.Body, strings.Repeat(" ", 400<<10)...) })
	deliver("wrong", testSecret, signature(strings.Repeat("ab", 32)))
	deliver("stale", testSecret, func(in *pipeline.Incoming) {
		in.Body = []byte(`{"data":{"job_id":"job-1"},"timestamp":"1900-01-01T00:00:00Z"}`)
		in.Header.Set("X-Webhook-Signature", sandbox.Sign(sandbox.SignatureForm{}, testSecret, "", "", in.Body))
	})
	deliver("masked", testSecret, func(in *pipeline.Incoming) {
		in.Header.Set("X-Padding", strings.Repeat("x", 20<<10))
		signature("00")(in)
	})
	r.pipe.RefuseUnread(t.Context(), name, nil, "unread", 415, "the Content-Type must be application/json")
	eventually(t, "them to be kept", func() bool { return r.number(`SELECT count(*) FROM deliveries`) == 8 })
	got := r.diagnosed()
	for source, want := range map[string]string{
		"retired": "retired_secret: Signed with version 1", "form": "other_form: The right secret (version 2)", "missing": "header_missing: ",
		"large": "no_match: ", "wrong": "no_match: ", "stale": "too_old: Version 2", "masked": "not_kept: The headers", "unread": "not_read: ",
	} {
		if !strings.HasPrefix(got[source], want) {
			t.Errorf("%s: got %q, want %q", source, got[source], want)
		}
		v, err := r.pipe.VerifyStored(t.Context(), r.number(`SELECT id FROM deliveries WHERE source = $1`, source))
		if err != nil || v.Diagnosis.String() != got[source] || v.Matches {
			t.Errorf("%s: verified again: %+v, %v, want what is kept", source, v, err)
		}
	}
}

// TestVerifyStored says which secret and form verify what is stored, whatever
// became of it.
func TestVerifyStored(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(nil)})
	in := r.ownWebhook("batch_completed", "job-1")
	if a := r.pipe.Receive(t.Context(), in); a.Status != 200 {
		t.Fatalf("got %+v", a)
	}
	long := signedDelivery(in.Endpoint, "batch_completed", testSecret, []byte(`{"data":{"job_id":"job-2"},"fill":"`+strings.Repeat("x", 300<<10)+`"}`))
	if a := r.pipe.Receive(t.Context(), long); a.Status != 200 {
		t.Fatalf("got %+v", a)
	}
	verify := func(job string) pipeline.Verification {
		t.Helper()
		v, err := r.pipe.VerifyStored(t.Context(), r.number(`SELECT id FROM deliveries WHERE vendor_job_id = $1`, job))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := verify("job-1"); !v.Matches || v.Version != 1 || v.Form != "body whole none hex" || v.Diagnosis.Code != pipeline.DiagnosedMatches || v.Verdict != store.VerdictAccepted {
		t.Errorf("got %+v, want version 1 and its form", v)
	}
	if v := verify("job-2"); v.Matches || v.Diagnosis.Code != pipeline.DiagnosedNotKept || !strings.Contains(v.Diagnosis.Text, "262144 of") {
		t.Errorf("got %+v, want to be told that the body is cut", v)
	}
	r.exec(`UPDATE webhook_secrets SET valid_until = $1`, time.Now().Add(-time.Minute))
	if v := verify("job-1"); v.Matches || v.Diagnosis.Code != pipeline.DiagnosedRetired {
		t.Errorf("got %+v, want a retired secret", v)
	}
	if got := r.number(`SELECT count(*) FROM deliveries WHERE diagnosis <> ''`); got != 0 {
		t.Error("deliveries that were taken up have a reason for a refusal")
	}
	r.exec(`UPDATE deliveries SET secret_lost = true, body = '{}', body_size = 2, verdict = 'refused', status = 401, secret_version = NULL WHERE vendor_job_id = 'job-1'`)
	if v := verify("job-1"); v.Diagnosis.Code != pipeline.DiagnosedNothing || !strings.Contains(v.Diagnosis.Text, "nobody ever saw") {
		t.Errorf("got %+v, want to be told of the secret that was lost", v)
	}
	if _, err := r.pipe.VerifyStored(t.Context(), 999); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want not found", err)
	}
}

// TestAFloodIsNotLookedAt beyond a bound, and the newest of each source is.
func TestAFloodIsNotLookedAt(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{stopped: true, noWebhooks: true, pipeline: silent(nil)})
	r.newWebhook("batch_completed")
	r.exec(`INSERT INTO deliveries (webhook_id, received_at, verdict, status, reason, source, headers, body, body_size)
		SELECT w.id, $1, 'refused', 401, 'signature does not match', CASE WHEN n > 5 THEN 'flood' ELSE 'small ' || n END,
			'{"X-Webhook-Signature":["00"]}', '{}', 2 FROM webhooks w, generate_series(1, 600) n ORDER BY n`, time.Now())
	r.startQuietly()
	got := r.diagnosed()
	for i := 1; i <= 5; i++ {
		if !strings.HasPrefix(got[fmt.Sprintf("small %d", i)], "not_a_signature: ") {
			t.Errorf("small %d: got %q, want it looked at", i, got[fmt.Sprintf("small %d", i)])
		}
	}
	skipped := r.number(`SELECT count(*) FROM deliveries WHERE diagnosis LIKE 'not_looked_at: %'`)
	if newest := r.text(`SELECT diagnosis FROM deliveries ORDER BY id DESC LIMIT 1`); skipped != 300 || !strings.HasPrefix(newest, "not_a_signature: ") {
		t.Errorf("got %d not looked at, and %q for the newest, want 300 of 600 and the newest looked at", skipped, newest)
	}
}

// TestNothingIsDiagnosedDuringAChange: what can't be verified now may well be
// when it is over.
func TestNothingIsDiagnosedDuringAChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{noWebhooks: true, pipeline: silent(nil)})
	changing := r.ownWebhook("batch_completed", "job-1")
	r.exec(`UPDATE webhooks SET state = 'rotating'`)
	other := r.ownWebhook("crawl_completed", "job-1")
	r.refuse(changing, "changing", 1, 0)
	eventually(t, "it to be kept", func() bool { return r.kept("changing") == 1 })
	r.refuse(other, "other", 1, 0)
	eventually(t, "the other's reason", func() bool {
		return r.number(`SELECT count(*) FROM deliveries WHERE source = 'other' AND diagnosed_at IS NOT NULL`) == 1
	})
	if got := r.number(`SELECT count(*) FROM deliveries WHERE source = 'changing' AND diagnosed_at IS NULL`); got != 1 {
		t.Error("diagnosed while the secret is being changed")
	}
	r.exec(`UPDATE webhooks SET state = 'live'`)
	if got := r.diagnosed()["changing"]; !strings.HasPrefix(got, "not_a_signature: ") {
		t.Errorf("got %q", got)
	}
}
