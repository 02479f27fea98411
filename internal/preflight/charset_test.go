package preflight_test

import (
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"rollcall/internal/preflight"
)

// TestCharsets: what is found out, and what has to be chosen.
func TestCharsets(t *testing.T) {
	t.Parallel()
	german, russian := "https://a.test/Gr\u00f6\u00dfe\u2013\u00fcber\r\n", "https://a.test/\u041f\u0440\u0438\u0432\u0435\u0442-\u043c\u0438\u0440\n"
	wide := unicode.UTF16
	for name, c := range map[string]struct {
		text    string
		in      encoding.Encoding
		chosen  string
		charset string
	}{
		"UTF-8":                 {german, nil, "", "utf-8"},
		"UTF-8 with a mark":     {"\ufeff" + german, nil, "", "utf-8"},
		"UTF-16LE with a mark":  {german, wide(unicode.LittleEndian, unicode.UseBOM), "", "utf-16le"},
		"UTF-16BE with a mark":  {german, wide(unicode.BigEndian, unicode.UseBOM), "", "utf-16be"},
		"UTF-16LE":              {german, wide(unicode.LittleEndian, unicode.IgnoreBOM), "", "utf-16le"},
		"UTF-16BE":              {german, wide(unicode.BigEndian, unicode.IgnoreBOM), "", "utf-16be"},
		"UTF-16, the mark says": {german, wide(unicode.BigEndian, unicode.UseBOM), "utf-16", "utf-16be"},
		"windows-1252":          {german, charmap.Windows1252, "", "windows-1252"},
		"ISO-8859-1":            {"https://a.test/Gr\u00f6\u00dfe", charmap.ISO8859_1, "", "windows-1252"},
		"ISO-8859-1 by name":    {"https://a.test/Gr\u00f6\u00dfe", charmap.ISO8859_1, "ISO-8859-1", "windows-1252"},
		"ISO-8859-15":           {"https://a.test/5\u20ac", charmap.ISO8859_15, "", "iso-8859-15"},
		"windows-1251":          {russian, charmap.Windows1251, "", "windows-1251"},
		"KOI8-R":                {russian, charmap.KOI8R, "", "koi8-r"},
		"Shift JIS by name":     {"https://a.test/\u30c6\u30b9\u30c8", japanese.ShiftJIS, "shift_jis", "shift_jis"},
	} {
		bytes := c.text
		if c.in != nil {
			var err error
			if bytes, err = c.in.NewEncoder().String(c.text); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		want, _, _, _ := readAll(t, c.text, "", preflight.Choices{Format: "txt", Charset: "utf-8"})
		got, d, _, err := readAll(t, bytes, "", preflight.Choices{Charset: c.chosen})
		if err != nil || d.Charset != c.charset || len(got) != 1 || got[0].URL != want[0].URL || got[0].URL == "" {
			t.Errorf("%s: got %+v as %s, %v, want %q as %s", name, got, d.Charset, err, want[0].URL, c.charset)
		}
	}
}

// TestWrongCharsets: bytes that are no text are said to be none, line by line.
func TestWrongCharsets(t *testing.T) {
	t.Parallel()
	lines, d, totals, err := readAll(t, "https://a.test/1\nhttps://a.test/\xff\nhttps://a.test/2", "", preflight.Choices{Charset: "utf-8"})
	if err != nil || d.Charset != "utf-8" || totals.Accepted != 2 || lines[1].Reason != "is not valid UTF-8 text" {
		t.Errorf("got %+v as %s, %v", lines, d.Charset, err)
	}
	lines, _, _, err = readAll(t, "https://a.test/\x81\xff\n", "", preflight.Choices{Charset: "shift_jis"})
	if err != nil || len(lines) != 1 || lines[0].Verdict != preflight.Invalid {
		t.Errorf("got %+v, %v", lines, err)
	}
	// An XML declaration counts, and one of nonsense doesn't.
	for declared, charset := range map[string]string{"koi8-r": "koi8-r", "nonsense": "utf-8", "UTF-16": "utf-8"} {
		text := `<?xml version="1.0" encoding="` + declared + `"?><urlset><url><loc>https://a.test</loc></url></urlset>`
		if _, d, totals, err := readAll(t, text, "", preflight.Choices{}); err != nil || d.Charset != charset || totals.Accepted != 1 {
			t.Errorf("%s: got %s, %+v, %v", declared, d.Charset, totals, err)
		}
	}
}
