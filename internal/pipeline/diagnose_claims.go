package pipeline

import (
	"crypto/hmac"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Bounds of what is looked at in headers: others wrote them.
const (
	mostClaims    = 64
	longestClaim  = 1 << 10
	longestPrefix = 40
)

// claim is a header's value, or a part of it, that may be a signature.
type claim struct {
	header string
	raw    []byte
	// prefix and encoding are how it is written. One that is not listed stands
	// within something that the settings have no word for.
	prefix, encoding string
	listed           bool
}

// claimsOf reads a header's values in every way that is known.
func claimsOf(header string, values []string) []claim {
	var out []claim
	for _, value := range values[:min(len(values), mostClaims)] {
		if len(value) > longestClaim {
			continue
		}
		listed := listedClaims(header, value)
		out = append(out, listed...)
		if len(listed) == 0 {
			out = append(out, wrappedClaims(header, value)...)
		}
	}
	return out[:min(len(out), mostClaims)]
}

func listedClaims(header, value string) []claim {
	var out []claim
	for _, prefix := range prefixes() {
		for _, encoding := range encodings() {
			if raw, ok := (form{prefix: prefix, encoding: encoding}).decode(value); ok {
				out = append(out, claim{header: header, raw: raw, prefix: prefix, encoding: encoding, listed: true})
			}
		}
	}
	return out
}

// wrappedClaims looks for 32 bytes written within other text, such as
// "t=1,v0=6f2b...".
func wrappedClaims(header, value string) []claim {
	runs := regexp.MustCompile(`[0-9A-Za-z+/_-]{43,64}`)
	var out []claim
	for _, at := range runs.FindAllStringIndex(value, 8) {
		for _, encoding := range encodings() {
			if raw, ok := (form{prefix: "none", encoding: encoding}).decode(padded(value[at[0]:at[1]])); ok {
				out = append(out, claim{header: header, raw: raw, prefix: clip(value[:at[0]], longestPrefix), encoding: encoding})
				break
			}
		}
	}
	return out
}

// padded fills base64 of 32 bytes up, since the run ends before the padding.
func padded(run string) string {
	if len(run) == 43 {
		return run + "="
	}
	return run
}

// otherClaims are the claims in every header but those with the name, in the
// order of their names.
func otherClaims(h http.Header, except string) []claim {
	names := make([]string, 0, len(h))
	for name := range h {
		if !strings.EqualFold(name, except) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []claim
	for _, name := range names {
		if len(out) >= mostClaims {
			break
		}
		out = append(out, claimsOf(name, h[name])...)
	}
	return out
}

// namedLike is a header whose name says that it is a signature; "" when there
// is none.
func namedLike(h http.Header, except string) string {
	var found []string
	for name := range h {
		lower := strings.ToLower(name)
		if !strings.EqualFold(name, except) && (strings.Contains(lower, "signature") || strings.Contains(lower, "hmac")) {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found)
}

// match is what verifies.
type match struct {
	claim claim
	form  form
}

// effort bounds what a diagnosis hashes, in bytes.
type effort struct {
	left  int64
	spent bool // Something was left out for want of it.
}

// leastEffort is enough for every way with a body of ordinary size.
const leastEffort = 96 << 20

// newEffort lets a large body be tried in the likelier ways, too.
func newEffort(body int) *effort { return &effort{left: max(leastEffort, 24*int64(body))} }

// take reports whether there is enough left to hash so many bytes.
func (e *effort) take(n int) bool {
	if e.left < int64(n) {
		e.spent = true
		return false
	}
	e.left -= int64(n)
	return true
}

// signedKeys are the ways of signing that forms leave open.
type signedKey struct{ signed, key string }

func signedKeysOf(choices []form) []signedKey {
	var out []signedKey
	for _, f := range choices {
		if k := (signedKey{f.signed, f.key}); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// findClaim looks for a claim that the secret made over the request in one of the
// ways. It compares in constant time.
func findClaim(r signedRequest, secret string, claims []claim, ways []signedKey, e *effort) (match, bool) {
	if len(claims) == 0 {
		return match{}, false
	}
	for _, w := range ways {
		if !e.take(len(r.body)) {
			return match{}, false
		}
		f := form{signed: w.signed, key: w.key}
		want := f.sum(r, secret)
		if want == nil {
			continue
		}
		for _, c := range claims {
			if hmac.Equal(c.raw, want) {
				f.prefix, f.encoding = c.prefix, c.encoding
				return match{claim: c, form: f}, true
			}
		}
	}
	return match{}, false
}
