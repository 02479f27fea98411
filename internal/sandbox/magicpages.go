package sandbox

import (
	"html"
	"net/url"
	"strings"
)

// magicPage is the page of a made path whose content is special.
func (s *Sandbox) magicPage(at *url.URL, word string) (content, bool) {
	switch word {
	case "huge":
		return hugePage(hugeness(at.Path)), true
	case "latin1":
		raw := latin1("<html><head><meta charset=\"iso-8859-1\"><title>Latin 1</title></head><body><h1>Déjà vu</h1>" +
			"<p>Größe, naïve, señor, ½ £ ±</p></body></html>")
		return s.madeContent(decodeText(raw, "text/html; charset=iso-8859-1"), at), true
	case "invalid-utf8":
		raw := []byte("<html><head><meta charset=\"utf-8\"></head><body><p>broken \xff\xfe\xc3( bytes \xe2\x82 here</p></body></html>")
		return s.madeContent(decodeText(raw, "text/html; charset=utf-8"), at), true
	case "nul":
		return content{
			Markdown: "# Nothing\n\nbefore\x00after \x01\x02\x1b\n",
			HTML:     "<h1>Nothing</h1><p>before\x00after \x01\x02\x1b</p>", Links: []string{},
		}, true
	case "plain":
		path := html.EscapeString(at.EscapedPath())
		return content{Markdown: "Plain " + path, HTML: "<p>Plain " + path + "</p>", Links: []string{}}, true
	case "empty":
		return content{Links: []string{}}, true
	case "script":
		return s.madeContent(hostilePage, at), true
	default:
		return content{}, false
	}
}

// hugePage is a page whose Markdown is a little over n bytes. It is put together by hand, since the library would take
// a second for it.
func hugePage(n int) content {
	const line = "All the kettles of the harbor stand in one long quiet row, and every one of them is counted."
	count := n/(len(line)+len("\n\n")) + 1
	return content{
		Markdown: "# Huge" + strings.Repeat("\n\n"+line, count),
		HTML: "<html><head><title>Huge</title></head><body><h1>Huge</h1>\n" +
			strings.Repeat("<p>"+line+"</p>\n", count) + "</body></html>",
		Links: []string{},
	}
}

// hostilePage tries what a page may try against those who show it. Nothing of it may run or load anywhere.
const hostilePage = `<!doctype html>
<html><head><title>Hostile</title>
<meta http-equiv="refresh" content="0;url=https://beacon.invalid/refresh">
<base target="_top">
<link rel="stylesheet" href="https://beacon.invalid/style.css">
<style>@import url(https://beacon.invalid/import.css); body{background:url(https://beacon.invalid/bg.png)}</style>
<script>window.hostile = 1; fetch("https://beacon.invalid/script")</script>
</head><body onload="window.hostile = 2">
<h1>Hostile page</h1>
<script src="https://beacon.invalid/a.js"></script>
<img src="x" onerror="window.hostile = 3"><img src="https://beacon.invalid/pixel.gif" alt="pixel">
<p><a href="javascript:window.hostile=4">click me</a> <a href="JaVaScRiPt&#58;window.hostile=5">and me</a>
<a href="data:text/html,<script>window.hostile=6</script>">and me too</a> <a href="vbscript:x">old</a></p>
<iframe src="https://beacon.invalid/frame" srcdoc="<script>parent.hostile = 7</script>"></iframe>
<form action="https://beacon.invalid/form"><input name="password" autofocus onfocus="window.hostile = 8"><button>Go</button></form>
<svg onload="window.hostile = 9"><a xlink:href="javascript:window.hostile=10"><text>svg</text></a></svg>
<object data="https://beacon.invalid/object"></object><embed src="https://beacon.invalid/embed">
<details open ontoggle="window.hostile = 11"><summary>more</summary></details>
<p>&lt;script&gt;window.hostile = 12&lt;/script&gt; &lt;img src=x onerror=window.hostile=13&gt;</p>
<p>[a](javascript:window.hostile=14) ![b](https://beacon.invalid/md.png) <a href="https://example.test/?a=1&amp;b=%22%3E">fine</a></p>
<p style="background:url('https://beacon.invalid/inline.png')">styled</p>
<p>&#8238;txet desrever&#8236; and ` + "`code`" + ` and </textarea></title></style></p>
</body></html>
`
