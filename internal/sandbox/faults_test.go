package sandbox

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func hmacHex(t *testing.T, key, text string) string {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// withFault is a sandbox in which one thing always goes wrong, and a receiver of batch events.
func withFault(t *testing.T, fault string, change func(*Config)) (*rig, *receiver, string) {
	t.Helper()
	cfg := quick()
	if change != nil {
		change(&cfg)
	}
	r := setup(t, cfg)
	rec := newReceiver(t, nil)
	_, secret := r.hook(rec, "batch_completed")
	if err := r.SetFaults(Faults{fault: 1}); err != nil {
		t.Fatal(err)
	}
	return r, rec, secret
}

func TestFaultDrop(t *testing.T) {
	t.Parallel()
	r, rec, _ := withFault(t, FaultDrop, nil)
	for i := range uint64(20) {
		r.finish(r.batch(MadeURLs(1, i)...))
	}
	id := r.call("GET", "/v1/webhooks", nil).want(200).str("items", 0, "id")
	rows := r.call("GET", "/v1/webhooks/"+id+"/deliveries?status=abandoned", nil).want(200).list("items")
	if len(rows) == 0 || len(rows) == 20 {
		t.Errorf("%d of 20 dropped deliveries are in the log", len(rows))
	}
	if b := r.Books().Deliveries; b.Dropped != 20 || b.Attempts != 0 || len(rec.got) != 0 {
		t.Errorf("got %+v", b)
	}
}

func TestFaultDup(t *testing.T) {
	t.Parallel()
	r, rec, _ := withFault(t, FaultDup, nil)
	for i := range uint64(4) {
		r.batch(MadeURLs(1, i)...)
		first, second := rec.take(t), rec.take(t)
		if !bytes.Equal(first.body, second.body) || first.header.Get("X-Webhook-Delivery-Id") != second.header.Get("X-Webhook-Delivery-Id") {
			t.Error("the second is not the same delivery")
		}
	}
	b := r.until("sent", func(b Books) bool { return b.Deliveries.Delivered == 4 })
	if b.Deliveries.Duplicated != 4 || b.Deliveries.Attempts != 8 {
		t.Errorf("got %+v", b.Deliveries)
	}
}

func TestFaultDelay(t *testing.T) {
	t.Parallel()
	r, rec, _ := withFault(t, FaultDelay, func(c *Config) { c.DelayUnit = 200 * time.Millisecond })
	r.finish(r.batch(MadeURLs(1, 1)...))
	r.until("held back", func(b Books) bool { return b.Deliveries.Delayed == 1 })
	id := r.call("GET", "/v1/webhooks", nil).want(200).str("items", 0, "id")
	if got := r.call("GET", "/v1/webhooks/"+id+"/deliveries", nil).want(200).str("items", 0, "status"); got != "pending" {
		t.Errorf("log: got %s, want pending", got)
	}
	start := time.Now()
	rec.take(t)
	if waited := time.Since(start); waited < 20*time.Millisecond || r.Books().Deliveries.Delayed != 1 {
		t.Errorf("came after %s", waited)
	}
}

func TestFaultReorder(t *testing.T) {
	t.Parallel()
	r, rec, _ := withFault(t, FaultReorder, func(c *Config) { c.ReorderHold = 10 * time.Second; c.ReorderAfter = 2 })
	held := r.finish(r.batch(MadeURLs(1, 1)...)).str("job_id")
	r.until("held back", func(b Books) bool { return b.Deliveries.Reordered == 1 })
	if err := r.SetFaults(Faults{}); err != nil {
		t.Fatal(err)
	}
	var order []string
	for i := range uint64(2) {
		r.batch(MadeURLs(1, 10+i)...)
		order = append(order, rec.take(t).doc(t).str("data", "job_id"))
	}
	order = append(order, rec.take(t).doc(t).str("data", "job_id"))
	if slices.Index(order, held) != 2 {
		t.Errorf("got %v, want %s last", order, held)
	}
}

func TestFaultEarly(t *testing.T) {
	t.Parallel()
	r, rec, _ := withFault(t, FaultEarly, func(c *Config) { c.EarlyLag = 300 * time.Millisecond; c.RunTime = time.Hour })
	stale := 0
	for i := range uint64(12) {
		path := r.batch(MadeURLs(5, i)...)
		select {
		case d := <-rec.got:
			if got := "/v1/batch/" + d.doc(t).str("data", "job_id"); got != path || d.doc(t).str("data", "status") != "completed" {
				t.Errorf("got %s as %s", got, d.doc(t).str("data", "status"))
			}
		default:
			t.Error("the delivery did not come before the 202")
		}
		d := r.call("GET", path, nil).want(200)
		if d.str("status") == "processing" {
			stale++
			if d.num("pending_urls") != 5 || len(d.list("results")) != 0 {
				t.Errorf("got %v", d.v)
			}
			r.finish(path)
		}
	}
	if stale == 0 || stale == 12 {
		t.Errorf("%d of 12 reads were stale", stale)
	}
	if b := r.Books().Deliveries; b.Early != 12 || b.Events != 12 {
		t.Errorf("got %+v", b)
	}
}

func TestFaultEarlyGivesUp(t *testing.T) {
	t.Parallel()
	r, rec, _ := withFault(t, FaultEarly, func(c *Config) { c.EarlyWait = 10 * time.Millisecond })
	path := r.batch("https://shop.sandbox.test/slow/800ms")
	if d := r.call("GET", path, nil).want(200); d.str("status") != "processing" {
		t.Errorf("got %s", d.str("status"))
	}
	if got := rec.take(t).doc(t).str("data", "status"); got != "completed" {
		t.Errorf("got %s", got)
	}
}

func TestFaultWrongSig(t *testing.T) {
	t.Parallel()
	r, rec, secret := withFault(t, FaultWrongSig, nil)
	rec.next = func(int) int { return 401 }
	r.batch(MadeURLs(1, 1)...)
	for range 4 {
		d := rec.take(t)
		if d.header.Get("X-Webhook-Signature") == Sign(SignatureForm{}, secret, "", "", d.body) {
			t.Error("the signature is right")
		}
	}
	r.until("abandoned", func(b Books) bool { return b.Deliveries.Abandoned == 1 && b.Deliveries.WrongSignature == 4 })
}

func TestFaultOldSig(t *testing.T) {
	t.Parallel()
	r, rec, secret := withFault(t, FaultOldSig, nil)
	id := r.call("GET", "/v1/webhooks", nil).want(200).str("items", 0, "id")
	r.call("POST", "/v1/webhooks/"+id+"/rotate-secret", nil).want(200)
	r.batch(MadeURLs(1, 1)...)
	if d := rec.take(t); d.header.Get("X-Webhook-Signature") != Sign(SignatureForm{}, secret, "", "", d.body) {
		t.Error("not signed with the old secret")
	}
}

func TestFaultAlter(t *testing.T) {
	t.Parallel()
	r, rec, secret := withFault(t, FaultAlter, nil)
	r.batch(MadeURLs(1, 1)...)
	d := rec.take(t)
	if d.header.Get("X-Webhook-Signature") == Sign(SignatureForm{}, secret, "", "", d.body) {
		t.Error("the signature fits the altered body")
	}
}

func TestFaultRateLimit(t *testing.T) {
	t.Parallel()
	for fault, check := range map[string]func(string) bool{
		FaultRateLimit:     func(h string) bool { return h == "1" },
		FaultRateLimitDate: func(h string) bool { _, err := http.ParseTime(h); return err == nil },
		FaultRateLimitBare: func(h string) bool { return h == "" },
	} {
		r, _, _ := withFault(t, fault, nil)
		a := r.call("POST", "/v1/batch", `{"urls":["https://shop.sandbox.test/"]}`)
		d := a.want(429)
		if d.str("code") != "RATE_LIMITED" || d.at("retryable").v != true || !check(a.header.Get("Retry-After")) {
			t.Errorf("%s: got %v with %q", fault, d.v, a.header.Get("Retry-After"))
		}
		if n := len(r.Books().Jobs); n != 0 {
			t.Errorf("%s: %d jobs were made", fault, n)
		}
	}
}

func TestFaultErr5xx(t *testing.T) {
	t.Parallel()
	r, _, _ := withFault(t, FaultErr5xx, nil)
	seen := map[string]bool{}
	for range 40 {
		a := r.call("GET", "/v1/batch/jobs", nil)
		seen[strconv.Itoa(a.status)] = true
		switch {
		case len(a.raw) == 0:
			seen["empty"] = true
		case strings.HasPrefix(a.header.Get("Content-Type"), "text/html"):
			seen["html"] = true
		default:
			seen["json"] = a.doc().at("retryable").v == true
		}
		if a := r.call("POST", "/v1/batch", `{"urls":["https://shop.sandbox.test/"]}`); a.doc().at("retryable").v != true {
			t.Errorf("got %s", a.raw)
		}
	}
	for _, want := range []string{"500", "502", "503", "504", "empty", "html", "json"} {
		if !seen[want] {
			t.Errorf("never saw %s", want)
		}
	}
	if n := len(r.Books().Jobs); n != 0 {
		t.Errorf("%d jobs were made", n)
	}
}

func TestFaultSlow(t *testing.T) {
	t.Parallel()
	r, _, _ := withFault(t, FaultSlow, func(c *Config) { c.SlowMax = 200 * time.Millisecond })
	start := time.Now()
	r.call("GET", "/v1/batch/jobs", nil).want(200)
	if got := time.Since(start); got < 10*time.Millisecond {
		t.Errorf("answered after %s", got)
	}
}

func TestFaultResetAfterAccept(t *testing.T) {
	t.Parallel()
	r, _, _ := withFault(t, FaultResetAfterAccept, nil)
	if a, err := r.try("POST", "/v1/batch", `{"urls":["https://shop.sandbox.test/"]}`); err == nil {
		t.Errorf("got an answer: %d", a.status)
	}
	b := r.Books()
	if len(b.Jobs) != 1 || b.Calls["batch.submit"].ByStatus[0] != 1 {
		t.Errorf("got %d jobs, calls %+v", len(b.Jobs), b.Calls)
	}
}

func TestFaultTruncate(t *testing.T) {
	t.Parallel()
	r, _, _ := withFault(t, FaultTruncate, nil)
	if a, err := r.try("GET", "/v1/batch/jobs", nil); err == nil {
		t.Errorf("got the whole answer: %s", a.raw)
	}
}

func TestFaultNever(t *testing.T) {
	t.Parallel()
	r, rec, _ := withFault(t, FaultNever, nil)
	path := r.batch(MadeURLs(2, 1)...)
	r.until("items done", func(b Books) bool { return b.Reserved == 0 })
	if got := r.call("GET", path, nil).want(200).str("status"); got != "processing" || len(rec.got) != 0 {
		t.Errorf("got %s", got)
	}
	r.call("DELETE", path, nil).want(202)
}

func TestFaultItemFail(t *testing.T) {
	t.Parallel()
	r, _, _ := withFault(t, FaultItemFail, nil)
	urls := MadeURLs(60, 1)
	r.finish(r.batch(urls...))
	r.finish(r.batch(urls...))
	b := r.Books()
	first, second := b.Jobs[0].Outcomes, b.Jobs[1].Outcomes
	codes, good := map[string]int{}, 0
	for i := range first {
		if first[i].Status != "failed" || first[i].Charged != 0 {
			t.Errorf("first: %+v", first[i])
		}
		codes[first[i].Code]++
		if first[i].Retryable != (second[i].Status == "completed") {
			t.Errorf("%+v, then %+v", first[i], second[i])
		}
		if second[i].Status == "completed" {
			good++
		}
	}
	if len(codes) != 4 || good < 15 || good > 45 {
		t.Errorf("codes %v, %d good the second time", codes, good)
	}
	r.finish(r.batch("https://shop.sandbox.test/steady/1"))
	if steady := r.Books().Jobs[2].Outcomes[0]; steady.Status != "completed" {
		t.Errorf("got %+v, want the steady page spared", steady)
	}
}

func TestSameSeedSameOutcomes(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) string {
		cfg := quick()
		cfg.Seed = seed
		cfg.Faults = Faults{FaultItemFail: 0.3, FaultDrop: 0.3, FaultDup: 0.3, FaultWrongSig: 0.3}
		r := setup(t, cfg)
		rec := newReceiver(t, nil)
		r.hook(rec, "batch_completed")
		r.hook(rec, "extract_completed")
		for i := range uint64(10) {
			r.finish(r.batch(MadeURLs(10, i)...))
			r.extract(MadeURLs(1, 100+i)[0])
		}
		b := r.until("all sent", func(b Books) bool {
			return b.Deliveries.Delivered+b.Deliveries.Dropped+b.Deliveries.Abandoned == b.Deliveries.Events
		})
		for i := range b.Jobs {
			j := &b.Jobs[i]
			j.ID, j.AcceptedAt, j.EndedAt = "", time.Time{}, time.Time{}
		}
		return fmt.Sprintf("%+v %+v", b.Jobs, b.Deliveries)
	}
	first := run(1)
	if run(1) != first {
		t.Error("the same seed gave other outcomes")
	}
	if run(2) == first {
		t.Error("another seed gave the same outcomes")
	}
}

func TestParseFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want, err string }{
		{"none", "none", ""},
		{"", "none", ""},
		{" drop=0.1, dup=1 ", "drop=0.1,dup=1", ""},
		{"drop=0", "none", ""},
		{"drip=0.1", "", "drop"},
		{"drop", "", "NAME=RATE"},
		{"drop=x", "", "not a number"},
		{"drop=1.1", "", "0 to 1"},
		{"drop=-0.1", "", "0 to 1"},
		{"drop=NaN", "", "0 to 1"},
		{"drop=2,other=1", "", "other"},
	} {
		f, err := ParseFaults(c.text)
		switch {
		case c.err == "" && (err != nil || f.String() != c.want):
			t.Errorf("%q: got %s, %v", c.text, f, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: got error %v, want one with %q", c.text, err, c.err)
		}
	}
	f, err := ParseFaults(DefaultFaults().String())
	if err != nil || f.String() != DefaultFaults().String() || f[FaultEarly] != 0.05 {
		t.Errorf("the default mix: got %s, %v", f, err)
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add("drop=0.1,dup=0.1")
	f.Add("none")
	f.Add("=,,==")
	f.Fuzz(func(t *testing.T, text string) {
		faults, err := ParseFaults(text)
		if err != nil {
			return
		}
		if again, err := ParseFaults(faults.String()); err != nil || again.String() != faults.String() {
			t.Errorf("%q became %q, then %q (%v)", text, faults, again, err)
		}
	})
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	_, err := New(Config{
		Parallelism: -1, Faults: Faults{"x": 1, FaultDrop: 2}, Switches: Switches{CallbackBody: "x", ErrorBody: "y"},
		APIKeys: map[string]string{"": "a"}, RetryGaps: []time.Duration{-1},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"Parallelism", `"x"`, "drop", "callback_body", "error_body", "APIKeys", "RetryGaps"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error doesn't name %s: %v", want, err)
		}
	}
}
