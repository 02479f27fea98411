package preflight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// readJSONL takes one field of the object on each line for a URL; the others are its columns. A line that is a string
// is a URL by itself.
func (s *reading) readJSONL(in *file) error {
	s.columns.url = -1
	if strings.HasPrefix(beginning(in), "[") {
		return &FileError{Line: 1, Reason: "is a JSON array; put one object on each line"}
	}
	if err := s.chooseField(sampleObjects(in)); err != nil {
		return err
	}
	lines := newLines(in.text)
	for {
		l, err := lines.next()
		if err != nil {
			return ended(err)
		}
		if l.cut || isBlank(l.text) {
			err = s.line(l, nil)
		} else {
			err = s.jsonLine(l)
		}
		if err != nil {
			return err
		}
	}
}

// jsonLine gives a line its verdict.
func (s *reading) jsonLine(l textLine) error {
	o, problem := parseObject(l.text)
	if problem != "" {
		return s.reject(l.number, l.text, problem, nil)
	}
	if o.names == nil && o.text {
		return s.record(l.number, o.url, nil)
	}
	if s.columns.url < 0 {
		if err := s.chooseField([]object{o}); err != nil {
			return err
		}
	}
	extra, ok := s.cells(o.names, o.cells)
	if !ok {
		return s.reject(l.number, l.text, fmt.Sprintf("has fields that make the columns more than %d", MaxColumns), nil)
	}
	for i, name := range o.names {
		if s.columns.of[name] != s.columns.url || isBlank(o.cells[i]) {
			continue
		}
		if !o.isText[i] {
			return s.reject(l.number, o.cells[i], fmt.Sprintf("its %q is no text", s.detected.URLColumn), extra)
		}
		return s.record(l.number, o.cells[i], extra)
	}
	return s.reject(l.number, "", fmt.Sprintf("has no %q", s.detected.URLColumn), extra)
}

// object is a line of JSON: its fields in order, or a text by itself.
type object struct {
	names, cells []string
	isText       []bool // The field is a string.
	url          string // The text by itself.
	text         bool
}

// parseObject reads a line, or says what is wrong with it. Of two fields with one name the last counts.
func parseObject(line string) (object, string) {
	d := json.NewDecoder(strings.NewReader(strings.TrimFunc(line, unseen)))
	d.UseNumber()
	begin, err := d.Token()
	if err != nil {
		return object{}, notJSON(err)
	}
	var o object
	switch begin := begin.(type) {
	case string:
		o = object{url: begin, text: true}
	case json.Delim:
		if begin != '{' {
			return object{}, "is a JSON array; put one object on each line"
		}
		o, err = readFields(d)
	default:
		return object{}, "is no JSON object"
	}
	if err != nil {
		return object{}, notJSON(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return object{}, "has something behind its JSON object"
	}
	return o, ""
}

func notJSON(err error) string {
	if err == io.EOF || err == io.ErrUnexpectedEOF { //nolint:errorlint // As the decoder returns it.
		return "is not JSON: it ends too early"
	}
	return "is not JSON: " + clip(err.Error(), 200)
}

// readFields reads an object from behind its opening brace to its closing one.
func readFields(d *json.Decoder) (object, error) {
	o := object{names: []string{}}
	at := map[string]int{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return o, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return o, err
		}
		cell, isText := cellOf(value)
		name, _ := key.(string) // An object's keys are strings, or Token fails.
		i, again := at[name]
		if !again {
			i = len(o.names)
			at[name] = i
			o.names, o.cells, o.isText = append(o.names, name), append(o.cells, ""), append(o.isText, false)
		}
		o.cells[i], o.isText[i] = cell, isText
	}
	_, err := d.Token()
	return o, err
}

// cellOf writes a value as a cell, and reports whether it is a string: null is nothing, what isn't plain stays JSON.
func cellOf(value json.RawMessage) (string, bool) {
	switch value[0] {
	case '"':
		if bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value) {
			return string(value[1 : len(value)-1]), true
		}
		var s string
		err := json.Unmarshal(value, &s)
		return s, err == nil
	case 'n':
		return "", false
	case '{', '[':
		var b bytes.Buffer
		if json.Compact(&b, value) == nil {
			return b.String(), false
		}
	}
	return string(value), false
}

// sampleObjects are those of the first lines.
func sampleObjects(in *file) []object {
	var out []object
	lines := newLines(bytes.NewReader(whole(in)))
	for len(out) < sampleSize {
		l, err := lines.next()
		if err != nil {
			return out
		}
		if o, problem := parseObject(l.text); problem == "" && o.names != nil {
			out = append(out, o)
		}
	}
	return out
}

// chooseField finds the field with the URLs; without objects to find it in, it waits for the first.
func (s *reading) chooseField(objects []object) error {
	if len(objects) == 0 {
		return nil
	}
	var rows [][]string
	for _, o := range objects {
		var row []string
		for i, name := range o.names {
			at, ok := s.columns.add(name)
			for len(row) <= at && ok {
				row = append(row, "")
			}
			if ok {
				row[at] = o.cells[i]
			}
		}
		rows = append(rows, row)
	}
	if len(s.columns.all) == 0 {
		s.columns.add("url") // Nothing but empty objects: they have none.
	}
	url, err := urlColumn(s.choices.URLColumn, shape{header: true, names: s.columns.all}, rows)
	if err != nil {
		return err
	}
	s.columns.url, s.detected.URLColumn = url, s.columns.all[url]
	return nil
}

// cells puts the cells of a line into the order of the columns beside the URL's, new ones last. It reports false when
// there are too many.
func (s *reading) cells(names, cells []string) ([]string, bool) {
	var out []string
	for i, name := range names {
		at, ok := s.columns.add(name)
		switch {
		case !ok:
			return nil, false
		case at == s.columns.url:
			continue
		case at > s.columns.url:
			at--
		}
		for len(out) <= at {
			out = append(out, "")
		}
		out[at] = cells[i]
	}
	return out, true
}
