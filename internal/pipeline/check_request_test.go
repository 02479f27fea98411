package pipeline

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"rollcall/internal/sandbox"
)

// TestCheckRequestFindsEveryForm, whatever the settings leave open.
func TestCheckRequestFindsEveryForm(t *testing.T) {
	t.Parallel()
	p := &Pipeline{cfg: Config{Signature: SignatureSettings{Encoding: "hex", Prefix: "none"}.withDefaults()}}
	for _, f := range everyForm() {
		h := http.Header{}
		h.Set("X-Webhook-Delivery-Id", formID)
		h.Set("X-Webhook-Signature", sandbox.Sign(vendorForm(f), formSecret, formID, formStamp, []byte(formBody)))
		got := p.CheckRequest(Captured{Header: h, Body: formBody, Secret: formSecret})
		found, ok := parseForm(got.Form)
		if !got.Matches || !ok || found.signed != f.signed || found.key != f.key || found.prefix != f.prefix || got.Reading != "as it was pasted" {
			t.Errorf("%s: got %+v", f, got)
		}
	}
}

// TestCheckRequestKnowsWhatBrowsersDoToLines: every line end comes as CRLF,
// and the last may be missing or one too many.
func TestCheckRequestKnowsWhatBrowsersDoToLines(t *testing.T) {
	t.Parallel()
	p := &Pipeline{cfg: Config{Signature: SignatureSettings{}.withDefaults()}}
	const lines = "{\n \"timestamp\": 1,\n \"job_id\": \"a\"\n}"
	dos := strings.ReplaceAll(lines, "\n", "\r\n")
	for sent, want := range map[string]string{
		lines: "without a newline at its end", lines + "\n": "as it was pasted, with lines that end in LF",
		dos: "with lines that end in CRLF, without a newline at its end", dos + "\r\n": "with lines that end in CRLF",
	} {
		h := http.Header{"X-Webhook-Signature": {sandbox.Sign(sandbox.SignatureForm{}, formSecret, "", "", []byte(sent))}}
		got := p.CheckRequest(Captured{Header: h, Body: dos + "\r\n", Secret: formSecret})
		if !got.Matches || got.Reading != want {
			t.Errorf("%q: got %+v, want it to match %s", sent, got, want)
		}
	}
	// One line, pasted without the newline that was signed.
	h := http.Header{"X-Webhook-Signature": {sandbox.Sign(sandbox.SignatureForm{}, formSecret, "", "", []byte("{}\n"))}}
	if got := p.CheckRequest(Captured{Header: h, Body: "{}", Secret: formSecret}); got.Reading != "with a newline at its end" {
		t.Errorf("got %+v", got)
	}
}

// TestCheckRequestSaysWhyNothingMatches in the doctor's words.
func TestCheckRequestSaysWhyNothingMatches(t *testing.T) {
	t.Parallel()
	p := &Pipeline{cfg: Config{Signature: SignatureSettings{}.withDefaults()}}
	good := sandbox.Sign(sandbox.SignatureForm{}, formSecret, "", "", []byte(formBody))
	for _, c := range []struct {
		name   string
		header http.Header
		secret string
		body   string
		code   DiagnosisCode
		says   string
	}{
		{"no header", http.Header{}, formSecret, formBody, DiagnosedHeaderMissing, "no other header"},
		{"another header", http.Header{"X-Sig": {good}}, formSecret, formBody, DiagnosedHeaderOther, "header X-Sig"},
		{"wrapped", http.Header{"X-Webhook-Signature": {"t=1,v9=" + good}}, formSecret, formBody, DiagnosedForm, "as entered"},
		{"a space", http.Header{"X-Webhook-Signature": {good}}, formSecret + " ", formBody, DiagnosedSpace, "secret as entered"},
		{"indented", http.Header{"X-Webhook-Signature": {good}}, formSecret, strings.ReplaceAll(formBody, ",", ", "), DiagnosedReencoded, "compact"},
		{"another secret", http.Header{"X-Webhook-Signature": {good}}, laterSecret, formBody, DiagnosedNothing, "not the secret as entered"},
		{"no signature", http.Header{"X-Webhook-Signature": {"yes"}}, formSecret, formBody, DiagnosedNoSignature, "holds nothing"},
	} {
		got := p.CheckRequest(Captured{Header: c.header, Body: c.body, Secret: c.secret})
		if got.Matches || got.Diagnosis.Code != c.code || !strings.Contains(got.Diagnosis.Text, c.says) {
			t.Errorf("%s: got %+v, want %s", c.name, got, c.code)
		}
		if strings.Contains(got.Diagnosis.Text, "version") {
			t.Errorf("%s: %q speaks of a version", c.name, got.Diagnosis.Text)
		}
	}
}

func TestParseHeaders(t *testing.T) {
	t.Parallel()
	got, err := ParseHeaders("POST /webhooks/geonode/abc HTTP/1.1\r\n:authority: a.example\r\n\r\nx-webhook-signature: ab \r\nX-A:1\nX-A: 2\n")
	if err != nil || got.Get("X-Webhook-Signature") != "ab" || len(got.Values("X-A")) != 2 || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"X-A: 1\nnothing":                       `Line 2 has no colon: a header is written "Name: value".`,
		"X-A: 1\n folded":                       "Line 2 begins with a space: put each header on one line.",
		"X A: 1":                                "Line 1 does not begin with the name of a header.",
		": \nX-A: \x01":                         "Line 2 holds a character that no header can carry.",
		"X-A: 1\nGET / HTTP/1.1":                `Line 2 has no colon: a header is written "Name: value".`,
		strings.Repeat("X-A: 1\n", 201):         "Line 201 is one more than the 200 that are looked at.",
		"X-A: " + strings.Repeat("x", 33<<10):   "Line 1 and those after it are over 32768 bytes together.",
		`{"X-Webhook-Signature":["00"]}` + "\n": "Line 1 does not begin with the name of a header.",
	} {
		_, err := ParseHeaders(text)
		line, ok := errors.AsType[*HeaderLineError](err)
		if !ok || line.Error() != want {
			t.Errorf("%.30q: got %v, want %s", text, err, want)
		}
	}
}

// FuzzCheckRequest: whatever is pasted, there is an answer, and headers that
// were read can be read again.
func FuzzCheckRequest(f *testing.F) {
	f.Add("X-Webhook-Signature: ab", "{}", formSecret)
	f.Add("POST / HTTP/1.1\r\nA: b\r\n\r\n", "\r\n", "                ")
	f.Add(":x\n\n : \nX-Webhook-Signature: sha256="+strings.Repeat("0", 64), `{"a":[1,{"b":"\u00e4"}]}`, "whsec_")
	p := &Pipeline{cfg: Config{Signature: SignatureSettings{}.withDefaults()}}
	f.Fuzz(func(t *testing.T, headers, body, secret string) {
		h, err := ParseHeaders(headers)
		if err != nil {
			if line, ok := errors.AsType[*HeaderLineError](err); !ok || line.Line < 1 || line.Reason == "" {
				t.Errorf("got %v", err)
			}
			return
		}
		var again strings.Builder
		if err := h.Write(&again); err != nil {
			t.Fatal(err)
		}
		if same, err := ParseHeaders(again.String()); len(again.String()) < CheckedHeaders && (err != nil || len(same) != len(h)) {
			t.Errorf("%q read again: %v, %v", again.String(), same, err)
		}
		got := p.CheckRequest(Captured{Header: h, Body: body, Secret: secret})
		if got.Matches == (got.Diagnosis.Code != "") || got.Matches != (got.Form != "") {
			t.Errorf("got %+v", got)
		}
	})
}
