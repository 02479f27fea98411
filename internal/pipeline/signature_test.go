package pipeline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/sandbox"
)

// vendorForm is the sandbox's word for each of ours.
func vendorForm(f form) sandbox.SignatureForm {
	signed := map[string]string{"body": "body", "delivery_id.body": "id.body", "timestamp.body": "timestamp.body"}
	key := map[string]string{"whole": "whole", "after_whsec": "rest", "base64_after_whsec": "base64"}
	out := sandbox.SignatureForm{Encoding: f.encoding, Signed: signed[f.signed], Key: key[f.key], Prefix: f.prefix}
	if f.prefix == "none" {
		out.Prefix = ""
	}
	return out
}

const (
	formSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
	formID     = "5e0c9ad4-0000-4000-8000-000000000000"
	formStamp  = "2026-11-29T12:00:00Z"
	formBody   = `{"timestamp":"2026-11-29T12:00:00Z","data":{"job_id":"job-1"}}`
)

func signedForm(signature string) signedRequest {
	return signedRequest{signature: signature, deliveryID: formID, timestamp: func() string { return timestampOf([]byte(formBody)) }, body: []byte(formBody)}
}

// TestEveryFormOfSignature signs as the vendor may in each of the listed forms
// and wants it verified, in auto and with the settings that name the form.
func TestEveryFormOfSignature(t *testing.T) {
	t.Parallel()
	auto := SignatureSettings{}.withDefaults()
	all := auto.choices("")
	if len(all) != 3*3*4*3 {
		t.Fatalf("got %d forms, want 108", len(all))
	}
	for _, f := range all {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			r := signedForm(sandbox.Sign(vendorForm(f), formSecret, formID, formStamp, []byte(formBody)))
			got, ok := verify(r, formSecret, all)
			// Standard and URL base64 look alike when no sign of the last two occurs.
			if !ok || got.signed != f.signed || got.key != f.key || got.prefix != f.prefix {
				t.Errorf("got %v %v, want %v", got, ok, f)
			}
			named := SignatureSettings{Encoding: f.encoding, Prefix: f.prefix, Signed: f.signed, Key: f.key}.withDefaults()
			if err := named.Check(); err != nil {
				t.Error(err)
			}
			if _, ok := verify(r, formSecret, named.choices("")); !ok {
				t.Error("not verified with the settings that name the form")
			}
			if _, ok := verify(r, formSecret, auto.choices(f.String())); !ok {
				t.Error("not verified with the form pinned")
			}
			if _, ok := verify(r, formSecret+"x", all); ok {
				t.Error("verified with another secret")
			}
			r.body = []byte(formBody + " ")
			if _, ok := verify(r, formSecret, all); ok {
				t.Error("verified over another body")
			}
		})
	}
}

// TestHexOfEitherCase: the vendor's case is not published.
func TestHexOfEitherCase(t *testing.T) {
	t.Parallel()
	upper := sandbox.Sign(sandbox.SignatureForm{Encoding: "HEX"}, formSecret, "", "", []byte(formBody))
	if _, ok := verify(signedForm(upper), formSecret, SignatureSettings{}.choices("")); !ok || upper == strings.ToLower(upper) {
		t.Errorf("%s was not verified", upper)
	}
}

// TestPinnedFormIsTheOnlyChoice: and a pin that cannot be read is none.
func TestPinnedFormIsTheOnlyChoice(t *testing.T) {
	t.Parallel()
	s := SignatureSettings{}.withDefaults()
	want := []form{{"body", "whole", "v1,", "hex"}}
	if diff := cmp.Diff(want, s.choices("body whole v1, hex"), cmp.AllowUnexported(form{})); diff != "" {
		t.Error(diff)
	}
	if got := len(s.choices("nonsense")); got != 108 {
		t.Errorf("got %d choices for an unreadable pin, want all", got)
	}
}

// TestKeyFormsThatCannotBeHadAreSkipped: they don't decode, or are too short to
// be keys, and an empty one signs nothing.
func TestKeyFormsThatCannotBeHadAreSkipped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		secret, key string
		ok          bool
	}{
		{formSecret, "whole", true},
		{formSecret, "after_whsec", true},
		{formSecret, "base64_after_whsec", true},
		{"", "whole", false},
		{"fifteen bytes..", "whole", false},
		{"sixteen bytes...", "whole", true},
		{"sixteen bytes...", "after_whsec", false},
		{"whsec_fifteen_bytes..", "after_whsec", false},
		{"whsec_fifteen_bytes..", "whole", true},
		{"whsec_not*base64*at*all*but*long", "base64_after_whsec", false},
		{"whsec_AAECAwQFBgcICQoLDA0O", "base64_after_whsec", false}, // 15 bytes.
		{"whsec_AAECAwQFBgcICQoLDA0ODw==", "base64_after_whsec", true},
		{"whsec_AAECAwQFBgcICQoLDA0ODw", "base64_after_whsec", true},           // Without padding.
		{"whsec_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_", "base64_after_whsec", true}, // In the URL's alphabet.
	} {
		if _, ok := (form{signed: "body", key: c.key}).keyBytes(c.secret); ok != c.ok {
			t.Errorf("%q as %s: got %v, want %v", c.secret, c.key, ok, c.ok)
		}
	}
	for _, secret := range []string{"", "short", "whsec_", "whsec_short"} {
		r := signedForm(sandbox.Sign(sandbox.SignatureForm{}, secret, "", "", []byte(formBody)))
		if f, ok := verify(r, secret, SignatureSettings{}.choices("")); ok && len(secret) < leastKey {
			t.Errorf("the secret %q verified as %s", secret, f)
		}
	}
}

// TestSignatureSettingsAreChecked: a value that is not listed is a mistake.
func TestSignatureSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for _, s := range []SignatureSettings{{Encoding: "octal"}, {Prefix: "v2="}, {Signed: "header"}, {Key: "half"}} {
		if err := s.Check(); err == nil {
			t.Errorf("%+v passed", s)
		}
	}
	if err := (SignatureSettings{}).withDefaults().Check(); err != nil {
		t.Error(err)
	}
}

// TestSettingsStandOverThePinnedForm: a person who names another form than the
// first delivery showed is obeyed; one who names the same keeps it.
func TestSettingsStandOverThePinnedForm(t *testing.T) {
	t.Parallel()
	pinned := form{"body", "whole", "none", "hex"}.String()
	r := signedForm(sandbox.Sign(sandbox.SignatureForm{Encoding: "base64"}, formSecret, "", "", []byte(formBody)))
	if _, ok := verify(r, formSecret, SignatureSettings{Encoding: "base64"}.withDefaults().choices(pinned)); !ok {
		t.Error("not verified in the form that the settings name")
	}
	if got := (SignatureSettings{Encoding: "hex"}).withDefaults().choices(pinned); len(got) != 1 {
		t.Errorf("got %d forms, want the pinned one", len(got))
	}
}
