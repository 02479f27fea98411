package export

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// csvSink writes RFC 4180: lines end in CRLF, and every cell that holds text of
// others is quoted.
type csvSink struct {
	w       *bufio.Writer
	columns []column
	safe    bool
	quoted  bool // A quoted cell is open.
}

func newCSV(w *bufio.Writer, columns []column, c Choices) (*csvSink, error) {
	s := &csvSink{w: w, columns: columns, safe: c.SafeCells}
	if c.BOM {
		if _, err := w.WriteString("\uFEFF"); err != nil {
			return nil, err
		}
	}
	for i := range columns {
		if err := s.separate(i); err != nil {
			return nil, err
		}
		if err := s.quote(columns[i].name); err != nil {
			return nil, err
		}
	}
	_, err := w.WriteString("\r\n")
	return s, err
}

func (s *csvSink) files() int64 { return 0 }

func (s *csvSink) write(r *Row) error {
	for i := range s.columns {
		if err := s.separate(i); err != nil {
			return err
		}
		if err := s.cell(&s.columns[i], r); err != nil {
			return err
		}
	}
	_, err := s.w.WriteString("\r\n")
	return err
}

func (s *csvSink) separate(i int) error {
	if i == 0 {
		return nil
	}
	return s.w.WriteByte(',')
}

func (s *csvSink) cell(c *column, r *Row) error {
	switch c.kind {
	case number:
		if n, ok := c.number(r); ok {
			_, err := s.w.WriteString(strconv.FormatInt(n, 10))
			return err
		}
		return nil
	case moment:
		_, err := s.w.WriteString(momentText(c.moment(r)))
		return err
	case content:
		if part := c.part(r); part.Has() && part.Size > 0 {
			return s.stream(part.writeTo)
		}
		return nil
	case text:
	}
	if value := c.text(r); value != "" {
		return s.quote(value)
	}
	return nil
}

// quote writes text as a quoted cell.
func (s *csvSink) quote(text string) error {
	return s.stream(func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// stream writes a quoted cell piece by piece.
func (s *csvSink) stream(fill func(io.Writer) error) error {
	if err := s.w.WriteByte('"'); err != nil {
		return err
	}
	s.quoted = true
	cell := &cleaner{noNUL: true, w: &cellWriter{out: escaper{w: s.w, instead: doubled}, begun: !s.safe}}
	if err := fill(cell); err != nil {
		return err
	}
	if err := cell.Close(); err != nil {
		return err
	}
	s.quoted = false
	return s.w.WriteByte('"')
}

func doubled(b byte) string {
	if b == '"' {
		return `""`
	}
	return ""
}

// cellWriter puts a quote mark before what a spreadsheet would run.
type cellWriter struct {
	out   io.Writer
	begun bool
}

// Write implements io.Writer.
func (c *cellWriter) Write(p []byte) (int, error) {
	if !c.begun && len(p) > 0 {
		c.begun = true
		if formula(p) {
			if _, err := io.WriteString(c.out, "'"); err != nil {
				return 0, err
			}
		}
	}
	return c.out.Write(p)
}

// SafeCell is text as a cell that no spreadsheet takes for a formula: the one rule
// of all files of cells.
func SafeCell(text string) string {
	if formula([]byte(text[:min(len(text), 64)])) {
		return "'" + text
	}
	return text
}

// formula tells whether a spreadsheet may take a cell for more than text: also
// after blanks, and written in full width.
func formula(p []byte) bool {
	head := strings.TrimLeft(string(p[:min(len(p), 64)]), " \u00A0\uFEFF")
	if head == "" {
		return false
	}
	if strings.ContainsRune("=+-@\t\r\n", rune(head[0])) {
		return true
	}
	for _, wide := range []string{"\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"} {
		if strings.HasPrefix(head, wide) {
			return true
		}
	}
	return false
}

func (s *csvSink) close() error { return nil }

// cut ends the line that was begun, and adds one that has as many cells as all
// others and says in the first that the file isn't whole.
func (s *csvSink) cut(reason string) error {
	if s.quoted {
		if err := s.w.WriteByte('"'); err != nil {
			return err
		}
		if _, err := s.w.WriteString("\r\n"); err != nil {
			return err
		}
		s.quoted = false
	}
	if err := s.quote("CUT SHORT: " + reason); err != nil {
		return err
	}
	_, err := s.w.WriteString(strings.Repeat(",", len(s.columns)-1) + "\r\n")
	return err
}
