package preflight

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode"
)

// textLine is a line as it stands in the file, without its end.
type textLine struct {
	number int
	text   string
	cut    bool // It was over MaxRecord; text is its beginning.
}

// lines takes a text apart at \n, \r\n and \r alike. A last line without an end is one, an empty one is none.
type lines struct {
	in     io.Reader
	buf    []byte
	at, to int // What of buf has not been given out.
	number int
	skipLF bool // The last line ended with \r: a \n belongs to it.
	err    error
	back   []textLine // Put back, to be given out again: the last first.
}

// lineBuffer is the window of the file that is held.
const lineBuffer = 64 << 10

func newLines(in io.Reader) *lines { return &lines{in: in, buf: make([]byte, lineBuffer)} }

// next returns the next line, and io.EOF after the last.
func (l *lines) next() (textLine, error) {
	if n := len(l.back); n > 0 {
		line := l.back[n-1]
		l.back = l.back[:n-1]
		return line, nil
	}
	var long []byte // The beginning of a line that did not fit the window.
	cut, begun := false, false
	for {
		if l.at == l.to {
			if err := l.fill(); err != nil {
				if begun && err == io.EOF { //nolint:errorlint // As io.Reader returns it.
					break
				}
				return textLine{}, err
			}
		}
		if l.skipLF {
			l.skipLF = false
			if l.buf[l.at] == '\n' {
				l.at++
				continue
			}
		}
		begun = true
		rest := l.buf[l.at:l.to]
		end := endOf(rest)
		if end >= 0 && long == nil {
			l.end(rest[end], end)
			return l.give(string(rest[:end]), false), nil
		}
		part := rest
		if end >= 0 {
			part = rest[:end]
		}
		if room := MaxRecord - len(long); len(part) > room {
			part, cut = part[:room], true
		}
		long = append(long, part...)
		if end >= 0 {
			l.end(rest[end], end)
			break
		}
		l.at = l.to
	}
	return l.give(string(long), cut), nil
}

// unread has lines given out again, in their order.
func (l *lines) unread(again []textLine) {
	for _, line := range slices.Backward(again) {
		l.back = append(l.back, line)
	}
}

func (l *lines) give(text string, cut bool) textLine {
	l.number++
	return textLine{number: l.number, text: text, cut: cut}
}

func (l *lines) end(with byte, after int) {
	l.at += after + 1
	l.skipLF = with == '\r'
}

// endOf is where the line ends, or -1.
func endOf(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// fill reads on. A reader that gives nothing a hundred times over is broken.
func (l *lines) fill() error {
	for range 100 {
		if l.err != nil {
			return l.err
		}
		var n int
		n, l.err = l.in.Read(l.buf)
		if n > 0 {
			l.at, l.to = 0, n
			return nil
		}
	}
	return io.ErrNoProgress
}

// isBlank reports a line that holds nothing to see.
func isBlank(s string) bool { return strings.TrimFunc(s, unseen) == "" }

// unseen are blanks, and the marks without width that come along when text is copied.
func unseen(r rune) bool {
	switch r {
	case '\u200B', '\u200C', '\u200D', '\u200E', '\u200F', '\u2060', '\uFEFF', '\u061C':
		return true
	}
	return unicode.IsSpace(r)
}
