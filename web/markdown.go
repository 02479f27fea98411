package web

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// reader turns a page's Markdown into HTML that is safe to show among ours.
// The text is not ours: raw HTML in it is dropped, what goldmark makes
// is passed through a list of allowed elements, no image is loaded from
// elsewhere, and links lead out without telling where from.
type reader struct {
	markdown goldmark.Markdown
	blocks   parser.Parser
	policy   *bluemonday.Policy
}

// markdownReader is made once: both parts are safe for use at the same time.
//
//nolint:gochecknoglobals // It never changes after it's made.
var markdownReader = sync.OnceValue(func() *reader {
	return &reader{
		markdown: goldmark.New(
			goldmark.WithExtensions(extension.GFM),
			goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(linkedImages{}, 500))),
		),
		blocks: blockParser(),
		policy: readingPolicy(),
	}
})

func readingPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "blockquote", "pre", "code", "em", "strong",
		"del", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(bluemonday.CellAlign).OnElements("th", "td")
	p.AllowAttrs("alt", "title").OnElements("img")
	p.AllowAttrs("title").OnElements("a")
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("src").Matching(dataImage).OnElements("img")
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowDataURIImages()
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
}

// dataImage matches an image that is part of the text.
//
//nolint:gochecknoglobals // A compiled pattern never changes.
var dataImage = regexp.MustCompile(`^data:image/(png|gif|jpeg|webp);base64,[A-Za-z0-9+/=]+$`)

// linkedImages makes a link of every image that isn't part of the page itself:
// loading it would tell its server who reads here.
type linkedImages struct{}

// Transform implements parser.ASTTransformer.
func (linkedImages) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var images []*ast.Image
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if image, ok := n.(*ast.Image); ok && entering && !dataImage.Match(image.Destination) {
			images = append(images, image)
		}
		return ast.WalkContinue, nil
	})
	for _, image := range images {
		replaceImage(image)
	}
}

// replaceImage puts a link in the image's place, or its text alone where there
// is a link around it already.
func replaceImage(image *ast.Image) {
	var into ast.Node = ast.NewEmphasis(1)
	if !insideLink(image) {
		link := ast.NewLink()
		link.Destination, link.Title = image.Destination, image.Title
		into = link
	}
	into.AppendChild(into, ast.NewString([]byte("image")))
	if image.HasChildren() {
		into.AppendChild(into, ast.NewString([]byte(": ")))
	}
	for child := image.FirstChild(); child != nil; {
		next := child.NextSibling()
		into.AppendChild(into, child)
		child = next
	}
	parent := image.Parent()
	parent.ReplaceChild(parent, image, into)
}

func insideLink(n ast.Node) bool {
	for p := n.Parent(); p != nil; p = p.Parent() {
		if p.Kind() == ast.KindLink {
			return true
		}
	}
	return false
}

// render makes the HTML, or returns errTangled. Links relative to the page lead
// to where the page came from.
func (r *reader) render(markdown []byte, base string) (string, error) {
	source := []byte(printable(markdown))
	if r.tangled(source) {
		return "", errTangled
	}
	doc := r.markdown.Parser().Parse(text.NewReader(source))
	if !resolveLinks(doc, base) {
		return "", errTangled
	}
	var out bytes.Buffer
	if err := r.markdown.Renderer().Render(&out, source, doc); err != nil {
		return "", fmt.Errorf("render markdown: %w", err)
	}
	return r.policy.SanitizeReader(&out).String(), nil
}

// resolveLinks reports false when the addresses are more than maxAddresses in
// all.
func resolveLinks(doc ast.Node, base string) bool {
	from, err := url.Parse(base)
	total := 0
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch link := n.(type) {
		case *ast.Image:
			total += len(link.Destination) + len(link.Title)
		case *ast.Link:
			if err == nil {
				resolveLink(link, from)
			}
			total += len(link.Destination) + len(link.Title)
		}
		if total > maxAddresses {
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return total <= maxAddresses
}

func resolveLink(link *ast.Link, from *url.URL) {
	if to, err := from.Parse(string(link.Destination)); err == nil {
		link.Destination = []byte(to.String())
	}
}

// printable is content as text: broken UTF-8 and NUL become the character that
// stands for what can't be shown.
func printable(content []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(content), "\uFFFD"), "\x00", "\uFFFD")
}
