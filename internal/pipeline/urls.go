package pipeline

import (
	"errors"

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
// perhaps in another but equal way (RFC 3986 section 6.2.2 and 6.2.3).
func sameURL(sent, reported string) bool {
	return sent == reported || normalURL(sent) == normalURL(reported)
}

// pageKey is what all spellings of a URL have in common, as results keep it.
func pageKey(raw string) []byte {
	key := preflight.Key(normalURL(raw))
	return key[:]
}

// normalURL spells a URL one way; its fragment never reaches a server.
func normalURL(raw string) string { return preflight.Canonical(raw, false, false) }
