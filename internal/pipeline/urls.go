package pipeline

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a submission.
const (
	// MaxURL is the longest URL taken, in bytes.
	MaxURL = 8000
	// MaxLines is the most lines of one submission.
	MaxLines = 200_000
)

// CheckURL makes of one typed line the URL to send, or says in plain words
// what is wrong with it. Spaces inside are written %20; nothing else is
// changed, and private hosts are the vendor's business.
func CheckURL(line string) (string, error) {
	line = strings.TrimFunc(line, unicode.IsSpace)
	switch {
	case !utf8.ValidString(line):
		return "", errors.New("is not valid UTF-8 text")
	case strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
		return "", errors.New("holds a control character")
	}
	fixed := strings.NewReplacer(" ", "%20", "\t", "%20").Replace(line)
	if len(fixed) > MaxURL {
		return "", fmt.Errorf("is %d bytes long; the limit is %d", len(fixed), MaxURL)
	}
	u, err := url.Parse(fixed)
	if err != nil {
		return "", errors.New("cannot be read as a URL")
	}
	switch {
	case u.Scheme == "":
		return "", errors.New("has no http:// or https:// in front")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("begins with %q instead of http:// or https://", u.Scheme+":")
	case u.Hostname() == "":
		return "", errors.New("names no host")
	case u.User != nil:
		return "", errors.New("holds a user name or password, which would be sent along")
	}
	return fixed, nil
}

// sameURL reports whether what the vendor reports is what was sent, spelled
// perhaps in another but equal way (RFC 3986 section 6.2.2 and 6.2.3).
func sameURL(sent, reported string) bool {
	return sent == reported || normalURL(sent) == normalURL(reported)
}

// pageKey is what all spellings of a URL have in common, as results keep it.
func pageKey(raw string) []byte {
	sum := sha256.Sum256([]byte(normalURL(raw)))
	return sum[:16]
}

// normalURL spells a URL one way: lower-case scheme and host, no default port,
// "/" for an empty path, no fragment, canonical escapes.
func normalURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	host := strings.ToLower(u.Hostname())
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if port := u.Port(); port != "" && port != usual {
		host += ":" + port
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if plain, err := url.PathUnescape(path); err == nil && utf8.ValidString(plain) {
		path = (&url.URL{Path: plain}).EscapedPath()
	}
	return strings.ToLower(u.Scheme) + "://" + host + path + "?" + u.RawQuery
}
