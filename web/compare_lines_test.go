package web

import (
	"strings"
	"testing"
)

// What is compared has few enough lines for a search whose cost grows with their square, however short they are.
func TestFirstLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\n", 4*linesCompared)
	for _, test := range []struct {
		name, text string
		lines      int
		cut        bool
	}{
		{"nothing", "", 0, false},
		{"one", "a", 0, false},
		{"as many as may be", strings.Repeat("x\n", linesCompared), linesCompared, false},
		{"one more", strings.Repeat("x\n", linesCompared) + "y", linesCompared, true},
		{"blank ones", long, linesCompared, true},
	} {
		got, cut := firstLines(test.text)
		if n := strings.Count(got, "\n"); n != test.lines || cut != test.cut || !strings.HasPrefix(test.text, got) {
			t.Errorf("%s: got %d lines, cut %v, want %d, %v", test.name, n, cut, test.lines, test.cut)
		}
	}
}
