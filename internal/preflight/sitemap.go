package preflight

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// readSitemap takes each entry of a sitemap for a URL, or of each sitemap that an index names
// (https://www.sitemaps.org/protocol.html).
func (s *reading) readSitemap(in *file) error {
	s.columns.add("loc")
	s.detected.URLColumn = "loc"
	return s.newSitemap(in.text, false).read()
}

// sitemap is one file of entries being read.
type sitemap struct {
	*reading
	xml    *xml.Decoder
	budget *budget
	inside bool     // It was named by an index.
	root   xml.Name // Its outermost element.
	path   int      // How many elements are open.
	names  []string // The entry's fields, as far as they have been read.
	cells  []string
	field  string // The one being read.
	value  strings.Builder
}

func (s *reading) newSitemap(text io.Reader, inside bool) *sitemap {
	b := &budget{in: text}
	d := xml.NewDecoder(b)
	// The text is decoded already, whatever its declaration says.
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	return &sitemap{reading: s, xml: d, budget: b, inside: inside}
}

// budget is a reader that fails when one part of an XML file is read at such length that it would fill the memory.
type budget struct {
	in   io.Reader
	used int
}

// Read implements io.Reader.
func (b *budget) Read(p []byte) (int, error) {
	if b.used > MaxRecord {
		return 0, &FileError{Reason: fmt.Sprintf("a part of the XML is over %d bytes long", MaxRecord)}
	}
	n, err := b.in.Read(p)
	b.used += n
	return n, err
}

// read reads to the end of the outermost element.
func (m *sitemap) read() error {
	for {
		m.budget.used = 0
		token, err := m.xml.Token()
		if err != nil {
			return m.broken(err)
		}
		switch t := token.(type) {
		case xml.Directive:
			return m.problem("holds a document type (<!DOCTYPE ...>), which no sitemap needs and which is not read")
		case xml.StartElement:
			err = m.start(t.Name)
		case xml.CharData:
			m.text(t)
		case xml.EndElement:
			if m.path == 1 {
				return nil
			}
			err = m.end()
		}
		if err != nil {
			return err
		}
	}
}

// broken says in plain words what keeps the XML from being read.
func (m *sitemap) broken(err error) error {
	if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return &FileError{Line: syntax.Line, Reason: "is not well-formed XML: " + clip(syntax.Msg, 200)}
	}
	if err == io.EOF { //nolint:errorlint // As the decoder returns it.
		return m.problem("holds no sitemap")
	}
	return err
}

func (m *sitemap) problem(reason string) error {
	line, _ := m.xml.InputPos()
	return &FileError{Line: line, Reason: reason}
}

// deepest is how deep the elements of a sitemap with all its extensions may lie in each other.
const deepest = 50

// fields are what an entry says of its URL in the protocol; extensions are passed over.
var fields = []string{"loc", "lastmod", "changefreq", "priority"}

func (m *sitemap) start(name xml.Name) error {
	m.path++
	switch {
	case m.path > deepest:
		return m.problem("has too many elements in each other")
	case m.path == 1:
		m.root = name
		switch {
		case name.Local != "urlset" && name.Local != "sitemapindex":
			return m.problem(fmt.Sprintf("is no sitemap: its outermost element is <%s>", clip(name.Local, 40)))
		case name.Local == "sitemapindex" && m.inside:
			return m.problem("is an index of sitemaps inside another one")
		}
	case m.path == 2:
		m.names, m.cells = nil, nil
	case m.path == 3 && name.Space == m.root.Space && slices.Contains(fields, name.Local):
		m.field = name.Local
		m.value.Reset()
	}
	return nil
}

func (m *sitemap) text(t xml.CharData) {
	if room := MaxRecord - m.value.Len(); m.field != "" && m.path == 3 {
		m.value.Write(t[:min(len(t), room)])
	}
}

// end closes an element that is not the outermost.
func (m *sitemap) end() error {
	m.path--
	switch {
	case m.path == 2 && m.field != "" && !slices.Contains(m.names, m.field):
		m.names, m.cells = append(m.names, m.field), append(m.cells, strings.TrimSpace(m.value.String()))
		m.field = ""
	case m.path == 2:
		m.field = ""
	case m.path == 1:
		return m.entry()
	}
	return nil
}

// entry gives an entry its verdict, or reads the sitemap that it names.
func (m *sitemap) entry() error {
	loc := ""
	if i := slices.Index(m.names, "loc"); i >= 0 {
		loc = m.cells[i]
	}
	if m.root.Local == "sitemapindex" && loc != "" {
		return m.follow(loc)
	}
	extra, _ := m.reading.cells(m.names, m.cells) // There are only as many as there are fields.
	m.entries++
	if loc == "" {
		return m.reject(m.entries, "", "has no <loc>", extra)
	}
	return m.record(m.entries, loc, extra)
}

// follow reads a sitemap that the index names. One that can't be read is an invalid entry; what it gave before stands.
func (m *sitemap) follow(loc string) error {
	if m.open == nil {
		m.entries++
		return m.reject(m.entries, loc, "is a sitemap of its own: it is not fetched; read it by itself", nil)
	}
	err := m.child(loc)
	if err == nil || m.ctx.Err() != nil || m.left <= 0 || m.totals.Lines >= m.choices.MaxLines {
		return err
	}
	wrong, ok := errors.AsType[*FileError](err)
	if !ok {
		return err
	}
	m.entries++
	return m.reject(m.entries, loc, "is a sitemap that could not be read: "+wrong.Error(), nil)
}

func (m *sitemap) child(loc string) error {
	in, err := m.open(loc)
	if err != nil {
		return &FileError{Reason: err.Error()}
	}
	err = m.readChild(in)
	if shut := in.Close(); err == nil && shut != nil {
		return &FileError{Reason: shut.Error()}
	}
	return err
}

func (m *sitemap) readChild(in io.Reader) error {
	raw, _, err := m.unpacked(in)
	if err != nil {
		return err
	}
	head, raw, err := peek(raw)
	if err != nil {
		return err
	}
	charset, err := charsetOf(m.choices, head)
	if err != nil {
		return err
	}
	return m.newSitemap(charset.decode(raw), true).read()
}
