package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// jsonlSink writes an object a line.
type jsonlSink struct {
	w       *bufio.Writer
	columns []column
	rows    int64
	inLine  bool
}

func newJSONL(w *bufio.Writer, columns []column) *jsonlSink {
	return &jsonlSink{w: w, columns: columns}
}

func (s *jsonlSink) files() int64 { return 0 }

func (s *jsonlSink) write(r *Row) error {
	s.inLine = true
	if err := s.w.WriteByte('{'); err != nil {
		return err
	}
	for i := range s.columns {
		if s.columns[i].extra {
			break // They are last, and have an object of their own.
		}
		if i > 0 {
			if err := s.w.WriteByte(','); err != nil {
				return err
			}
		}
		if _, err := s.w.WriteString(`"` + s.columns[i].name + `":`); err != nil {
			return err
		}
		if err := s.value(&s.columns[i], r); err != nil {
			return err
		}
	}
	if err := s.extra(r); err != nil {
		return err
	}
	_, err := s.w.WriteString("}\n")
	s.inLine = false
	s.rows++
	return err
}

func (s *jsonlSink) extra(r *Row) error {
	pairs := extraPairs(r)
	if len(pairs) == 0 {
		return nil
	}
	encoded, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	_, err = s.w.WriteString(`,"extra":` + string(encoded))
	return err
}

func (s *jsonlSink) value(c *column, r *Row) error {
	switch c.kind {
	case number:
		if n, ok := c.number(r); ok {
			_, err := s.w.WriteString(strconv.FormatInt(n, 10))
			return err
		}
	case moment:
		if at := c.moment(r); !at.IsZero() {
			_, err := s.w.WriteString(`"` + momentText(at) + `"`)
			return err
		}
	case content:
		if part := c.part(r); part.Has() {
			return s.content(part, c.json)
		}
	case text:
		if value := c.text(r); value != "" {
			return s.quote(func(w io.Writer) error {
				_, err := io.WriteString(w, value)
				return err
			})
		}
	}
	_, err := s.w.WriteString("null")
	return err
}

// content is text; JSON stays JSON, on one line.
func (s *jsonlSink) content(part *Part, isJSON bool) error {
	if isJSON && part.Copy == nil {
		var line bytes.Buffer
		if json.Compact(&line, bytes.ToValidUTF8(part.Bytes, []byte(replacement))) == nil {
			_, err := s.w.Write(line.Bytes())
			return err
		}
	}
	return s.quote(part.writeTo)
}

func (s *jsonlSink) quote(fill func(io.Writer) error) error {
	if err := s.w.WriteByte('"'); err != nil {
		return err
	}
	value := &cleaner{w: escaper{w: s.w, instead: escaped}}
	if err := fill(value); err != nil {
		return err
	}
	if err := value.Close(); err != nil {
		return err
	}
	return s.w.WriteByte('"')
}

// escaped is what JSON does not take inside a string. DEL is let alone, and so
// is everything above: the file is UTF-8.
func escaped(b byte) string {
	switch b {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	if b < 0x20 {
		return fmt.Sprintf(`\u%04x`, b)
	}
	return ""
}

func (s *jsonlSink) close() error { return nil }

// cut adds a line that says that the file isn't whole; one that was begun stays
// broken.
func (s *jsonlSink) cut(reason string) error {
	if s.inLine {
		if err := s.w.WriteByte('\n'); err != nil {
			return err
		}
		s.inLine = false
	}
	encoded, err := json.Marshal(struct {
		CutShort bool   `json:"cut_short"`
		Reason   string `json:"reason"`
		Rows     int64  `json:"rows"`
	}{true, reason, s.rows})
	if err != nil {
		return err
	}
	_, err = s.w.Write(append(encoded, '\n'))
	return err
}
