package preflight

import (
	"context"
	"fmt"
	"io"
	"net/url"
)

// reading is one call of Read.
type reading struct {
	ctx      context.Context //nolint:containedctx // It lives as long as the call it came with.
	choices  Choices
	open     Opener
	each     func(Line) error
	detected Detected
	totals   Totals
	columns  columns
	entries  int                   // Of sitemaps.
	left     int64                 // Bytes that may still be read, unpacked.
	seen     map[[keySize]byte]int // The first line of each canonical form.
	hosts    map[string]int
}

func newReading(ctx context.Context, c Choices, open Opener, each func(Line) error) *reading {
	if c.MaxLines <= 0 {
		c.MaxLines = MaxLines
	}
	return &reading{
		ctx: ctx, choices: c, open: open, each: each, left: MaxBytes,
		seen: map[[keySize]byte]int{}, hosts: map[string]int{},
	}
}

// read finds out what the file is and has its format read it.
func (s *reading) read(r io.Reader, name string) error {
	if err := s.choices.check(); err != nil {
		return err
	}
	in, err := s.openFile(r, name)
	if err != nil {
		return err
	}
	switch s.detected.Format {
	case FormatCSV:
		return s.readCSV(in)
	case FormatJSONL:
		return s.readJSONL(in)
	case FormatSitemap:
		return s.readSitemap(in)
	}
	return s.readTXT(in)
}

// readTXT takes each line for a URL.
func (s *reading) readTXT(in *file) error {
	lines := newLines(in.text)
	for {
		l, err := lines.next()
		if err != nil {
			return ended(err)
		}
		if err := s.line(l, nil); err != nil {
			return err
		}
	}
}

// ended makes of the end of the file no error.
func ended(err error) error {
	if err == io.EOF { //nolint:errorlint // The readers here return it as it is, as io.Reader wants.
		return nil
	}
	return err
}

// line takes a whole line for a URL.
func (s *reading) line(l textLine, extra []string) error {
	switch {
	case l.cut:
		return s.reject(l.number, l.text, tooLong(), extra)
	case isBlank(l.text):
		return s.count(l.number)
	}
	return s.record(l.number, l.text, extra)
}

func tooLong() string { return fmt.Sprintf("is over %d bytes long", MaxRecord) }

// count counts a line, or ends the reading when there are too many, or when nobody waits for it any longer.
func (s *reading) count(number int) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.totals.Lines == s.choices.MaxLines {
		return &FileError{Line: number, Reason: fmt.Sprintf("over %d lines; submit them in several batches", s.choices.MaxLines)}
	}
	s.totals.Lines++
	return nil
}

// record judges a line that is not blank and reports it.
func (s *reading) record(number int, text string, extra []string) error {
	if err := s.count(number); err != nil {
		return err
	}
	l, u := judge(text)
	l.Number, l.Extra = number, extra
	if l.Verdict != Invalid {
		l.Canonical = canonical(u, s.choices.KeepFragment, s.choices.SortQuery)
		s.compare(&l)
	}
	return s.report(l, u)
}

// compare marks a line that repeats an earlier one.
func (s *reading) compare(l *Line) {
	key := Key(l.Canonical)
	first, again := s.seen[key]
	if !again {
		s.seen[key] = l.Number
		return
	}
	l.DuplicateOf = first
	repeats := fmt.Sprintf("is the same as line %d", first)
	if s.choices.KeepDuplicates {
		l.Reason = joined(l.Reason, repeats+" and kept")
		return
	}
	l.Verdict, l.Reason = Duplicate, repeats
}

// reject reports a line that is invalid whatever URL it holds.
func (s *reading) reject(number int, original, reason string, extra []string) error {
	if err := s.count(number); err != nil {
		return err
	}
	return s.report(Line{Number: number, Verdict: Invalid, Original: original, Reason: reason, Extra: extra}, nil)
}

func (s *reading) report(l Line, u *url.URL) error {
	s.totals.Submitted++
	switch l.Verdict {
	case Accepted:
		s.totals.Accepted++
		s.hosts[canonicalHost(u.Hostname())]++
	case Fixed:
		s.totals.Fixed++
		s.hosts[canonicalHost(u.Hostname())]++
	case Duplicate:
		s.totals.Duplicate++
	case Invalid:
		s.totals.Invalid++
	}
	return s.each(l)
}

// sum completes the totals with the hosts.
func (s *reading) sum() Totals {
	t := s.totals
	t.CountHosts(s.hosts)
	return t
}
