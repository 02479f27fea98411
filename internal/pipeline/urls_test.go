package pipeline

import (
	"bytes"
	"testing"
)

// TestSameURL: what the vendor may write otherwise is the same, and the pages'
// keys hold apart what duplicates are not.
func TestSameURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b      string
		same, key bool
	}{
		{"https://a.test", "HTTPS://A.test:443/#x", true, true},
		{"https://a.test/?", "https://a.test/", true, true},
		{"https://b\u00fccher.example/\u00fc", "https://xn--bcher-kva.example/%c3%bc", true, true},
		{"https://a.test/b/../c?q=[1]", "https://a.test/c?q=%5b1%5d", true, true},
		{"https://a.test/wow%21", "https://a.test/wow!", true, false},
		{"https://a.test/a%2Fb", "https://a.test/a/b", true, false},
		{"https://a.test/a%3Fb", "https://a.test/a?b", false, false},
		{"https://a.test/?a=%26", "https://a.test/?a=&", false, false},
		{"https://a.test/?a&b", "https://a.test/?b&a", false, false},
		{"https://a.test/a", "https://a.test/A", false, false},
		{"https://a.test/", "http://a.test/", false, false},
		{"https://a.test/%zz", "https://a.test/%zz", true, true},
		{"not a URL", "nor this", false, false},
	} {
		if got := sameURL(c.a, c.b); got != c.same || sameURL(c.b, c.a) != got {
			t.Errorf("%q and %q: got %v, want %v", c.a, c.b, got, c.same)
		}
		if got := bytes.Equal(pageKey(c.a), pageKey(c.b)); got != c.key || len(pageKey(c.a)) != 16 {
			t.Errorf("%q and %q: the keys are the same: %v, want %v", c.a, c.b, got, c.key)
		}
	}
}
