package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"rollcall/internal/preflight"
)

// rejectedFile writes the lines that would not be sent to a CSV, each with all the columns it came with. What columns
// there are is known only once all is read: until then the lines wait in a temporary file beside the one to be, which
// takes its name when it is whole.
type rejectedFile struct {
	name    string
	waiting *os.File
	encoder *json.Encoder
	widest  int
}

func newRejectedFile(name string) (*rejectedFile, error) {
	waiting, err := os.CreateTemp(filepath.Dir(name), ".rejected-*")
	if err != nil {
		return nil, err
	}
	return &rejectedFile{name: name, waiting: waiting, encoder: json.NewEncoder(waiting)}, nil
}

// discard removes what waited.
func (f *rejectedFile) discard() {
	_ = f.waiting.Close()
	_ = os.Remove(f.waiting.Name()) // A file that was left is only in the way.
}

func (f *rejectedFile) line(l preflight.Line) error {
	if l.Verdict != preflight.Duplicate && l.Verdict != preflight.Invalid {
		return nil
	}
	f.widest = max(f.widest, len(l.Extra)+1)
	return f.encoder.Encode(l)
}

func (f *rejectedFile) end(d preflight.Detected, _ preflight.Totals) error {
	if _, err := f.waiting.Seek(0, io.SeekStart); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(f.name), ".rejected-*")
	if err != nil {
		return err
	}
	err = errors.Join(f.write(out, d), out.Chmod(0o644), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), f.name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", f.name, err), os.Remove(out.Name()))
	}
	return nil
}

// write puts what Rollcall says of a line first, and then the line's own columns in their order.
func (f *rejectedFile) write(to io.Writer, d preflight.Detected) error {
	names, at := d.AllColumns, slices.Index(d.AllColumns, d.URLColumn)
	if at < 0 {
		names, at = []string{"url"}, 0
	}
	names = slices.Clone(names)
	for len(names) < f.widest {
		names = append(names, fmt.Sprintf("column %d", len(names)+1))
	}
	out := csv.NewWriter(to)
	if err := out.Write(slices.Concat([]string{"line", "verdict", "reason", "duplicate_of"}, names)); err != nil {
		return err
	}
	for in := json.NewDecoder(f.waiting); ; {
		var l preflight.Line
		if err := in.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		row := make([]string, len(names))
		copy(row, l.Extra[:min(at, len(l.Extra))])
		row[at] = l.Original
		copy(row[at+1:], l.Extra[min(at, len(l.Extra)):])
		repeats := ""
		if l.DuplicateOf > 0 {
			repeats = strconv.Itoa(l.DuplicateOf)
		}
		if err := out.Write(slices.Concat([]string{strconv.Itoa(l.Number), string(l.Verdict), l.Reason, repeats}, row)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
