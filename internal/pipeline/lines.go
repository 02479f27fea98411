package pipeline

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"rollcall/store"
)

// read is a submission taken apart.
type read struct {
	first      int64 // The first item, once it is written.
	urls       []string
	extras     [][]string // The other columns of each URL's line; nil when there are none.
	rejected   []store.RejectedLine
	bad        []BadLine
	duplicates int64
	total      int64
}

// check reports everything that is wrong at once.
func check(s Submission) (*read, error) {
	out := &InvalidSubmission{Fields: append(s.Options.check(), checkHeaders(s.Headers)...)}
	out.Fields = append(out.Fields, checkKind(s)...)
	if utf8.RuneCountInString(s.Name) > maxName {
		out.Fields = append(out.Fields, FieldError{"name", fmt.Sprintf("the name is over %d characters", maxName)})
	}
	lines := readLines(s.Text)
	switch {
	case lines == nil:
		out.Fields = append(out.Fields, FieldError{"urls", fmt.Sprintf("over %d lines; submit them in several batches", MaxLines)})
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

// readLines takes the text apart, or returns nil when it has too many lines.
func readLines(text string) *read {
	out, seen, n := &read{}, map[string]int{}, 0
	for line := range eachLine(text) {
		if n++; n > MaxLines {
			return nil
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		out.total++
		fixed, err := CheckURL(line)
		if err != nil {
			out.bad = append(out.bad, BadLine{Number: n, Text: clip(line, 300), Reason: err.Error()})
			out.reject(n, "invalid", line, err.Error())
			continue
		}
		if first, again := seen[fixed]; again {
			out.duplicates++
			out.reject(n, "duplicate", line, fmt.Sprintf("is the same as line %d", first))
			continue
		}
		seen[fixed] = n
		out.urls = append(out.urls, fixed)
	}
	return out
}

// eachLine splits at \n, \r\n and \r alike.
func eachLine(text string) iter.Seq[string] {
	return strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, "\uFEFF")), "\n")
}

func (r *read) reject(line int, kind, text, reason string) {
	r.rejected = append(r.rejected, store.RejectedLine{
		Line: line, Kind: kind, Text: store.CleanText(clip(text, 2000)), Reason: reason,
	})
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
