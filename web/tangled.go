package web

import (
	"bytes"
	"context"
	"errors"
	"html"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"rollcall/views"
)

// errTangled reports Markdown that would take too long, or too much memory, to
// lay out. What a page brings home is not ours, and some texts of a few
// hundred kilobytes keep a Markdown parser busy for minutes.
var errTangled = errors.New("the Markdown is too tangled to lay out")

// tangledNote stands in place of such a text.
func tangledNote(ctx context.Context) string {
	note := views.Textf(ctx, "This text is too tangled to be laid out. Its source is under Markdown, and it can be downloaded.")
	return "<p><em>" + html.EscapeString(note) + "</em></p>"
}

// Bounds of what is laid out, far beyond what people write.
const (
	// maxNesting is how many quotes and lists one line may open.
	maxNesting = 100
	// maxCells bounds the cells of all tables, as a row of a mark or two is
	// filled up to the width of its head.
	maxCells = 400_000
	// maxEffort bounds the sum over all paragraphs of each one's marks squared:
	// finding out which marks belong together may take as long.
	maxEffort = 400_000_000
	// maxAddresses bounds the bytes of the addresses and titles of all links: a
	// short reference may stand for a long one, again and again.
	maxAddresses = 4 << 20
)

// blockParser finds paragraphs, headings and cells, and leaves what is in them
// as it is.
func blockParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(),
			util.Prioritized(extension.NewTableParagraphTransformer(), 200))...),
	)
}

// tangled reports whether Markdown is over the bounds, at a cost that grows
// with its size only.
func (r *reader) tangled(source []byte) bool {
	if tooDeep(source) || tooWide(source) {
		return true
	}
	effort := 0
	_ = ast.Walk(r.blocks.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Type() != ast.TypeBlock || n.IsRaw() {
			return ast.WalkContinue, nil
		}
		marks := 0
		for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
			marks += countMarks(line.Value(source))
		}
		effort += marks * marks
		return ast.WalkContinue, nil
	})
	return effort > maxEffort
}

// countMarks counts what may have to find its counterpart.
func countMarks(line []byte) int {
	n := 0
	for _, b := range line {
		switch b {
		case '*', '_', '~', '[', ']', '!', '<', '`':
			n++
		}
	}
	return n
}

// tooDeep reports a line that opens more quotes and lists than maxNesting.
func tooDeep(source []byte) bool {
	for line := range bytes.Lines(source) {
		depth := 0
		for i, b := range line {
			if opens(line, i) {
				depth++
			} else if b != ' ' && b != '\t' && (b < '0' || b > '9') {
				break // The line's own text begins.
			}
		}
		if depth > maxNesting {
			return true
		}
	}
	return false
}

// opens reports whether the byte there may open a quote, or end the mark that
// opens an item of a list.
func opens(line []byte, i int) bool {
	switch line[i] {
	case '>':
		return true
	case '-', '+', '*', '.', ')':
		return i+1 == len(line) || bytes.IndexByte([]byte(" \t\r\n"), line[i+1]) >= 0
	}
	return false
}

// tooWide reports runs of lines, with no blank one between them, that could be
// tables of more than maxCells: as many columns as the widest line has bars, in
// each of the run's lines. Definitions of links stand in runs, too, and each is
// taken off the front of what is left of its run.
func tooWide(source []byte) bool {
	cells, effort, lines, widest, names := 0, 0, 0, 0, 0
	for line := range bytes.Lines(source) {
		if len(bytes.TrimSpace(line)) == 0 {
			cells, effort, lines, widest, names = cells+lines*widest, effort+names*names, 0, 0, 0
			continue
		}
		lines++
		widest = max(widest, bytes.Count(line, []byte("|")))
		names += 2 * bytes.Count(line, []byte("]:"))
		if cells+lines*widest > maxCells || effort+names*names > maxEffort {
			return true
		}
	}
	return false
}
