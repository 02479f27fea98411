package pipeline

import (
	"errors"
	"net/url"

	"rollcall/internal/preflight"
)

// Limits of a submission.
const (
	// MaxURL is the longest URL taken, in bytes.
	MaxURL = preflight.MaxURL
	// MaxLines is the most lines of one submission.
	MaxLines = preflight.MaxLines
)

// CheckURL makes of one typed line the URL to send, mended where that can be
// meant in one way only, or says in plain words what is wrong with it. Private
// hosts are the vendor's business.
func CheckURL(line string) (string, error) {
	l := preflight.Judge(line)
	if l.Verdict == preflight.Invalid {
		return "", errors.New(l.Reason)
	}
	return l.URL, nil
}

// sameURL reports whether what the vendor reports is what was sent, spelled
// perhaps in another way.
func sameURL(sent, reported string) bool {
	return sent == reported || normalURL(sent) == normalURL(reported)
}

// pageKey is what all spellings of a URL have in common, as results keep it.
func pageKey(raw string) []byte {
	key := preflight.Key(preflight.Canonical(raw, false, false))
	return key[:]
}

// normalURL spells a URL one way, to compare what was sent with what the vendor
// reports under the same number. It takes more for the same than the form that
// duplicates are told by: libraries write escapes of their own liking, so that
// an escaped ! is one without an escape, and an escaped slash a slash.
func normalURL(raw string) string {
	u, err := url.Parse(preflight.Canonical(raw, false, false))
	if err != nil || u.Host == "" {
		return raw
	}
	return u.Scheme + "://" + u.Host + (&url.URL{Path: u.Path}).EscapedPath() + "?" + u.RawQuery
}
