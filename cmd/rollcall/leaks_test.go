package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// TestLeaksAreFound plants a secret in every spelling, at every place between two reads, and beside what only looks
// like it.
func TestLeaksAreFound(t *testing.T) {
	t.Parallel()
	const secret = "whsec_\"k+/=\xc3\xa9y of <all> & 'more'"
	quoted, err := json.Marshal(map[string]string{"a": secret})
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]string{
		"plain": "x" + secret + "y", "hex": hex.EncodeToString([]byte(secret)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(secret))), "JSON": string(quoted),
		"HTML": html.EscapeString(secret), "Go": strconv.Quote(secret), "query": url.QueryEscape(secret), "path": url.PathEscape(secret),
		"JSON as it is": `{"a":"` + strings.ReplaceAll(secret, `"`, `\"`) + `"}`,
	}
	for shift := range 4 {
		whole := []byte(strings.Repeat("u", shift) + secret + "tail")
		planted["base64 "+strings.Repeat("+", shift)] = base64.StdEncoding.EncodeToString(whole)
		planted["base64url "+strings.Repeat("+", shift)] = base64.RawURLEncoding.EncodeToString(whole)
	}
	secrets := map[string]string{"webhook secret": secret, "another": "not there at all"}
	for name, text := range planted {
		for _, before := range []int{0, 1 << 20, 1<<20 - 5} {
			in := io.MultiReader(strings.NewReader(strings.Repeat(".", before)+text), bytes.NewReader(make([]byte, 100)))
			got, err := leaks(iotest.HalfReader(in), secrets)
			if err != nil || !slices.Equal(got, []string{"webhook secret"}) {
				t.Errorf("%s behind %d bytes: got %v, %v", name, before, got, err)
			}
		}
	}
	if got, err := leaks(strings.NewReader(secret[:12]+" "+secret[6:]+strings.ToLower("NOT THERE AT AL")), secrets); err != nil || len(got) > 0 {
		t.Errorf("nothing is planted: got %v, %v", got, err)
	}
	if _, err := leaks(iotest.ErrReader(io.ErrUnexpectedEOF), secrets); err == nil {
		t.Error("a read that failed passes for one without secrets")
	}
	if _, err := leaks(strings.NewReader(""), map[string]string{"none": ""}); err == nil {
		t.Error("an empty secret is looked for")
	}
}
