package sandbox

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// madeDomain is the domain whose pages are made up. It is reserved for tests, so it exists nowhere.
const madeDomain = "sandbox.test"

// The size of the made sites: pages that link to each other. Numbers past these are good pages too, but nothing
// links to them.
const (
	shopItems   = 600
	newsStories = 500
	forumTopics = 400
)

// isMade says whether pages of the host are made up.
func isMade(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == madeDomain || strings.HasSuffix(host, "."+madeDomain)
}

// MadeURLs lists n different URLs of good made pages, the same for the same seed: shop, news and forum in turn.
func MadeURLs(n int, seed uint64) []string {
	urls := make([]string, 0, max(n, 0))
	start := dice(seed).pick(10_000, "made urls")
	for i := range n {
		number := start + i/3 + 1
		switch i % 3 {
		case 0:
			urls = append(urls, fmt.Sprintf("https://shop.%s/item/%d", madeDomain, number))
		case 1:
			urls = append(urls, fmt.Sprintf("https://news.%s/story/%d", madeDomain, number))
		default:
			urls = append(urls, fmt.Sprintf("https://forum.%s/topic/%d", madeDomain, number))
		}
	}
	return urls
}

// draft is a made page being written.
type draft struct {
	strings.Builder
	d       dice
	key     string // The URL, which decides everything on the page but what editions change.
	edition int    // 0 for a page that never changed.
	lang    *language
	asks    int
}

// pick is the next number in [0, n) of this page.
func (p *draft) pick(n int) int {
	p.asks++
	return p.d.pick(n, "page", p.key, strconv.Itoa(p.asks))
}

// add writes formatted HTML; whatever is not a number or made of known words must be escaped by the caller.
func (p *draft) add(format string, args ...any) { fmt.Fprintf(&p.Builder, format, args...) }

// makePage writes an edition of the page of a made URL. It is the same whenever it is asked for.
func (s *Sandbox) makePage(u *url.URL, edition int) content {
	at := *u
	at.Fragment, at.RawFragment = "", ""
	word, _ := magicParts(at.Path)
	if c, ok := s.magicPage(&at, word); ok {
		return c
	}
	key := strconv.Itoa(edition) + " " + at.String()
	if c, ok := s.made.get(key); ok {
		return c
	}
	c := s.madeContent(s.writePage(&at, edition), &at)
	s.made.put(key, c)
	return c
}

// madeContent turns made HTML into content. The library turns every made page into Markdown; should it ever not, the
// page is kept as a code block.
func (s *Sandbox) madeContent(text string, at *url.URL) content {
	c, err := htmlContent(s.ctx, text, at)
	if err != nil {
		return content{Markdown: fenced(text, "html"), HTML: text, Links: []string{}}
	}
	return c
}

// writePage is the HTML of an edition of an ordinary made page.
func (s *Sandbox) writePage(at *url.URL, edition int) string {
	key := strings.ToLower(at.Host) + at.EscapedPath() + "?" + at.RawQuery
	p := &draft{d: s.dice, key: key, edition: edition}
	p.lang = &languages()[p.pick(len(languages()))]
	site, _, _ := strings.Cut(strings.ToLower(at.Hostname()), ".")
	word, value := magicParts(at.Path)
	number, err := strconv.Atoi(value)
	if err != nil {
		number = 1 + p.pick(shopItems)
	}
	p.head()
	switch {
	case strings.HasPrefix(site, "news"):
		p.news(word, number)
	case strings.HasPrefix(site, "forum"):
		p.forum(word, number)
	default:
		p.shop(word, number)
	}
	p.foot(at)
	return p.String()
}

func (p *draft) head() {
	p.add("<!doctype html>\n<html lang=%q dir=%q>\n<head><meta charset=\"utf-8\">\n<title>%s</title>\n", p.lang.code,
		p.lang.dir, p.words(4))
	p.add("<style>body{font-family:sans-serif}</style></head>\n<body>\n")
	p.add("<header><a href=\"/\">%s</a> · <a href=\"/about\">%s</a></header>\n<main>\n", p.words(1), p.words(1))
}

// foot links to a page on a subdomain, one on another site and one that robots.txt forbids, so that crawls have
// something to decide.
func (p *draft) foot(at *url.URL) {
	host := strings.ToLower(at.Hostname())
	p.add("</main>\n<footer><p>%s</p><ul>\n", p.sentence())
	p.add("<li><a href=\"https://help.%s/\">%s</a></li>\n", host, p.words(1))
	p.add("<li><a href=\"https://news.%s/story/%d\">%s</a></li>\n", madeDomain, 1+p.pick(newsStories), p.words(2))
	p.add("<li><a href=\"/private/%d\">%s</a></li>\n", p.pick(100), p.words(1))
	p.add("</ul></footer>\n</body>\n</html>\n")
}

// madeRobots is the robots.txt of every made site.
const madeRobots = "User-agent: *\nDisallow: /private/\n"

// shop is a product with price table, reviews and neighbors; its front page and categories are lists of products.
func (p *draft) shop(word string, number int) {
	p.add("<h1>%s</h1>\n", p.words(3))
	p.update()
	if word != "item" {
		p.add("<p>%s</p>\n<ul>\n", p.sentence())
		for range 24 {
			p.add("<li><a href=\"/item/%d\">%s</a> – %d.%02d €</li>\n", 1+p.pick(shopItems), p.words(2), 1+p.pick(900),
				p.pick(100))
		}
		p.add("</ul>\n<p>")
		for n := range 12 {
			p.add("<a href=\"/category/%d\">%s</a> ", n+1, p.words(1))
		}
		p.add("</p>\n")
		return
	}
	p.add("<p><strong>№ %d</strong> %s %s</p>\n", number, p.emoji(), p.sentence())
	p.table()
	p.paragraphs(1 + p.pick(3))
	p.add("<h2>%s</h2>\n<ol>\n", p.words(2))
	for range 2 + p.pick(5) {
		p.add("<li><em>%s</em>: %s <del>%d</del> %s</li>\n", p.words(1), p.sentence(), p.pick(100), p.emoji())
	}
	p.add("</ol>\n")
	p.neighbors("item", number, shopItems)
}

// news is a story, sometimes a long one, with a quotation and a picture.
func (p *draft) news(word string, number int) {
	p.add("<article>\n<h1>%s</h1>\n<p><time>2026-%02d-%02d</time></p>\n", p.words(5), 1+p.pick(12), 1+p.pick(28))
	p.update()
	if word == "story" {
		p.paragraphs(3 + p.pick(6))
		p.add("<blockquote><p>%s %s</p></blockquote>\n", p.sentence(), p.sentence())
		p.add("<figure><img src=\"/pictures/%d.jpg\" alt=\"%s\"><figcaption>%s</figcaption></figure>\n", number, p.words(2),
			p.sentence())
		p.add("<h2>%s</h2>\n", p.words(3))
		p.paragraphs(1 + p.pick(4))
		if p.pick(20) == 0 {
			p.paragraphs(150)
		}
	}
	p.add("</article>\n")
	p.neighbors("story", number, newsStories)
}

// forum is a topic with posts, nested lists and code.
func (p *draft) forum(word string, number int) {
	p.add("<h1>%s? %s</h1>\n", p.words(4), p.emoji())
	p.update()
	if word == "topic" {
		for post := range 2 + p.pick(6) {
			p.add("<section>\n<h3>#%d %s</h3>\n", post+1, p.words(1))
			p.paragraphs(1 + p.pick(2))
			switch p.pick(3) {
			case 0:
				p.add("<pre><code>for i := range %d {\n\tfmt.Println(i &lt;&lt; %d, \"%s\")\n}\n</code></pre>\n", p.pick(100),
					p.pick(8), p.words(1))
			case 1:
				p.add("<ul><li>%s<ul><li>%s</li><li>%s</li></ul></li><li>%s</li></ul>\n", p.words(2), p.words(2), p.words(3),
					p.words(1))
			default:
				p.add("<p>%s <code>%s</code> %s</p>\n", p.emoji(), p.words(1), p.emoji())
			}
			p.add("</section>\n")
		}
	}
	p.neighbors("topic", number, forumTopics)
}

// neighbors links to the next pages and some others of the same kind.
func (p *draft) neighbors(word string, number, total int) {
	p.add("<nav><ul>\n")
	for step := range 4 {
		p.add("<li><a href=\"/%s/%d\">%s</a></li>\n", word, (number+step)%total+1, p.words(2))
	}
	for range 8 {
		p.add("<li><a href=\"/%s/%d#top\">%s</a></li>\n", word, 1+p.pick(total), p.words(2))
	}
	p.add("</ul></nav>\n")
}

func (p *draft) table() {
	p.add("<table><thead><tr><th>%s</th><th>%s</th><th>%s</th></tr></thead><tbody>\n", p.words(1), p.words(1), p.words(1))
	for range 3 + p.pick(5) {
		p.add("<tr><td>%s</td><td>%d</td><td>%d.%02d €</td></tr>\n", p.words(2), p.stock(p.pick(500)), 1+p.pick(900), p.pick(100))
	}
	p.add("</tbody></table>\n")
}

func (p *draft) paragraphs(n int) {
	for range n {
		p.add("<p>")
		for range 2 + p.pick(4) {
			p.add("%s ", p.sentence())
		}
		p.add("</p>\n")
	}
}
