package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"rollcall/store"
)

// put replaces what is stored for an item.
func (b *bench) put(t *testing.T, item int64, markdown, html []byte) {
	t.Helper()
	b.exec(t, `UPDATE results SET markdown = $2, html = $3 WHERE item_id = $1`, item, markdown, html)
}

func TestResult(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 4)
	path := fmt.Sprintf("/results/%d", s.items[0])
	b.put(t, s.items[0], []byte("# Heading\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n![logo](https://track.example/x.png) [more](../more) ~~gone~~\n"),
		[]byte("<h1 onclick=alert(1)>Hi</h1><script>alert(1)</script>"))
	b.exec(t, `UPDATE results SET links = $2, metadata = $3 WHERE item_id = $1`, s.items[0],
		[]byte(`["https://a.example/x", {"url": "javascript:alert(1)", "text": "bad"}]`), []byte(`{"render_js": true, "url": "https://a.example/1"}`))

	read := v.get(path)
	if read.text("[data-testid=prose] td") != "1 2" || read.text("[data-testid=prose] del") != "gone" {
		t.Errorf("prose: got %q, want a table and a deletion", read.text("[data-testid=prose]"))
	}
	if read.doc.Find("[data-testid=prose] img").Length() != 0 {
		t.Error("an image from elsewhere is loaded")
	}
	link := read.doc.Find("[data-testid=prose] a[href='https://track.example/x.png']")
	if link.Length() != 1 || !strings.Contains(link.Text(), "logo") {
		t.Errorf("the image's link: got %q", link.Text())
	}
	more := read.doc.Find("[data-testid=prose] a[href='https://a.example/more']")
	rel, _ := more.Attr("rel")
	if target, _ := more.Attr("target"); !strings.Contains(rel, "noopener") || !strings.Contains(rel, "nofollow") || target != "_blank" {
		t.Errorf("a link relative to the page: rel %q target %q", rel, target)
	}
	if got := v.get(path + "?tab=html"); got.text("#source") != "<h1 onclick=alert(1)>Hi</h1><script>alert(1)</script>" || got.doc.Find("#L1 a[href='#L1']").Text() != "" {
		t.Errorf("source: got %q, and the line's number %q", got.text("#source"), got.doc.Find("#L1 a").Text())
	}
	if frame := v.get(path + "?tab=preview").doc.Find("iframe"); frame.AttrOr("sandbox", "none") != "" || frame.AttrOr("src", "") != path+"/preview" {
		t.Errorf("frame: sandbox %q, src %q", frame.AttrOr("sandbox", "none"), frame.AttrOr("src", ""))
	}
	if text := v.get(path + "?tab=metadata").text("[data-testid=metadata]"); !strings.Contains(text, "HTTP status 200") || !strings.Contains(text, "render_js true") {
		t.Errorf("metadata: got %q", text)
	}
	links := v.get(path + "?tab=links")
	if links.doc.Find("[data-testid=links] li").Length() != 2 || links.doc.Find("[data-testid=links] a").Length() != 1 {
		t.Errorf("links: got %q, want one that leads somewhere and one that is text", links.text("[data-testid=links]"))
	}
	if got := v.get(fmt.Sprintf("/results/%d", s.items[1])); got.status != http.StatusNotFound {
		t.Errorf("a failed item's result: got %d, want 404", got.status)
	}
	if got := v.get(path + "?tab=nonsense"); got.status != http.StatusOK {
		t.Errorf("an unknown tab: got %d, want 200", got.status)
	}
}

func TestPreviewIsShutIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 4)
	b.put(t, s.items[0], nil, []byte("<p>\xff\x00 ok</p>"))
	got := v.get(fmt.Sprintf("/results/%d/preview", s.items[0]))
	policy := got.header.Get("Content-Security-Policy")
	for _, want := range []string{"sandbox;", "default-src 'none'", "form-action 'none'", "frame-ancestors 'self'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q: want %s in it", policy, want)
		}
	}
	for _, bad := range []string{"allow-", "'self' ", "http"} {
		if strings.Contains(policy, bad) {
			t.Errorf("policy %q: want no %s in it", policy, bad)
		}
	}
	if got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Set-Cookie") != "" {
		t.Errorf("headers: got %v", got.header)
	}
	if got.header.Get("Content-Type") != "text/html; charset=UTF-8" || !strings.Contains(got.body, "ok") {
		t.Errorf("type %q, body %q", got.header.Get("Content-Type"), got.body)
	}
	if got := v.get(fmt.Sprintf("/results/%d", s.items[0])); got.status != http.StatusOK || got.doc.Find("iframe").Length() != 1 {
		t.Errorf("a result with HTML only: got %d, want its preview", got.status)
	}
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 4)
	b.exec(t, `UPDATE items SET url = 'https://a.example/%2e%2e/"x"/..;é?q=1' WHERE id = $1`, s.items[0])
	markdown := "caf\xe9 \x00 \xff"
	b.put(t, s.items[0], []byte(markdown), []byte("<script>alert(1)</script>"))
	for format, want := range map[string]struct{ kind, body string }{
		"markdown": {"text/plain; charset=UTF-8", markdown}, "html": {"application/octet-stream", "<script>alert(1)</script>"},
	} {
		got := v.get(fmt.Sprintf("/results/%d/download?format=%s", s.items[0], format))
		name := got.header.Get("Content-Disposition")
		if got.header.Get("Content-Type") != want.kind || got.body != want.body || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %q %q", format, got.header.Get("Content-Type"), got.body)
		}
		if !strings.HasPrefix(name, `attachment; filename="a-example-`) || strings.ContainsAny(strings.TrimPrefix(name, "attachment; filename="), "/\\;%") {
			t.Errorf("%s: file name %q", format, name)
		}
	}
	var object struct {
		HTML string `json:"html"`
		Net  string `json:"net"`
	}
	got := v.get(fmt.Sprintf("/results/%d/download?format=json", s.items[0]))
	if err := json.Unmarshal([]byte(got.body), &object); err != nil || object.Net != "webhook" || object.HTML == "" {
		t.Errorf("json: got %+v, %v", object, err)
	}
	if got := v.get(fmt.Sprintf("/results/%d/download?format=exe", s.items[0])); got.status != http.StatusNotFound {
		t.Errorf("unknown format: got %d, want 404", got.status)
	}
	b.put(t, s.items[0], nil, []byte("x"))
	if got := v.get(fmt.Sprintf("/results/%d/download?format=markdown", s.items[0])); got.status != http.StatusNotFound {
		t.Errorf("a format the result hasn't: got %d, want 404", got.status)
	}
}

func TestHugeResultIsCut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 4)
	line := strings.Repeat("ü", 50) + " [x](/y)\n\n"
	huge := []byte(strings.Repeat(line, (6<<20)/len(line)))
	b.put(t, s.items[0], huge, huge)
	path := fmt.Sprintf("/results/%d", s.items[0])
	for _, tab := range []string{"read", "markdown", "html"} {
		got := v.get(path + "?tab=" + tab)
		if got.status != http.StatusOK || !strings.Contains(got.text("#result"), "Only the beginning is shown") || len(got.body) > 4<<20 {
			t.Errorf("%s: got %d with %d bytes, want the beginning and a note", tab, got.status, len(got.body))
		}
		if strings.Contains(got.body, "\uFFFD") {
			t.Errorf("%s: the cut left half a character", tab)
		}
	}
	if got := v.get(path + "/download?format=markdown"); got.body != string(huge) {
		t.Errorf("download: got %d bytes, want %d", len(got.body), len(huge))
	}
}

func TestMarkdownOfHostilePages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ markdown, bad, want string }{
		"script":              {"<script>alert(1)</script>\n\nok", "alert(1)</script>", "ok"},
		"script in a line":    {"a <img src=x onerror=alert(1)> b", "onerror", "a "},
		"javascript link":     {"[x](javascript:alert(1))", "javascript:", "x"},
		"data link":           {"[x](data:text/html;base64,PHNjcmlwdD4=)", "data:text", "x"},
		"entity in a scheme":  {"[x](java&#115;cript:alert(1))", "href=\"javascript", "x"},
		"remote image":        {"![a](https://t.example/p.gif)", "<img", "https://t.example/p.gif"},
		"image in a link":     {"[![a](https://t.example/p.gif)](https://b.example/)", "t.example", "https://b.example/"},
		"image without words": {"![](https://t.example/p.gif)", "<img", "image"},
		"reference image":     {"![a][r]\n\n[r]: https://t.example/p.gif", "<img", "https://t.example/p.gif"},
		"svg data image":      {"![a](data:image/svg+xml;base64,AAAA)", "<img", "image"},
		"nul and broken text": {"a\x00b \xff c", "\x00", "\uFFFD"},
		"style":               {"<p style=\"position:fixed\">x</p>\n\ny", "style=", "y"},
		"id that shadows":     {"# location", "id=", "location"},
		"table":               {"|a|\n|---|\n|b|", "\x00", "<td>b</td>"},
		"task list":           {"- [x] done", "<input", "done"},
		"autolink":            {"https://a.example/?a=1&b=2", "\x00", `href="https://a.example/?a=1&amp;b=2"`},
		"right to left":       {"**שלום** عالم 👍🏽", "\x00", "<strong>שלום</strong> عالم 👍🏽"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := markdownReader().render([]byte(tc.markdown), "https://a.example/dir/page")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(got, tc.bad) || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q and no %q in it", got, tc.want, tc.bad)
			}
		})
	}
	img := "data:image/png;base64,iVBORw0KGgo="
	got, err := markdownReader().render([]byte("![dot]("+img+")"), "https://a.example/")
	if err != nil || !strings.Contains(got, `src="`+img+`"`) {
		t.Errorf("an image that is part of the text: got %q, %v", got, err)
	}
}

func TestTangledMarkdown(t *testing.T) {
	t.Parallel()
	full := func(part string) string { return strings.Repeat(part, shownRendered/len(part)) }
	for name, markdown := range map[string]string{
		"quotes in quotes":   full("> "),
		"lists in lists":     full("1. "),
		"emphasis":           full("*a _ "),
		"links that open":    full("[a]("),
		"comments that open": full("a <!-- "),
		"images":             full("![a](b) "),
		"definitions":        full("[a]: b\n"),
		"in a cell":          "|a|\n|-|\n|" + full("*a _ "),
		"in a heading":       "# " + full("*a _ "),
		"a wide table":       "|" + strings.Repeat("a|", 20_000) + "\n|" + strings.Repeat("-|", 20_000) + "\n" + strings.Repeat("|\n", 200_000),
		"a long address":     "[x]: http://a" + strings.Repeat("a", 200_000) + "\n\n" + strings.Repeat("[x]\n\n", 50_000),
		"a long title":       "[x]: /a '" + strings.Repeat("a", 200_000) + "'\n\n" + strings.Repeat("![x]\n\n", 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := markdownReader().render([]byte(markdown), "https://a.example/"); !errors.Is(err, errTangled) {
				t.Errorf("got %d bytes, %v, want errTangled", len(got), err)
			}
		})
	}
}

func TestLargeMarkdownIsLaidOut(t *testing.T) {
	t.Parallel()
	row := "| [a](/a) | **b** | ![c](/c.png) | 1,234 | `d` | e_f | g | h |\n"
	for name, markdown := range map[string]string{
		"table":      "|a|b|c|d|e|f|g|h|\n|-|-|-|-|-|-|-|-|\n" + strings.Repeat(row, 7000),
		"prose":      strings.Repeat("A *word* and [a link](https://a.example/), then **more** of `it`.\n", 3) + "\n" + strings.Repeat("A *word* and a [link](/x).\n\n", 15_000),
		"code":       "```\n" + strings.Repeat("[2026-11-29] <info> a_b * c\n", 18_000) + "```\n",
		"list":       strings.Repeat("- [x](/y) *z*\n", 30_000),
		"deep quote": strings.Repeat(strings.Repeat("> ", 50)+"a\n\n", 4000),
		"rule":       strings.Repeat("-", 500) + "\n\n" + strings.Repeat("*", 500) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := markdownReader().render([]byte(markdown), "https://a.example/"); err != nil || len(markdown) > shownRendered {
				t.Errorf("%d bytes: got %v", len(markdown), err)
			}
		})
	}
}

func TestTangledResultIsSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := b.seed(t, "november", 4)
	b.put(t, s.items[0], []byte(strings.Repeat("> ", 100_000)), nil)
	got := v.get(fmt.Sprintf("/results/%d", s.items[0]))
	if text := got.text("[data-testid=prose]"); got.status != http.StatusOK || !strings.Contains(text, "too tangled") {
		t.Errorf("got %d %q, want a note that it is too tangled", got.status, text)
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{"# a", "[x](javascript:y)", "![a](b)", "<script>", "[![a](b)](c)", "|a|\n|-|\n|b|", "\x00\xff", "[a]: b\n![a]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, markdown []byte) {
		got, err := markdownReader().render(markdown, "https://a.example/x")
		if err != nil && !errors.Is(err, errTangled) {
			t.Fatal(err)
		}
		lower := strings.ToLower(got)
		for _, bad := range []string{"<script", "<iframe", "<style", "<form", "<input", "href=\"javascript:", "src=\"http", "\x00"} {
			if strings.Contains(lower, bad) {
				t.Errorf("%q gave %q with %q in it", markdown, got, bad)
			}
		}
	})
}
