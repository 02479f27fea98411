package preflight_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rollcall/internal/preflight"
)

// TestCanonical: twins have one form, and what is no twin has another.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want           string
		keep, sort     bool
		twins, another []string
	}{
		{
			want:  "https://a.test/",
			twins: []string{"https://a.test", "HTTPS://A.TEST/", "https://a.test:443", "https://a.test:/", "https://a.test/#x", "https://a.test/.", "https://a.test/a/..", "https://a.test?", "https://a.test/%2e"},
			another: []string{
				"http://a.test/", "https://a.test:80/", "https://a.test./", "https://www.a.test/", "https://a.test//", "https://a.test/?a", "https://a.test/...", "https://a.test/%2f",
			},
		},
		{want: "http://a.test/", twins: []string{"http://a.test:80/", "http://a.test:80"}, another: []string{"http://a.test:443/", "http://a.test:8080/"}},
		{
			want:    "https://xn--bcher-kva.example/",
			twins:   []string{"https://b\u00fccher.example", "https://B\u00dcCHER.example/", "https://XN--BCHER-KVA.example", "https://bu\u0308cher.example", "https://b%C3%BCcher.example", "https://b\u00fccher\u3002example"},
			another: []string{"https://bucher.example/"},
		},
		{
			want:    "https://a.test/%C3%BC%2F~x",
			twins:   []string{"https://a.test/\u00fc%2F~x", "https://a.test/%c3%bc%2f%7Ex", "https://a.test/%c3%BC%2F~%78"},
			another: []string{"https://a.test/\u00fc/~x", "https://a.test/u%2F~x", "https://a.test/%C3%BC%252F~x"},
		},
		{
			want:    "https://a.test/b/c?q=%5B1%5D%25",
			twins:   []string{"https://a.test/a/../b/./c?q=[1]%", "https://a.test/../b/c?q=%5b1%5d%25", "https://a.test/%2E%2e/b/c?%71=[1]%"},
			another: []string{"https://a.test/b/c/?q=%5B1%5D%25", "https://a.test/b/c?Q=%5B1%5D%25"},
		},
		{want: "https://a.test/b/", twins: []string{"https://a.test/b/c/..", "https://a.test/b/.", "https://a.test/b/c/../"}, another: []string{"https://a.test/b"}},
		{want: "https://a.test/a%7Cb", twins: []string{"https://a.test/a|b"}, another: []string{"https://a.test/ab"}},
		{want: "https://a.test/?b=1&a=2", twins: []string{"https://a.test?b=1&a=2"}, another: []string{"https://a.test/?a=2&b=1", "https://a.test/?b=1&a=%32%26"}},
		{sort: true, want: "https://a.test/?a=2&a=1&b=1", twins: []string{"https://a.test/?b=1&a=2&a=1"}, another: []string{"https://a.test/?a=1&a=2&b=1"}},
		{keep: true, want: "https://a.test/#%C3%BC", twins: []string{"https://a.test#\u00fc"}, another: []string{"https://a.test/", "https://a.test/#u"}},
		{want: "http://[2001:db8::1]:8080/", twins: []string{"http://[2001:DB8:0:0::1]:8080"}, another: []string{"http://[2001:db8::2]:8080"}},
		{
			want: "http://127.0.0.1/",
			twins: []string{
				"http://127.1", "http://0x7f.1", "http://0X7F.0.0.0x1", "http://127.0.0.1.", "http://0177.0.0.01", "http://2130706433", "http://0x7F000001/",
				"http://017700000001", "http://127.0.1:80", "http://\uff11\uff12\uff17.\uff11", "http://127.0x.1",
			},
			another: []string{
				"http://127.2/", "http://2130706434/", "http://[::ffff:127.0.0.1]/", "http://127.0.0.0.1/", "http://127.0.0.1../", "http://127..1/", "http://0127.1/",
				"http://4294967296/", "http://127.0.0.256/", "http://256.1/", "http://08.1/", "http://0x7g.1/", "http://0x_7f.1/", "http://0b1111111.1/", "http://a.127.1/", "http://127.1.a/",
			},
		},
		{want: "http://256.1/", twins: []string{"http://256.1"}, another: []string{"http://1.0.0.1/"}}, // No address: it stays as it is.
	} {
		for _, twin := range append(c.twins, c.want) {
			if got := preflight.Canonical(twin, c.keep, c.sort); got != c.want {
				t.Errorf("%q: got %q, want %q", twin, got, c.want)
			}
		}
		for _, other := range c.another {
			if got := preflight.Canonical(other, c.keep, c.sort); got == c.want {
				t.Errorf("%q: got %q, which is another URL's", other, got)
			}
		}
	}
	for _, odd := range []string{"", "x", "mailto:a@b.test", "http://%zz/", "//a.test", "\x00", "http://"} {
		if got := preflight.Canonical(odd, false, false); preflight.Canonical(got, false, false) != got {
			t.Errorf("%q: got %q, which has another form", odd, got)
		}
	}
}

// respell writes a URL in another way that means the same.
func respell(t *rapid.T, raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	scheme, host, path := u.Scheme, u.Host, u.EscapedPath()
	if rapid.Bool().Draw(t, "upper") {
		scheme, host = strings.ToUpper(scheme), strings.ToUpper(host)
	}
	if rapid.Bool().Draw(t, "port") && u.Port() == "" {
		host += map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	}
	var spelled strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c != '/' && c != '%' && rapid.IntRange(0, 3).Draw(t, "escape") == 0:
			fmt.Fprintf(&spelled, rapid.SampledFrom([]string{"%%%02x", "%%%02X"}).Draw(t, "case"), c)
		case c == '/' && rapid.IntRange(0, 5).Draw(t, "dots") == 0:
			spelled.WriteString(rapid.SampledFrom([]string{"/./", "/x/../", "/%2e/"}).Draw(t, "way"))
		case c == '%':
			spelled.WriteString(rapid.SampledFrom([]string{path[i : i+3], strings.ToLower(path[i : i+3])}).Draw(t, "hex"))
			i += 2
		default:
			spelled.WriteByte(c)
		}
	}
	out := scheme + "://" + host + spelled.String()
	if u.RawQuery != "" {
		out += "?" + u.RawQuery
	}
	return out + rapid.SampledFrom([]string{"", "#", "#top"}).Draw(t, "fragment")
}

// aURL makes URLs that are accepted as they are; a path holds only what means the same when it is escaped.
// Each test has its own: a generator names itself on first use, which two tests at once can't share (rapid 1.3.0).
func aURL() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return rapid.StringMatching(`https?://[a-z]([a-z0-9-]{0,8}[a-z0-9])?\.(test|example)(:8080)?(/[A-Za-z0-9_~-]{1,6}(%C3%BC|%2F)?){0,4}/?(\?[a-z]{1,3}=[a-z0-9]{0,3}(&[a-z]{1,3}=[a-z0-9%]{0,2}){0,2})?`).Draw(t, "url")
	})
}

// TestTwinsMeet: however a URL is spelled, its form is the same, and it is found to be a duplicate.
func TestTwinsMeet(t *testing.T) {
	t.Parallel()
	url := aURL()
	rapid.Check(t, func(t *rapid.T) {
		one := url.Draw(t, "URL")
		other := respell(t, one)
		a, b := preflight.Judge(one), preflight.Judge(other)
		if a.Verdict != preflight.Accepted || b.Verdict != preflight.Accepted {
			t.Fatalf("%q is %s (%s), %q is %s (%s)", one, a.Verdict, a.Reason, other, b.Verdict, b.Reason)
		}
		if a.Canonical != b.Canonical || preflight.Canonical(a.Canonical, false, false) != a.Canonical {
			t.Errorf("%q has the form %q, %q has %q", one, a.Canonical, other, b.Canonical)
		}
		if a.URL != one || b.URL != other {
			t.Errorf("%q and %q would be sent as %q and %q", one, other, a.URL, b.URL)
		}
	})
}

// TestNoLineIsLost: of any lines, with any ends, each that is not blank has one verdict, under its number.
func TestNoLineIsLost(t *testing.T) {
	t.Parallel()
	line := rapid.OneOf(aURL(), rapid.SampledFrom([]string{"", " ", "\t", "nonsense", "a.test", " <https://a.test/>,", "ftp://a.test", "\x00", "\xff", "\u00e9.test/\u00e9"}))
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 30).Draw(t, "lines")
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end")
		text := strings.Join(lines, end)
		var want, got []int
		for i, l := range lines {
			if strings.TrimSpace(l) != "" {
				want = append(want, i+1)
			}
		}
		_, totals, err := preflight.Read(context.Background(), strings.NewReader(text), "", preflight.Choices{Format: "txt", Charset: "utf-8"}, nil,
			func(l preflight.Line) error {
				got = append(got, l.Number)
				if l.Original != lines[l.Number-1] {
					t.Errorf("line %d is %q, not %q", l.Number, l.Original, lines[l.Number-1])
				}
				return nil
			})
		blank := len(lines) - len(want)
		if n := len(lines); n > 0 && lines[n-1] == "" {
			blank-- // Nothing behind the last end of a line is no line.
		}
		if err != nil || !slices.Equal(got, want) || totals.Lines != totals.Submitted+blank || totals.Submitted != len(want) {
			t.Errorf("%q: got %v, %+v, %v, want %v and %d blank", text, got, totals, err, want, blank)
		}
	})
}

// TestAnotherProgramsCSVComesBack: what encoding/csv writes is read to the letter, whatever the cells hold.
func TestAnotherProgramsCSVComesBack(t *testing.T) {
	t.Parallel()
	url, cell := aURL(), rapid.OneOf(rapid.StringMatching(`[a-z0-9 ,;|"'\n\t=+é-]{0,12}`), rapid.Just(""))
	rapid.Check(t, func(t *rapid.T) {
		comma := rapid.SampledFrom([]rune{',', ';', '\t', '|'}).Draw(t, "comma")
		header := []string{"a", "url", "b", "c"}
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []string {
			return []string{cell.Draw(t, "a"), url.Draw(t, "url"), cell.Draw(t, "b"), "end"}
		}), 1, 12).Draw(t, "rows")
		var text strings.Builder
		w := csv.NewWriter(&text)
		w.Comma = comma
		if err := w.WriteAll(append([][]string{header}, rows...)); err != nil {
			t.Fatal(err)
		}
		c := preflight.Choices{Format: "csv", Delimiter: string(comma), Charset: "utf-8", KeepDuplicates: true}
		var got [][]string
		d, _, err := preflight.Read(context.Background(), strings.NewReader(text.String()), "", c, nil, func(l preflight.Line) error {
			got = append(got, []string{l.Extra[0], l.URL, l.Extra[1], l.Extra[2]})
			return nil
		})
		if diff := cmp.Diff(rows, got); err != nil || diff != "" || !d.Header || d.URLColumn != "url" {
			t.Errorf("%q: %+v, %v, %s", text.String(), d, err, diff)
		}
	})
}

// TestReadingStops: with the context, and with the error of the one who is told the lines.
func TestReadingStops(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	n := 0
	_, totals, err := preflight.Read(t.Context(), generated(1000), "", preflight.Choices{}, nil, func(preflight.Line) error {
		if n++; n == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || totals.Submitted != 3 {
		t.Errorf("got %+v, %v", totals, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err = preflight.Read(ctx, endless("https://a.test/\n"), "", preflight.Choices{KeepDuplicates: true, MaxLines: 1 << 40}, nil, func(preflight.Line) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the reading of an endless file to be canceled", err)
	}
}

func endless(text string) *maker { return &maker{next: func(int) string { return text }} }

// TestMemoryIsBounded: a file of any length is held a window at a time. It looks at what lives in the middle of a
// reading of 12 MB, a dozen times, and not at the time it takes.
func TestMemoryIsBounded(t *testing.T) { //nolint:paralleltest // What others allocate would be counted.
	row := "https://a.test/" + strings.Repeat("x", 500) + "," + strings.Repeat("y", 500) + "\n"
	for name, text := range map[string]*maker{
		"many lines": {next: func(i int) string { return map[bool]string{true: row}[i < 12_000] }},
		"one line":   {next: func(i int) string { return map[bool]string{true: strings.TrimSpace(row)}[i < 12_000] }},
		"one record": {next: func(i int) string {
			return map[bool]string{true: "\"" + row[:1000] + "\"\"\n"}[i == 0] + map[bool]string{true: row}[i > 0 && i < 12_000]
		}},
		"one comment": {next: func(i int) string {
			return map[bool]string{true: "<urlset><!--"}[i == 0] + map[bool]string{true: row}[i < 12_000]
		}},
	} {
		var before, now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		most, read := uint64(0), 0
		next := text.next
		text.next = func(i int) string {
			if read++; read%1000 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
			}
			return next(i)
		}
		_, _, err := preflight.Read(t.Context(), text, "x.csv", preflight.Choices{KeepDuplicates: true}, nil, func(preflight.Line) error { return nil })
		if _, ok := errors.AsType[*preflight.FileError](err); err != nil && !ok {
			t.Errorf("%s: %v", name, err)
		}
		if most > 6<<20 {
			t.Errorf("%s: %d MB are held", name, most>>20)
		}
		t.Logf("%s: at most %d KB are held", name, most>>10)
	}
}
