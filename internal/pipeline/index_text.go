package pipeline

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"rollcall/store"
)

// plainText is the text of a result: its Markdown as it is or, without one, what
// a reader sees of its HTML. It is valid UTF-8 without control characters.
func plainText(markdown, page []byte) string {
	if len(bytes.TrimSpace(markdown)) > 0 || len(page) == 0 {
		return printableText(string(markdown))
	}
	return printableText(textOfHTML(page))
}

// PlainText is the text of a result, or of its beginning, as the search reads
// it and a snippet shows it.
func PlainText(markdown, page []byte) string { return plainText(store.WholeText(markdown), page) }

// ReadableText is PlainText for a person: without the marks of Markdown and
// the addresses of its links, in one line.
func ReadableText(markdown, page []byte) string {
	text := PlainText(markdown, page)
	text = linkTarget.ReplaceAllString(text, "]")
	text = rule.ReplaceAllString(text, "")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("#*`|[]~>", r)
	}), " ")
}

// rule is a line of Markdown that only draws one: below a heading, between the
// rows of a table, or across the page.
//
//nolint:gochecknoglobals // A compiled pattern never changes.
var rule = regexp.MustCompile(`(?m)^[ \t]*[-=_*:|][-=_*:| \t]*$`)

// linkTarget is where a link or an image of Markdown leads.
//
//nolint:gochecknoglobals // A compiled pattern never changes.
var linkTarget = regexp.MustCompile(`\]\([^()\s]*(\([^()\s]*\)[^()\s]*)*(\s+"[^"]*")?\)`)

// printableText puts blanks in place of what isn't text, and of the
// characters that turn the direction of what follows them.
func printableText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, r == '\u2028', r == '\u2029', unicode.Is(unicode.Bidi_Control, r):
			return ' '
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, text)
}

// unseen are elements of which a reader sees nothing as text, inWords those that
// part no words.
//
//nolint:gochecknoglobals // Lists that never change.
var (
	unseen  = []atom.Atom{atom.Script, atom.Style, atom.Template, atom.Svg}
	inWords = []atom.Atom{atom.B, atom.I, atom.Em, atom.Strong, atom.Span, atom.A}
)

// textOfHTML is what a page says, without its scripts, styles and tags. It asks
// nothing of the page's shape: whatever is broken in it comes out as text.
func textOfHTML(page []byte) string {
	var out strings.Builder
	z := html.NewTokenizer(bytes.NewReader(page))
	var hidden atom.Atom
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out.String()
		case html.TextToken:
			if hidden == 0 {
				out.Write(z.Text())
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			switch {
			case hidden != 0:
			case slices.Contains(unseen, a):
				hidden = a
			case !slices.Contains(inWords, a):
				out.WriteByte(' ')
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if a := atom.Lookup(name); a == hidden {
				hidden = 0
			}
		case html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken:
			out.WriteByte(' ')
		}
	}
}

// longestWord is how long a run without a blank may be, in bytes, before the
// search does without it: what is longer is data, such as a picture's.
const longestWord = 1000

// searchable is the text without what Postgres stumbles over: runs that are no
// words, and slashes between words, which it would take for the path of a file.
func searchable(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	for word := range strings.FieldsFuncSeq(text, breaks) {
		if len(word) > longestWord {
			continue
		}
		out.WriteString(slashPlain(word))
		out.WriteByte(' ')
	}
	return out.String()
}

// breaks reports what stands between two words in any script: blanks, brackets
// and quotes, which Postgres would take for a part of an address before them,
// and punctuation that isn't ASCII's. The rest of ASCII's it knows better.
func breaks(r rune) bool {
	if r > unicode.MaxASCII {
		return unicode.IsSpace(r) || unicode.IsPunct(r)
	}
	return r <= ' ' || strings.ContainsRune("()[]{}<>|\"`*", r)
}

// SearchText is what a person searches for, as the search's own text is: words
// joined by a slash are a phrase, and an address goes without its scheme.
func SearchText(typed string) string {
	words := strings.Fields(printableText(store.CleanText(typed)))
	quoted := false
	for i, word := range words {
		quotes := strings.Count(word, `"`)
		if !quoted && quotes == 0 && slashed(word) {
			words[i] = slashPhrase(word)
		} else {
			words[i] = slashPlain(word)
		}
		quoted = quoted != (quotes%2 == 1)
	}
	return strings.Join(words, " ")
}

// slashed reports words joined by a slash, which are no address.
func slashed(word string) bool {
	return strings.Contains(word, "/") && !strings.ContainsAny(word, ".@:")
}

func slashPhrase(word string) string {
	without, minus := strings.CutPrefix(word, "-")
	phrase := `"` + strings.ReplaceAll(without, "/", " ") + `"`
	if minus {
		phrase = "-" + phrase
	}
	return phrase
}

// slashPlain is a word with blanks for its slashes, and an address without its
// scheme and the stop that ends a sentence.
func slashPlain(word string) string {
	if slashed(word) {
		return strings.ReplaceAll(word, "/", " ")
	}
	if before, rest, found := strings.Cut(word, "://"); found {
		return strings.TrimRight(strings.TrimRightFunc(before, isSchemeLetter)+rest, ".,;:!?'")
	}
	return word
}

func isSchemeLetter(r rune) bool { return r <= unicode.MaxASCII && unicode.IsLetter(r) }
