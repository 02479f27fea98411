package web

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"

	"rollcall/views"
)

// Bounds of a comparison of two texts. What they cut is said on the page.
const (
	// diffBytes is how much of each text is compared.
	diffBytes = 512 << 10
	// linesCompared bounds the lines of each: looking for a half in common, the library
	// compares every line with every other that is equal, and asks for no time.
	linesCompared = 10_000
	// comparedRows is how many lines the page shows.
	comparedRows = 2000
	// comparedWords is the longest pair of lines that is compared word by word.
	comparedWords = 4000
	// compareTime bounds the search for what two texts have in common; after it
	// they are still shown right, but with more marked as changed.
	compareTime = 300 * time.Millisecond
	// wordsTime bounds the search for words in all lines of a page together.
	wordsTime = 400 * time.Millisecond
	// aroundChange is how many unchanged lines are shown beside a change.
	aroundChange = 3
	// openedLines is how many of the others are shown when they are asked for.
	openedLines = 500
)

// compareTexts is a line diff of two texts, and a word diff of the lines that
// changed, as far as there is time for it. Unchanged lines that are left out are
// shown from line open of the first text on.
func compareTexts(ctx context.Context, now func() time.Time, a, b string, blanks bool, open int) views.TextDiff {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	d := &differ{blanks: blanks, search: diffmatchpatch.New()}
	d.search.DiffTimeout = compareTime
	for _, op := range d.diff(left, right) {
		d.take(op, left, right)
	}
	d.pair()
	d.out.Rows = folded(d.out.Rows, open)
	if len(d.out.Rows) > comparedRows {
		d.out.Rows, d.out.CutRows = d.out.Rows[:comparedRows], true
	}
	d.words(ctx, now)
	return d.out
}

// firstLines is what is compared of a text, and whether there is more of it.
func firstLines(text string) (string, bool) {
	at := 0
	for range linesCompared {
		next := strings.IndexByte(text[at:], '\n')
		if next < 0 {
			return text, false
		}
		at += next + 1
	}
	return text[:at], at < len(text)
}

// differ makes one diff.
type differ struct {
	blanks bool // White space does not count.
	search *diffmatchpatch.DiffMatchPatch
	out    views.TextDiff
	// l and r are how many lines of each side are taken, gone and fresh the
	// changed ones that are to be put side by side.
	l, r        int
	gone, fresh []views.DiffRow
}

// op is a run of tokens that are equal, gone, or new.
type op struct {
	kind diffmatchpatch.Operation
	n    int
}

// diff compares two lists of tokens: each different token is a character of an
// alphabet of its own, and the two texts of those are compared.
func (d *differ) diff(left, right []string) []op {
	alphabet := make(map[string]rune)
	next := rune(1)
	spell := func(tokens []string) []rune {
		text := make([]rune, len(tokens))
		for i, token := range tokens {
			if d.blanks {
				token = strings.Join(strings.Fields(token), " ")
			}
			letter, known := alphabet[token]
			if !known {
				if letter = next; next < utf8.MaxRune {
					next++
				}
				if next == 0xD800 { // Halves of characters are none.
					next = 0xE000
				}
				alphabet[token] = letter
			}
			text[i] = letter
		}
		return text
	}
	var ops []op
	for _, each := range d.search.DiffMainRunes(spell(left), spell(right), false) {
		ops = append(ops, op{each.Type, utf8.RuneCountInString(each.Text)})
	}
	return ops
}

// take adds a run of lines.
func (d *differ) take(o op, left, right []string) {
	for range o.n {
		switch o.kind {
		case diffmatchpatch.DiffEqual:
			d.pair()
			d.out.Rows = append(d.out.Rows, views.DiffRow{
				Kind: views.DiffSame, LeftNo: d.l + 1, RightNo: d.r + 1, Left: plain(left[d.l]), Right: plain(right[d.r]),
			})
			d.l++
			d.r++
		case diffmatchpatch.DiffDelete:
			d.gone = append(d.gone, views.DiffRow{Kind: views.DiffGone, LeftNo: d.l + 1, Left: plain(left[d.l])})
			d.l++
			d.out.Gone++
		case diffmatchpatch.DiffInsert:
			d.fresh = append(d.fresh, views.DiffRow{Kind: views.DiffNew, RightNo: d.r + 1, Right: plain(right[d.r])})
			d.r++
			d.out.New++
		}
	}
}

// pair puts lines that went beside those that came in their place.
func (d *differ) pair() {
	for i := range max(len(d.gone), len(d.fresh)) {
		switch {
		case i >= len(d.fresh):
			d.out.Rows = append(d.out.Rows, d.gone[i])
		case i >= len(d.gone):
			d.out.Rows = append(d.out.Rows, d.fresh[i])
		default:
			row := d.gone[i]
			row.Kind, row.RightNo, row.Right = views.DiffChanged, d.fresh[i].RightNo, d.fresh[i].Right
			d.out.Rows = append(d.out.Rows, row)
		}
	}
	d.gone, d.fresh = nil, nil
}

// words marks what changed within the changed lines that are shown. Lines with
// little in common stay as they are, and so do the last ones when it takes long:
// all lines of a page share one time.
func (d *differ) words(ctx context.Context, now func() time.Time) {
	until := now().Add(wordsTime)
	for i := range d.out.Rows {
		row := &d.out.Rows[i]
		if row.Kind != views.DiffChanged || len(row.Left[0].Text)+len(row.Right[0].Text) > comparedWords {
			continue
		}
		left := until.Sub(now())
		if left <= 0 || ctx.Err() != nil {
			d.out.CutWords = true
			return
		}
		d.search.DiffTimeout = min(left, compareTime)
		d.mark(row)
	}
}

// mark compares the two sides of a row word by word.
func (d *differ) mark(row *views.DiffRow) {
	left, right := tokens(row.Left[0].Text), tokens(row.Right[0].Text)
	var l, r []views.DiffSpan
	same := 0
	for _, o := range d.diff(left, right) {
		switch o.kind {
		case diffmatchpatch.DiffEqual:
			l = append(l, views.DiffSpan{Text: strings.Join(left[:o.n], "")})
			r = append(r, views.DiffSpan{Text: strings.Join(right[:o.n], "")})
			same += len(strings.TrimSpace(l[len(l)-1].Text))
			left, right = left[o.n:], right[o.n:]
		case diffmatchpatch.DiffDelete:
			l = append(l, views.DiffSpan{Text: strings.Join(left[:o.n], ""), Changed: true})
			left = left[o.n:]
		case diffmatchpatch.DiffInsert:
			r = append(r, views.DiffSpan{Text: strings.Join(right[:o.n], ""), Changed: true})
			right = right[o.n:]
		}
	}
	if same > 0 {
		row.Left, row.Right = l, r
	}
}

// tokens are the words of a line, its blanks, and every other character.
func tokens(line string) []string {
	kind := func(r rune) int {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r):
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 0
	}
	var out []string
	begin, was := 0, -1
	for at, r := range line {
		is := kind(r)
		if at > begin && (is != was || is == 0) {
			out = append(out, line[begin:at])
			begin = at
		}
		was = is
	}
	if begin < len(line) {
		out = append(out, line[begin:])
	}
	return out
}

func plain(line string) []views.DiffSpan { return []views.DiffSpan{{Text: line}} }

// folded leaves out unchanged lines that are far from any change, but for those
// that are to be opened.
func folded(rows []views.DiffRow, open int) []views.DiffRow {
	var out []views.DiffRow
	for at := 0; at < len(rows); {
		end := at
		for end < len(rows) && rows[end].Kind == views.DiffSame {
			end++
		}
		if end == at {
			out = append(out, rows[at])
			at++
			continue
		}
		head, tail := aroundChange, aroundChange
		if at == 0 {
			head = 0
		}
		if end == len(rows) {
			tail = 0
		}
		if end-at-head-tail > 1 {
			out = append(out, rows[at:at+head]...)
			out = append(out, opened(rows[at+head:end-tail], open)...)
			out = append(out, rows[end-tail:end]...)
		} else {
			out = append(out, rows[at:end]...)
		}
		at = end
	}
	return out
}

// opened folds unchanged lines, but for some from line open on when it is among
// them.
func opened(rows []views.DiffRow, open int) []views.DiffRow {
	from := open - rows[0].LeftNo
	if from < 0 || from >= len(rows) {
		return fold(rows)
	}
	to := min(from+openedLines, len(rows))
	out := append(fold(rows[:from]), rows[from:to]...)
	out[len(out)-to+from].Opened = true
	return append(out, fold(rows[to:])...)
}

// fold is the row that stands for unchanged lines; none for none.
func fold(rows []views.DiffRow) []views.DiffRow {
	if len(rows) == 0 {
		return nil
	}
	return []views.DiffRow{{Kind: views.DiffFold, Hidden: len(rows), LeftNo: rows[0].LeftNo}}
}
