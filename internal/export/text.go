package export

import (
	"io"
	"unicode/utf8"
)

// cleaner passes text on, whole characters at a time: bytes that are no UTF-8
// become U+FFFD, and so does NUL when noNUL is set. Close passes on what was
// kept back.
type cleaner struct {
	w     io.Writer
	noNUL bool
	kept  []byte // The beginning of a character whose end has not come.
}

const replacement = "\uFFFD"

// Write implements io.Writer.
func (c *cleaner) Write(p []byte) (int, error) {
	n := len(p)
	if len(c.kept) > 0 {
		var err error
		if p, err = c.complete(p); err != nil {
			return 0, err
		}
	}
	if end := fullRunes(p); end < len(p) {
		c.kept = append(c.kept, p[end:]...)
		p = p[:end]
	}
	return n, c.pass(p)
}

// complete ends the character that was begun, and returns what follows it.
func (c *cleaner) complete(p []byte) ([]byte, error) {
	for len(p) > 0 && !utf8.FullRune(c.kept) {
		c.kept = append(c.kept, p[0])
		p = p[1:]
	}
	if !utf8.FullRune(c.kept) {
		return nil, nil
	}
	whole := c.kept
	c.kept = nil
	return p, c.pass(whole)
}

// fullRunes is where the last character that is whole ends.
func fullRunes(p []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(p); back++ {
		if at := len(p) - back; utf8.RuneStart(p[at]) {
			if !utf8.FullRune(p[at:]) {
				return at
			}
			break
		}
	}
	return len(p)
}

func (c *cleaner) pass(p []byte) error {
	from := 0
	for at := 0; at < len(p); {
		r, size := utf8.DecodeRune(p[at:])
		if r == utf8.RuneError && size == 1 || r == 0 && c.noNUL {
			if err := c.emit(p[from:at], replacement); err != nil {
				return err
			}
			from = at + size
		}
		at += size
	}
	return c.emit(p[from:], "")
}

func (c *cleaner) emit(p []byte, instead string) error {
	if len(p) > 0 {
		if _, err := c.w.Write(p); err != nil {
			return err
		}
	}
	if instead == "" {
		return nil
	}
	_, err := io.WriteString(c.w, instead)
	return err
}

// Close passes on what is left; the writer below stays open.
func (c *cleaner) Close() error {
	left := c.kept
	c.kept = nil
	return c.pass(left)
}

// escaper passes bytes on, some of them as other text.
type escaper struct {
	w       io.Writer
	instead func(b byte) string // "" leaves the byte as it is.
}

// Write implements io.Writer.
func (e escaper) Write(p []byte) (int, error) {
	from := 0
	for at, b := range p {
		text := e.instead(b)
		if text == "" {
			continue
		}
		if _, err := e.w.Write(p[from:at]); err != nil {
			return 0, err
		}
		if _, err := io.WriteString(e.w, text); err != nil {
			return 0, err
		}
		from = at + 1
	}
	_, err := e.w.Write(p[from:])
	return len(p), err
}
