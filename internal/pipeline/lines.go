package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"rollcall/internal/preflight"
	"rollcall/store"
)

// read is a submission taken apart.
type read struct {
	first      int64 // The first item, once it is written.
	urls       []string
	extras     [][]string // The other columns of each URL's line; nil when there are none.
	sources    []source   // Where each URL comes from; nil when there was no list.
	rejected   []store.RejectedLine
	bad        []BadLine
	duplicates int64
	total      int64
}

// source is where a URL stands in the list that was submitted, and what its line
// held where the URL was mended; nil is not known.
type source struct {
	line     *int
	original *string
}

// send adds a URL that is to be fetched, from a line of the list.
func (r *read) send(url string, line int, original string) {
	from := source{line: &line}
	if original != url {
		from.original = new(clip(original, maxKeptText))
	}
	r.urls, r.sources = append(r.urls, url), append(r.sources, from)
}

// Mended says how a line that held the original became the URL of its item, in
// words for a person; "" when that can't be told any more.
func Mended(original, url string) string {
	if l := preflight.Judge(original); l.Verdict == preflight.Fixed && l.URL == url {
		return l.Reason
	}
	return ""
}

// check reports everything that is wrong at once.
func check(ctx context.Context, s Submission) (*read, error) {
	out := &InvalidSubmission{Fields: append(s.Options.check(), checkHeaders(s.Headers)...)}
	out.Fields = append(out.Fields, checkKind(s)...)
	if utf8.RuneCountInString(s.Name) > maxName {
		out.Fields = append(out.Fields, FieldError{"name", fmt.Sprintf("the name is over %d characters", maxName)})
	}
	lines, err := readLines(ctx, s.Text, s.KeepDuplicates)
	unread, ok := errors.AsType[*preflight.FileError](err)
	if err != nil && !ok {
		return nil, err
	}
	switch {
	case err != nil:
		out.Fields = append(out.Fields, FieldError{"urls", unread.Reason})
	case lines.total == 0 && single(s.Kind):
		out.Fields = append(out.Fields, FieldError{"urls", "enter the URL"})
	case lines.total == 0:
		out.Fields = append(out.Fields, FieldError{"urls", "enter at least one URL, one on each line"})
	case len(lines.urls) == 0 && len(lines.bad) > 0:
		out.Fields = append(out.Fields, FieldError{"urls", "not one of the lines is a URL that can be fetched"})
		out.Lines = lines.bad
	case len(lines.bad) > 0 && (!s.LeaveOutBad || single(s.Kind)):
		out.Lines = lines.bad
	case single(s.Kind) && lines.total > 1:
		out.Fields = append(out.Fields, FieldError{"urls", "enter one URL only"})
	}
	if len(out.Fields)+len(out.Lines) > 0 {
		return nil, out
	}
	if single(s.Kind) {
		lines.sources = nil // One URL in a field of its own is no list.
	}
	return lines, nil
}

// single reports a kind that begins with one URL.
func single(k store.Kind) bool { return k == store.KindCrawl || k == store.KindSync }

// checkKind names what does not go with the kind of the batch.
func checkKind(s Submission) []FieldError {
	var out []FieldError
	if !slices.Contains([]store.Kind{"", store.KindExtract, store.KindBatch, store.KindMixed, store.KindCrawl, store.KindSync}, s.Kind) {
		out = append(out, FieldError{"kind", "choose automatic, extract, batch or crawl"})
	}
	if s.Options.ExtractLinks && (s.Kind == store.KindBatch || s.Kind == store.KindMixed) {
		out = append(out, FieldError{"extract_links", "only extract jobs can list a page's links"})
	}
	if s.Kind == store.KindCrawl && len(s.Headers) > 0 {
		out = append(out, FieldError{"headers", "a crawl cannot send headers of your own"})
	}
	if s.Kind != store.KindCrawl && s.Options.Crawl != nil {
		out = append(out, FieldError{"kind", "only a crawl has a depth and a limit"})
	}
	return out
}

// readLines takes a pasted text apart; a *preflight.FileError says that it can't
// be read, having too many lines.
func readLines(ctx context.Context, text string, keepDuplicates bool) (*read, error) {
	out := &read{}
	pasted := preflight.Choices{Format: preflight.FormatTXT, Charset: "utf-8", MaxLines: MaxLines, KeepDuplicates: keepDuplicates}
	_, totals, err := preflight.Read(ctx, strings.NewReader(text), "", pasted, nil, func(l preflight.Line) error {
		out.take(l)
		return nil
	})
	out.total, out.duplicates = int64(totals.Submitted), int64(totals.Duplicate)
	return out, err
}

// take puts a line where its verdict says.
func (r *read) take(l preflight.Line) {
	switch l.Verdict {
	case preflight.Accepted, preflight.Fixed:
		r.send(l.URL, l.Number, l.Original)
	case preflight.Duplicate:
		r.reject(l)
	case preflight.Invalid:
		r.bad = append(r.bad, BadLine{Number: l.Number, Text: clip(l.Original, 300), Reason: l.Reason})
		r.reject(l)
	}
}

func (r *read) reject(l preflight.Line) {
	line := store.RejectedLine{
		Line: l.Number, Kind: string(l.Verdict), Text: store.CleanText(clip(l.Original, 2000)), Reason: l.Reason,
	}
	if l.DuplicateOf > 0 {
		line.DuplicateOf = new(int64(l.DuplicateOf))
	}
	r.rejected = append(r.rejected, line)
}

// clip shortens a text to at most n bytes without cutting a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
