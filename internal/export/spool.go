package export

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"os"
)

// spoolBytes is how much a spool keeps in memory; what is more goes to a temporary
// file.
const spoolBytes = 1 << 20

// spool keeps what is written, compressed, until it is asked for.
type spool struct {
	kept bytes.Buffer
	pack *flate.Writer
	file *os.File // What came before that which is kept; nil: nothing.
}

func newSpool() *spool {
	s := &spool{}
	s.pack = newPacker(&s.kept)
	return s
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	n, err := s.pack.Write(p)
	if err == nil && s.kept.Len() > spoolBytes {
		err = s.spill()
	}
	return n, err
}

// spill moves what is kept to the file. That has no name, so that it goes with
// the process at the latest.
func (s *spool) spill() error {
	if s.file == nil {
		file, err := os.CreateTemp("", "rollcall-export-*")
		if err != nil {
			return fmt.Errorf("make a temporary file: %w", err)
		}
		s.file = file
		if err := os.Remove(file.Name()); err != nil {
			return fmt.Errorf("make a temporary file: %w", err)
		}
	}
	_, err := s.kept.WriteTo(s.file)
	return err
}

// copyTo writes all of it, and empties the spool.
func (s *spool) copyTo(w io.Writer) error {
	if err := s.pack.Close(); err != nil {
		return err
	}
	packed := io.Reader(&s.kept)
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		packed = io.MultiReader(s.file, &s.kept)
	}
	_, err := io.Copy(w, flate.NewReader(packed))
	return errors.Join(err, s.empty())
}

// empty forgets what is kept.
func (s *spool) empty() error {
	s.kept.Reset()
	s.pack.Reset(&s.kept)
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.Close()
}
