package pipeline

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"rollcall/internal/sandbox"
)

const (
	laterSecret   = "whsec_GRobHB0eHyAhIiMkJSYnKCkqKywtLi8w"
	strangeSecret = "whsec_MTIzNDU2Nzg5Ojs8PT4_QEFCQ0RFRkdI"
)

// diagnoseBody has what every re-encoding changes: order, spaces, slashes,
// markup and letters beyond ASCII.
const diagnoseBody = `{"timestamp":"2026-11-29T12:00:00Z","data":{"job_id":"job-1","url":"https://a.example/ä","title":"<b>&"},"a":[1.50,null,true,{}]}`

// refusedAs is a suspect whose body was signed with a secret in a form.
func refusedAs(secret string, f sandbox.SignatureForm, change func(*suspect)) suspect {
	s := suspect{
		header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"scraper-api-webhook/1.0"}},
		body:   []byte(diagnoseBody), settings: SignatureSettings{}.withDefaults(), pinned: "body whole none hex",
		today:   []knownSecret{{version: 3, secret: laterSecret}},
		retired: []knownSecret{{version: 2, secret: formSecret, ended: time.Date(2026, 11, 28, 9, 30, 0, 0, time.UTC)}},
	}
	s.header.Set("X-Webhook-Delivery-Id", formID)
	s.header.Set("X-Webhook-Signature", sandbox.Sign(f, secret, formID, formStamp, s.body))
	if change != nil {
		change(&s)
	}
	return s
}

// rename moves the signature to another header.
func rename(to string) func(*suspect) {
	return func(s *suspect) {
		s.header.Set(to, s.header.Get("X-Webhook-Signature"))
		s.header.Del("X-Webhook-Signature")
	}
}

// TestEveryReasonForARefusal goes through what the signature doctor knows.
func TestEveryReasonForARefusal(t *testing.T) {
	t.Parallel()
	hex := sandbox.SignatureForm{}
	set := func(value string) func(*suspect) {
		return func(s *suspect) { s.header.Set("X-Webhook-Signature", value) }
	}
	stored := func(secret string) func(*suspect) { return func(s *suspect) { s.today[0].secret = secret } }
	body := func(text string) func(*suspect) { return func(s *suspect) { s.body = []byte(text) } }
	var compacted bytes.Buffer
	if err := json.Indent(&compacted, []byte(diagnoseBody), "", "  "); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		s    suspect
		code DiagnosisCode
		says string
	}{
		{"good after all", refusedAs(laterSecret, hex, nil), DiagnosedMatches, "version 3"},
		{"no header", refusedAs(laterSecret, hex, func(s *suspect) { s.header.Del("X-Webhook-Signature") }), DiagnosedHeaderMissing, "no X-Webhook-Signature header"},
		{"an empty header", refusedAs(laterSecret, hex, set("  ")), DiagnosedHeaderMissing, "X-Webhook-Signature"},
		{"another header verifies", refusedAs(laterSecret, hex, rename("X-Geonode-Sig")), DiagnosedHeaderOther, "header X-Geonode-Sig"},
		{"another header, a retired secret", refusedAs(formSecret, hex, rename("X-Geonode-Sig")), DiagnosedHeaderOther, "version 2"},
		{"another header that may be one", refusedAs(strangeSecret, hex, rename("X-Geonode-Sig")), DiagnosedHeaderOther, "X-Geonode-Sig may be"},
		{"another header named like one", refusedAs(strangeSecret, hex, func(s *suspect) {
			s.header.Del("X-Webhook-Signature")
			s.header.Set("X-Hub-Signature", "sha1=00")
		}), DiagnosedHeaderOther, "X-Hub-Signature may be"},
		{"both headers, the other is right", refusedAs(laterSecret, hex, func(s *suspect) {
			s.header.Set("X-Other", s.header.Get("X-Webhook-Signature"))
			s.header.Set("X-Webhook-Signature", strings.Repeat("00", 32))
		}), DiagnosedHeaderOther, "header X-Other"},
		{"a retired secret", refusedAs(formSecret, hex, nil), DiagnosedRetired, "version 2 of the secret, which ended on 28 November 2026 09:30:00 UTC"},
		{"a retired secret in another form", refusedAs(formSecret, sandbox.SignatureForm{Encoding: "base64", Key: "base64"}, nil), DiagnosedRetired, "version 2"},
		{"another encoding", refusedAs(laterSecret, sandbox.SignatureForm{Encoding: "base64"}, nil), DiagnosedForm, "base64 of body with no prefix"},
		{"another prefix", refusedAs(laterSecret, sandbox.SignatureForm{Prefix: "sha256="}, nil), DiagnosedForm, `the prefix "sha256="`},
		{"another signed form", refusedAs(laterSecret, sandbox.SignatureForm{Signed: "timestamp.body"}, nil), DiagnosedForm, "hex of timestamp.body"},
		{"the id signed, too", refusedAs(laterSecret, sandbox.SignatureForm{Signed: "id.body"}, nil), DiagnosedForm, "hex of delivery_id.body"},
		{"another key form", refusedAs(laterSecret, sandbox.SignatureForm{Key: "rest"}, nil), DiagnosedForm, "what follows whsec_"},
		{"a key of decoded base64", refusedAs(laterSecret, sandbox.SignatureForm{Key: "base64"}, nil), DiagnosedForm, "what base64 after whsec_ stands for"},
		{"a form the settings leave out", refusedAs(laterSecret, hex, func(s *suspect) { s.pinned, s.settings.Encoding = "", "base64" }), DiagnosedForm, "settings leave that form out"},
		{"a prefix nobody listed", refusedAs(laterSecret, hex, func(s *suspect) {
			s.header.Set("X-Webhook-Signature", "t=1764417600,v0="+s.header.Get("X-Webhook-Signature"))
		}), DiagnosedForm, `begins with "t=1764417600,v0="`},
		{"a newline in the stored secret", refusedAs(laterSecret, hex, stored(laterSecret+"\n")), DiagnosedSpace, "stored secret (version 3)"},
		{"a space before the stored secret", refusedAs(laterSecret, hex, stored(" "+laterSecret)), DiagnosedSpace, "stored secret"},
		{"a newline in the sender's secret", refusedAs(laterSecret+"\n", hex, nil), DiagnosedSpace, "sender's secret"},
		{"indented on its way", refusedAs(laterSecret, hex, body(compacted.String())), DiagnosedReencoded, "written compact"},
		{"a newline added on its way", refusedAs(laterSecret, hex, body(diagnoseBody+"\n")), DiagnosedReencoded, "without a newline at its end"},
		{"somebody else's", refusedAs(strangeSecret, hex, nil), DiagnosedNothing, "not the 2 secrets known here"},
		{"content changed", refusedAs(laterSecret, hex, body(strings.Replace(diagnoseBody, "job-1", "job-2", 1))), DiagnosedNothing, "Nothing matches"},
		{"no signature at all", refusedAs(laterSecret, hex, set("hello")), DiagnosedNoSignature, "holds nothing"},
		{"a signature of another length", refusedAs(laterSecret, hex, set(strings.Repeat("ab", 20))), DiagnosedNoSignature, "holds nothing"},
		{"no secrets", refusedAs(laterSecret, hex, func(s *suspect) { s.today, s.retired = nil, nil }), DiagnosedNoSecret, "no secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := c.s.diagnose()
			if got.Code != c.code || !strings.Contains(got.Text, c.says) {
				t.Errorf("got %s, want %s: ...%s...", got, c.code, c.says)
			}
			for _, secret := range []string{laterSecret, formSecret, strangeSecret} {
				if strings.Contains(got.String(), secret[len(secretPrefix):]) {
					t.Errorf("%s holds a secret", got)
				}
			}
			if again, ok := ParseDiagnosis(got.String()); !ok || again != got || again.Code.Title() == string(again.Code) {
				t.Errorf("kept as %q it reads as %+v", got.String(), again)
			}
		})
	}
}

// TestBodiesWrittenAgain: what others' programs make of a body, signed before
// they did.
func TestBodiesWrittenAgain(t *testing.T) {
	t.Parallel()
	arrived := diagnoseBody
	for how, signed := range map[string]string{
		"with a space after commas and colons":                               `{"timestamp": "2026-11-29T12:00:00Z", "data": {"job_id": "job-1", "url": "https://a.example/ä", "title": "<b>&"}, "a": [1.50, null, true, {}]}`,
		"with a space after commas and colons, non-ASCII characters escaped": `{"timestamp": "2026-11-29T12:00:00Z", "data": {"job_id": "job-1", "url": "https://a.example/\u00e4", "title": "<b>&"}, "a": [1.50, null, true, {}]}`,
		"compact, HTML's characters escaped":                                 `{"timestamp":"2026-11-29T12:00:00Z","data":{"job_id":"job-1","url":"https://a.example/ä","title":"\u003cb\u003e\u0026"},"a":[1.50,null,true,{}]}`,
		"compact, slashes and non-ASCII characters escaped":                  `{"timestamp":"2026-11-29T12:00:00Z","data":{"job_id":"job-1","url":"https:\/\/a.example\/\u00e4","title":"<b>&"},"a":[1.50,null,true,{}]}`,
		"compact, names sorted":                                              `{"a":[1.50,null,true,{}],"data":{"job_id":"job-1","title":"<b>&","url":"https://a.example/ä"},"timestamp":"2026-11-29T12:00:00Z"}`,
		"indented by 2 spaces":                                               "{\n  \"timestamp\": \"2026-11-29T12:00:00Z\",\n  \"data\": {\n    \"job_id\": \"job-1\",\n    \"url\": \"https://a.example/ä\",\n    \"title\": \"<b>&\"\n  },\n  \"a\": [\n    1.50,\n    null,\n    true,\n    {}\n  ]\n}",
		"with a newline at its end":                                          diagnoseBody + "\n",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := refusedAs(laterSecret, sandbox.SignatureForm{}, func(s *suspect) {
				s.body = []byte(arrived)
				s.header.Set("X-Webhook-Signature", sandbox.Sign(sandbox.SignatureForm{}, laterSecret, "", "", []byte(signed)))
			})
			if got := s.diagnose(); got.Code != DiagnosedReencoded || !strings.Contains(got.Text, "written "+how+" it matches") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestDiagnosisIsBounded: neither a large body, nor a deep one, nor a thousand
// headers make it work for long.
func TestDiagnosisIsBounded(t *testing.T) {
	t.Parallel()
	wrong := strings.Repeat("ab", 32)
	many := http.Header{"X-Webhook-Signature": {wrong}}
	for i := range 1000 {
		many.Add("X-"+strings.Repeat("a", 1+i%50), wrong)
	}
	for name, s := range map[string]suspect{
		"large":   {header: http.Header{"X-Webhook-Signature": {wrong}}, body: bytes.Repeat([]byte{'['}, 8<<20)},
		"deep":    {header: http.Header{"X-Webhook-Signature": {wrong}}, body: append(bytes.Repeat([]byte{'['}, 9000), bytes.Repeat([]byte{']'}, 9000)...)},
		"headers": {header: many, body: []byte("{}")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.settings = SignatureSettings{}.withDefaults()
			for i := range mostVersions {
				s.retired = append(s.retired, knownSecret{version: i + 1, secret: strangeSecret, ended: time.Now()})
			}
			s.today = []knownSecret{{version: 99, secret: laterSecret}}
			x := s.examine()
			bound := x.effort.left
			if got := s.diagnose(); got.Code != DiagnosedNothing {
				t.Errorf("got %s, want nothing to match", got)
			}
			if bound > 200<<20 {
				t.Errorf("up to %d bytes are hashed", bound)
			}
		})
	}
}

// FuzzReencodings: whatever the body is, writing it again ends and keeps to
// the same JSON.
func FuzzReencodings(f *testing.F) {
	for _, seed := range []string{diagnoseBody, `[]`, `{"a":1,"a":2}`, "\"\\ud800\"", `{"":{"":[]}}`, "1e400", " {} ", "\r\n", `"\u2028"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		valid := json.Valid(body)
		n := 0
		for how, other := range reencodings(body) {
			n++
			if bytes.Equal(other, body) {
				t.Errorf("%s is the body itself", how)
			}
			if valid && !json.Valid(other) {
				t.Errorf("%s makes %q of %q", how, other, body)
			}
		}
		if n > 6+2*5*5 {
			t.Errorf("%d ways", n)
		}
	})
}

// TestDeepListsDoNotGrow without bounds by being written with indents.
func TestDeepListsDoNotGrow(t *testing.T) {
	t.Parallel()
	const depth = 99
	body := []byte(strings.Repeat("[", depth) + strings.Repeat("1,", 100_000) + "1" + strings.Repeat("]", depth))
	grown := 0
	for how, other := range reencodings(body) {
		if len(other) > writtenBytes {
			t.Errorf("%s: it grew from %d bytes to %d", how, len(body), len(other))
		}
		if len(other) > len(body) {
			grown++
		}
	}
	if grown == 0 {
		t.Error("nothing was written with more spaces")
	}
}
