package pipeline

import (
	"fmt"
	"strings"
	"time"
)

// DiagnosisCode says in a word why a signature was refused.
type DiagnosisCode string

// The codes, in the order in which they are looked for.
const (
	DiagnosedUnread        DiagnosisCode = "not_read"        // Refused before the body was read: no signature was looked at.
	DiagnosedTooOld        DiagnosisCode = "too_old"         // The signature is right, the timestamp is not.
	DiagnosedNotKept       DiagnosisCode = "not_kept"        // Headers or body are not here, or not whole.
	DiagnosedMatches       DiagnosisCode = "matches_now"     // Today's secret verifies it.
	DiagnosedHeaderMissing DiagnosisCode = "header_missing"  // No header that could be a signature.
	DiagnosedHeaderOther   DiagnosisCode = "header_other"    // The signature is in another header.
	DiagnosedRetired       DiagnosisCode = "retired_secret"  // An earlier secret, whose time is over, made it.
	DiagnosedForm          DiagnosisCode = "other_form"      // The right secret, in a form that is not taken.
	DiagnosedSpace         DiagnosisCode = "secret_space"    // The right secret but for a space or newline at its ends.
	DiagnosedReencoded     DiagnosisCode = "reencoded"       // The right secret, over the same JSON written otherwise.
	DiagnosedNoSignature   DiagnosisCode = "not_a_signature" // The header holds no HMAC-SHA256.
	DiagnosedNoSecret      DiagnosisCode = "no_secret"       // There is no secret to check with.
	DiagnosedNothing       DiagnosisCode = "no_match"        // Nothing that was tried matches.
	DiagnosedSkipped       DiagnosisCode = "not_looked_at"   // Too many were refused at once.
)

// codes are all of them.
func codes() []DiagnosisCode {
	return []DiagnosisCode{
		DiagnosedUnread, DiagnosedTooOld, DiagnosedNotKept, DiagnosedMatches, DiagnosedHeaderMissing, DiagnosedHeaderOther,
		DiagnosedRetired, DiagnosedForm, DiagnosedSpace, DiagnosedReencoded, DiagnosedNoSignature, DiagnosedNoSecret,
		DiagnosedNothing, DiagnosedSkipped,
	}
}

// Title is the code in a few words, for a list or a heading.
func (c DiagnosisCode) Title() string {
	switch c {
	case DiagnosedUnread:
		return "Refused unread"
	case DiagnosedTooOld:
		return "Too old"
	case DiagnosedNotKept:
		return "Not kept whole"
	case DiagnosedMatches:
		return "Matches today's secret"
	case DiagnosedHeaderMissing:
		return "Signature header missing"
	case DiagnosedHeaderOther:
		return "Signature in another header"
	case DiagnosedRetired:
		return "Signed with a retired secret"
	case DiagnosedForm:
		return "Right secret, another form"
	case DiagnosedSpace:
		return "Space around the secret"
	case DiagnosedReencoded:
		return "Body changed on its way"
	case DiagnosedNoSignature:
		return "Not a signature"
	case DiagnosedNoSecret:
		return "No secret"
	case DiagnosedNothing:
		return "Nothing matches"
	case DiagnosedSkipped:
		return "Not looked at"
	}
	return string(c)
}

// Diagnosis is why a delivery was refused: a code, and what was found in words
// that hold no secret.
type Diagnosis struct {
	Code DiagnosisCode `json:"code"`
	Text string        `json:"text"`
}

// String is how a diagnosis is kept: the code, a colon and the words.
func (d Diagnosis) String() string { return string(d.Code) + ": " + d.Text }

// ParseDiagnosis reads what String wrote; false for anything else.
func ParseDiagnosis(kept string) (Diagnosis, bool) {
	code, text, ok := strings.Cut(kept, ": ")
	for _, each := range codes() {
		if ok && code == string(each) {
			return Diagnosis{Code: each, Text: text}, true
		}
	}
	return Diagnosis{}, false
}

// diagnosisTime is how times are written in a diagnosis.
const diagnosisTime = "2 January 2006 15:04:05 UTC"

func sayTime(t time.Time) string { return t.UTC().Format(diagnosisTime) }

// diagnosed puts what was found into words.
func diagnosed(code DiagnosisCode, format string, args ...any) Diagnosis {
	return Diagnosis{Code: code, Text: fmt.Sprintf(format, args...)}
}

// notLookedAt is the diagnosis of those that a flood leaves no time for.
func notLookedAt() Diagnosis {
	return diagnosed(DiagnosedSkipped, "Not looked at: too many were refused at once. Verify it again to have it looked at now.")
}
