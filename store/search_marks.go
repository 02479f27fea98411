package store

import (
	"context"
	"strings"
)

// Marked is the texts whole, each with the words searched for between SnippetOn
// and SnippetOff: those that Postgres takes for words, and those that an address
// is made of.
func (s *Store) Marked(ctx context.Context, search string, texts []string) ([]string, error) {
	n := len(texts)
	asked := make([]string, 2*n)
	for i, text := range texts {
		asked[i], asked[n+i] = text, wordsApart(text)
	}
	found, err := s.headlines(ctx, search, "HighlightAll=true", asked)
	if err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i, text := range texts {
		out[i] = withMarks(text, marksOf(found[i], asked[i]), marksOf(found[n+i], asked[n+i]))
	}
	return out, nil
}

// marksOf tells of each character of a text whether it is of a word found;
// nothing when Postgres has changed more than to put marks in.
func marksOf(marked, text string) []bool {
	var marks []bool
	var bare strings.Builder
	on := false
	for _, r := range marked {
		switch string(r) {
		case SnippetOn:
			on = true
		case SnippetOff:
			on = false
		default:
			bare.WriteRune(r)
			marks = append(marks, on)
		}
	}
	if bare.String() != text {
		return nil
	}
	return marks
}

// withMarks is a text with what any of the marks are on put between SnippetOn
// and SnippetOff.
func withMarks(text string, marks ...[]bool) string {
	var out strings.Builder
	on, place := false, 0
	for _, r := range text {
		hit := false
		for _, each := range marks {
			hit = hit || place < len(each) && each[place]
		}
		if hit != on {
			out.WriteString(map[bool]string{true: SnippetOn, false: SnippetOff}[hit])
		}
		out.WriteRune(r)
		on = hit
		place++
	}
	if on {
		out.WriteString(SnippetOff)
	}
	return out.String()
}
