package pipeline

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"rollcall/internal/geonode"
	"rollcall/internal/preflight"
	"rollcall/internal/sandbox"
	"rollcall/store"
)

// FuzzCheckURL: what passes can be sent, stored, and passes again unchanged.
func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{
		"https://shop.sandbox.test/item/1", " http://a b.test/ x ", "javascript:alert(1)", "https://", "https://u:p@h.test/", "HTTPS://H\u00e4.test:443/\u00fc?q=\x00",
		"http://[::1]:80/", "http://h.test/%zz", "//h.test/", "http://h.test/" + strings.Repeat("a ", 4000), "http://h.test/\tx", "\ufeffhttp://h.test",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := CheckURL(line)
		if err != nil {
			return
		}
		u, err := url.Parse(got)
		if err != nil || u.Hostname() == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") {
			t.Errorf("%q became %q, which cannot be sent: %v", line, got, err)
		}
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00 \t\r\n") || len(got) > MaxURL {
			t.Errorf("%q became %q of %d bytes, which cannot be stored", line, got, len(got))
		}
		if again, err := CheckURL(got); err != nil || again != got {
			t.Errorf("%q became %q and then %q, %v", line, got, again, err)
		}
		if form := preflight.Canonical(got, false, false); !sameURL(got, form) || !bytes.Equal(pageKey(got), pageKey(form)) {
			t.Errorf("%q is not the same as its form %q", got, form)
		}
	})
}

// FuzzReadEnvelope: whatever the body, the job id that is read can be one, and
// what is found of a member is what encoding/json finds.
func FuzzReadEnvelope(f *testing.F) {
	for _, s := range []string{
		`{"event":"batch_completed","data":{"job_id":"job-1"}}`, `{"job_id":7}`, `[]`, ``, `{"data":null}`, `{"data":{"job_id":{"job_id":1}}}`,
		`{"data":{"job_id":1e999}}`, `{"data":{"job_id":"a\u0000"}}`, `{"job_id":"` + strings.Repeat("x", 300) + `"}`, "\xff{", `{"data":{"job_id":" x "},"event":5}`,
		`{"timestamp":"a","timestamp":"b\u002f","data":{"job_id":"x"}}`, `{"time\u0073tamp":"a"}`, `{"timestamp":"a"} `, `{"timestamp":"a"}}`, `{"timestamp":nul}`,
	} {
		f.Add([]byte(s), "data.job_id,job_id")
	}
	f.Fuzz(func(t *testing.T, body []byte, paths string) {
		e, err := FieldSettings{JobID: strings.Split(paths, ",")}.withDefaults().readEnvelope(body)
		var members map[string]any
		// What is no text is mended by each in its own way.
		if json.Unmarshal(body, &members) == nil && utf8.Valid(body) && !bytes.Contains(bytes.ToLower(body), []byte(`\ud`)) {
			want, _ := members["timestamp"].(string)
			if _, number := members["timestamp"].(float64); !number && timestampOf(body) != strings.TrimSpace(want) {
				t.Errorf("%q: got the timestamp %q, want %q", body, timestampOf(body), want)
			}
		}
		if err != nil {
			return
		}
		if err := geonode.ValidJobID(e.jobID); err != nil {
			t.Errorf("%q gave the job id %q: %v", body, e.jobID, err)
		}
		if clean := store.CleanText(e.event + e.deliveryID); !utf8.ValidString(clean) {
			t.Errorf("%q gave %q, which cannot be stored", body, clean)
		}
	})
}

// FuzzVerify: no signature that was not made with the secret is verified, and
// none of the forms panics.
func FuzzVerify(f *testing.F) {
	good := sandbox.Sign(sandbox.SignatureForm{}, formSecret, "", "", []byte(formBody))
	for _, s := range []string{good, "sha256=" + good, "v1," + good, "v1=" + strings.ToUpper(good), "", "=", "v1,", good[:63], good + "00"} {
		f.Add(s, formSecret, []byte(formBody))
	}
	f.Add(good, "", []byte{})
	f.Fuzz(func(t *testing.T, signature, secret string, body []byte) {
		r := signedForm(signature)
		r.body = body
		choices := SignatureSettings{}.choices("")
		form, ok := verify(r, secret, choices)
		if ok && len(secret) < leastKey {
			t.Errorf("the secret %q of %d bytes verified %q as %s", secret, len(secret), signature, form)
		}
		if _, other := verify(r, formSecret+secret, choices); other && ok {
			t.Errorf("%q verified with two secrets", signature)
		}
		made := sandbox.Sign(sandbox.SignatureForm{}, secret, "", "", body)
		r.signature = made
		if _, ok := verify(r, secret, choices); !ok && len(secret) >= leastKey {
			t.Errorf("the signature of %q was not verified", secret)
		}
	})
}

// FuzzSignatureForms: what was signed in any of the listed forms is verified, and
// nothing else is: not another body, not another secret, not another sum.
func FuzzSignatureForms(f *testing.F) {
	all := SignatureSettings{}.choices("")
	for i := range all {
		if i%7 == 0 {
			f.Add(byte(i), formSecret, formID, []byte(formBody), uint16(i))
		}
	}
	f.Add(byte(0), "whsec_", "", []byte(""), uint16(9))
	f.Fuzz(func(t *testing.T, which byte, secret, id string, body []byte, flip uint16) {
		made := all[int(which)%len(all)]
		if _, usable := made.keyBytes(secret); !usable {
			return
		}
		sign := func(body []byte) signedRequest {
			stamp := func() string { return timestampOf(body) }
			return signedRequest{signature: sandbox.Sign(vendorForm(made), secret, id, stamp(), body), deliveryID: id, timestamp: stamp, body: body}
		}
		r := sign(body)
		got, ok := verify(r, secret, all)
		if !ok {
			t.Fatalf("%s with %q was not verified", made, secret)
		}
		made = got // A secret in an alphabet that the sandbox doesn't decode signs as it stands.
		if _, ok := verify(r, secret, []form{made}); !ok {
			t.Errorf("%s was not verified once pinned", made)
		}
		if _, ok := verify(r, secret+"x", []form{made}); ok {
			t.Errorf("%s was verified with another secret", made)
		}
		if len(body) > 0 {
			other := bytes.Clone(body)
			other[int(flip)%len(other)] ^= 1
			changed := sign(other)
			changed.signature = r.signature
			if _, ok := verify(changed, secret, all); ok {
				t.Errorf("%s of %q was verified for %q", made, body, other)
			}
		}
	})
}

// FuzzReadLines: every line that is not blank is counted once, as a URL, as a
// bad line or as a duplicate.
func FuzzReadLines(f *testing.F) {
	for _, s := range []string{"", "https://a.test\nhttps://a.test\r\nbad\r\r\n \n", "\ufeffhttps://a.test", "https://a.test/\x00\n\xff", "a\rb\nc"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readLines(t.Context(), text, false)
		if err != nil {
			return
		}
		if int64(len(got.urls)+len(got.bad))+got.duplicates != got.total || len(got.rejected) != len(got.bad)+int(got.duplicates) {
			t.Errorf("%q: %d URLs, %d bad, %d duplicates of %d", text, len(got.urls), len(got.bad), got.duplicates, got.total)
		}
		seen := map[string]bool{}
		for _, u := range got.urls {
			if seen[u] {
				t.Errorf("%q: %q twice", text, u)
			}
			seen[u] = true
		}
		for _, r := range got.rejected {
			if store.CleanText(r.Text) != r.Text {
				t.Errorf("%q: the line %q cannot be stored", text, r.Text)
			}
		}
	})
}
