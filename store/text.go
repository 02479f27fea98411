package store

import "strings"

// CleanText makes foreign text fit for a text column: Postgres takes neither
// NUL nor broken UTF-8. Content is never cleaned: it is kept as bytes.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
