package web

import (
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// readableHost is a host as people write it, where that is other than how it is
// sent: münchen.example for xn--mnchen-3ya.example. Empty elsewhere, and where it
// mixes alphabets, as аpple.example with a Cyrillic а.
func readableHost(host string) string {
	name, err := idna.Display.ToUnicode(host)
	if err != nil || name == host || mixesAlphabets(name) {
		return ""
	}
	return name
}

// mixesAlphabets tells of a name with a part in which letters of two alphabets
// stand that look alike, as nobody writes them.
func mixesAlphabets(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		found := 0
		for _, alphabet := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee} {
			if strings.ContainsFunc(part, func(r rune) bool { return unicode.Is(alphabet, r) }) {
				found++
			}
		}
		if found > 1 {
			return true
		}
	}
	return false
}
