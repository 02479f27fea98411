package preflight

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// charset is how the bytes of a file become text.
type charset struct {
	name   string
	decode func(io.Reader) io.Reader
}

const utf8Name = "utf-8"

// charsetOf is the character set that was chosen, else the one a byte order mark or an XML declaration names, else
// the one that the beginning of the file looks like.
func charsetOf(c Choices, head []byte) (charset, error) {
	name := c.Charset
	if name == "" {
		name = guess(head)
	}
	got, err := charsetNamed(name, head)
	if err != nil && c.Charset == "" {
		return charsetNamed(utf8Name, head) // An XML declaration of nonsense: the file says itself what it is not.
	}
	return got, err
}

// charsetNamed is the character set of a name that browsers know.
func charsetNamed(name string, head []byte) (charset, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "utf-16" && bytes.HasPrefix(head, []byte("\xfe\xff")) {
		name = "utf-16be"
	}
	e, err := htmlindex.Get(name)
	if err != nil || e == encoding.Replacement {
		return charset{}, &FileError{Field: "charset", Reason: fmt.Sprintf("the character set %q is not known", clip(name, 40))}
	}
	if known, err := htmlindex.Name(e); err == nil {
		name = known
	}
	switch name {
	case utf8Name:
		return charset{name, withoutMark}, nil
	case "utf-16le":
		return decodedBy(name, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)), nil
	case "utf-16be":
		return decodedBy(name, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)), nil
	}
	return decodedBy(name, e), nil
}

func decodedBy(name string, e encoding.Encoding) charset {
	return charset{name, func(r io.Reader) io.Reader { return withoutMark(transform.NewReader(r, e.NewDecoder())) }}
}

// withoutMark leaves a byte order mark out, which is U+FEFF once it is decoded.
func withoutMark(r io.Reader) io.Reader { return &unmarked{in: r} }

type unmarked struct {
	in    io.Reader
	begun bool
}

// Read implements io.Reader.
func (u *unmarked) Read(p []byte) (int, error) {
	if u.begun {
		return u.in.Read(p)
	}
	u.begun = true
	mark := make([]byte, 3)
	n, err := io.ReadFull(u.in, mark)
	mark = bytes.TrimPrefix(mark[:n], []byte("\uFEFF"))
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	u.in = io.MultiReader(bytes.NewReader(mark), broken{err}, u.in)
	return u.in.Read(p)
}

// declared is where an XML file names its character set.
var declared = regexp.MustCompile(`^\s*<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']`)

// guess names the character set that the beginning of a file looks like.
func guess(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return utf8Name
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return "utf-16le"
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "utf-16be"
	}
	if wide := guessUTF16(head); wide != "" {
		return wide
	}
	if m := declared.FindSubmatch(head[:min(len(head), 512)]); m != nil {
		// What declares itself in single bytes is not made of double ones.
		if name := strings.ToLower(string(m[1])); !strings.HasPrefix(name, "utf-16") && !strings.HasPrefix(name, "ucs") {
			return name
		}
	}
	if validSoFar(head) {
		return utf8Name
	}
	return guessSingle(head)
}

// guessUTF16 tells text in double bytes without a mark by every other byte being NUL: URLs are mostly ASCII.
func guessUTF16(head []byte) string {
	head = head[:min(len(head), 4096)&^1]
	var even, odd int
	for i := 0; i < len(head); i += 2 {
		if head[i] == 0 && head[i+1] != 0 {
			even++
		}
		if head[i+1] == 0 && head[i] != 0 {
			odd++
		}
	}
	switch most := len(head) / 2 * 7 / 10; {
	case len(head) >= 8 && odd > most:
		return "utf-16le"
	case len(head) >= 8 && even > most:
		return "utf-16be"
	}
	return ""
}

// validSoFar reports UTF-8 that may be cut in its last character.
func validSoFar(head []byte) bool {
	if len(head) == headSize {
		for cut := 0; cut < utf8.UTFMax && len(head) > 0 && !utf8.Valid(head); cut++ {
			head = head[:len(head)-1]
		}
	}
	return utf8.Valid(head)
}

// guessSingle tells the common single-byte sets apart. Cyrillic words are made of high bytes from end to end, while in
// the West high bytes stand alone between ASCII letters; small letters, which are most, are E0-FF in windows-1251 and
// C0-DF in KOI8-R. A currency sign is the euro of ISO-8859-15 when nothing of windows-1252 is there.
func guessSingle(head []byte) string {
	var high, together, small, koi, c1, currency int
	for i, b := range head {
		switch {
		case b >= 0xC0:
			high++
			if i > 0 && head[i-1] >= 0xC0 {
				together++
			}
			if b >= 0xE0 {
				small++
			} else {
				koi++
			}
		case b >= 0x80 && b <= 0x9F:
			c1++
		case b == 0xA4:
			currency++
		}
	}
	switch {
	case high > 3 && together*2 > high && small >= koi:
		return "windows-1251"
	case high > 3 && together*2 > high:
		return "koi8-r"
	case currency > 0 && c1 == 0:
		return "iso-8859-15"
	}
	return "windows-1252"
}
