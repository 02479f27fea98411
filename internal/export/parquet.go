package export

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// A row group is written out when it holds this much, so that what is kept of a
// file stays the same however large it becomes.
const (
	groupBytes = 8 << 20
	groupRows  = 50_000
	// longestCell bounds a cell: the library holds several copies of each. What is
	// cut is named in the column "cut"; the other formats hold all of it.
	longestCell = 4 << 20
)

// parquetSink writes typed columns, all of which may be null.
type parquetSink struct {
	w       *parquet.GenericWriter[any]
	group   *parquet.ConcurrentRowGroupWriter
	columns []column
	row     parquet.Row
	partial []string // Cells of the row that are not whole.
	rows    int
	bytes   int64
}

func newParquet(w io.Writer, columns []column) *parquetSink {
	options := []parquet.WriterOption{
		parquet.NewSchema("items", ordered(columns)), parquet.Compression(&parquet.Snappy), parquet.CreatedBy("rollcall", "1", ""),
	}
	for i := range columns {
		if columns[i].kind == content {
			options = append(options, parquet.SkipPageBounds(columns[i].name)) // They would repeat whole pages.
		}
	}
	return &parquetSink{w: parquet.NewGenericWriter[any](w, options...), columns: columns}
}

func (s *parquetSink) files() int64 { return 0 }

func (s *parquetSink) write(r *Row) error {
	s.row, s.partial = s.row[:0], s.partial[:0]
	for i := range s.columns {
		value, err := s.value(&s.columns[i], r)
		if err != nil {
			return err
		}
		present := 1
		if value.IsNull() {
			present = 0
		}
		s.row = append(s.row, value.Level(0, present, i))
	}
	if s.group == nil {
		s.group = s.w.BeginRowGroup()
	}
	if _, err := s.group.WriteRows([]parquet.Row{s.row}); err != nil {
		return err
	}
	clear(s.row)
	if s.rows++; s.rows < groupRows && s.bytes < groupBytes {
		return nil
	}
	return s.commit()
}

// commit writes the row group out. One that a large page made large isn't used
// again: its memory would stay as large.
func (s *parquetSink) commit() error {
	if s.group == nil {
		return nil
	}
	_, err := s.group.Commit()
	if s.bytes > 2*groupBytes {
		s.group = nil
	}
	s.rows, s.bytes = 0, 0
	return err
}

func (s *parquetSink) value(c *column, r *Row) (parquet.Value, error) {
	switch c.kind {
	case number:
		if n, ok := c.number(r); ok {
			return parquet.Int64Value(n), nil
		}
	case moment:
		if at := c.moment(r); !at.IsZero() {
			return parquet.Int64Value(at.Truncate(time.Microsecond).UnixMicro()), nil
		}
	case content:
		if part := c.part(r); part.Has() {
			return s.content(c.name, part)
		}
	case text:
		if c.cut {
			return s.cutCells(), nil
		}
		if value := c.text(r); value != "" {
			return s.text([]byte(value)), nil
		}
	}
	return parquet.NullValue(), nil
}

func (s *parquetSink) content(name string, part *Part) (parquet.Value, error) {
	value := part.Bytes
	if part.Copy != nil {
		begin := &beginning{kept: make([]byte, 0, min(part.Size, longestCell))}
		if err := part.Copy(begin); err != nil && !errors.Is(err, errEnough) {
			return parquet.NullValue(), err
		}
		value = begin.kept
	}
	if part.Size > longestCell {
		s.partial = append(s.partial, name)
		value = value[:min(len(value), longestCell)]
		value = value[:fullRunes(value)]
	}
	return s.text(value), nil
}

// cutCells names the cells of the row that are not whole.
func (s *parquetSink) cutCells() parquet.Value {
	if len(s.partial) == 0 {
		return parquet.NullValue()
	}
	return s.text([]byte(strings.Join(s.partial, " ")))
}

var errEnough = errors.New("that is as much as a cell holds")

// beginning keeps as much as a cell may hold, and wants no more.
type beginning struct{ kept []byte }

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	took := min(len(p), longestCell-len(b.kept))
	b.kept = append(b.kept, p[:took]...)
	if took < len(p) {
		return took, errEnough
	}
	return took, nil
}

// text is a value that is what the column says, UTF-8.
func (s *parquetSink) text(value []byte) parquet.Value {
	if !utf8.Valid(value) {
		value = bytes.ToValidUTF8(value, []byte(replacement))
	}
	s.bytes += int64(len(value))
	return parquet.ByteArrayValue(value)
}

func (s *parquetSink) close() error {
	if err := s.commit(); err != nil {
		return err
	}
	return s.w.Close()
}

// cut leaves the file without its footer, so that nobody takes it for a whole
// one.
func (s *parquetSink) cut(string) error { return nil }

// schema is a group whose columns stay in their order; those of the library
// are sorted by name.
type schema struct {
	parquet.Group
	order []string
}

func ordered(columns []column) parquet.Node {
	s := schema{Group: make(parquet.Group, len(columns))}
	for i := range columns {
		var node parquet.Node
		switch columns[i].kind {
		case number:
			node = parquet.Int(64)
		case moment:
			node = parquet.Timestamp(parquet.Microsecond)
		case text, content:
			node = parquet.Encoded(parquet.String(), &parquet.Plain)
		}
		s.Group[columns[i].name] = parquet.Optional(node)
		s.order = append(s.order, columns[i].name)
	}
	return s
}

// Fields implements parquet.Node.
func (s schema) Fields() []parquet.Field {
	sorted := s.Group.Fields()
	byName := make(map[string]parquet.Field, len(sorted))
	for _, f := range sorted {
		byName[f.Name()] = f
	}
	fields := make([]parquet.Field, len(s.order))
	for i, name := range s.order {
		fields[i] = byName[name]
	}
	return fields
}

// GoType implements parquet.Node. Names of columns are no names of Go's, and
// rows are written as values, so that there is no type.
func (s schema) GoType() reflect.Type { return reflect.TypeFor[map[string]any]() }
