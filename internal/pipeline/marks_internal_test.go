package pipeline

import (
	"strings"
	"testing"

	"rollcall/store"
)

func TestMarksOfPages(t *testing.T) {
	t.Parallel()
	article := strings.Repeat("A long article about kettles, their makers and what water does in them. ", 80)
	ok, forbidden := 200, 403
	for name, tc := range map[string]struct {
		status                *int
		title, markdown, html string
		want                  store.Mark
		reason                string
	}{
		"an article":                     {&ok, "Kettles", article, "", "", ""},
		"an article about captchas":      {&ok, "Captcha history", article + " captcha ", "", "", ""},
		"an article that mentions login": {&ok, "", article + " Please log in to comment.", "", "", ""},
		"a short page":                   {&ok, "", "# Opening hours\n\nMonday to Friday from nine to five, Saturday closed.", "", "", ""},
		"nothing":                        {&ok, "", " \n\t ", "", store.MarkEmpty, "no text at all"},
		"links alone":                    {&ok, "", "https://a.example/x https://a.example/y", "", store.MarkEmpty, "no text at all"},
		"hardly anything":                {&ok, "", "# Shop\n\n1", "", store.MarkEmpty, "only 5 letters and digits"},
		"no status known":                {nil, "", "", "", store.MarkEmpty, "no text at all"},
		"a failed page says so itself":   {&forbidden, "", "Access denied", "", "", ""},
		"captcha":                        {&ok, "Verify", "Please complete the CAPTCHA to go on to the page.", "", store.MarkBlocked, "asks for a captcha"},
		"robot":                          {&ok, "", "# Are you a robot?\n\nLet us know you're not a robot by ticking the box.", "", store.MarkBlocked, "asks for a captcha"},
		"cloudflare":                     {&ok, "Attention Required! | Cloudflare", "Why do I have to do this? One more step.", "", store.MarkBlocked, "a check of Cloudflare's"},
		"guard":                          {&ok, "", "Pardon Our Interruption. As you were browsing something about your browser made us think.", "", store.MarkBlocked, "the site's guard refuses it"},
		"too many":                       {&ok, "", "Too Many Requests. Come back in a while, and slower than this time.", "", store.MarkBlocked, "the site says there were too many requests"},
		"login":                          {&ok, "", "Welcome back! Please log in to see the prices of our range.", "", store.MarkBlocked, "asks to sign in"},
		"subscribe":                      {&ok, "", "Three paragraphs of news. Subscribe to continue reading this story of ours.", "", store.MarkBlocked, "asks to subscribe"},
		"cookies":                        {&ok, "", "Before you continue to the site we would like to place some cookies here.", "", store.MarkBlocked, "asks to accept cookies first"},
		"javascript":                     {&ok, "", "You need to enable JavaScript to run this app.", "", store.MarkEmpty, "asks for JavaScript"},
		"loading":                        {&ok, "", "Loading…", "", store.MarkEmpty, "says only that it is loading"},
		"html without text":              {&ok, "", "", "<html><script>var captcha = 'captcha'</script><body><div id=root></div>", store.MarkEmpty, "no text at all"},
		"html with a noscript":           {&ok, "", "", "<body><noscript>You need to enable JavaScript to run this app.</noscript>", store.MarkEmpty, "asks for JavaScript"},
		"another script":                 {&ok, "", "本ページでは、銅製のやかんの歴史と、その作り方、そして長く使うための手入れの方法について、写真とともに詳しく説明します。", "", "", ""},
	} {
		mark, reason := markOf(tc.status, tc.title, []byte(tc.markdown), []byte(tc.html))
		if mark != tc.want || reason != tc.reason {
			t.Errorf("%s: got %q, %q, want %q, %q", name, mark, reason, tc.want, tc.reason)
		}
	}
}

func TestTextOfHTML(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"<p>One<p>Two <b>bo</b>ld":                                  "One Two bold",
		"<style>p{}</style>a<script>b</script>c<svg><text>d</svg>e": "ace",
		"a &lt;b&gt; &amp; c":                                       "a <b> & c",
		"<script>never ended":                                       "",
		"caf\xc3\xa9 \x00\x1b[31m \xff\u202eevil\u202c":             "café [31m evil",
		"<!-- c -->x<br/>y":                                         "x y",
	} {
		if got := strings.Join(strings.Fields(plainText(nil, []byte(page))), " "); got != want {
			t.Errorf("%q: got %q, want %q", page, got, want)
		}
	}
}

func TestSearchTexts(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"copper  kettle":            "copper kettle",
		"read/write":                `"read write"`,
		"-read/write":               `-"read write"`,
		"https://a.example/x":       "a.example/x",
		`-"https://a.example/x?`:    `-"a.example/x`,
		`"and/or what" x/y`:         `"and or what" "x y"`,
		"\x00\u202ea\x1b":           "a",
		"":                          "",
		"/":                         `" "`,
		"someone@a.example a.b/c-d": "someone@a.example a.b/c-d",
	} {
		if got := SearchText(typed); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
	if got := searchable("a/b c.d/e “x” " + strings.Repeat("z", longestWord+1) + " 日本、語"); got != "a b c.d/e x 日本 語 " {
		t.Errorf("searchable: got %q", got)
	}
	if got := ReadableText([]byte("# A [link](https://x.example/(a)b \"t\") and *more*\n---\n\n| c | d |\n| :---- | ------: |\n| - | a---b |\n- - -\n"), nil); got != "A link and more c d - a---b" {
		t.Errorf("readable: got %q", got)
	}
}
