package preflight_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"rollcall/internal/preflight"
)

// FuzzRead: whatever the file and the choices, no line is lost or counted twice, and what is wrong is said.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"", "\n", "https://a.test\r\nhttps://a.test/\r\r\n \nnonsense\na.test/x,\n", "\ufeffhttps://a.test", "a\rb\nc", "sep=;\nurl;b\nhttps://a.test;x",
		"url,name\nhttps://a.test/,\"two\nlines\"\n\"https://b.test/,x\nhttps://c.test/,\"y\"\n", "url\tb\nhttps://a.test\t1\nhttps://b.test\t2\t3\n",
		"{\"url\":\"https://a.test\",\"n\":1}\n{\"n\":[1, {}],\"url\":null}\n\"https://b.test\"\n[]\n{\"url\":5}\n{\n", "[{\"url\":\"https://a.test\"}]",
		`<urlset xmlns="x"><url><loc>https://a.test</loc><lastmod>2026</lastmod></url><url/></urlset>`,
		`<sitemapindex><sitemap><loc>child</loc></sitemap><sitemap><loc>gone</loc></sitemap></sitemapindex>`,
		`<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>&x;</loc></url></urlset>`, "<urlset><url><loc>https://a.test",
		"\xff\xfeh\x00t\x00t\x00p\x00", "h\x00t\x00t\x00p\x00:\x00/\x00/\x00a\x00\n\x00", "https://a.test/\xfc\nhttps://a.test/\xff", "\x1f\x8b\x08\x00", packed("https://a.test\n"),
	} {
		f.Add([]byte(s), byte(0), byte(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, how, flags byte) {
		c := preflight.Choices{
			Format:         []string{"", "txt", "csv", "jsonl", "sitemap"}[how%5],
			Delimiter:      []string{"", ",", ";", "\t", "|"}[how/5%5],
			URLColumn:      []string{"", "1", "2", "url", "b"}[how/25%5],
			KeepDuplicates: flags&1 > 0, KeepFragment: flags&2 > 0, SortQuery: flags&4 > 0, MaxLines: 500,
		}
		if flags&8 > 0 {
			c.Header = new(flags&16 > 0)
		}
		open := func(url string) (io.ReadCloser, error) {
			if url != "child" {
				return nil, errors.New("is not there")
			}
			return io.NopCloser(strings.NewReader(`<urlset><url><loc>https://child.test</loc></url></urlset>`)), nil
		}
		var seen ledger
		detected, totals, err := preflight.Read(t.Context(), bytes.NewReader(data), "", c, open, seen.take(t))
		if _, ok := errors.AsType[*preflight.FileError](err); err != nil && (!ok || err.Error() == "") {
			t.Errorf("got %v, which is not the file's", err)
		}
		seen.holds(t, c, detected, totals)
	})
}

func packed(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text) // A buffer takes everything.
	_ = z.Close()
	return b.String()
}

// ledger keeps what Read reported, to hold it against what it promises.
type ledger struct {
	lines []preflight.Line
	by    map[int]preflight.Line
}

func (l *ledger) take(t *testing.T) func(preflight.Line) error {
	t.Helper()
	l.by = map[int]preflight.Line{}
	return func(line preflight.Line) error {
		if n := len(l.lines); n > 0 && l.lines[n-1].Number >= line.Number {
			t.Errorf("line %d comes after line %d", line.Number, l.lines[n-1].Number)
		}
		l.lines = append(l.lines, line)
		l.by[line.Number] = line
		return nil
	}
}

func (l *ledger) holds(t *testing.T, c preflight.Choices, detected preflight.Detected, totals preflight.Totals) {
	t.Helper()
	count := map[preflight.Verdict]int{}
	for _, line := range l.lines {
		count[line.Verdict]++
		l.lineHolds(t, c, line, len(detected.Columns))
	}
	if totals.Submitted != len(l.lines) || totals.Lines < totals.Submitted || totals.Lines > c.MaxLines ||
		totals.Accepted != count[preflight.Accepted] || totals.Fixed != count[preflight.Fixed] ||
		totals.Duplicate != count[preflight.Duplicate] || totals.Invalid != count[preflight.Invalid] {
		t.Errorf("got %+v of %d lines: %v", totals, len(l.lines), count)
	}
	hosts := totals.OtherURLs
	for _, h := range totals.Hosts {
		hosts += h.Count
	}
	if hosts != totals.Accepted+totals.Fixed || len(totals.Hosts) > preflight.MaxHosts {
		t.Errorf("%d URLs by host of %d", hosts, totals.Accepted+totals.Fixed)
	}
	names := slices.Sorted(slices.Values(detected.AllColumns))
	if len(slices.Compact(names)) != len(detected.AllColumns) || slices.Contains(detected.AllColumns, "") {
		t.Errorf("got the columns %q, want each with a name of its own", detected.AllColumns)
	}
	if detected.URLColumn != "" && len(detected.Columns)+1 != len(detected.AllColumns) {
		t.Errorf("got %q beside %q of %q", detected.Columns, detected.URLColumn, detected.AllColumns)
	}
}

func (l *ledger) lineHolds(t *testing.T, c preflight.Choices, line preflight.Line, columns int) {
	t.Helper()
	good := line.Verdict != preflight.Invalid
	if good != (line.URL != "") || good != (line.Canonical != "") || (line.Verdict != preflight.Accepted && line.Reason == "") {
		t.Errorf("got %+v", line)
	}
	if good && (len(line.Extra) > columns || !utf8.ValidString(line.URL) || preflight.Judge(line.URL).Verdict != preflight.Accepted) {
		t.Errorf("got %+v with %d columns", line, columns)
	}
	if len(line.Original) > preflight.MaxRecord || len(line.Extra) > preflight.MaxColumns {
		t.Errorf("line %d has %d bytes and %d columns more", line.Number, len(line.Original), len(line.Extra))
	}
	first, known := l.by[line.DuplicateOf]
	switch {
	case line.DuplicateOf == 0:
		if line.Verdict == preflight.Duplicate {
			t.Errorf("line %d is a duplicate of nothing", line.Number)
		}
	case !known || first.Number >= line.Number || first.Canonical != line.Canonical || first.DuplicateOf != 0:
		t.Errorf("line %d is said to repeat line %d: %+v, %+v", line.Number, line.DuplicateOf, line, first)
	case c.KeepDuplicates == (line.Verdict == preflight.Duplicate):
		t.Errorf("got %s for line %d, which repeats another", line.Verdict, line.Number)
	}
}

// FuzzCharset: whatever the bytes and the set that is chosen, what is read is text, or is said not to be.
func FuzzCharset(f *testing.F) {
	for _, name := range []string{"", "utf-8", "utf-16", "utf-16be", "windows-1251", "iso-8859-15", "shift_jis", "gb18030", "replacement", "x-user-defined", "nonsense"} {
		for _, s := range []string{"https://a.test/\xe4\xf6\xfc\xdf\n", "\xff\xfeh\x00\x0a\x00\x00", "\xfe\xff\x00h\xd8\x00", "<?xml version='1.0' encoding='koi8-r'?><urlset/>", "\x80\x81\xa4"} {
			f.Add([]byte(s), name)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		c := preflight.Choices{Format: preflight.FormatTXT, Charset: name, MaxLines: 500}
		var seen ledger
		detected, totals, err := preflight.Read(t.Context(), bytes.NewReader(data), "", c, nil, seen.take(t))
		wrong, ok := errors.AsType[*preflight.FileError](err)
		if err != nil && !ok {
			t.Errorf("got %v, which is not the file's", err)
		}
		if ok && wrong.Field == "charset" && name == "" {
			t.Errorf("got %v for a character set that nobody chose", err)
		}
		seen.holds(t, c, detected, totals)
		for _, l := range seen.lines {
			if detected.Charset != "utf-8" && !utf8.ValidString(l.Original) {
				t.Errorf("%s gave %q, which is no text", detected.Charset, l.Original)
			}
		}
	})
}

// FuzzCanonical: a canonical form is its own, and says the same whatever twin of the URL it is made of.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		"https://a.test", "HTTP://A.test:80/%7e/../x%2f?b=%zz&a#f%41", "https://b\u00fccher.example/\u00fc", "http://[2001:DB8:0::1]:443/", "http://h.test/a/./b/../../c/..",
		"http://h%C3%A4.test/%%34%31", "https://\u0130\u2100.test/", "https://a.test/a?%41=[]|&\"'", "//x", "a:b", "https://a.test/?", "https://xn--bcher-kva.example./",
		"http://127.1/", "http://0x7f.0.1", "017700000001", "http://2130706433.:80/", "http://1.2.3.4.5/", "http://0x/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		judgedOnce(t, line)
		for i := range 4 {
			keep, sort := i&1 > 0, i&2 > 0
			once := preflight.Canonical(line, keep, sort)
			if twice := preflight.Canonical(once, keep, sort); twice != once {
				t.Errorf("%q became %q and then %q", line, once, twice)
			}
		}
		l := preflight.Judge(line)
		if l.Verdict == preflight.Invalid {
			return
		}
		if got := preflight.Judge(l.Canonical); got.Verdict != preflight.Accepted || got.Canonical != l.Canonical {
			t.Errorf("%q has the form %q, which is %s: %s", line, l.Canonical, got.Verdict, got.Reason)
		}
	})
}
