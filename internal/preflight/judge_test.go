package preflight_test

import (
	"net/url"
	"strings"
	"testing"

	"rollcall/internal/preflight"
)

// TestJudge: what is sent for a line, and what is said of it.
func TestJudge(t *testing.T) {
	t.Parallel()
	long := "https://a.test/" + strings.Repeat("a", preflight.MaxURL-15)
	for _, c := range []struct{ line, url, reason string }{
		// As it is.
		{"https://a.test/x", "https://a.test/x", ""},
		{"HTTP://A.test", "HTTP://A.test", ""},
		{"http://127.0.0.1:8080/admin", "http://127.0.0.1:8080/admin", ""},
		{"http://localhost/", "http://localhost/", ""},
		{"http://intranet/x", "http://intranet/x", ""},
		{"http://my_host.test./", "http://my_host.test./", ""},
		{"http://[2001:db8::1]:8080/", "http://[2001:db8::1]:8080/", ""},
		{"https://h\u00e4.test/\u00fc?q=\U0001F600#f", "https://h\u00e4.test/\u00fc?q=\U0001F600#f", ""},
		{"https://\U0001F4A9.test/", "https://\U0001F4A9.test/", ""},
		{"https://a.test/wiki/Go_(language)", "https://a.test/wiki/Go_(language)", ""},
		{"https://a.test/?a[]=1&b='x'", "https://a.test/?a[]=1&b='x'", ""},
		{"https://a.test/a,b;c", "https://a.test/a,b;c", ""},
		{"https://a.test/?q=100%", "https://a.test/?q=100%", ""},
		{"https://a.test/x?to=https://b.test", "https://a.test/x?to=https://b.test", ""},
		{long, long, ""},
		// Mended.
		{"  http://a.test/a b\tc  ", "http://a.test/a%20b%20c", "blanks around it removed, spaces inside written %20"},
		{"\u00a0https://a.test/\u200b", "https://a.test/", "blanks around it removed"},
		{"a.test/x", "https://a.test/x", "https:// put in front"},
		{"//a.test/x", "https://a.test/x", "https:// put in front"},
		{"a.test:8080/x:1", "https://a.test:8080/x:1", "https:// put in front"},
		{"localhost:3000", "https://localhost:3000", "https:// put in front"},
		{"10.0.0.1/x", "https://10.0.0.1/x", "https:// put in front"},
		{"[::1]:80/x", "https://[::1]:80/x", "https:// put in front"},
		{"B\u00fccher.example?q", "https://B\u00fccher.example?q", "https:// put in front"},
		{"a.test/a b", "https://a.test/a%20b", "https:// put in front, spaces inside written %20"},
		{"<https://a.test/>", "https://a.test/", "quotes or brackets around it removed"},
		{"(https://a.test/x_(y))", "https://a.test/x_(y)", "quotes or brackets around it removed"},
		{"https://a.test/x)", "https://a.test/x", "quotes or brackets around it removed"},
		{"[https://a.test/]", "https://a.test/", "quotes or brackets around it removed"},
		{`"https://a.test/x"`, "https://a.test/x", "quotes or brackets around it removed"},
		{`"https://a.test/x`, "https://a.test/x", "quotes or brackets around it removed"},
		{`https://a.test/x"`, "https://a.test/x", "quotes or brackets around it removed"},
		{"'https://a.test/it's'", "https://a.test/it's", "quotes or brackets around it removed"},
		{"\u201chttps://a.test/\u201d", "https://a.test/", "quotes or brackets around it removed"},
		{"\u00ab https://a.test/ \u00bb", "https://a.test/", "quotes or brackets around it removed"},
		{"`https://a.test/`", "https://a.test/", "quotes or brackets around it removed"},
		{"> https://a.test/", "https://a.test/", "quotes or brackets around it removed"},
		{"https://a.test/x,", "https://a.test/x", "comma or semicolon after it removed"},
		{"https://a.test/x ;", "https://a.test/x", "comma or semicolon after it removed"},
		{` "<a.test/x>",; `, "https://a.test/x", "blanks around it removed, quotes or brackets around it removed, comma or semicolon after it removed, https:// put in front"},
		// Wrong.
		{long + "a", "", "is 8001 bytes long"},
		{strings.Replace(long, "aa", " a", 1), "", "is 8002 bytes long"},
		{strings.Repeat("(", 100_000), "", "is 100000 bytes long"},
		{strings.Repeat("(", 7000), "", "has no http://"},
		{"https://" + strings.Repeat("\u00e4", 3000) + ".test/", "", "host's name that cannot be"},
		{"javascript:alert(1)", "", `begins with "javascript:"`},
		{"file:///etc/passwd", "", `begins with "file:"`},
		{"mailto:bob@a.test", "", `begins with "mailto:"`},
		{"tel:5551234", "", `begins with "tel:"`},
		{"data:text/html,x", "", `begins with "data:"`},
		{"htp://a.test/", "", `begins with "htp:"`},
		{"nonsense", "", "has no http://"},
		{"3.14", "", "has no http://"},
		{"e.g", "", "has no http://"},
		{"/path/only", "", "has no http://"},
		{"bob@a.test", "", "user name or password"},
		{`""`, "", "holds no URL"},
		{",", "", "holds no URL"},
		{"https://", "", "names no host"},
		{"https:///path", "", "names no host"},
		{"http:/a.test/", "", "names no host"},
		{"https://:80/", "", "names no host"},
		{"https://https://a.test/", "", "twice"},
		{"https://a.test/ https://b.test/", "", "two URLs"},
		{"https://user:secret@a.test/", "", "password"},
		{"https://user@a.test/", "", "user name"},
		{"a.test\x00", "", "control"},
		{"https://a.test/\x01", "", "control"},
		{"https://a.test/a\nb", "", "end of a line"},
		{"https://a.test/\x7fx", "", "control"},
		{"https://a.test/\xff", "", "UTF-8"},
		{"https://a.test/\ufffd", "", "could not be read"},
		{"https://a.test/\u202egpj.exe", "", "U+202E"},
		{"https://a.test/\u2066x", "", "U+2066"},
		{"https://a.test:notaport/", "", "its port is no number"},
		{"https://a.test:99999/", "", "port outside"},
		{"https://a.test:0/", "", "port outside"},
		{"https://a.test/%zz", "", `"%zz" begins an escape that is none`},
		{"https://a b.test/", "", "a blank in its host's name"},
		{"https://a..test/", "", "host's name that cannot be"},
		{"https://.test/", "", "host's name that cannot be"},
		{"https://a<b>.test/", "", "host's name that cannot be"},
		{"https://\u2100.test/", "", "host's name that cannot be"}, // One character that stands for a/c.
		{"https://" + strings.Repeat("a", 64) + ".test/", "", "host's name that cannot be"},
		{"https://[1.2.3.4]/", "", ""},
		{`https://a.test\x`, "", "cannot be in a host's name"},
	} {
		got := preflight.Judge(c.line)
		want := preflight.Accepted
		switch {
		case c.url == "":
			want = preflight.Invalid
		case c.reason != "":
			want = preflight.Fixed
		}
		wrong := got.Verdict != want || got.URL != c.url || got.Original != c.line
		if want == preflight.Invalid {
			wrong = wrong || !strings.Contains(got.Reason, c.reason) || got.Reason == "" || got.Canonical != ""
		} else {
			wrong = wrong || got.Reason != c.reason || got.Canonical == ""
		}
		if wrong {
			t.Errorf("%.60q: got %s %.60q, %q, want %s %.60q, %q", c.line, got.Verdict, got.URL, got.Reason, want, c.url, c.reason)
		}
	}
}

// judgedOnce says what is wrong with a verdict: what is sent can be sent, and is accepted as it is the next time.
func judgedOnce(t *testing.T, line string) {
	t.Helper()
	got := preflight.Judge(line)
	if got.Verdict == preflight.Invalid {
		if got.URL != "" || got.Reason == "" {
			t.Errorf("%q: an invalid line says %q and %q", line, got.URL, got.Reason)
		}
		return
	}
	u, err := url.Parse(got.URL)
	if err != nil || u.Hostname() == "" || u.User != nil || !strings.EqualFold(u.Scheme, "http") && !strings.EqualFold(u.Scheme, "https") {
		t.Errorf("%q became %q, which cannot be sent: %v", line, got.URL, err)
	}
	if strings.ContainsAny(got.URL, "\x00 \t\r\n") || len(got.URL) > preflight.MaxURL {
		t.Errorf("%q became %q of %d bytes, which cannot be stored", line, got.URL, len(got.URL))
	}
	if (got.Verdict == preflight.Accepted) != (got.URL == line && got.Reason == "") {
		t.Errorf("%q became %q: %s, %q", line, got.URL, got.Verdict, got.Reason)
	}
	if again := preflight.Judge(got.URL); again.Verdict != preflight.Accepted || again.URL != got.URL {
		t.Errorf("%q became %q, and then %s %q, %q", line, got.URL, again.Verdict, again.URL, again.Reason)
	}
}
