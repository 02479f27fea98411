package pipeline

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Auto leaves a point of the signature's form open until the first verified
// delivery shows it.
const Auto = "auto"

// SignatureSettings say how deliveries are signed. What the vendor has not
// published is a setting (gaps.md, section B); "auto" and "" mean all listed
// forms.
type SignatureSettings struct {
	Header         string        // X-Webhook-Signature.
	DeliveryHeader string        // X-Webhook-Delivery-Id.
	EventHeader    string        // X-Webhook-Event.
	Encoding       string        // hex, base64, base64url.
	Prefix         string        // none, sha256=, v1=, "v1,".
	Signed         string        // body, delivery_id.body, timestamp.body.
	MaxAge         time.Duration // Zero: retries may be hours late.
	Key            string        // whole, after_whsec, base64_after_whsec.
}

func (s SignatureSettings) withDefaults() SignatureSettings {
	for _, f := range []struct {
		at    *string
		value string
	}{
		{&s.Header, "X-Webhook-Signature"},
		{&s.DeliveryHeader, "X-Webhook-Delivery-Id"},
		{&s.EventHeader, "X-Webhook-Event"},
		{&s.Encoding, Auto},
		{&s.Prefix, Auto},
		{&s.Signed, Auto},
		{&s.Key, Auto},
	} {
		if *f.at == "" {
			*f.at = f.value
		}
	}
	return s
}

// The listed values of each point.
func encodings() []string { return []string{"hex", "base64", "base64url"} }
func prefixes() []string  { return []string{"none", "sha256=", "v1=", "v1,"} }
func signedAs() []string  { return []string{"body", "delivery_id.body", "timestamp.body"} }
func keyForms() []string  { return []string{"whole", "after_whsec", "base64_after_whsec"} }

// secretPrefix begins the vendor's secrets in its samples.
const secretPrefix = "whsec_"

// leastKey is the shortest key that is tried, in bytes.
const leastKey = 16

// form is one way of signing, fully decided.
type form struct{ signed, key, prefix, encoding string }

// String names the form, as it is pinned: "body whole none hex".
func (f form) String() string {
	return strings.Join([]string{f.signed, f.key, f.prefix, f.encoding}, " ")
}

// parseForm reads a pinned form; false when there is none.
func parseForm(s string) (form, bool) {
	parts := strings.Split(s, " ")
	if len(parts) != 4 {
		return form{}, false
	}
	return form{parts[0], parts[1], parts[2], parts[3]}, true
}

// choices are the forms that the settings leave open, the likeliest first. A
// pinned form is the only one, unless the settings name another: what a person
// set stands over what was once seen.
func (s SignatureSettings) choices(pinned string) []form {
	if f, ok := parseForm(pinned); ok && s.allow(f) {
		return []form{f}
	}
	var out []form
	for _, signed := range open(s.Signed, signedAs()) {
		for _, key := range open(s.Key, keyForms()) {
			for _, prefix := range open(s.Prefix, prefixes()) {
				for _, encoding := range open(s.Encoding, encodings()) {
					out = append(out, form{signed, key, prefix, encoding})
				}
			}
		}
	}
	return out
}

// allow reports whether the settings leave the form open.
func (s SignatureSettings) allow(f form) bool {
	return slices.Contains(open(s.Signed, signedAs()), f.signed) && slices.Contains(open(s.Key, keyForms()), f.key) &&
		slices.Contains(open(s.Prefix, prefixes()), f.prefix) && slices.Contains(open(s.Encoding, encodings()), f.encoding)
}

func open(setting string, all []string) []string {
	if setting == Auto || setting == "" {
		return all
	}
	return []string{setting}
}

// signedRequest is what a signature is checked over.
type signedRequest struct {
	signature, deliveryID string
	// timestamp is read from the body and only for the form that signs it.
	timestamp func() string
	body      []byte
}

// verify finds the form under which the secret made the signature. It tries
// every choice, compares in constant time and reports false when none fits.
func verify(r signedRequest, secret string, choices []form) (form, bool) {
	sums := map[[2]string][]byte{}
	for _, f := range choices {
		got, ok := f.decode(r.signature)
		if !ok {
			continue
		}
		id := [2]string{f.signed, f.key}
		want, done := sums[id]
		if !done {
			want = f.sum(r, secret)
			sums[id] = want
		}
		if want != nil && hmac.Equal(got, want) {
			return f, true
		}
	}
	return form{}, false
}

// decode takes the header's value to the bytes it stands for.
func (f form) decode(value string) ([]byte, bool) {
	value = strings.TrimSpace(value)
	if f.prefix != "none" {
		rest, ok := strings.CutPrefix(value, f.prefix)
		if !ok {
			return nil, false
		}
		value = rest
	}
	var raw []byte
	var err error
	switch f.encoding {
	case "hex":
		raw, err = hex.DecodeString(value)
	case "base64":
		raw, err = base64.StdEncoding.DecodeString(value)
	case "base64url":
		raw, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "="))
	default:
		return nil, false
	}
	return raw, err == nil && len(raw) == sha256.Size
}

// sum is the HMAC-SHA256 the form asks for, or nil when its key cannot be had.
func (f form) sum(r signedRequest, secret string) []byte {
	key, ok := f.keyBytes(secret)
	if !ok {
		return nil
	}
	mac := hmac.New(sha256.New, key)
	switch f.signed {
	case "delivery_id.body":
		mac.Write([]byte(r.deliveryID + "."))
	case "timestamp.body":
		mac.Write([]byte(r.timestamp() + "."))
	}
	mac.Write(r.body)
	return mac.Sum(nil)
}

// keyBytes is the key that the form makes of the secret; false when it does
// not decode or is too short to be one.
func (f form) keyBytes(secret string) ([]byte, bool) {
	key := []byte(secret)
	rest, has := strings.CutPrefix(secret, secretPrefix)
	switch f.key {
	case "after_whsec":
		if !has {
			return nil, false
		}
		key = []byte(rest)
	case "base64_after_whsec":
		// In either alphabet, padded or not: which is not published.
		plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(rest, "="))
		raw, err := base64.RawStdEncoding.DecodeString(plain)
		if err != nil {
			return nil, false
		}
		key = raw
	}
	return key, len(key) >= leastKey
}

// Check reports a setting that names no listed value.
func (s SignatureSettings) Check() error {
	for _, c := range []struct {
		name, value string
		all         []string
	}{
		{"encoding", s.Encoding, encodings()},
		{"prefix", s.Prefix, prefixes()},
		{"signed bytes", s.Signed, signedAs()},
		{"key form", s.Key, keyForms()},
	} {
		if c.value != "" && c.value != Auto && !slices.Contains(c.all, c.value) {
			return fmt.Errorf("signature %s %q is none of auto, %s", c.name, c.value, strings.Join(c.all, ", "))
		}
	}
	return nil
}
