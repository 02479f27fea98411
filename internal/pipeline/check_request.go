package pipeline

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Bounds of a captured request.
const (
	// CheckedBody is the longest body that CheckRequest looks at, in bytes.
	CheckedBody = 1 << 20
	// CheckedHeaders bounds the headers, in bytes, and checkedLines in lines.
	CheckedHeaders = 32 << 10
	checkedLines   = 200
	// ShortestSecret is the least that is ever taken for a key, in bytes.
	ShortestSecret = leastKey
)

// Captured is a delivery as somebody saw it, with the secret that should have
// signed it.
type Captured struct {
	Header http.Header
	Body   string
	Secret string
}

// Checked is what a captured request shows.
type Checked struct {
	Matches bool
	Form    string // As it can be set for a webhook; empty without a match.
	Reading string // The body that was signed, in words: its line ends get lost on the way here.
	Event   string // As the request's header names it; may be empty.
	// Diagnosis is why nothing matches; empty with a match.
	Diagnosis Diagnosis
}

// SignatureHeader is the name of the header that holds the signature.
func (p *Pipeline) SignatureHeader() string { return p.cfg.Signature.Header }

// CheckRequest finds the form of signature under which the secret signed the
// request, in every form that there is, whatever the settings leave open.
// Nothing of it is kept.
func (p *Pipeline) CheckRequest(c Captured) Checked {
	settings := SignatureSettings{
		Header: p.cfg.Signature.Header, DeliveryHeader: p.cfg.Signature.DeliveryHeader, EventHeader: p.cfg.Signature.EventHeader,
	}.withDefaults()
	readings := readingsOf(c.Body)
	at := func(body []byte) suspect {
		return suspect{header: c.Header, body: body, settings: settings, today: []knownSecret{{secret: c.Secret}}}
	}
	for _, r := range readings {
		if f, ok := verify(at(r.body).examine().request, c.Secret, everyForm()); ok {
			return Checked{Matches: true, Form: f.String(), Reading: r.how, Event: c.Header.Get(settings.EventHeader)}
		}
	}
	var first Checked
	for i, r := range readings {
		found := Checked{Diagnosis: at(r.body).diagnose(), Reading: r.how}
		if found.Diagnosis.Code != DiagnosedNothing {
			return found
		}
		if i == 0 {
			first = found
		}
	}
	return first
}

// readingsOf are the bodies that may have become the one that was pasted: a
// browser sends every line end as CRLF, and what was copied may have lost the
// last one.
func readingsOf(pasted string) []bodyReading {
	all := lineEnds([]byte(pasted))
	all[0].how = "as it was pasted"
	if strings.Contains(string(all[0].body), "\n") {
		all[0].how = "as it was pasted, with lines that end in LF"
	}
	var out []bodyReading
	for _, each := range all {
		known := false
		for _, other := range out {
			known = known || bytes.Equal(each.body, other.body)
		}
		if !known {
			out = append(out, each)
		}
	}
	return out
}

// HeaderLineError reports a line that is no header.
type HeaderLineError struct {
	Line   int // From 1.
	Reason string
}

// Error names the line and what is wrong with it.
func (e *HeaderLineError) Error() string { return fmt.Sprintf("Line %d %s.", e.Line, e.Reason) }

// ParseHeaders reads headers as they are pasted, one a line; a request line
// above them, blank lines and the pseudo headers of HTTP/2 are passed over.
// The error is a *HeaderLineError.
func ParseHeaders(text string) (http.Header, error) {
	if len(text) > CheckedHeaders {
		return nil, &HeaderLineError{Line: 1, Reason: fmt.Sprintf("and those after it are over %d bytes together", CheckedHeaders)}
	}
	h := http.Header{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if n > checkedLines {
			return nil, &HeaderLineError{Line: n, Reason: fmt.Sprintf("is one more than the %d that are looked at", checkedLines)}
		}
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, ":") || len(h) == 0 && requestLine(line) {
			continue
		}
		name, value, reason := headerLine(line)
		if reason != "" {
			return nil, &HeaderLineError{Line: n, Reason: reason}
		}
		h.Add(name, value)
	}
	return h, nil
}

// requestLine reports the line that stands above the headers.
func requestLine(line string) bool {
	method, rest, ok := strings.Cut(line, " ")
	return ok && httpguts.ValidHeaderFieldName(method) && strings.Contains(rest, "HTTP/")
}

// headerLine takes a line apart; the reason says why it is no header.
func headerLine(line string) (string, string, string) {
	if line[0] == ' ' || line[0] == '\t' {
		return "", "", "begins with a space: put each header on one line"
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok {
		return "", "", `has no colon: a header is written "Name: value"`
	}
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !httpguts.ValidHeaderFieldName(name) {
		return "", "", "does not begin with the name of a header"
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return "", "", "holds a character that no header can carry"
	}
	return name, value, ""
}
