// Package export writes items and what is stored of them as files that others
// open: CSV, JSON lines, a ZIP of Markdown files, Parquet. It is given rows one
// at a time and keeps none, so that a file may be of any size. What it writes
// holds nothing a reader would run or a file system would misunderstand.
//
// A file that ends early says so: text formats in their last line, the others
// by being unreadable. Whoever serves one breaks the connection off as well.
package export

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"time"
)

// Format is the kind of a file.
type Format string

// The formats.
const (
	CSV     Format = "csv"
	JSONL   Format = "jsonl"
	ZIP     Format = "zip"
	Parquet Format = "parquet"
)

// Formats are all of them, in the order they are offered.
func Formats() []Format { return []Format{CSV, JSONL, ZIP, Parquet} }

// MediaType is the Content-Type of files of the format.
func (f Format) MediaType() string {
	switch f {
	case CSV:
		return "text/csv; charset=utf-8; header=present"
	case JSONL:
		return "application/x-ndjson"
	case ZIP:
		return "application/zip"
	case Parquet:
		return "application/vnd.apache.parquet"
	}
	return "application/octet-stream"
}

// Choices say what goes into a file. They are kept with the export.
type Choices struct {
	Format   Format `json:"format"`
	Markdown bool   `json:"markdown"`
	HTML     bool   `json:"html"`
	Links    bool   `json:"links"`
	Metadata bool   `json:"metadata"`
	// SafeCells puts a quote mark before cells of a CSV file that a spreadsheet
	// would take for formulas.
	SafeCells bool `json:"safe_cells"`
	// BOM begins a CSV file with the mark by which Excel knows UTF-8.
	BOM bool `json:"bom"`
}

// Default are the choices of somebody who made none.
func Default(f Format) Choices {
	c := Choices{Format: f, Markdown: true, SafeCells: true}
	c.Links = f == JSONL || f == Parquet
	c.Metadata = c.Links
	return c
}

// Options are the choices, and what the file's manifest tells besides.
type Options struct {
	Choices
	// Columns are the names of a batch's own columns. Without them rows that have
	// such columns carry them together, in the column "extra".
	Columns []string
	// Filter says in words what was asked for, a name and a value each.
	Filter map[string]string
	MadeAt time.Time
	MadeBy string
}

// Part is one content of a row, in memory or, when it is large, still where it
// is kept. The zero Part is none.
type Part struct {
	Size  int64
	Bytes []byte
	// Copy writes the content piece by piece; nil when Bytes holds it.
	Copy func(w io.Writer) error
}

// Has tells whether there is a content at all, be it an empty one.
func (p *Part) Has() bool { return p.Bytes != nil || p.Copy != nil }

func (p *Part) writeTo(w io.Writer) error {
	if p.Copy != nil {
		return p.Copy(w)
	}
	_, err := w.Write(p.Bytes)
	return err
}

// Row is one item and its result; what isn't known is nil, zero or empty.
type Row struct {
	ItemID, BatchID         int64
	Batch                   string
	Position                int
	Line                    *int
	Original                string // Of its line; "" where the URL was not mended.
	URL, Host, State, Net   string
	ErrorCode, ErrorMessage string
	SubmittedAt             time.Time
	EndedAt                 time.Time
	StoredAt                time.Time
	Stored                  bool // There is a result.
	HTTPStatus              *int
	Title                   string
	Version                 int
	Mark                    string
	Bytes                   int64 // Of Markdown and HTML together.
	MarkdownSHA, HTMLSHA    []byte
	Tokens, DurationMS      *int64
	Markdown, HTML          Part
	Links, Metadata         Part
	ExtraNames, ExtraValues []string // The batch's own columns.
	markdownFile, htmlFile  string   // In a ZIP.
}

// Manifest says what a file is and how to tell that it is whole.
type Manifest struct {
	Format   Format            `json:"format"`
	Complete bool              `json:"complete"`
	Reason   string            `json:"reason,omitempty"` // Why it is cut short.
	Rows     int64             `json:"rows"`
	Files    int64             `json:"files,omitempty"`  // Pages in a ZIP.
	Bytes    int64             `json:"bytes,omitempty"`  // Of the file.
	SHA256   string            `json:"sha256,omitempty"` // Of the file, in hexadecimal.
	Choices  Choices           `json:"choices"`
	Filter   map[string]string `json:"filter"`
	Columns  []string          `json:"columns"`
	MadeAt   string            `json:"made_at"`
	MadeBy   string            `json:"made_by"`
}

// sink is one format. After an error nothing but cut may follow.
type sink interface {
	write(r *Row) error
	// close writes what ends a whole file, cut what tells that this one isn't.
	close() error
	cut(reason string) error
	// files is how many pages have a file of their own.
	files() int64
}

// File is a file being written. One goroutine may use it.
type File struct {
	options Options
	columns []column
	to      *tally
	out     *bufio.Writer
	sink    sink
	rows    int64
	done    bool
	reason  string
}

// outBuffer is what is gathered before it goes out.
const outBuffer = 64 << 10

// New begins a file on w. It writes what comes before the first row.
func New(w io.Writer, o Options) (*File, error) {
	f := &File{options: o, to: &tally{w: w, sum: sha256.New()}}
	f.out = bufio.NewWriterSize(f.to, outBuffer)
	f.columns = columnsOf(&o)
	var err error
	switch o.Format {
	case CSV:
		f.sink, err = newCSV(f.out, f.columns, o.Choices)
	case JSONL:
		f.sink = newJSONL(f.out, f.columns)
	case ZIP:
		f.sink = newZIP(f.out, f)
	case Parquet:
		f.sink = newParquet(f.out, f.columns)
	default:
		err = fmt.Errorf("no such format: %q", o.Format)
	}
	return f, err
}

// Write adds a row.
func (f *File) Write(r *Row) error {
	if err := f.sink.write(r); err != nil {
		return fmt.Errorf("write item %d: %w", r.ItemID, err)
	}
	f.rows++
	return nil
}

// Flush hands on what is gathered.
func (f *File) Flush() error { return f.out.Flush() }

// Close ends a whole file; the writer below stays open.
func (f *File) Close() error {
	if err := f.sink.close(); err != nil {
		return fmt.Errorf("end the file: %w", err)
	}
	if err := f.out.Flush(); err != nil {
		return err
	}
	f.done = true
	return nil
}

// Cut ends a file that is not whole, for the reason, which readers see.
func (f *File) Cut(reason string) error {
	f.reason = reason
	if err := f.sink.cut(reason); err != nil {
		return err
	}
	return f.out.Flush()
}

// Rows is how many rows were written, Bytes how many bytes went out.
func (f *File) Rows() int64 { return f.rows }

// Bytes is how many bytes went out so far.
func (f *File) Bytes() int64 { return f.to.n }

// Manifest tells of the file as it is now.
func (f *File) Manifest() Manifest {
	m := f.described()
	m.Complete, m.Reason = f.done, f.reason
	m.Bytes, m.SHA256 = f.to.n, hex.EncodeToString(f.to.sum.Sum(nil))
	return m
}

// described is the manifest without what is known at the end only.
func (f *File) described() Manifest {
	m := Manifest{
		Format: f.options.Format, Rows: f.rows, Files: f.sink.files(), Choices: f.options.Choices, Filter: f.options.Filter,
		MadeAt: momentText(f.options.MadeAt), MadeBy: f.options.MadeBy,
	}
	if m.Filter == nil {
		m.Filter = map[string]string{}
	}
	for i := range f.columns {
		m.Columns = append(m.Columns, f.columns[i].name)
	}
	return m
}

// tally counts and hashes what passes.
type tally struct {
	w   io.Writer
	n   int64
	sum hash.Hash
}

// Write implements io.Writer.
func (t *tally) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	t.n += int64(n)
	t.sum.Write(p[:n])
	return n, err
}
