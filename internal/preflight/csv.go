package preflight

import (
	"bytes"
	"fmt"
	"strings"
)

// readCSV takes the cells of one column for URLs.
func (s *reading) readCSV(in *file) error {
	shape, err := s.shapeOf(in)
	if err != nil {
		return err
	}
	records := newRecords(newLines(in.text), shape.comma)
	header := shape.header
	for {
		r, err := records.next()
		if err != nil {
			return ended(err)
		}
		if header && !r.blank() && !r.cut {
			header = false
			continue
		}
		if r.lines > 1 && shape.url < len(r.cells) && twoURLs(r.cells[shape.url]) {
			// A stray quote in a URL swallowed the lines down to the next one.
			if r, err = records.literally(r); err != nil {
				return err
			}
		}
		if err := s.csvRecord(r, shape); err != nil {
			return err
		}
	}
}

// csvRecord gives one record its verdict.
func (s *reading) csvRecord(r record, shape shape) error {
	if r.cut {
		return s.reject(r.number, r.raw[0].text, tooLong(), nil)
	}
	if r.blank() {
		return s.count(r.number)
	}
	cells := withoutEmptyEnd(r.cells)
	text := ""
	extra := cells
	if shape.url < len(cells) {
		text = cells[shape.url]
		extra = append(append(make([]string, 0, len(cells)-1), cells[:shape.url]...), cells[shape.url+1:]...)
	}
	switch {
	case len(cells) > len(shape.names):
		reason := fmt.Sprintf("has %d columns, not %d", len(cells), len(shape.names))
		return s.reject(r.number, text, reason, extra[:min(len(extra), MaxColumns)])
	case isBlank(text):
		return s.reject(r.number, text, fmt.Sprintf("its column %q is empty", shape.names[shape.url]), extra)
	}
	return s.record(r.number, text, extra)
}

// record is one record of a CSV: a line, or several with quoted ends of lines inside.
type record struct {
	number int // Of its first line.
	lines  int
	cells  []string
	raw    []textLine // Its lines, when it is of several or cut.
	cut    bool
}

func (r record) blank() bool {
	for _, c := range r.cells {
		if !isBlank(c) {
			return false
		}
	}
	return !r.cut
}

// withoutEmptyEnd drops the empty cells at the end, which spreadsheets add.
func withoutEmptyEnd(cells []string) []string {
	for len(cells) > 0 && isBlank(cells[len(cells)-1]) {
		cells = cells[:len(cells)-1]
	}
	return cells
}

// records takes lines apart into cells (RFC 4180), forgiving what can be understood: quotes inside a cell that does not
// begin with one, blanks before a quote, text after the closing one. A quote that is never closed is an ordinary
// character of its line, so it doesn't swallow the rest of the file.
type records struct {
	in    *lines
	comma byte // 0: one column.
	begun bool
	again int // Bytes that were read more than once.
}

// mostAgain bounds what is read more than once because of quotes that are never closed.
const mostAgain = 128 << 20

func newRecords(in *lines, comma byte) *records { return &records{in: in, comma: comma} }

// next returns the next record, and io.EOF after the last.
func (r *records) next() (record, error) {
	line, err := r.in.next()
	if err == nil && !r.begun && isSeparatorLine(line.text) {
		line, err = r.in.next()
	}
	r.begun = true
	if err != nil {
		return record{}, err
	}
	if line.cut {
		return record{number: line.number, lines: 1, raw: []textLine{line}, cut: true}, nil
	}
	if strings.IndexByte(line.text, '"') < 0 {
		return record{number: line.number, lines: 1, cells: r.split(line.text)}, nil
	}
	return r.quoted(line)
}

// isSeparatorLine reports the first line that some spreadsheets write to name the delimiter.
func isSeparatorLine(s string) bool { return len(s) == 5 && strings.EqualFold(s[:4], "sep=") }

func (r *records) split(text string) []string {
	if r.comma == 0 {
		return []string{text}
	}
	return strings.Split(text, string(r.comma))
}

// quoted reads on while a quote is open.
func (r *records) quoted(first textLine) (record, error) {
	q := &quoting{comma: r.comma}
	raw, size := []textLine{first}, len(first.text)
	for q.feed(first.text); q.open; {
		line, err := r.in.next()
		if err == nil {
			raw = append(raw, line)
			size += len(line.text) + 1
		}
		if ended(err) != nil {
			return record{}, err
		}
		if err != nil || line.cut || size > MaxRecord {
			return r.literally(record{number: first.number, raw: raw})
		}
		q.cell.WriteByte('\n')
		q.feed(line.text)
	}
	q.endCell()
	if q.torn && len(raw) > 1 {
		return r.literally(record{number: first.number, raw: raw})
	}
	return record{number: first.number, lines: len(raw), cells: q.cells, raw: raw}, nil
}

// literally takes the first line of a record by itself, its quotes for ordinary characters, and has the others read
// again.
func (r *records) literally(whole record) (record, error) {
	first, others := whole.raw[0], whole.raw[1:]
	for _, l := range others {
		r.again += len(l.text) + 1
	}
	if r.again > mostAgain {
		return record{}, &FileError{Line: first.number, Reason: "too many quotes are opened and not closed; choose plain text, or mend the file"}
	}
	r.in.unread(others)
	return record{number: first.number, lines: 1, cells: r.split(first.text)}, nil
}

// quoting is the state of a record with quotes in it.
type quoting struct {
	comma  byte
	cells  []string
	cell   strings.Builder
	text   bool // The cell holds more than blanks.
	open   bool // A quote is.
	closed bool // The cell was quoted, and its quote is closed.
	torn   bool // Text follows a closing quote, so that it was perhaps an opening one.
}

// feed reads a line, or the next line of an open quote.
func (q *quoting) feed(s string) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case q.open && c == '"' && i+1 < len(s) && s[i+1] == '"':
			q.cell.WriteByte('"')
			i++
		case q.open && c == '"':
			q.open, q.closed = false, true
		case q.open:
			q.cell.WriteByte(c)
		case c == q.comma && c != 0:
			q.endCell()
		case c == '"' && !q.closed && !q.text:
			q.cell.Reset()
			q.open = true
		case c == ' ' && q.closed:
			// Blanks between the closing quote and the delimiter are none of the cell's.
			rest := strings.TrimLeft(s[i:], " ")
			if rest != "" && rest[0] != q.comma {
				q.cell.WriteString(s[i : len(s)-len(rest)])
				q.torn = true
			}
			i = len(s) - len(rest) - 1
		default:
			q.torn, q.text = q.torn || q.closed, q.text || c != ' '
			q.cell.WriteByte(c)
		}
	}
}

func (q *quoting) endCell() {
	q.cells = append(q.cells, q.cell.String())
	q.cell.Reset()
	q.closed, q.text = false, false
}

// sampleSize is how many records are looked at to find out by.
const sampleSize = 100

// sample is the first records of a file, without blank ones and without one that is cut.
func sample(in *file, comma byte) [][]string {
	records := newRecords(newLines(bytes.NewReader(whole(in))), comma)
	var out [][]string
	for len(out) < sampleSize {
		r, err := records.next()
		if err != nil {
			return out // The end of the sample; what is wrong with the file shows when it is read.
		}
		if !r.blank() && !r.cut {
			out = append(out, r.cells)
		}
	}
	return out
}

// whole are the whole lines of the beginning of a file.
func whole(in *file) []byte {
	if in.all {
		return in.head
	}
	return in.head[:bytes.LastIndexAny(in.head, "\r\n")+1]
}
