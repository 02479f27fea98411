package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rollcall/internal/pipeline"
	"rollcall/internal/preflight"
)

// rejectedFile writes the lines that would not be sent to a CSV, each with all the columns it came with. What columns
// there are is known only once all is read: until then the lines wait in a temporary file beside the one to be, which
// takes its name when it is whole.
type rejectedFile struct {
	name    string
	waiting *os.File
	encoder *json.Encoder
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

// write leaves the layout and the guard against formulas to the one writer of such files.
func (f *rejectedFile) write(to io.Writer, d preflight.Detected) error {
	table := pipeline.RejectedTable{URLColumn: d.URLColumn, Columns: d.Columns}
	if err := table.Begin(to); err != nil {
		return err
	}
	for in := json.NewDecoder(f.waiting); ; {
		var l preflight.Line
		if err := in.Decode(&l); err == io.EOF {
			return table.Flush()
		} else if err != nil {
			return err
		}
		row := pipeline.RejectedRow{
			Line: l.Number, Verdict: string(l.Verdict), Reason: l.Reason, Text: l.Original, Extra: l.Extra, DuplicateOf: int64(l.DuplicateOf),
		}
		if err := table.Write(&row); err != nil {
			return err
		}
	}
}
