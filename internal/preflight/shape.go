package preflight

import (
	"fmt"
	"strings"
)

// shape is how a CSV is laid out.
type shape struct {
	comma  byte // 0: one column.
	header bool
	names  []string
	url    int // The column with the URLs.
}

// shapeOf finds out what the choices leave open.
func (s *reading) shapeOf(in *file) (shape, error) {
	out := shape{comma: commaOf(s.choices, in)}
	if out.comma != 0 {
		s.detected.Delimiter = string(out.comma)
	}
	rows := sample(in, out.comma)
	if len(rows) == 0 {
		out.names = []string{"column 1"}
	}
	out.header = hasHeader(rows)
	if s.choices.Header != nil {
		out.header = *s.choices.Header && len(rows) > 0
	}
	s.detected.Header = out.header
	if len(rows) > 0 {
		width := widthOf(rows, out.header)
		if width > MaxColumns {
			return out, &FileError{Reason: fmt.Sprintf("has %d columns; at most %d can be read", width, MaxColumns)}
		}
		var titles []string
		if out.header {
			titles, rows = rows[0], rows[1:]
		}
		out.names = uniqueNames(titles, width)
	}
	s.columns = columns{all: out.names, url: -1}
	url, err := urlColumn(s.choices.URLColumn, out, rows)
	if err != nil {
		return out, err
	}
	out.url, s.columns.url, s.detected.URLColumn = url, url, out.names[url]
	return out, nil
}

// commas are the delimiters, in the order in which they win a draw.
const commas = ",;\t|"

// commaOf is the delimiter that was chosen, or that the file names, or that takes its records apart best; 0 when none
// does.
func commaOf(c Choices, in *file) byte {
	if c.Delimiter != "" {
		return c.Delimiter[0]
	}
	first, err := newLines(strings.NewReader(string(in.head[:min(len(in.head), 64)]))).next()
	if err == nil && isSeparatorLine(first.text) && strings.IndexByte(commas, first.text[4]) >= 0 {
		return first.text[4]
	}
	best, most := byte(0), 0.0
	for _, comma := range []byte(commas) {
		if fit := fitOf(sample(in, comma)); fit > most {
			best, most = comma, fit
		}
	}
	return best
}

// fitOf says how well a delimiter takes the records apart: the share of records that are as wide as the first, and
// half as much for the share of those with a URL in the column that has most.
func fitOf(rows [][]string) float64 {
	if len(rows) == 0 || len(withoutEmptyEnd(rows[0])) < 2 {
		return 0
	}
	width := len(rows[0])
	even, urls := 0, make([]int, width)
	for _, row := range rows {
		if len(row) == width {
			even++
		}
		for i := range min(width, len(row)) {
			if urlShaped(row[i]) > 0 {
				urls[i]++
			}
		}
	}
	most := 0
	for _, n := range urls {
		most = max(most, n)
	}
	return (float64(even) + float64(most)/2) / float64(len(rows))
}

// urlShaped is 2 for what begins with http:// or https://, 1 for what would be mended into that, else 0.
func urlShaped(cell string) int {
	s, _ := stripped(cell)
	if len(s) > MaxURL {
		return 0
	}
	if lower := strings.ToLower(s[:min(len(s), 8)]); strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://") {
		return 2
	}
	if _, ok := withScheme(s); ok && !strings.ContainsAny(s, " @") {
		return 1
	}
	return 0
}

// hasHeader reports that the first record names the columns: it holds no URL, and a name that says URL, or stands over
// a column of them.
func hasHeader(rows [][]string) bool {
	if len(rows) == 0 {
		return false
	}
	known := false
	for _, cell := range rows[0] {
		if urlShaped(cell) == 2 {
			return false
		}
		known = known || nameRank(cell) < len(urlNames)
	}
	if known {
		return true
	}
	for i, cell := range rows[0] {
		strong, weak := shares(rows[1:], i)
		if strong+weak >= 0.5 && urlShaped(cell) == 0 {
			return true
		}
	}
	return false
}

// shares are how many of a column's cells are URLs with and without a scheme.
func shares(rows [][]string, column int) (float64, float64) {
	var strong, weak float64
	for _, row := range rows {
		if column < len(row) {
			switch urlShaped(row[column]) {
			case 2:
				strong++
			case 1:
				weak++
			}
		}
	}
	n := max(1, float64(len(rows)))
	return strong / n, weak / n
}

// widthOf is how many columns there are: as many as the header names or as its records fill, else as the widest has.
func widthOf(rows [][]string, header bool) int {
	width := len(withoutEmptyEnd(rows[0]))
	for _, row := range rows[1:] {
		filled := len(withoutEmptyEnd(row))
		if header {
			filled = min(filled, len(rows[0]))
		}
		width = max(width, filled)
	}
	return width
}

// looksLikeCSV tells a table whose name doesn't say so from a list of URLs. A tab and a | never stand in a URL; a comma
// and a semicolon may, so these need a header that says URL.
func looksLikeCSV(c Choices, in *file) bool {
	comma := commaOf(c, in)
	rows := sample(in, comma)
	if comma == 0 || len(rows) < 2 {
		return false
	}
	even := 0
	for _, row := range rows {
		if len(row) == len(rows[0]) {
			even++
		}
	}
	if even*2 <= len(rows) {
		return false
	}
	header := hasHeader(rows)
	if comma == ',' || comma == ';' {
		for _, cell := range rows[0] {
			if header && nameRank(cell) < len(urlNames) {
				return true
			}
		}
		return false
	}
	for i := range rows[0] {
		if strong, weak := shares(rows[1:], i); strong+weak >= 0.5 {
			return true
		}
	}
	return false
}
