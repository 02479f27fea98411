package main

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// leastSecret is the shortest secret that is looked for: a shorter text is found everywhere.
const leastSecret = 8

// leaks reads all of r and returns the names of the secrets that are in it, in plain or in another spelling: hexadecimal,
// base64 and base64url wherever in a text they begin, percent-encoded, or quoted as JSON.
func leaks(r io.Reader, secrets map[string]string) ([]string, error) {
	spelled, longest := map[string][]string{}, 0
	for name, secret := range secrets {
		if len(secret) < leastSecret {
			return nil, fmt.Errorf("the secret %q is too short to be looked for", name)
		}
		spelled[name] = spellings(secret)
		for _, text := range spelled[name] {
			longest = max(longest, len(text))
		}
	}
	found := map[string]bool{}
	in := bufio.NewReaderSize(r, 1<<20)
	window := make([]byte, 0, 1<<20+longest)
	for {
		n, err := in.Read(window[len(window):cap(window)])
		window = window[:len(window)+n]
		text := string(window)
		for name, forms := range spelled {
			found[name] = found[name] || slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(text, form) })
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("look for secrets: %w", err)
		}
		// One that lies across two reads is whole in the next window.
		window = append(window[:0], window[max(0, len(window)-longest):]...)
	}
	maps.DeleteFunc(found, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(found)), nil
}

// spellings are the forms in which a secret may stand somewhere. Of base64 they hold what is the same wherever it begins:
// each of three alignments without the characters that others share.
func spellings(secret string) []string {
	forms := []string{
		secret, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))), url.QueryEscape(secret), url.PathEscape(secret),
		strings.Trim(fmt.Sprintf("%q", secret), `"`),
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
