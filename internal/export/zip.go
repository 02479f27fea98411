package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// indexRows is how many items one index of a ZIP lists: an index is kept until
// it is written, and no more than that much may be.
const indexRows = 10_000

// zipSink writes each page as a file under pages/, an index of all items as
// CSV, and the manifest last.
type zipSink struct {
	file    *File
	zip     *archive
	index   *spool
	lines   *bufio.Writer
	csv     *csvSink
	indexed int
	indexes int
	pages   int64
}

func newZIP(w io.Writer, f *File) *zipSink { return &zipSink{file: f, zip: newArchive(w)} }

func (s *zipSink) files() int64 { return s.pages }

func (s *zipSink) write(r *Row) error {
	row, c := *r, s.file.options.Choices
	name := "pages/" + FileName(r.URL, r.ItemID)
	if c.Markdown && r.Markdown.Has() {
		row.markdownFile = name + ".md"
		if err := s.page(row.markdownFile, r.StoredAt, &r.Markdown); err != nil {
			return err
		}
	}
	if c.HTML && r.HTML.Has() {
		row.htmlFile = name + ".html"
		if err := s.page(row.htmlFile, r.StoredAt, &r.HTML); err != nil {
			return err
		}
	}
	return s.list(&row)
}

func (s *zipSink) page(name string, at time.Time, part *Part) error {
	s.pages++
	return s.zip.add(name, at, part.writeTo)
}

// list adds an item to the index.
func (s *zipSink) list(r *Row) error {
	if s.csv == nil {
		if err := s.openIndex(); err != nil {
			return err
		}
	}
	if err := s.csv.write(r); err != nil {
		return err
	}
	if s.indexed++; s.indexed < indexRows {
		return nil
	}
	return s.closeIndex()
}

func (s *zipSink) openIndex() error {
	if s.index == nil {
		s.index = newSpool()
		s.lines = bufio.NewWriter(s.index)
	}
	c := s.file.options.Choices
	c.BOM = false
	var err error
	s.csv, err = newCSV(s.lines, s.file.columns, c)
	return err
}

func (s *zipSink) closeIndex() error {
	if err := s.lines.Flush(); err != nil {
		return err
	}
	s.indexes++
	name := "index.csv"
	if s.indexes > 1 {
		name = fmt.Sprintf("index-%d.csv", s.indexes)
	}
	s.csv, s.indexed = nil, 0
	return s.zip.add(name, s.file.options.MadeAt, s.index.copyTo)
}

// close writes the index that is open, or an empty one, and the manifest. The
// manifest can't hold the sum of the file that it is in; the index has the sum
// of each page.
func (s *zipSink) close() error {
	if s.csv == nil && s.indexes == 0 {
		if err := s.openIndex(); err != nil {
			return err
		}
	}
	if s.csv != nil {
		if err := s.closeIndex(); err != nil {
			return err
		}
	}
	m := s.file.described()
	m.Complete = true
	err := s.zip.add("manifest.json", s.file.options.MadeAt, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(m)
	})
	if err != nil {
		return err
	}
	return s.zip.close()
}

// cut leaves the archive without its directory, so that nobody takes it for a
// whole one.
func (s *zipSink) cut(string) error {
	if s.index == nil {
		return s.zip.dir.empty()
	}
	return errors.Join(s.zip.dir.empty(), s.index.empty())
}
