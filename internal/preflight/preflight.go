// Package preflight reads a list of URLs before anything is spent on it: plain text, CSV, JSON lines or an XML
// sitemap, in whatever character set, gzipped or not. Each line gets a verdict with its number and a reason.
//
// # What is promised
//
//   - No line is lost: Totals.Lines = blank lines + Submitted, and Submitted = Invalid + Duplicate + Accepted + Fixed.
//   - The vendor gets a URL as it was given, or as it was mended (Line.URL). Duplicates are found on another spelling,
//     Canonical, which is never sent.
//   - Everything is streamed. What stays in memory is a window of the file, one line, 16 bytes and a line number for
//     each URL, and a counter for each host; all of it is bounded by the limits below, whatever the file holds.
//   - Nothing is fetched: a sitemap index is followed only through the function that the caller hands in.
//
// The package is a leaf: it knows no batch, no database and no vendor.
package preflight

import (
	"context"
	"fmt"
	"io"
)

// Limits of what is read.
const (
	// MaxURL is the longest URL taken, in bytes.
	MaxURL = 8000
	// MaxLines is the most lines of one file, unless Choices say less or more.
	MaxLines = 200_000
	// MaxRecord is the longest line, or record of several lines, in bytes. A longer one is invalid and is passed over.
	MaxRecord = 1 << 20
	// MaxColumns is the most columns a line may have, the URL's own among them.
	MaxColumns = 200
	// MaxBytes is the most that is read of one file and of what its index leads to, unpacked.
	MaxBytes = 512 << 20
)

// Verdict is what becomes of a line.
type Verdict string

// The verdicts. Accepted and Fixed are sent; a Duplicate is not, unless Choices keep it, and then it is no Duplicate.
const (
	Accepted  Verdict = "accepted"
	Fixed     Verdict = "fixed"
	Duplicate Verdict = "duplicate"
	Invalid   Verdict = "invalid"
)

// Formats that Choices and Detected name.
const (
	FormatTXT     = "txt"
	FormatCSV     = "csv"
	FormatJSONL   = "jsonl"
	FormatSitemap = "sitemap"
)

// Choices are how a person wants a file read. The zero value finds everything out.
type Choices struct {
	// Format is txt, csv, jsonl or sitemap; empty finds it out.
	Format string `json:"format,omitempty"`
	// Delimiter of a CSV is , ; tab or |; empty finds it out.
	Delimiter string `json:"delimiter,omitempty"`
	// Header says whether a CSV's first record names the columns; nil finds it out.
	Header *bool `json:"header,omitempty"`
	// URLColumn is the name or the number, from 1, of the column with the URLs; empty finds it out.
	URLColumn string `json:"url_column,omitempty"`
	// Charset is a name as browsers know them (utf-8, utf-16le, windows-1251, shift_jis); empty finds it out.
	Charset string `json:"charset,omitempty"`
	// KeepDuplicates accepts what repeats an earlier line; Line.DuplicateOf still names that line.
	KeepDuplicates bool `json:"keep_duplicates,omitempty"`
	// KeepFragment holds URLs apart that differ in what follows the #.
	KeepFragment bool `json:"keep_fragment,omitempty"`
	// SortQuery takes URLs for the same whose parameters only stand in another order.
	SortQuery bool `json:"sort_query,omitempty"`
	// MaxLines is the most lines read, blank ones too; 0 is MaxLines.
	MaxLines int `json:"max_lines,omitempty"`
}

// Line is one line, or one record, and its verdict.
type Line struct {
	// Number is where the line, or the record of several lines, begins, from 1; in a sitemap it is the number of the
	// entry, over all its files. Numbers rise and none comes twice.
	Number  int     `json:"number"`
	Verdict Verdict `json:"verdict"`
	// Original is the text the URL was read from, as it was. It may hold anything, NUL and broken UTF-8 too; of a line
	// over MaxRecord it is the beginning.
	Original string `json:"original"`
	// URL is what the vendor gets; empty when the line is invalid.
	URL string `json:"url,omitempty"`
	// Reason says what was mended, what it repeats or what is wrong; empty when it was accepted as it was.
	Reason string `json:"reason,omitempty"`
	// DuplicateOf is the number of the first line with the same canonical form, or 0.
	DuplicateOf int `json:"duplicate_of,omitempty"`
	// Extra are the cells of Detected.Columns, in their order. It is shorter when the last of them are missing, and when
	// columns appear only later in the file; it is longer only on an invalid line that has too many cells.
	Extra []string `json:"extra,omitempty"`
	// Canonical is the spelling that duplicates were looked for by; empty when the line is invalid.
	Canonical string `json:"canonical,omitempty"`
}

// Detected is how the file was read in the end: what was chosen, and what was found out.
type Detected struct {
	Format    string `json:"format"`
	Charset   string `json:"charset"`
	Gzipped   bool   `json:"gzipped"`
	Delimiter string `json:"delimiter,omitempty"` // Of a CSV; empty when it has one column.
	Header    bool   `json:"header"`
	// Columns are those beside the URL's, in order; no two have the same name and none has none.
	Columns []string `json:"columns,omitempty"`
	// URLColumn is the name of the URL's own, empty in a format without columns.
	URLColumn string `json:"url_column,omitempty"`
	// AllColumns are the columns of a CSV as they stand, or the fields of JSON lines as they first appeared.
	AllColumns []string `json:"all_columns,omitempty"`
}

// Totals sum the verdicts up.
type Totals struct {
	Lines     int `json:"lines"`     // All that was read, blank ones too; a CSV's header is none.
	Submitted int `json:"submitted"` // Those with a verdict: the sum of the four below.
	Accepted  int `json:"accepted"`
	Fixed     int `json:"fixed"`
	Duplicate int `json:"duplicate"`
	Invalid   int `json:"invalid"`
	// Hosts of what is to be sent, accepted and fixed: the largest first, at most MaxHosts.
	Hosts []HostCount `json:"hosts"`
	// OtherHosts is how many more hosts there are, OtherURLs how many URLs they have.
	OtherHosts int `json:"other_hosts"`
	OtherURLs  int `json:"other_urls"`
	// PrivateURLs lead to private hosts, named or not.
	PrivateURLs int `json:"private_urls"`
}

// FileError is what is wrong with a file as a whole, or with the choices for it, in words for a person. What was
// reported before it stands; Detected tells as much as had been found out.
type FileError struct {
	Line   int    // Where it showed, or 0.
	Field  string // The choice that is wrong, by its JSON name, or empty.
	Reason string
}

// Error implements error.
func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
	}
	return e.Reason
}

// Opener opens a sitemap that an index names. Its error's text becomes the reason why that sitemap was not read.
type Opener = func(url string) (io.ReadCloser, error)

// Read reads a file and calls each for every line that is not blank, in order. name may help to find the format out
// and can be empty. open may be nil: what a sitemap index names is then invalid, with the reason. An error of each or
// of ctx ends the reading and is returned as it is; a *FileError says that the file can't be read any further.
func Read(ctx context.Context, r io.Reader, name string, c Choices, open Opener, each func(Line) error) (Detected, Totals, error) {
	s := newReading(ctx, c, open, each)
	err := s.read(r, name)
	s.detected.Columns = s.columns.beside()
	s.detected.AllColumns = s.columns.all
	return s.detected, s.sum(), err
}
