package web

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// hostileCorpus is what pages hold that mean harm: the files of
// testdata/hostile, with another origin in place of {{EVIL}}, and what is too
// large to keep.
func hostileCorpus(t *testing.T, evil string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/hostile/*")
	if err != nil || len(files) < 10 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	corpus := map[string][]byte{
		"made: 20 MB of Markdown":      []byte("# hostilecorpus\n\n" + strings.Repeat("A *word* and a [link](/x), <b>bold</b>.\n\n", (20<<20)/42)),
		"made: deep quotes":            []byte("hostilecorpus\n\n" + strings.Repeat("> ", 200_000) + "x"),
		"made: deep lists":             []byte("hostilecorpus\n\n" + strings.Repeat("- ", 200_000) + "x"),
		"made: deep elements":          []byte("hostilecorpus" + strings.Repeat("<div><b><i>", 50_000) + "x"),
		"made: an attribute of 2 MB":   []byte(`hostilecorpus <a href="` + strings.Repeat("x", 2<<20) + `">x</a>`),
		"made: a table of 2000 x 2000": []byte("hostilecorpus\n\n|" + strings.Repeat("a|", 2000) + "\n|" + strings.Repeat("-|", 2000) + "\n" + strings.Repeat("|\n", 2000)),
		"made: one line of 3 MB":       []byte("hostilecorpus " + strings.Repeat("word ", 600_000)),
		"made: a million lines":        []byte("hostilecorpus\n" + strings.Repeat("\n", 1_000_000)),
		"made: brackets that open":     []byte("hostilecorpus " + strings.Repeat("![[(", 100_000)),
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		corpus[filepath.Base(file)] = []byte(strings.ReplaceAll(string(content), "{{EVIL}}", evil))
	}
	return corpus
}

// shelf is one result that takes each page of the corpus in turn.
type shelf struct {
	bench *bench
	item  int64
	batch int64
	index *pipeline.Pipeline
}

func newShelf(t *testing.T, b *bench) *shelf {
	t.Helper()
	client, err := geonode.New(geonode.Config{BaseURL: "http://127.0.0.1:9", APIKey: "none", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p, err := pipeline.New(pipeline.Config{
		Store: b.store, Vendor: client, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Key: make([]byte, 32), OnlySubmit: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	seeded := b.seed(t, "november", 4)
	return &shelf{bench: b, item: seeded.items[0], batch: seeded.batch, index: p}
}

// put has the result be a page: as Markdown, HTML, title, link and metadata.
func (s *shelf) put(t *testing.T, content []byte) {
	t.Helper()
	head := string(content[:min(len(content), 3000)])
	title := store.CleanText(head[:min(len(head), 180)])
	links := jsonText(t, append(regexp.MustCompile(`[^\s"'<>]+:[^\s"'<>]+`).FindAllString(store.CleanText(head), 50), "javascript:alert(1)", title))
	metadata := jsonText(t, map[string]string{title: store.CleanText(head), "<script>": "javascript:alert(1)"})
	s.bench.exec(t, `UPDATE results SET markdown = $2, html = $2, title = $3, links = $4, metadata = $5, version = version + 1 WHERE item_id = $1`,
		s.item, content, title, links, metadata)
	for more := true; more; {
		var err error
		if more, err = s.index.Index(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// pages are all that show the result or something of it.
func (s *shelf) pages() []string {
	result := fmt.Sprintf("/results/%d", s.item)
	pages := []string{
		"/search?q=hostilecorpus", "/search?q=hostilecorpus&order=best", fmt.Sprintf("/items/%d", s.item), fmt.Sprintf("/batches/%d/items", s.batch), "/",
	}
	for _, tab := range []string{"read", "markdown", "preview", "html", "links", "metadata", "story", "history"} {
		pages = append(pages, result+"?tab="+tab)
	}
	return pages
}

// TestHostileCorpus: whatever a page holds, no renderer makes anything of it
// that runs, that loads, or that looks like a part of ours.
func TestHostileCorpus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.as(t, store.RoleAnalyst)
	s := newShelf(t, b)
	corpus := hostileCorpus(t, "https://evil.example")
	for _, name := range slices.Sorted(maps.Keys(corpus)) {
		s.put(t, corpus[name])
		for _, path := range s.pages() {
			got := v.get(path)
			if got.status != http.StatusOK || len(got.body) > 8<<20 {
				t.Errorf("%s, %s: got %d with %d bytes", name, path, got.status, len(got.body))
			}
			for _, wrong := range harm(got) {
				t.Errorf("%s, %s: %s", name, path, wrong)
			}
		}
		if found := v.get("/search?q=hostilecorpus"); name != "README.md" && found.doc.Find("[data-testid=found] li").Length() != 1 {
			t.Errorf("%s: got %q, want it found", name, found.text("#found"))
		}
		if status, policy := v.policyOf(fmt.Sprintf("/results/%d/preview", s.item)); status != http.StatusOK || policy != previewPolicy {
			t.Errorf("%s, preview: got %d under %q", name, status, policy)
		}
	}
}

// policyOf asks for what isn't ours, and reads none of it.
func (v *visitor) policyOf(path string) (int, string) {
	v.t.Helper()
	resp, err := v.client.Do(v.request(http.MethodGet, path, nil))
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Content-Security-Policy")
}

// harm lists what a page of ours would not have.
func harm(got page) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if strings.Contains(got.body, "\x00") {
		say("NUL in the page")
	}
	got.doc.Find("*").Each(func(_ int, e *goquery.Selection) {
		node := e.Nodes[0]
		switch node.Data {
		case "style", "base", "object", "embed", "svg:script", "frame", "portal", "video", "audio":
			say("<%s>", node.Data)
		case "script":
			if !strings.HasPrefix(e.AttrOr("src", ""), "/static/") || node.FirstChild != nil {
				say("<script src=%q>", e.AttrOr("src", ""))
			}
		case "iframe":
			if _, shut := e.Attr("sandbox"); !shut || e.AttrOr("sandbox", "") != "" || !strings.HasPrefix(e.AttrOr("src", ""), "/results/") {
				say("<iframe sandbox=%q src=%q>", e.AttrOr("sandbox", "none"), e.AttrOr("src", ""))
			}
		case "meta":
			if e.AttrOr("http-equiv", "") != "" {
				say("<meta http-equiv>")
			}
		}
		for _, a := range node.Attr {
			if text := harmfulAttribute(node, a); text != "" {
				say("%s", text)
			}
		}
	})
	return wrong
}

// harmfulAttribute says what is wrong with an attribute, or "".
func harmfulAttribute(node *html.Node, a html.Attribute) string {
	value := strings.ToLower(strings.TrimSpace(a.Val))
	switch {
	case strings.HasPrefix(a.Key, "on"), strings.HasPrefix(a.Key, "hx-on"), a.Key == "style", a.Key == "srcset", a.Key == "ping", a.Key == "background", a.Key == "formaction":
		return fmt.Sprintf("<%s %s=%.80q>", node.Data, a.Key, a.Val)
	case a.Key == "src" && !strings.HasPrefix(value, "/") && !dataImage.MatchString(a.Val), a.Key == "src" && strings.HasPrefix(value, "//"):
		return fmt.Sprintf("<%s src=%.80q>", node.Data, a.Val)
	case a.Key == "href" && node.Data != "link" && node.Data != "use":
		if u, err := url.Parse(a.Val); err != nil || !slices.Contains([]string{"", "http", "https", "mailto"}, u.Scheme) {
			return fmt.Sprintf("<%s href=%.80q>", node.Data, a.Val)
		}
	case a.Key == "action" && (!strings.HasPrefix(value, "/") || strings.HasPrefix(value, "//")):
		return fmt.Sprintf("<form action=%.80q>", a.Val)
	case strings.HasPrefix(a.Key, "hx-") && strings.Contains(value, "evil"):
		return fmt.Sprintf("%s=%.80q", a.Key, a.Val)
	}
	return ""
}

func jsonText(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
