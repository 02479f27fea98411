package preflight_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollcall/internal/preflight"
)

// readAll reads a text whole.
func readAll(t *testing.T, text, name string, c preflight.Choices) ([]preflight.Line, preflight.Detected, preflight.Totals, error) {
	t.Helper()
	var lines []preflight.Line
	detected, totals, err := preflight.Read(t.Context(), strings.NewReader(text), name, c, nil, func(l preflight.Line) error {
		lines = append(lines, l)
		return nil
	})
	return lines, detected, totals, err
}

// TestTXT: every kind of line end, and every verdict.
func TestTXT(t *testing.T) {
	t.Parallel()
	text := "\uFEFFhttps://a.test/1\r\n\r\n  \n\"a.test/2\",\rhttps://A.test:443/1\nnonsense\nftp://a.test/\n https://b.test/x y"
	lines, detected, totals, err := readAll(t, text, "", preflight.Choices{})
	if err != nil {
		t.Fatal(err)
	}
	want := []preflight.Line{
		{Number: 1, Verdict: preflight.Accepted, Original: "https://a.test/1", URL: "https://a.test/1", Canonical: "https://a.test/1"},
		{
			Number: 4, Verdict: preflight.Fixed, Original: "\"a.test/2\",", URL: "https://a.test/2", Canonical: "https://a.test/2",
			Reason: "quotes or brackets around it removed, comma or semicolon after it removed, https:// put in front",
		},
		{
			Number: 5, Verdict: preflight.Duplicate, Original: "https://A.test:443/1", URL: "https://A.test:443/1", Canonical: "https://a.test/1",
			Reason: "is the same as line 1", DuplicateOf: 1,
		},
		{Number: 6, Verdict: preflight.Invalid, Original: "nonsense", Reason: "has no http:// or https:// in front and does not begin with a host's name"},
		{Number: 7, Verdict: preflight.Invalid, Original: "ftp://a.test/", Reason: `begins with "ftp:" instead of http:// or https://`},
		{
			Number: 8, Verdict: preflight.Fixed, Original: " https://b.test/x y", URL: "https://b.test/x%20y", Canonical: "https://b.test/x%20y",
			Reason: "blanks around it removed, spaces inside written %20",
		},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(preflight.Detected{Format: "txt", Charset: "utf-8"}, detected); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(preflight.Totals{
		Lines: 8, Submitted: 6, Accepted: 1, Fixed: 2, Duplicate: 1, Invalid: 2,
		Hosts: []preflight.HostCount{{Host: "a.test", Count: 2}, {Host: "b.test", Count: 1}},
	}, totals); diff != "" {
		t.Error(diff)
	}
}
