package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

// maxLinks bounds the links taken from one page.
const maxLinks = 5000

// errConvert says that a page could not be turned into Markdown.
var errConvert = errors.New("page can't be turned into Markdown")

// decodeText turns the bytes of a page into UTF-8, by byte order mark, Content-Type header or meta element, in that
// order; a page that says nothing is taken as UTF-8 when it is valid, else as Windows-1252.
func decodeText(raw []byte, contentType string) string {
	head := raw[:min(len(raw), 1024)]
	enc, _, certain := charset.DetermineEncoding(head, contentType)
	if !certain && !bytes.Contains(bytes.ToLower(head), []byte("charset")) && utf8.Valid(raw) {
		enc = encoding.Nop
	}
	out, err := enc.NewDecoder().Bytes(raw)
	if err != nil {
		out = raw
	}
	out = bytes.TrimPrefix(out, []byte("\ufeff"))
	return strings.ToValidUTF8(string(out), "\ufffd")
}

// markdownOfNode turns a page into Markdown with absolute links; it may change doc. A panic of the library becomes an
// error, since pages come from anywhere.
func markdownOfNode(ctx context.Context, doc *html.Node, at *url.URL) (string, error) {
	var out []byte
	err := func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("%w: %v", errConvert, r)
			}
		}()
		conv := converter.NewConverter(converter.WithPlugins(
			base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(),
			strikethrough.NewStrikethroughPlugin(),
		))
		out, err = conv.ConvertNode(doc, converter.WithContext(ctx), converter.WithDomain(at.String()))
		return err
	}()
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(string(out), "\ufffd"), nil
}

// parseHTML reads a page and finds where its relative links start from.
func parseHTML(text string, at *url.URL) (*html.Node, *url.URL, error) {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errConvert, err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "base" {
			if href, ok := attribute(n, "href"); ok {
				if u, err := at.Parse(strings.TrimSpace(href)); err == nil {
					return doc, u, nil
				}
			}
		}
	}
	return doc, at, nil
}

// linksOf lists the http and https links of a page: absolute, without fragment, each once, in their order.
func linksOf(doc *html.Node, from *url.URL) []string {
	links, seen := []string{}, map[string]bool{}
	for n := range doc.Descendants() {
		if len(links) >= maxLinks {
			break
		}
		if n.Type != html.ElementNode || (n.Data != "a" && n.Data != "area") {
			continue
		}
		href, ok := attribute(n, "href")
		if !ok {
			continue
		}
		u, err := from.Parse(strings.TrimSpace(href))
		if err != nil {
			continue
		}
		u.Fragment, u.RawFragment = "", ""
		if link := u.String(); checkURL(link) == nil && !seen[link] {
			seen[link] = true
			links = append(links, link)
		}
	}
	return links
}

func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// htmlContent turns a page's text into content.
func htmlContent(ctx context.Context, text string, at *url.URL) (content, error) {
	doc, from, err := parseHTML(text, at)
	if err != nil {
		return content{}, err
	}
	links := linksOf(doc, from)
	markdown, err := markdownOfNode(ctx, doc, from)
	if err != nil {
		return content{}, err
	}
	return content{Markdown: markdown, HTML: text, Links: links}, nil
}

// fenced is plain text as a Markdown code block, with a fence longer than any in the text.
func fenced(text, language string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// latin1 is the text in ISO 8859-1; what doesn't fit is left out.
func latin1(text string) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		if 0 <= r && r < 0x100 {
			out = append(out, byte(r))
		}
	}
	return out
}
