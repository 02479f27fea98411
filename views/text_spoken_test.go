package views_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/html"

	"rollcall/views"
)

// spokenAttributes are those whose values people read or hear. app.css shows data-label in narrow windows, app.js says
// data-say.
var spokenAttributes = []string{"title", "aria-label", "placeholder", "alt", "label", "data-label", "data-say"}

// dataElements and dataClasses hold what machines or other people wrote: code, times (app.js puts them into the reader's
// language), pages that were fetched, addresses, the audit log's own words.
var (
	dataElements = []string{"code", "pre", "time", "kbd", "textarea", "script", "bdi", "ins", "del"}
	dataClasses  = []string{"reading", "diff-text", "found-text", "found-title", "address", "mono", "audit-on", "diff-name"}
)

// dataWord is a number with its unit; what has a digit, an underscore or a dot in it, as ids, hosts and addresses do; a
// code in capitals; or a time zone.
var dataWord = regexp.MustCompile(`[−<>+]?\d[\d.,]*( ?(B|kB|MB|GB|ms|s|min|h|d|%))?(\s|$)|` +
	`\S*[\d_]\S*|\S*\pL\.\pL\S*|\S*://\S*|\b[A-Z]{5,}\b|[A-Z]\w+/[A-Z]\w+|\bUTC\b`)

// data is what else the stories have of names, and of words of the vendor and of other machines.
var data = []string{
	// Names of batches, schedules, people and columns, and titles of pages.
	"Product pages, November", "News front pages", "A crawl whose numbers aren't all known", "Docs, nightly", "Prices, twice a week", "Never ran",
	"Forum threads with a rather long name that somebody typed without thinking of the width of a table",
	"A later one", "Copper kettle, 1.7 l", "matching pan", "alice", "bob", "carol", "dave", "erin", "root", "the nightly job", "sku", "page", "price",
	"November", "nightly", "Docs", "One", "Europe", "Africa",
	// Character sets, headers and browsers.
	"gbk", "macintosh", "euc-kr", "X-Webhook-Signature", "X-Webhook-Signature: …", "Authorization", "Content-Type", "X-Odd", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
	// Words of the vendor and of the audit log, one that nobody knows, and what the server's log says.
	"success", "failed", "processing", "pending", "abandoned", "user", "Something new", "first admin",
}

// TestPagesSpeakThroughTheCatalog: in the pseudo-language, which has each text of the catalog in brackets, no story says
// a word outside of them, but for data; and none glues texts to values, in an order that no other language may have.
func TestPagesSpeakThroughTheCatalog(t *testing.T) {
	t.Parallel()
	ctx := views.WithLanguage(t.Context(), views.LanguageFor("en-XA"))
	for _, each := range stories() {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			var page bytes.Buffer
			if err := each.page.Render(ctx, &page); err != nil {
				t.Fatal(err)
			}
			doc, err := html.Parse(&page)
			if err != nil {
				t.Fatal(err)
			}
			spoken(doc, func(where, text string) {
				if fault := fault(text); fault != "" {
					t.Errorf("%s: %q %s", where, text, fault)
				}
			})
		})
	}
}

// aside stands for an element in the text around it.
const aside = "\uFFFC"

// spoken hands out what an element says: the attributes, and the text with the elements in it as asides.
func spoken(n *html.Node, say func(where, text string)) {
	where := n.Data + "." + attribute(n, "class")
	for _, each := range n.Attr {
		if slices.Contains(spokenAttributes, each.Key) {
			say(where+" "+each.Key, each.Val)
		}
	}
	if isData(n) {
		return
	}
	var text strings.Builder
	for child := range n.ChildNodes() {
		if child.Type == html.TextNode {
			text.WriteString(child.Data)
			continue
		}
		text.WriteString(aside)
		spoken(child, say)
	}
	say(where, text.String())
}

func attribute(n *html.Node, name string) string {
	for _, each := range n.Attr {
		if each.Key == name {
			return each.Val
		}
	}
	return ""
}

func isData(n *html.Node) bool {
	return slices.Contains(dataElements, n.Data) || slices.ContainsFunc(strings.Fields(attribute(n, "class")), func(class string) bool {
		return slices.Contains(dataClasses, class)
	})
}

// fault is what is wrong with a text; empty when nothing is.
func fault(text string) string {
	rest, groups := outside(text)
	rest = strings.Trim(strings.ReplaceAll(rest, aside, " "), " \n\t.,:;()+=·→–")
	switch {
	case rest == "" || rest == strings.Trim(hostile, "."):
	case groups > 0:
		return "is glued together: make it one text with values"
	case !slices.Contains(data, rest) && !slices.Contains(data, strings.Trim(dataWord.ReplaceAllString(strings.ReplaceAll(rest, hostile, ""), ""), " .,:;–")) && hasWord(rest):
		return "went past the catalog"
	}
	return ""
}

func hasWord(text string) bool {
	text = dataWord.ReplaceAllString(strings.ReplaceAll(text, hostile, ""), "")
	return regexp.MustCompile(`\pL{2}`).MatchString(text)
}

// outside is what of a text stands outside of brackets, and how many texts stand in them.
func outside(text string) (string, int) {
	var rest strings.Builder
	depth, groups := 0, 0
	for _, r := range text {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
			if depth == 0 {
				groups++
			}
		default:
			if depth == 0 {
				rest.WriteRune(r)
			}
		}
	}
	return rest.String(), groups
}

// TestTextsAreWhole: what begins or ends with a space is a piece of a sentence, which can't be translated alone.
func TestTextsAreWhole(t *testing.T) {
	t.Parallel()
	for text := range said(t) {
		if text != strings.TrimSpace(text) {
			t.Errorf("%q is no whole text", text)
		}
	}
}

// storyTexts are the strings that the stories give to the pages.
var storyTexts = sync.OnceValue(func() []string {
	files, err := filepath.Glob("stories_*test.go")
	if err != nil {
		panic(err)
	}
	var all []string
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := joined(e)
			if ok {
				all = append(all, text)
			}
			return !ok
		})
	}
	return all
})

// joined is the text of an expression that joins literals, and what is hostile, or nothing else.
func joined(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.Ident:
		return hostile, e.Name == "hostile"
	case *ast.BinaryExpr:
		left, ok := joined(e.X)
		right, too := joined(e.Y)
		return left + right, ok && too && e.Op == token.ADD
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	}
	return "", false
}

// webSays are the sentences of the stories. Package web makes such ones, or takes them from elsewhere, so the pages have
// to say them through the catalog, and in the tests they are in it.
func webSays() []string {
	return slices.DeleteFunc(slices.Clone(storyTexts()), func(text string) bool {
		return !strings.Contains(strings.TrimSpace(text), " ") || slices.Contains(data, text)
	})
}
