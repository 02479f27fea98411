package sandbox

import (
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	xunicode "golang.org/x/text/encoding/unicode"
)

// site is a real web server with one handler for each path.
func site(t *testing.T, pages map[string]http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	for path, page := range pages {
		mux.HandleFunc(path, page)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func serveText(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		_, _ = io.WriteString(w, body)
	}
}

func openBox(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	cfg := quick()
	cfg.AllowPrivate = true
	if change != nil {
		change(&cfg)
	}
	return setup(t, cfg)
}

func TestRealPage(t *testing.T) {
	t.Parallel()
	r := openBox(t, nil)
	at := site(t, map[string]http.HandlerFunc{
		"/docs/page": serveText("text/html; charset=utf-8", `<html><head><title>T</title><base href="/docs/"></head><body>
			<h1>Grüße</h1><p>See <a href="next#part">next</a>, <a href="next">again</a>, <a href="mailto:a@b">mail</a>,
			<a href="https://example.test/x?y=1">out</a>.</p><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
			<script>bad()</script></body></html>`),
	})
	job := r.extract(at + "/docs/page")
	markdown := job.str("data", "markdown")
	for _, want := range []string{"# Grüße", "(" + at + "/docs/next#part)", "| a"} {
		if !strings.Contains(markdown, want) {
			t.Errorf("markdown lacks %q:\n%s", want, markdown)
		}
	}
	if strings.Contains(markdown, "bad()") {
		t.Error("the script is in the markdown")
	}
	if got, want := fmt.Sprint(job.list("data", "links")), fmt.Sprint([]any{at + "/docs/next", "https://example.test/x?y=1"}); got != want {
		t.Errorf("links: got %s, want %s", got, want)
	}
	o := r.Books().Jobs[0].Outcomes[0]
	if o.MarkdownSHA256 != hash(markdown) || o.HTMLSHA256 != hash(job.str("data", "html")) {
		t.Error("the books' hashes are not those of the answer")
	}
}

func TestRealPageCharsets(t *testing.T) {
	t.Parallel()
	const text = "Größe naïve"
	latin, err := charmap.ISO8859_1.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	utf16, err := xunicode.UTF16(xunicode.LittleEndian, xunicode.UseBOM).NewEncoder().String("<p>" + text + " 日本</p>")
	if err != nil {
		t.Fatal(err)
	}
	sjis, err := japanese.ShiftJIS.NewEncoder().String("日本語")
	if err != nil {
		t.Fatal(err)
	}
	r := openBox(t, nil)
	for name, c := range map[string]struct{ header, body, want string }{
		"Header":        {"text/html; charset=iso-8859-1", "<p>" + latin + "</p>", text},
		"Meta":          {"text/html", `<meta charset="iso-8859-1"><p>` + latin + "</p>", text},
		"MetaShiftJIS":  {"text/html", `<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS"><p>` + sjis + "</p>", "日本語"},
		"BOMUTF16":      {"text/html", utf16, text + " 日本"},
		"BOMUTF8":       {"text/html; charset=iso-8859-1", "\ufeff<p>" + text + "</p>", text},
		"NothingUTF8":   {"text/html", "<p>" + strings.Repeat("plain ", 300) + text + "</p>", strings.Repeat("plain ", 300) + text},
		"NothingLatin1": {"text/html", "<p>" + latin + "</p>", text},
		"Broken":        {"text/html; charset=utf-8", "<p>a\xffb</p>", "a\ufffdb"},
		"NoContentType": {"", "<!doctype html><html><p>" + text + "</p></html>", text},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := site(t, map[string]http.HandlerFunc{"/": serveText(c.header, c.body)})
			r := *r
			r.t = t
			if got := r.extract(at+"/"+name).str("data", "markdown"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestRealPageKinds(t *testing.T) {
	t.Parallel()
	r := openBox(t, func(c *Config) { c.MaxPageBytes = 50_000; c.FetchTimeout = 3 * time.Second })
	at := site(t, map[string]http.HandlerFunc{
		"/json":  serveText("application/json", `{"a": "`+"```"+`"}`),
		"/text":  serveText("text/plain; charset=utf-8", "one\ntwo <b>\n"),
		"/image": serveText("image/png", "\x89PNG"),
		"/pdf":   serveText("application/pdf", "%PDF"),
		"/empty": serveText("text/html", ""),
		"/large": serveText("text/html", strings.Repeat("x", 50_001)),
		"/404":   http.NotFound,
		"/503":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"/loop":  func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/loop", http.StatusFound) },
		"/moved": func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/text", http.StatusFound) },
		"/file": func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "file:///etc/passwd", http.StatusFound)
		},
		"/hang":     func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() },
		"/cut":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"/headers":  func(w http.ResponseWriter, q *http.Request) { fmt.Fprint(w, "<p>", q.Header.Get("X-Mine"), q.Host) },
		"/xml":      serveText("application/xml", "<a>1</a>"),
		"/gzipbomb": func(w http.ResponseWriter, _ *http.Request) { gzipBomb(w) },
	})
	for path, c := range map[string]struct{ code, markdown string }{
		"/json":     {"", "````json\n{\"a\": \"```\"}\n````"},
		"/text":     {"", "```\none\ntwo <b>\n```"},
		"/moved":    {"", "```\none\ntwo <b>\n```"},
		"/xml":      {"", "```xml\n<a>1</a>\n```"},
		"/empty":    {"", ""},
		"/image":    {"UNSUPPORTED_CONTENT", ""},
		"/pdf":      {"UNSUPPORTED_CONTENT", ""},
		"/large":    {"CONTENT_TOO_LARGE", ""},
		"/gzipbomb": {"CONTENT_TOO_LARGE", ""},
		"/404":      {"TARGET_HTTP_404", ""},
		"/503":      {"TARGET_HTTP_503", ""},
		"/loop":     {"TOO_MANY_REDIRECTS", ""},
		"/file":     {"TOO_MANY_REDIRECTS", ""},
		"/hang":     {"TIMEOUT", ""},
		"/cut":      {"CONNECTION_FAILED", ""},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			r := *r
			r.t = t
			job := r.extract(at + path)
			if c.code == "" {
				if got := job.str("data", "markdown"); got != c.markdown {
					t.Errorf("got %q, want %q", got, c.markdown)
				}
				return
			}
			wantRetry := c.code == "TARGET_HTTP_503" || c.code == "TIMEOUT" || c.code == "CONNECTION_FAILED"
			if job.str("error", "code") != c.code || job.at("error", "retryable").v != wantRetry {
				t.Errorf("got %v", job.at("error").v)
			}
		})
	}
	body := map[string]any{"url": at + "/headers", "headers": map[string]string{"X-Mine": "yes ", "Host": "evil"}}
	host := strings.TrimPrefix(at, "http://")
	if got := r.call("POST", "/v1/extract", body).want(200).str("data", "markdown"); got != "yes "+host && got != "yes"+host {
		t.Errorf("headers: got %q", got)
	}
	if got := r.extract("http://127.0.0.1:1/").str("error", "code"); got != "CONNECTION_FAILED" {
		t.Errorf("closed port: got %s", got)
	}
	if got := r.extract("http://nowhere.invalid/").str("error", "code"); got != "DNS_FAILED" {
		t.Errorf("unknown name: got %s", got)
	}
}

func gzipBomb(w http.ResponseWriter) {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Content-Type", "text/html")
	z := gzip.NewWriter(w)
	defer z.Close()
	for range 10 {
		if _, err := z.Write(make([]byte, 100_000)); err != nil {
			return
		}
	}
}

func TestHeadersStayWithTheirHost(t *testing.T) {
	t.Parallel()
	r := openBox(t, nil)
	other := site(t, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, q *http.Request) {
		fmt.Fprintf(w, "<p>got %q", q.Header.Get("X-Token"))
	}})
	at := site(t, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, other, http.StatusFound)
	}})
	body := map[string]any{"url": at, "headers": map[string]string{"X-Token": "secret"}}
	if got := r.call("POST", "/v1/extract", body).want(200).str("data", "markdown"); got != `got ""` {
		t.Errorf("got %s", got)
	}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	at := site(t, map[string]http.HandlerFunc{"/": serveText("text/html", "secret")})
	port := at[strings.LastIndex(at, ":"):]
	for _, u := range []string{
		at, "http://localhost" + port, "http://[::1]" + port, "http://0.0.0.0" + port, "http://[::ffff:127.0.0.1]" + port,
		"http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "http://[fd00::1]/",
	} {
		if got := r.extract(u).str("error", "code"); got != "ADDRESS_REFUSED" {
			t.Errorf("%s: got %s", u, got)
		}
	}
	for ip, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "100.64.0.1": false, "192.168.1.1": false, "224.0.0.1": false,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::": false, "240.0.0.1": false,
	} {
		if got := isPublic(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: got public %v", ip, got)
		}
	}
}

func TestRealCrawl(t *testing.T) {
	t.Parallel()
	r := openBox(t, nil)
	at := site(t, map[string]http.HandlerFunc{
		"/robots.txt": serveText("text/plain", "User-agent: *\nDisallow: /no\n"),
		"/":           serveText("text/html", `<a href="/a">a</a> <a href="/no/b">b</a> <a href="/missing">m</a> <a href="http://other.invalid/">o</a>`),
		"/a":          serveText("text/html", `<a href="/">home</a> <a href="/c#x">c</a>`),
		"/c":          serveText("text/html", `<a href="/d">d</a>`),
		"/missing":    http.NotFound,
	})
	path := r.call("POST", "/v1/crawl", map[string]any{"url": at, "depth": 3}).want(202).str("status_url")
	r.finish(path)
	got := map[string]string{}
	for _, o := range r.Books().Jobs[0].Outcomes {
		got[strings.TrimPrefix(o.URL, at)] = o.Status + o.Code
	}
	want := map[string]string{
		"": "completed", "/a": "completed", "/no/b": "failedROBOTS_DISALLOWED", "/missing": "failedTARGET_HTTP_404", "/c": "completed",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestKeptPagesAreBounded(t *testing.T) {
	t.Parallel()
	r := openBox(t, func(c *Config) { c.MaxKeptBytes = 1000 })
	at := site(t, map[string]http.HandlerFunc{"/": serveText("text/html", "<p>"+strings.Repeat("y", 300))})
	if got := r.extract(at).str("status"); got != "completed" {
		t.Errorf("first: got %s", got)
	}
	if got := r.extract(at+"/?2").str("error", "code"); got != "SANDBOX_FULL" {
		t.Errorf("second: got %s", got)
	}
}

func TestMagicPages(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	md := func(path string) string { return r.extract("https://shop.sandbox.test"+path).str("data", "markdown") }
	if n := len(md("/huge/2mb")); n < 2<<20 || n > 3<<20 {
		t.Errorf("huge: got %d bytes", n)
	}
	for path, want := range map[string]string{
		"/latin1": "Déjà vu", "/plain/7": "Plain /plain/7", "/invalid-utf8": "\ufffd", "/nul": "before\x00after", "/script": "Hostile page",
	} {
		if got := md(path); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", path, got, want)
		}
	}
	if got := md("/empty"); got != "" {
		t.Errorf("empty: got %q", got)
	}
	start := time.Now()
	if md("/slow/50ms"); time.Since(start) < 50*time.Millisecond {
		t.Error("slow was quick")
	}
	if html := r.extract("https://shop.sandbox.test/script").str("data", "html"); !strings.Contains(html, "onerror") {
		t.Error("the hostile page is tame")
	}
	for _, o := range r.Books().Jobs {
		for _, it := range o.Outcomes {
			if it.MarkdownSHA256 == "" {
				t.Errorf("%s has no hash", it.URL)
			}
		}
	}
}

func TestMadePages(t *testing.T) {
	t.Parallel()
	r := setup(t, quick())
	urls := MadeURLs(300, 5)
	seen := map[string]bool{}
	var all strings.Builder
	for _, text := range urls {
		if seen[text] {
			t.Fatalf("%s comes twice", text)
		}
		seen[text] = true
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c := r.makePage(u, 0)
		r.made.pages = map[string]content{}
		if again := r.makePage(u, 0); again.Markdown != c.Markdown || again.HTML != c.HTML {
			t.Fatalf("%s differs from one time to the next", text)
		}
		if !utf8.ValidString(c.Markdown) || len(c.Links) < 8 || len(c.Markdown) < 200 {
			t.Errorf("%s: %d links, markdown %q", text, len(c.Links), c.Markdown)
		}
		all.WriteString(c.HTML)
	}
	for _, want := range []string{`dir="rtl"`, `lang="ar"`, `lang="he"`, `lang="ja"`, "<table>", "<pre>", "👩‍🚀", "<blockquote>"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no page holds %s", want)
		}
	}
	if fmt.Sprint(MadeURLs(10, 5)) != fmt.Sprint(urls[:10]) || fmt.Sprint(MadeURLs(10, 6)) == fmt.Sprint(urls[:10]) {
		t.Error("MadeURLs doesn't go by the seed")
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"https://example.test/a?b#c": nil,
		"http://[::1]:80/":           nil,
		"http://user:pw@host/":       nil,
		"ftp://host/":                errURLScheme,
		"javascript:alert(1)":        errURLScheme,
		"//host/":                    errURLScheme,
		"http:///path":               errURLHost,
		"http://a b/":                errURLForm,
		"http://host/\x00":           errURLForm,
		"http://host/%zz":            errURLForm,
		"http://host/\xff":           errURLForm,
		"http://host/" + strings.Repeat("a", maxURLBytes): errURLLong,
		"": errURLScheme,
	} {
		if got := checkURL(text); got != want { //nolint:errorlint // The sentinels come as they are.
			t.Errorf("%.40q: got %v, want %v", text, got, want)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{"https://a.sandbox.test/x", "http://", "http://[::1", "HTTP://x", "http://x/%00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkURL(text) != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || len(text) > maxURLBytes || (u.Scheme != "http" && u.Scheme != "https") {
			t.Errorf("%q was accepted", text)
		}
	})
}

func TestUntrustedCertificate(t *testing.T) {
	t.Parallel()
	r := openBox(t, nil)
	server := httptest.NewUnstartedServer(serveText("text/html", "x"))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	if got := r.extract(server.URL).str("error", "code"); got != "TLS_ERROR" {
		t.Errorf("got %s", got)
	}
}
