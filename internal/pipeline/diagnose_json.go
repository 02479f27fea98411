package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of writing a body again: it is read by a parser of ours before any
// signature vouches for it.
const (
	reencodedBytes = 256 << 10
	reencodedDepth = 100
	// writtenBytes is how much may come of it: deep lists grow by their indents.
	writtenBytes = 4 << 20
)

// reencodings are the body as somebody between the vendor and us may have
// found it: the same JSON with other spaces, another order or other escapes,
// or other line ends. Each comes with how it is written.
func reencodings(body []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		if len(body) > reencodedBytes {
			return
		}
		for _, v := range lineEnds(body) {
			if !bytes.Equal(v.body, body) && !yield(v.how, v.body) {
				return
			}
		}
		root, err := parseJSON(body)
		if err != nil {
			return
		}
		for _, sorted := range []bool{false, true} {
			for _, e := range root.escapings() {
				for _, l := range layouts() {
					w := jsonWriter{layout: l, escaping: e, sorted: sorted}
					w.write(root, 0)
					if len(w.out) <= writtenBytes && !bytes.Equal(w.out, body) && !yield(w.how(), w.out) {
						return
					}
				}
			}
		}
	}
}

// bodyReading is a body with other line ends.
type bodyReading struct {
	how  string
	body []byte
}

// lineEnds are the body with the line ends that systems differ in.
func lineEnds(body []byte) []bodyReading {
	unix := bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
	dos := bytes.ReplaceAll(unix, []byte("\n"), []byte("\r\n"))
	bare := bytes.TrimRight(unix, "\n")
	return []bodyReading{
		{"with lines that end in LF", unix},
		{"with lines that end in CRLF", dos},
		{"without a newline at its end", bare},
		{"with lines that end in CRLF, without a newline at its end", bytes.TrimRight(dos, "\r\n")},
		{"with a newline at its end", append(bytes.Clone(bare), '\n')},
		{"with lines that end in CRLF, one at its end", append(bytes.TrimRight(bytes.Clone(dos), "\r\n"), "\r\n"...)},
	}
}

// jsonValue is a JSON text, read without losing the order of members or the
// digits of numbers.
type jsonValue struct {
	kind  byte   // One of { [ " and, for anything else, 0.
	text  string // Of strings, and of what is neither object nor list.
	names []string
	kids  []*jsonValue
}

// errJSON reports a body that is not looked at as JSON.
var errJSON = errors.New("not JSON that is written again")

func parseJSON(body []byte) (*jsonValue, error) {
	if !json.Valid(body) {
		return nil, errJSON
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	root, err := readJSON(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errJSON
	}
	return root, nil
}

func readJSON(dec *json.Decoder, depth int) (*jsonValue, error) {
	if depth > reencodedDepth {
		return nil, errJSON
	}
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		return readKids(dec, t.String()[0], depth)
	case string:
		return &jsonValue{kind: '"', text: t}, nil
	case nil:
		return &jsonValue{text: "null"}, nil
	}
	return &jsonValue{text: fmt.Sprint(token)}, nil
}

func readKids(dec *json.Decoder, kind byte, depth int) (*jsonValue, error) {
	v := &jsonValue{kind: kind}
	for dec.More() {
		if kind == '{' {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			text, _ := name.(string) // The names of members are nothing else.
			v.names = append(v.names, text)
		}
		kid, err := readJSON(dec, depth+1)
		if err != nil {
			return nil, err
		}
		v.kids = append(v.kids, kid)
	}
	_, err := dec.Token() // The end of it.
	return v, err
}

// layout is how JSON is spaced.
type layout struct{ name, item, member, indent string }

func layouts() []layout {
	return []layout{
		{"compact", ",", ":", ""},
		{"with a space after commas and colons", ", ", ": ", ""},
		{"indented by 2 spaces", ",", ": ", "  "},
		{"indented by 4 spaces", ",", ": ", "    "},
		{"indented by tabs", ",", ": ", "\t"},
	}
}

// escaping is which characters of strings are escaped beyond those that must.
type escaping struct {
	name  string
	ascii bool // Everything beyond ASCII.
	html  bool // Less-than, greater-than and ampersand.
	slash bool
}

// escapings are those that make a difference for the value.
func (v *jsonValue) escapings() []escaping {
	var all strings.Builder
	v.collect(&all)
	wide := strings.ContainsFunc(all.String(), func(r rune) bool { return r >= utf8.RuneSelf })
	out := []escaping{{}}
	if wide {
		out = append(out, escaping{name: "non-ASCII characters escaped", ascii: true})
	}
	if strings.ContainsAny(all.String(), "<>&") {
		out = append(out, escaping{name: "HTML's characters escaped", html: true})
	}
	if strings.Contains(all.String(), "/") {
		out = append(out, escaping{name: "slashes escaped", slash: true})
		if wide {
			out = append(out, escaping{name: "slashes and non-ASCII characters escaped", slash: true, ascii: true})
		}
	}
	return out
}

func (v *jsonValue) collect(into *strings.Builder) {
	if v.kind == '"' {
		into.WriteString(v.text)
	}
	for _, name := range v.names {
		into.WriteString(name)
	}
	for _, kid := range v.kids {
		kid.collect(into)
	}
}

// jsonWriter writes a value in one of the ways.
type jsonWriter struct {
	layout   layout
	escaping escaping
	sorted   bool
	out      []byte
}

// how says in words how it writes.
func (w *jsonWriter) how() string {
	words := []string{w.layout.name}
	if w.sorted {
		words = append(words, "names sorted")
	}
	if w.escaping.name != "" {
		words = append(words, w.escaping.name)
	}
	return strings.Join(words, ", ")
}

func (w *jsonWriter) write(v *jsonValue, depth int) {
	switch v.kind {
	case '"':
		w.string(v.text)
	case '{', '[':
		w.kids(v, depth)
	default:
		w.out = append(w.out, v.text...)
	}
}

func (w *jsonWriter) kids(v *jsonValue, depth int) {
	w.out = append(w.out, v.kind)
	order := make([]int, len(v.kids))
	for i := range order {
		order[i] = i
	}
	if w.sorted && v.kind == '{' {
		slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(v.names[a], v.names[b]) })
	}
	for n, i := range order {
		if len(w.out) > writtenBytes {
			return // Too much to be looked at.
		}
		if n > 0 {
			w.out = append(w.out, w.layout.item...)
		}
		w.line(depth + 1)
		if v.kind == '{' {
			w.string(v.names[i])
			w.out = append(w.out, w.layout.member...)
		}
		w.write(v.kids[i], depth+1)
	}
	if len(order) > 0 {
		w.line(depth)
	}
	w.out = append(w.out, v.kind+2) // In ASCII the closing bracket comes two after.
}

func (w *jsonWriter) line(depth int) {
	if w.layout.indent == "" {
		return
	}
	w.out = append(w.out, '\n')
	for range depth {
		w.out = append(w.out, w.layout.indent...)
	}
}

func (w *jsonWriter) string(s string) {
	w.out = append(w.out, '"')
	for _, r := range s {
		w.rune(r)
	}
	w.out = append(w.out, '"')
}

func (w *jsonWriter) rune(r rune) {
	if at := strings.IndexRune("\"\\\n\r\t\b\f", r); at >= 0 {
		w.out = append(w.out, '\\', `"\nrtbf`[at])
		return
	}
	switch e := w.escaping; {
	case r == '/' && e.slash:
		w.out = append(w.out, '\\', '/')
	case r < ' ' || e.html && (r == '<' || r == '>' || r == '&' || r == 0x2028 || r == 0x2029) || e.ascii && r >= utf8.RuneSelf:
		w.unicode(r)
	default:
		w.out = utf8.AppendRune(w.out, r)
	}
}

func (w *jsonWriter) unicode(r rune) {
	if r >= 0x10000 {
		high, low := utf16.EncodeRune(r)
		w.unicode(high)
		w.unicode(low)
		return
	}
	w.out = append(w.out, `\u`...)
	text := strconv.FormatInt(int64(r), 16)
	w.out = append(w.out, "0000"[len(text):]...)
	w.out = append(w.out, text...)
}
