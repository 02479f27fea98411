package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"rollcall/internal/preflight"
	"rollcall/store"
)

const (
	// lineGroup is how many lines are written at a time.
	lineGroup = 2000
	// maxKeptText bounds what is kept of one line's text, and of one of its cells.
	maxKeptText = 16 << 10
	// maxKeptBytes bounds what is kept of all lines: a packed file may hold a
	// thousand times its own size. A line is kept as it was and as it is sent.
	maxKeptBytes = 2*MaxPreflight + 8<<20
	// maxKeptCells bounds the cells beside the URLs: an empty one takes up memory,
	// too.
	maxKeptCells = 4_000_000
)

// lineReading takes the lines of one reading.
type lineReading struct {
	out   *store.LineWriter
	since time.Time // Pages stored since then are left out; zero: none are.
	lines []store.PreflightLine
	keys  [][]byte // Of the lines that would be sent, in their order.
	sent  []int    // Where in lines they are.
	bytes int
	cells int
	// What was left out as stored, and the hosts of what was not.
	leftAccepted, leftFixed int
	hosts                   map[string]int
}

// readPreflight reads the content and puts its lines in place of those before.
func (p *Pipeline) readPreflight(ctx context.Context, f *store.Preflight, c Choices, storedDays int, open preflight.Opener) error {
	return p.store.WriteReading(ctx, f.ID, p.now(), func(out *store.LineWriter) (store.PreflightReading, error) {
		r := &lineReading{out: out, hosts: map[string]int{}}
		if storedDays > 0 {
			r.since = p.now().AddDate(0, 0, -storedDays)
		}
		content, name, opener, err := contentOf(f)
		if err != nil {
			return store.PreflightReading{}, err
		}
		defer content.Close()
		if open == nil {
			open = opener
		}
		found, sum, err := preflight.Read(ctx, content, name, c, open, func(l preflight.Line) error { return r.take(ctx, l) })
		wrong, isFile := errors.AsType[*preflight.FileError](err)
		if err != nil && !isFile {
			return store.PreflightReading{}, err
		}
		if err := r.flush(ctx); err != nil {
			return store.PreflightReading{}, err
		}
		return r.reading(c, storedDays, found, sum, wrong)
	})
}

// contentOf is what is read: pasted lines, and those of the file after them;
// with the file's name, and what opens the files that came with it.
func contentOf(f *store.Preflight) (io.ReadCloser, string, preflight.Opener, error) {
	files, err := keptFiles(f)
	if err != nil {
		return nil, "", nil, err
	}
	if len(files) == 0 {
		return io.NopCloser(bytes.NewReader(f.Pasted)), "", nil, nil
	}
	file, err := files[0].Open()
	if err != nil {
		return nil, "", nil, fmt.Errorf("open %q: %w", files[0].Name, err)
	}
	if len(bytes.TrimSpace(f.Pasted)) == 0 {
		return file, files[0].Name, beside(files[1:]), nil
	}
	return followed(f.Pasted, file), "", nil, nil
}

// followed are pasted lines with those of a file after them.
func followed(pasted []byte, file io.ReadCloser) io.ReadCloser {
	gap := "\n"
	if bytes.HasSuffix(pasted, []byte(gap)) {
		gap = ""
	}
	lines := bufio.NewReader(file)
	// The mark that a file may begin with is none in the middle. An error comes
	// again when the lines are read.
	if mark, err := lines.Peek(3); err == nil && string(mark) == "\uFEFF" {
		_, _ = lines.Discard(3)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(pasted), strings.NewReader(gap), lines), file}
}

func (r *lineReading) take(ctx context.Context, l preflight.Line) error {
	line := store.PreflightLine{
		Number: l.Number, Verdict: store.LineVerdict(l.Verdict), Original: clip(l.Original, maxKeptText), URL: l.URL, Reason: l.Reason,
	}
	if l.DuplicateOf > 0 {
		of := int64(l.DuplicateOf)
		line.DuplicateOf = &of
	}
	r.bytes += len(line.Original) + len(line.URL)
	for _, cell := range withoutEmptyEnd(l.Extra) {
		line.Extra = append(line.Extra, clip(cell, maxKeptText))
		r.bytes += min(len(cell), maxKeptText)
	}
	if r.cells += len(line.Extra); r.cells > maxKeptCells {
		return &preflight.FileError{Line: l.Number, Reason: fmt.Sprintf("over %d million cells stand beside the URLs; "+
			"leave columns out, or submit it in several parts", maxKeptCells/1_000_000)}
	}
	if r.bytes > maxKeptBytes {
		return &preflight.FileError{Line: l.Number, Reason: fmt.Sprintf("the file holds over %d MB of text when it is unpacked", maxKeptBytes>>20)}
	}
	if slices.Contains(store.Sent(), line.Verdict) {
		r.keys, r.sent = append(r.keys, pageKey(l.URL)), append(r.sent, len(r.lines))
	}
	r.lines = append(r.lines, line)
	if len(r.lines) < lineGroup {
		return nil
	}
	return r.flush(ctx)
}

// withoutEmptyEnd drops the empty cells at the end.
func withoutEmptyEnd(cells []string) []string {
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	return cells
}

// flush writes what was taken.
func (r *lineReading) flush(ctx context.Context) error {
	if !r.since.IsZero() && len(r.keys) > 0 {
		if err := r.leaveOutStored(ctx); err != nil {
			return err
		}
	}
	if err := r.out.Put(ctx, r.lines); err != nil {
		return err
	}
	r.lines, r.keys, r.sent = r.lines[:0], r.keys[:0], r.sent[:0]
	return nil
}

// leaveOutStored makes duplicates of the lines whose page was stored lately,
// and counts the hosts of the others.
func (r *lineReading) leaveOutStored(ctx context.Context) error {
	pages, err := r.out.StoredSince(ctx, r.keys, r.since)
	if err != nil {
		return err
	}
	stored := map[string]store.StoredPage{}
	for _, page := range pages {
		stored[string(page.Key)] = page
	}
	for i, at := range r.sent {
		line := &r.lines[at]
		page, ok := stored[string(r.keys[i])]
		if !ok {
			r.hosts[hostOf(line.URL)]++
			continue
		}
		if line.Verdict == store.LineFixed {
			r.leftFixed++
		} else {
			r.leftAccepted++
		}
		line.Verdict, line.StoredItem, line.DuplicateOf = store.LineDuplicate, &page.ItemID, nil
		line.Reason = "its page was stored on " + page.At.UTC().Format("2 Jan 2006 at 15:04 UTC")
	}
	return nil
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// reading is the row's side of it.
func (r *lineReading) reading(c Choices, days int, found Detected, sum Totals, wrong *preflight.FileError) (store.PreflightReading, error) {
	out := store.PreflightReading{StoredDays: days}
	if wrong != nil {
		out.Problem, out.ProblemField = wrong.Error(), wrong.Field
	}
	if days > 0 {
		sum.Accepted, sum.Fixed = sum.Accepted-r.leftAccepted, sum.Fixed-r.leftFixed
		sum.Duplicate += r.leftAccepted + r.leftFixed
		sum.CountHosts(r.hosts) // Of what is still to be sent, in place of those of all lines.
	}
	var errs [3]error
	out.Choices, errs[0] = cleanJSON(c)
	out.Detected, errs[1] = cleanJSON(found)
	out.Totals, errs[2] = cleanJSON(sum)
	return out, errors.Join(errs[:]...)
}

// cleanJSON is JSON that the database takes: it has no text with a NUL.
func cleanJSON(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode a reading: %w", err)
	}
	return bytes.ReplaceAll(raw, []byte(`\u0000`), []byte(`\ufffd`)), nil
}

// readingLines is a reading as a submission has it: what is sent, and what is
// not, with its columns.
func (p *Pipeline) readingLines(ctx context.Context, tx store.Tx, f *store.Preflight) (*read, Detected, error) {
	var found Detected
	if err := json.Unmarshal(f.Detected, &found); err != nil {
		return nil, found, fmt.Errorf("what was detected of preflight %d: %w", f.ID, err)
	}
	out := &read{}
	err := eachPreflightLine(ctx, tx.Queries, f.ID, store.Sent(), func(l *store.PreflightLine) error {
		out.send(l.URL, l.Number, l.Original)
		if len(found.Columns) > 0 {
			out.extras = append(out.extras, orEmpty(l.Extra))
		}
		return nil
	})
	if err != nil {
		return nil, found, err
	}
	err = eachPreflightLine(ctx, tx.Queries, f.ID, store.Rejected(), func(l *store.PreflightLine) error {
		out.rejected = append(out.rejected, store.RejectedLine{
			Line: l.Number, Kind: string(l.Verdict), Text: clip(l.Original, maxKeptText), Reason: l.Reason, Extra: l.Extra, DuplicateOf: l.DuplicateOf,
			StoredItem: l.StoredItem,
		})
		if l.Verdict == store.LineDuplicate {
			out.duplicates++
		} else {
			out.bad = append(out.bad, BadLine{Number: l.Number, Reason: l.Reason})
		}
		return nil
	})
	out.total = int64(len(out.urls) + len(out.rejected))
	if err == nil {
		err = isWhole(f, out.total)
	}
	if err == nil && len(out.urls) == 0 {
		err = invalidField("urls", "not one of the lines is left to be submitted")
	}
	return out, found, err
}

// isWhole reports ErrReadAgain when not all lines of a reading are there any
// more: a part of a list is never submitted for the list.
func isWhole(f *store.Preflight, lines int64) error {
	var sum Totals
	if err := json.Unmarshal(f.Totals, &sum); err != nil {
		return fmt.Errorf("totals of preflight %d: %w", f.ID, err)
	}
	if lines != int64(sum.Submitted) {
		return ErrReadAgain
	}
	return nil
}

// orEmpty tells a line without a cell in any column from one of a list without
// columns. It gets no empty cells: a short file of short lines under wide
// headers would become a thousand times its size.
func orEmpty(cells []string) []string {
	if cells == nil {
		return []string{}
	}
	return cells
}

// eachPreflightLine walks the lines with one of the verdicts.
func eachPreflightLine(ctx context.Context, q store.Queries, id int64, verdicts []store.LineVerdict, do func(*store.PreflightLine) error) error {
	for after := 0; ; {
		lines, err := q.PreflightLines(ctx, id, verdicts, after, lineGroup)
		if err != nil {
			return err
		}
		for i := range lines {
			if err := do(&lines[i]); err != nil {
				return err
			}
			after = lines[i].Number
		}
		if len(lines) < lineGroup {
			return nil
		}
	}
}
