package preflight

import (
	"crypto/sha256"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// keySize is the length of a key.
const keySize = 16

// Key is a short name of a canonical form: two forms with the same key are the same.
func Key(canonical string) [keySize]byte {
	sum := sha256.Sum256([]byte(canonical))
	return [keySize]byte(sum[:keySize])
}

// Canonical spells a URL in one way (RFC 3986, section 6.2.2 and 6.2.3), so that twins can be told: scheme and host
// in lower case, the host's name as DNS has it (punycode) or its address as four numbers (127.0.0.1 for 127.1, as
// browsers have it), no default port, "/" for no path, no dot segments, and one spelling of escapes: what needs none has
// none, what needs one has it, in upper case. A query without anything in it is none. The fragment goes unless it is
// kept; parameters stay in their order unless they are sorted. What is no URL is returned as it is. The vendor never
// gets this spelling.
func Canonical(raw string, keepFragment, sortQuery bool) string {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return raw
	}
	return canonical(u, keepFragment, sortQuery)
}

func canonical(u *url.URL, keepFragment, sortQuery bool) string {
	var b strings.Builder
	b.Grow(64 + len(u.Path) + len(u.RawQuery))
	scheme := strings.ToLower(u.Scheme)
	b.WriteString(scheme + "://")
	b.WriteString(bracketed(canonicalHost(u.Hostname())))
	if port := u.Port(); port != "" && port != usualPort(scheme) {
		b.WriteString(":" + port)
	}
	path := withoutDots(escaped(given(u.RawPath, u.EscapedPath), "/"))
	if path == "" {
		path = "/"
	}
	b.WriteString(path)
	if query := escaped(u.RawQuery, "/?"); query != "" {
		if sortQuery {
			query = sorted(query)
		}
		b.WriteString("?" + query)
	}
	if fragment := escaped(given(u.RawFragment, u.EscapedFragment), "/?"); keepFragment && fragment != "" {
		b.WriteString("#" + fragment)
	}
	return b.String()
}

// given is a part of a URL as it was given: package url keeps it only where it would not write it so itself.
func given(raw string, usual func() string) string {
	if raw != "" {
		return raw
	}
	return usual()
}

func usualPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return ""
}

// names maps host names to what DNS has, as browsers do: it doesn't insist on what only registries do.
var names = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.BidiRule())

// canonicalHost is a host without brackets in its one spelling. One that can't be mapped is only put in lower case.
func canonicalHost(host string) string {
	if strings.Contains(host, ":") {
		if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
			return ip.String()
		}
		return strings.ToLower(host)
	}
	mapped, ok := asciiHost(host)
	if !ok {
		return strings.ToLower(host)
	}
	if ip, ok := ipv4(mapped); ok {
		return ip.String()
	}
	return mapped
}

// asciiHost is the host's name as DNS has it, and whether there is one.
func asciiHost(host string) (string, bool) {
	if isASCII(host) {
		host = strings.ToLower(host)
		return host, isHostName(host)
	}
	if !utf8.ValidString(host) || longPart(host) {
		return "", false
	}
	mapped, err := names.ToASCII(host)
	// Some characters stand for several, a slash among them: these make no name.
	return mapped, err == nil && isHostName(mapped)
}

// longPart reports a part that is too long for DNS however it is written: writing it takes the square of its length.
func longPart(host string) bool {
	dots := func(r rune) bool { return r == '.' || r == '\u3002' || r == '\uFF0E' || r == '\uFF61' }
	for part := range strings.FieldsFuncSeq(host, dots) {
		if utf8.RuneCountInString(part) > 2*maxPart { // Marks may yet be joined with their letters.
			return true
		}
	}
	return len(host) > 8*maxName
}

// Limits of DNS, in bytes.
const (
	maxName = 253
	maxPart = 63
)

// isHostName reports a name made of letters, digits, hyphens and underscores, in parts with dots between.
func isHostName(host string) bool {
	host = strings.TrimSuffix(host, ".")
	if len(host) > maxName {
		return false
	}
	for part := range strings.SplitSeq(host, ".") {
		if part == "" || len(part) > maxPart {
			return false
		}
		for i := range len(part) {
			if c := part[i]; !isAlphanumeric(c) && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// unreserved are the bytes that mean the same with and without an escape.
func unreserved(c byte) bool {
	return isAlphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~'
}

const upperHex = "0123456789ABCDEF"

// escaped gives every byte of a part of a URL its one spelling. also are the bytes, beside those allowed in every part,
// that may stand there as they are. A % that begins no escape is one that was forgotten to escape.
func escaped(s, also string) string {
	if plain(s, also) {
		return s
	}
	out := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); i++ {
		c := s[i]
		decoded, isEscape := unescape(s[i:])
		switch {
		case isEscape && unreserved(decoded):
			out = append(out, decoded)
		case isEscape:
			out = append(out, '%', upperHex[decoded>>4], upperHex[decoded&15])
		case allowed(c, also):
			out = append(out, c)
		default:
			out = append(out, '%', upperHex[c>>4], upperHex[c&15])
		}
		if isEscape {
			i += 2
		}
	}
	return string(out)
}

// plain reports that nothing has to be spelled differently, as is mostly so.
func plain(s, also string) bool {
	for i := range len(s) {
		if !allowed(s[i], also) {
			return false
		}
	}
	return true
}

func allowed(c byte, also string) bool {
	return unreserved(c) || strings.IndexByte("!$&'()*+,;=:@", c) >= 0 || strings.IndexByte(also, c) >= 0
}

// unescape is the byte that an escape at the beginning of s stands for, and whether there is one.
func unescape(s string) (byte, bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	high, low := unhex(s[1]), unhex(s[2])
	return high<<4 | low, high < 16 && low < 16
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// withoutDots takes "." and ".." out of a path (RFC 3986, section 5.2.4).
func withoutDots(path string) string {
	if !strings.Contains(path, "/.") {
		return path
	}
	parts := strings.Split(path, "/")
	out := parts[:1] // What stands before the first slash: nothing.
	for i, part := range parts[1:] {
		last := i == len(parts)-2
		switch part {
		case "..":
			out = out[:max(1, len(out)-1)]
		case ".":
		default:
			out = append(out, part)
			continue
		}
		if last {
			out = append(out, "")
		}
	}
	return strings.Join(out, "/")
}

// sorted puts the parameters of a query in order; those of one name stay in theirs, which may matter.
func sorted(query string) string {
	parts := strings.Split(query, "&")
	slices.SortStableFunc(parts, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, "=")
		nameB, _, _ := strings.Cut(b, "=")
		return strings.Compare(nameA, nameB)
	})
	return strings.Join(parts, "&")
}
