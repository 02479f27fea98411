package store

import (
	"strings"
	"unicode/utf8"
)

// CleanText makes foreign text fit for a text column: Postgres takes neither
// NUL nor broken UTF-8. Content is never cleaned: it is kept as bytes.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// WholeText drops the character at the end of a text that a limit of bytes cut
// in two.
func WholeText(content []byte) []byte {
	for range utf8.UTFMax - 1 {
		if r, size := utf8.DecodeLastRune(content); r != utf8.RuneError || size != 1 {
			break
		}
		content = content[:len(content)-1]
	}
	return content
}
