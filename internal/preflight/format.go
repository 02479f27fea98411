package preflight

import (
	"fmt"
	"slices"
	"strings"
)

// check says which choice cannot be.
func (c Choices) check() error {
	if !slices.Contains([]string{"", FormatTXT, FormatCSV, FormatJSONL, FormatSitemap}, c.Format) {
		return &FileError{Field: "format", Reason: fmt.Sprintf("the format %q is not known: choose txt, csv, jsonl or sitemap", clip(c.Format, 40))}
	}
	if !slices.Contains([]string{"", ",", ";", "\t", "|"}, c.Delimiter) {
		return &FileError{Field: "delimiter", Reason: "the delimiter must be a comma, a semicolon, a tab or |"}
	}
	return nil
}

// formatOf is the format that was chosen, or else what the file's name and its beginning say.
func formatOf(c Choices, name string, in *file) string {
	if c.Format != "" {
		return c.Format
	}
	begin := beginning(in)
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	switch {
	case startsXML(begin):
		return FormatSitemap
	case strings.HasPrefix(begin, "{") || strings.HasPrefix(begin, "[{"):
		return FormatJSONL
	case strings.HasSuffix(name, ".csv") || strings.HasSuffix(name, ".tsv") || strings.HasSuffix(name, ".tab"):
		return FormatCSV
	case strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".ndjson") || strings.HasSuffix(name, ".json"):
		return FormatJSONL
	case strings.HasSuffix(name, ".xml"):
		return FormatSitemap
	case c.Delimiter != "" || c.Header != nil || c.URLColumn != "" || looksLikeCSV(c, in):
		return FormatCSV
	}
	return FormatTXT
}

// startsXML tells XML from a line that only begins with a stray bracket.
func startsXML(begin string) bool {
	for _, tag := range []string{"<?xml", "<!--", "<!doctype", "<urlset", "<sitemapindex"} {
		if len(begin) >= len(tag) && strings.EqualFold(begin[:len(tag)], tag) {
			return true
		}
	}
	return false
}

// beginning is the first of a file that is no blank.
func beginning(in *file) string {
	return strings.TrimLeft(string(in.head[:min(len(in.head), 4096)]), " \t\r\n")
}
