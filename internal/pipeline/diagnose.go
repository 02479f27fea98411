package pipeline

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"rollcall/store"
)

// mostVersions is how many versions of a secret are tried.
const mostVersions = 20

// knownSecret is a version of a webhook's secret, opened.
type knownSecret struct {
	version int
	secret  string
	ended   time.Time // When its time was over; zero while it is good.
}

// suspect is a request whose signature is in question, with what it may have
// been made with.
type suspect struct {
	header   http.Header
	body     []byte
	settings SignatureSettings
	pinned   string // The webhook's form; "" for none.
	today    []knownSecret
	retired  []knownSecret
}

// examination is one suspect being looked at.
type examination struct {
	suspect
	request signedRequest
	claims  []claim // In the header that should hold the signature.
	others  []claim // In the other headers.
	allowed []signedKey
	all     []signedKey
	effort  *effort
}

// everyForm leaves all points open.
func everyForm() []form { return SignatureSettings{}.choices("") }

func (s suspect) examine() *examination {
	stamp, read := "", false
	x := &examination{
		suspect: s,
		claims:  claimsOf(s.settings.Header, s.header.Values(s.settings.Header)),
		others:  otherClaims(s.header, s.settings.Header),
		allowed: signedKeysOf(s.settings.choices(s.pinned)), all: signedKeysOf(everyForm()),
		effort: newEffort(len(s.body)),
	}
	x.request = signedRequest{
		signature: s.header.Get(s.settings.Header), deliveryID: s.header.Get(s.settings.DeliveryHeader), body: s.body,
		timestamp: func() string {
			if !read { // Once: a large body is tried many times.
				stamp, read = timestampOf(s.body), true
			}
			return stamp
		},
	}
	return x
}

// diagnose finds out why the signature was refused. The causes are looked for
// in the order of DESIGN.md: what a person would check first comes first.
func (s suspect) diagnose() Diagnosis {
	x := s.examine()
	if len(s.today) == 0 && len(s.retired) == 0 {
		return diagnosed(DiagnosedNoSecret, "Rollcall holds no secret of this webhook, so nothing can be verified.")
	}
	steps := []func() (Diagnosis, bool){
		x.matchesNow, x.headerMissing, x.headerOther, x.retiredSecret, x.otherForm, x.spaceInSecret, x.reencoded,
	}
	for _, step := range steps {
		if d, ok := step(); ok {
			return d
		}
	}
	return x.nothing()
}

// matchesNow is what a fresh look with today's secrets says.
func (x *examination) matchesNow() (Diagnosis, bool) {
	for _, k := range x.today {
		// As much as all the allowed ways hash, and no effort spared for it.
		if f, ok := verify(x.request, k.secret, x.settings.choices(x.pinned)); ok {
			return diagnosed(DiagnosedMatches, "Today's secret (%s) verifies it, as %s.", k, f.words()), true
		}
	}
	return Diagnosis{}, false
}

// headerMissing is a request without the header that holds the signature.
func (x *examination) headerMissing() (Diagnosis, bool) {
	if strings.TrimSpace(x.request.signature) != "" {
		return Diagnosis{}, false
	}
	if d, ok := x.headerOther(); ok {
		return d, true
	}
	suspected := namedLike(x.header, x.settings.Header)
	if suspected == "" && len(x.others) > 0 {
		suspected = x.others[0].header
	}
	if suspected != "" {
		return diagnosed(DiagnosedHeaderOther, "There is no %s header. %s may be the signature, but no known secret made it.",
			x.settings.Header, suspected), true
	}
	return diagnosed(DiagnosedHeaderMissing, "There is no %s header, and no other header looks like a signature.", x.settings.Header), true
}

// headerOther is a signature that verifies, in a header of another name.
func (x *examination) headerOther() (Diagnosis, bool) {
	for _, k := range slices.Concat(x.today, x.retired) {
		if m, ok := findClaim(x.request, k.secret, x.others, x.all, x.effort); ok {
			return diagnosed(DiagnosedHeaderOther, "The signature is in the header %s, not in %s: the %s made it.",
				m.claim.header, x.settings.Header, k.words()), true
		}
	}
	return Diagnosis{}, false
}

// retiredSecret is a signature of a secret whose time is over.
func (x *examination) retiredSecret() (Diagnosis, bool) {
	for _, k := range x.retired {
		if _, ok := findClaim(x.request, k.secret, x.claims, x.all, x.effort); ok {
			return diagnosed(DiagnosedRetired, "Signed with version %d of the secret, which ended on %s.", k.version, sayTime(k.ended)), true
		}
	}
	return Diagnosis{}, false
}

// otherForm is the right secret in a form that is not taken.
func (x *examination) otherForm() (Diagnosis, bool) {
	for _, k := range x.today {
		m, ok := findClaim(x.request, k.secret, x.claims, x.all, x.effort)
		if !ok {
			continue
		}
		if !m.claim.listed {
			return diagnosed(DiagnosedForm, "The right secret (%s), but the header holds more than a signature and a known prefix: it begins with %q.",
				k, m.claim.prefix), true
		}
		return diagnosed(DiagnosedForm, "The right secret (%s), but signed as %s. %s.", k, m.form.words(), x.taken()), true
	}
	return Diagnosis{}, false
}

// taken says which form is taken, and why.
func (x *examination) taken() string {
	if f, ok := parseForm(x.pinned); ok && x.settings.allow(f) {
		return "This webhook takes only " + f.words()
	}
	return "The settings leave that form out"
}

// spaceInSecret is the right secret but for what stands around it.
func (x *examination) spaceInSecret() (Diagnosis, bool) {
	for _, k := range x.today {
		if bare := strings.TrimSpace(k.secret); bare != k.secret {
			if _, ok := findClaim(x.request, bare, x.claims, x.all, x.effort); ok {
				return diagnosed(DiagnosedSpace, "The %s has a space or a newline at an end that the sender's has not.", k.stored()), true
			}
		}
		for _, more := range [][2]string{{"", "\n"}, {"", "\r\n"}, {"", " "}, {" ", ""}} {
			if _, ok := findClaim(x.request, more[0]+k.secret+more[1], x.claims, x.all, x.effort); ok {
				return diagnosed(DiagnosedSpace, "The sender's secret has a space or a newline at an end that the %s has not.", k.stored()), true
			}
		}
	}
	return Diagnosis{}, false
}

// reencoded is the right secret over the same JSON, written otherwise.
func (x *examination) reencoded() (Diagnosis, bool) {
	if len(x.claims) == 0 {
		return Diagnosis{}, false
	}
	for how, body := range reencodings(x.body) {
		r := x.request
		r.body = body
		for _, k := range x.today {
			if _, ok := findClaim(r, k.secret, x.claims, x.allowed, x.effort); ok {
				return diagnosed(DiagnosedReencoded, "The body was changed after it was signed: written %s it matches. Something on the way reads and writes it again.", how), true
			}
		}
	}
	return Diagnosis{}, false
}

// nothing is the end of the list.
func (x *examination) nothing() Diagnosis {
	if len(x.claims) == 0 {
		return diagnosed(DiagnosedNoSignature, "The %s header holds nothing that could be an HMAC-SHA256 as hex or base64.", x.settings.Header)
	}
	secrets := slices.Concat(x.today, x.retired)
	tried := fmt.Sprintf("the %d secrets known here", len(secrets))
	if len(secrets) == 1 {
		tried = "the " + secrets[0].stored()
	}
	text := "Nothing matches: not " + tried + ", in any form, nor the body written otherwise. The secret is another one, or somebody else sent this."
	if x.effort.spent || len(x.body) > reencodedBytes {
		text += " The body is too large to try everything."
	}
	return diagnosed(DiagnosedNothing, "%s", text)
}

// String names the version.
func (k knownSecret) String() string {
	if k.version == 0 {
		return "as entered"
	}
	return fmt.Sprintf("version %d", k.version)
}

// stored names the secret by where it comes from.
func (k knownSecret) stored() string {
	if k.version == 0 {
		return "secret as entered"
	}
	return fmt.Sprintf("stored secret (version %d)", k.version)
}

// words name the secret and whether it is good.
func (k knownSecret) words() string {
	switch {
	case k.version == 0:
		return "secret as entered"
	case k.ended.IsZero():
		return fmt.Sprintf("right secret (version %d)", k.version)
	}
	return fmt.Sprintf("secret of version %d, which ended on %s,", k.version, sayTime(k.ended))
}

// words are a form for people to read.
func (f form) words() string {
	prefix := "no prefix"
	if f.prefix != "none" {
		prefix = fmt.Sprintf("the prefix %q", f.prefix)
	}
	return fmt.Sprintf("%s of %s with %s, the key being %s", f.encoding, f.signed, prefix, keyWords(f.key))
}

func keyWords(key string) string {
	switch key {
	case "after_whsec":
		return "what follows " + secretPrefix
	case "base64_after_whsec":
		return "what base64 after " + secretPrefix + " stands for"
	}
	return "the whole secret"
}

// suspectOf is a kept delivery to be looked at again.
func (p *Pipeline) suspectOf(ctx context.Context, d *store.Delivery, w *store.Webhook) (suspect, error) {
	s := suspect{header: keptHeader(d.Headers), body: d.Body, settings: p.cfg.Signature, pinned: w.SignatureForm}
	rows, err := p.store.AllSecrets(ctx, w.ID, mostVersions)
	if err != nil {
		return s, fmt.Errorf("secrets of webhook %d: %w", w.ID, err)
	}
	for _, r := range rows {
		plain, err := p.sealer.open(secretPlace(w.ID, r.Version), r.Sealed)
		if err != nil {
			return s, err
		}
		k := knownSecret{version: r.Version, secret: string(plain)}
		if r.ValidUntil != nil && !r.ValidUntil.After(p.now()) {
			k.ended = *r.ValidUntil
			s.retired = append(s.retired, k)
		} else {
			s.today = append(s.today, k)
		}
	}
	return s, nil
}
