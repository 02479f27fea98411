package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// leastSecret is the shortest secret that is looked for: a shorter text is found everywhere.
const leastSecret = 8

// leaks reads all of r and returns the names of the secrets that are in it, in plain or in another spelling: hexadecimal,
// base64 and base64url wherever in a text they begin, percent-encoded, escaped for HTML, or quoted as JSON or Go.
func leaks(r io.Reader, secrets map[string]string) ([]string, error) {
	search, err := newSecretSearch(secrets)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	window := make([]byte, 0, 1<<20+search.longest)
	for {
		n, err := r.Read(window[len(window):cap(window)])
		window = window[:len(window)+n]
		search.in(window, found)
		if errors.Is(err, io.EOF) {
			return slices.Sorted(maps.Keys(found)), nil
		}
		if err != nil {
			return nil, fmt.Errorf("look for secrets: %w", err)
		}
		// One that lies across two reads is whole in the next window.
		window = append(window[:0], window[max(0, len(window)-search.longest):]...)
	}
}

// secretSearch looks for thousands of spellings at once: at each place of a text it asks whether any begins with the
// eight bytes there.
type secretSearch struct {
	begins  map[uint64][]spelling
	sieve   [1 << 10]uint64 // A bit for the hash of each beginning, since nearly every place begins nothing.
	longest int
}

type spelling struct {
	name string
	text []byte
}

func newSecretSearch(secrets map[string]string) (*secretSearch, error) {
	s := &secretSearch{begins: map[uint64][]spelling{}}
	for name, secret := range secrets {
		if len(secret) < leastSecret {
			return nil, fmt.Errorf("the secret %q is too short to be looked for", name)
		}
		for _, form := range spellings(secret) {
			begin := binary.LittleEndian.Uint64([]byte(form))
			s.begins[begin] = append(s.begins[begin], spelling{name, []byte(form)})
			bit := sieveBit(begin)
			s.sieve[bit>>6] |= 1 << (bit & 63)
			s.longest = max(s.longest, len(form))
		}
	}
	return s, nil
}

// sieveBit is the place of a beginning in the sieve, by a multiplicative hash of 16 bits.
func sieveBit(begin uint64) uint64 { return begin * 0x9e3779b97f4a7c15 >> 48 }

// in adds the names of the secrets that are in the text.
func (s *secretSearch) in(text []byte, found map[string]bool) {
	for i := 0; i+leastSecret <= len(text); i++ {
		begin := binary.LittleEndian.Uint64(text[i:])
		bit := sieveBit(begin)
		if s.sieve[bit>>6]&(1<<(bit&63)) == 0 {
			continue
		}
		for _, form := range s.begins[begin] {
			if bytes.HasPrefix(text[i:], form.text) {
				found[form.name] = true
			}
		}
	}
}

// spellings are the forms in which a secret may stand somewhere. Of base64 they hold what is the same wherever it begins:
// each of three alignments without the characters that others share.
func spellings(secret string) []string {
	lower := hex.EncodeToString([]byte(secret))
	forms := []string{
		secret, lower, strings.ToUpper(lower), url.QueryEscape(secret), url.PathEscape(secret), html.EscapeString(secret),
		strings.Trim(fmt.Sprintf("%q", secret), `"`), asJSON(secret, true), asJSON(secret, false),
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			coded := encoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + secret))
			first := (shift*8 + 5) / 6
			last := (shift + len(secret)) * 8 / 6
			forms = append(forms, coded[first:last])
		}
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// asJSON is the text as it stands between the quotes of JSON; & < > as \u0026 and the like, or as they are.
func asJSON(text string, escaped bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escaped)
	if err := e.Encode(text); err != nil {
		return text // Never: any string can be told in JSON.
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}
