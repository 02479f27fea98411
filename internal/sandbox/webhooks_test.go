package sandbox

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestWebhookLife(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	created := r.call("POST", "/v1/webhooks", `{"url":"http://127.0.0.1:1/hook","event_type":"batch_completed","description":"d"}`).want(201)
	id := created.str("id")
	if !strings.HasPrefix(created.str("secret"), "whsec_") || len(created.str("secret")) != 38 {
		t.Errorf("secret: %s", created.str("secret"))
	}
	got := r.call("GET", "/v1/webhooks/"+id, nil).want(200)
	if _, ok := got.v.(map[string]any)["secret"]; ok || got.str("description") != "d" || got.at("is_active").v != true {
		t.Errorf("got %v", got.v)
	}
	got = r.call("PATCH", "/v1/webhooks/"+id, `{"is_active":false,"event_type":"crawl_completed","url":null}`).want(200)
	if got.at("is_active").v != false || got.str("event_type") != "crawl_completed" || got.str("url") != "http://127.0.0.1:1/hook" {
		t.Errorf("got %v", got.v)
	}
	list := r.call("GET", "/v1/webhooks?page_size=1", nil).want(200)
	if list.str("items", 0, "id") != id || list.num("page_count") != 1 {
		t.Errorf("got %v", list.v)
	}
	if s := r.call("POST", "/v1/webhooks/"+id+"/rotate-secret", nil).want(200).str("secret"); s == created.str("secret") {
		t.Error("the secret is the old one")
	}
	if a := r.call("DELETE", "/v1/webhooks/"+id, nil); a.status != 204 || len(a.raw) != 0 {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	for _, path := range []string{id, id + "/deliveries"} {
		r.call("GET", "/v1/webhooks/"+path, nil).want(404)
	}
	r.call("DELETE", "/v1/webhooks/"+id, nil).want(404)
	r.call("PATCH", "/v1/webhooks/"+id, `{}`).want(404)
	r.call("POST", "/v1/webhooks/"+id+"/rotate-secret", nil).want(404)
	for range 10 {
		r.call("POST", "/v1/webhooks", `{"url":"http://127.0.0.1:1/","event_type":"batch_completed"}`).want(201)
	}
	d := r.call("POST", "/v1/webhooks", `{"url":"http://127.0.0.1:1/","event_type":"batch_completed"}`).want(422)
	if d.str("code") != "VALIDATION_ERROR" || d.at("retryable").v != false {
		t.Errorf("the eleventh: %v", d.v)
	}
	r.bad("POST", "/v1/webhooks", `{"url":"http://127.0.0.1:1/"}`)
	r.bad("POST", "/v1/webhooks", `{"event_type":"batch_completed"}`)
	r.bad("POST", "/v1/webhooks", `{"url":"ftp://x/","event_type":"batch_completed"}`)
	r.bad("POST", "/v1/webhooks", `{"url":"http://x/","event_type":"other"}`)
	r.bad("GET", "/v1/webhooks/x", nil)
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	rec := newReceiver(t, nil)
	id, secret := r.hook(rec, "extract_completed")
	job := r.extract("https://shop.sandbox.test/item/5")
	d := rec.take(t)
	if got := d.doc(t).at("data").v; fmt.Sprint(got) != fmt.Sprint(job.v) {
		t.Errorf("data: got %v, want %v", got, job.v)
	}
	if got, want := d.header.Get("X-Webhook-Signature"), Sign(SignatureForm{}, secret, "", "", d.body); got != want {
		t.Errorf("signature: got %s, want %s", got, want)
	}
	env := d.doc(t)
	if env.str("webhook_id") != id || env.str("delivery_id") != d.header.Get("X-Webhook-Delivery-Id") ||
		env.str("event") != d.header.Get("X-Webhook-Event") || d.header.Get("User-Agent") != "scraper-api-webhook/1.0" {
		t.Errorf("envelope %v, header %v", env.v, d.header)
	}
	r.until("delivered", func(b Books) bool { return b.Deliveries.Delivered == 1 })
	row := r.call("GET", "/v1/webhooks/"+id+"/deliveries", nil).want(200).at("items", 0)
	if row.str("status") != "success" || row.num("http_status") != 200 || row.num("attempt_number") != 1 ||
		row.str("job_id") != job.str("job_id") || row.isNull("delivered_at") || row.str("created_at") != env.str("timestamp") {
		t.Errorf("row: %v", row.v)
	}
	r.extract("https://shop.sandbox.test/fail/X")
	r.call("POST", "/v1/extract", `{"url":"https://shop.sandbox.test/item/6"}`).want(200)
	if n := r.Books().Deliveries.Events; n != 1 {
		t.Errorf("a failed or sync job fired: %d events", n)
	}
}

func TestDeliveryBodies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		form string
		want []string
		not  string
	}{
		{"summary", []string{"total_urls", "completed_urls", "token_summary"}, "results"},
		{"full", []string{"total_urls", "results", "batch_config"}, ""},
		{"empty", []string{"job_id", "status"}, "total_urls"},
	} {
		cfg := quick()
		cfg.Switches.CallbackBody = c.form
		r := setup(t, cfg)
		rec := newReceiver(t, nil)
		r.hook(rec, "batch_completed")
		r.batch(MadeURLs(12, 3)...)
		data := rec.take(t).doc(t).at("data")
		for _, member := range c.want {
			data.at(member)
		}
		if _, ok := data.v.(map[string]any)[c.not]; ok {
			t.Errorf("%s: holds %s", c.form, c.not)
		}
		if c.form == "full" && len(data.list("results")) != 12 {
			t.Errorf("full: %d results", len(data.list("results")))
		}
		r.hook(rec, "crawl_completed")
		r.call("POST", "/v1/crawl", `{"url":"https://news.sandbox.test/","depth":1}`).want(202)
		if got := rec.take(t).doc(t).str("data", "status"); got != "completed" {
			t.Errorf("crawl: got %s", got)
		}
	}
}

func TestDeliveryRetries(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	rec := newReceiver(t, func(n int) int { return []int{0, 500, 302, 200}[n] })
	id, secret := r.hook(rec, "batch_completed")
	r.batch(MadeURLs(2, 3)...)
	first := rec.take(t)
	for i := 2; i <= 3; i++ {
		d := rec.take(t)
		if !bytes.Equal(d.body, first.body) || d.header.Get("X-Webhook-Signature") != Sign(SignatureForm{}, secret, "", "", d.body) {
			t.Errorf("attempt %d is not the same signed body", i)
		}
	}
	b := r.until("delivered", func(b Books) bool { return b.Deliveries.Delivered == 1 })
	if b.Deliveries.Attempts != 3 || b.Deliveries.Refused != 2 {
		t.Errorf("books: %+v", b.Deliveries)
	}
	rows := r.call("GET", "/v1/webhooks/"+id+"/deliveries", nil).want(200)
	for i, want := range []string{"success", "failed", "failed"} {
		if rows.str("items", i, "status") != want || rows.num("items", i, "attempt_number") != 3-i {
			t.Errorf("row %d: %v", i, rows.at("items", i).v)
		}
	}
	failed := r.call("GET", "/v1/webhooks/"+id+"/deliveries?status=failed&page_size=1", nil).want(200)
	if failed.num("page_count") != 2 || failed.num("items", 0, "http_status") != 302 {
		t.Errorf("got %v", failed.v)
	}
	r.bad("GET", "/v1/webhooks/"+id+"/deliveries?status=lost", nil)
}

func TestDeliveryAbandoned(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Switches.DeliveryIDPerAttempt = true
	r := setup(t, cfg)
	rec := newReceiver(t, func(int) int { return 503 })
	id, _ := r.hook(rec, "batch_completed")
	r.batch(MadeURLs(2, 3)...)
	ids := map[string]bool{}
	for range 4 {
		d := rec.take(t)
		ids[d.header.Get("X-Webhook-Delivery-Id")] = true
		if d.doc(t).str("delivery_id") != d.header.Get("X-Webhook-Delivery-Id") {
			t.Error("header and body name different deliveries")
		}
	}
	if len(ids) != 4 {
		t.Errorf("got %d delivery ids, want 4", len(ids))
	}
	r.until("abandoned", func(b Books) bool { return b.Deliveries.Abandoned == 1 })
	rows := r.call("GET", "/v1/webhooks/"+id+"/deliveries", nil).want(200)
	if len(rows.list("items")) != 4 || rows.str("items", 0, "status") != "abandoned" {
		t.Errorf("rows: %v", rows.v)
	}
}

func TestDeliveryUnanswered(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.DeliveryTimeout = 30 * time.Millisecond
	cfg.RetryGaps = []time.Duration{}
	r := setup(t, cfg)
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-release:
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	r.call("POST", "/v1/webhooks", map[string]any{"url": server.URL, "event_type": "batch_completed"}).want(201)
	r.batch(MadeURLs(1, 1)...)
	b := r.until("abandoned", func(b Books) bool { return b.Deliveries.Abandoned == 1 })
	if b.Deliveries.Unanswered != 1 || b.Deliveries.Attempts != 1 {
		t.Errorf("got %+v", b.Deliveries)
	}
}

func TestRotationSignsRetries(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		cfg := quick()
		cfg.RetryGaps = []time.Duration{time.Millisecond}
		cfg.Switches.RetriesKeepSignature = keep
		r := setup(t, cfg)
		rotate := make(chan string, 1)
		var id string
		rec := newReceiver(t, nil)
		rec.next = func(n int) int {
			if n == 1 {
				rotate <- r.call("POST", "/v1/webhooks/"+id+"/rotate-secret", nil).want(200).str("secret")
				return 401
			}
			return 200
		}
		var secret string
		id, secret = r.hook(rec, "batch_completed")
		r.batch(MadeURLs(1, 1)...)
		first, second := rec.take(t), rec.take(t)
		if got := first.header.Get("X-Webhook-Signature"); got != Sign(SignatureForm{}, secret, "", "", first.body) {
			t.Error("the first attempt is not signed with the first secret")
		}
		want := <-rotate
		if keep {
			want = secret
		}
		if got := second.header.Get("X-Webhook-Signature"); got != Sign(SignatureForm{}, want, "", "", second.body) {
			t.Errorf("keep %v: the retry is signed with the other secret", keep)
		}
	}
}

func TestPausedWebhook(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		cfg := quick()
		cfg.Switches.PausedKeep = keep
		r := setup(t, cfg)
		rec := newReceiver(t, nil)
		id, _ := r.hook(rec, "batch_completed")
		r.call("PATCH", "/v1/webhooks/"+id, `{"is_active":false}`).want(200)
		paused := r.finish(r.batch(MadeURLs(1, 1)...)).str("job_id")
		r.call("PATCH", "/v1/webhooks/"+id, `{"is_active":true}`).want(200)
		later := r.finish(r.batch(MadeURLs(1, 2)...)).str("job_id")
		got := map[string]bool{rec.take(t).doc(t).str("data", "job_id"): true}
		if keep {
			got[rec.take(t).doc(t).str("data", "job_id")] = true
		}
		if !got[later] || got[paused] != keep {
			t.Errorf("keep %v: got %v", keep, got)
		}
	}
}

func TestDisableAfter(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.Switches.DisableAfter = 2
	r := setup(t, cfg)
	rec := newReceiver(t, func(int) int { return 500 })
	id, _ := r.hook(rec, "batch_completed")
	r.batch(MadeURLs(1, 1)...)
	r.until("given up", func(b Books) bool { return b.Deliveries.Abandoned == 1 })
	if r.call("GET", "/v1/webhooks/"+id, nil).want(200).at("is_active").v != false || r.Books().Deliveries.Attempts != 2 {
		t.Errorf("got %+v", r.Books().Deliveries)
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MaxQueued = 1
	cfg.RetryGaps = []time.Duration{time.Hour}
	r := setup(t, cfg)
	rec := newReceiver(t, func(int) int { return 500 })
	r.hook(rec, "batch_completed")
	r.batch(MadeURLs(1, 1)...)
	rec.take(t)
	r.batch(MadeURLs(1, 2)...)
	r.until("second given up", func(b Books) bool { return b.Deliveries.Abandoned == 1 })
}

func TestSign(t *testing.T) {
	t.Parallel()
	// The sums were made with openssl dgst -sha256 -hmac.
	const secret = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4"
	body := []byte(`{"a":1}`)
	for name, c := range map[string]struct {
		form SignatureForm
		want string
	}{
		"Default":   {SignatureForm{}, hmacHex(t, secret, `{"a":1}`)},
		"Prefix":    {SignatureForm{Prefix: "sha256="}, "sha256=" + hmacHex(t, secret, `{"a":1}`)},
		"Upper":     {SignatureForm{Encoding: "HEX"}, strings.ToUpper(hmacHex(t, secret, `{"a":1}`))},
		"ID":        {SignatureForm{Signed: "id.body"}, hmacHex(t, secret, `ID.{"a":1}`)},
		"Timestamp": {SignatureForm{Signed: "timestamp.body"}, hmacHex(t, secret, `TS.{"a":1}`)},
		"Rest":      {SignatureForm{Key: "rest"}, hmacHex(t, secret[6:], `{"a":1}`)},
		"Base64Key": {SignatureForm{Key: "base64"}, hmacHex(t, "abcdefghijklmnopqrstuvwx", `{"a":1}`)},
	} {
		if got := Sign(c.form, secret, "ID", "TS", body); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	std := Sign(SignatureForm{Encoding: "base64"}, secret, "", "", body)
	if raw := Sign(SignatureForm{Encoding: "base64url"}, secret, "", "", body); len(std) != 44 || len(raw) != 43 {
		t.Errorf("base64: got %s and %s", std, raw)
	}
}

// TestRefusedValid: the books count what a client refused and could have
// verified; not a garbled signature, nor one by a secret whose answer was
// broken.
func TestRefusedValid(t *testing.T) {
	t.Parallel()
	refuse := func(int) int { return http.StatusUnauthorized }
	for name, c := range map[string]struct {
		faults, before Faults
		want           int
	}{
		"Told":     {nil, nil, 1},
		"WrongSig": {Faults{FaultWrongSig: 1}, nil, 0},
		"Untold":   {nil, Faults{FaultResetAfterAccept: 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := quick()
			cfg.RetryGaps = nil
			r := setup(t, cfg)
			id, _ := r.hook(newReceiver(t, refuse), "batch_completed")
			if err := r.SetFaults(c.before); err != nil {
				t.Fatal(err)
			}
			if _, err := r.try("POST", "/v1/webhooks/"+id+"/rotate-secret", nil); (err != nil) != (c.before != nil) {
				t.Fatalf("rotate: %v", err)
			}
			if err := r.SetFaults(c.faults); err != nil {
				t.Fatal(err)
			}
			r.batch(MadeURLs(1, 1)...)
			b := r.until("the delivery to be answered", func(b Books) bool { return b.Deliveries.Refused == 1 })
			if b.Deliveries.RefusedValid != c.want || b.Deliveries.Rotations != 1 {
				t.Errorf("got %+v, want %d valid ones refused and one rotation", b.Deliveries, c.want)
			}
			if made := r.madeSecrets(); len(made) != 2 || made[0].RefusedValid != 0 || made[1].RefusedValid != c.want {
				t.Errorf("got %+v, want two secrets and %d refusals of the second", made, c.want)
			}
		})
	}
}

// TestRefusedValidKnowsWhatWasNeverTold: the secret of a webhook whose making
// was never answered may sign, as the old one, and nobody can verify it.
func TestRefusedValidKnowsWhatWasNeverTold(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.RetryGaps = nil
	r := setup(t, cfg)
	rec := newReceiver(t, func(int) int { return http.StatusUnauthorized })
	if err := r.SetFaults(Faults{FaultResetAfterAccept: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.try("POST", "/v1/webhooks", map[string]any{"url": rec.url, "event_type": "batch_completed"}); err == nil {
		t.Fatal("the making was answered")
	}
	if err := r.SetFaults(Faults{FaultOldSig: 1}); err != nil {
		t.Fatal(err)
	}
	id := r.accounts[DefaultAccount].hooks[0].id
	r.call("POST", "/v1/webhooks/"+id+"/rotate-secret", nil).want(200)
	r.batch(MadeURLs(1, 1)...)
	b := r.until("the delivery to be answered", func(b Books) bool { return b.Deliveries.Refused == 1 })
	if b.Deliveries.RefusedValid != 0 {
		t.Errorf("got %+v, want none that could be verified", b.Deliveries)
	}
}
