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

// shelf is one result that takes each page of the corpus in turn, with a
// failure and a stuck item beside it, and an ordinary result of the same page in
// an earlier batch, with which it is compared.
type shelf struct {
	bench *bench
	seed
	item   int64
	before seed
	index  *pipeline.Pipeline
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
	s := &shelf{bench: b, before: b.seed(t, "october", 4), seed: b.seed(t, "november", 4), index: p}
	s.item = s.items[0]
	b.exec(t, `UPDATE batches SET created_at = now() - interval '1 h' WHERE id = $1`, s.batch)
	b.exec(t, `UPDATE jobs SET state = 'accepted', ended_at = NULL, settle_net = NULL, accepted_at = now() - interval '1 h' WHERE id = $1`, s.job)
	compared := b.id(t, `INSERT INTO comparisons (a_batch_id, b_batch_id, state, asked_at, ended_at, changed)
		VALUES ($1, $2, 'done', now(), now(), 1) RETURNING id`, s.before.batch, s.batch)
	b.exec(t, `INSERT INTO comparison_pages (comparison_id, kind, n, a_item_id, b_item_id) VALUES ($1, 'changed', 1, $2, $3)`, compared, s.before.items[0], s.item)
	return s
}

// put has the result be a page: as Markdown, HTML, title, link and metadata. Its
// neighbors say the same where words come from the vendor.
func (s *shelf) put(t *testing.T, content []byte) {
	t.Helper()
	head := string(content[:min(len(content), 3000)])
	title := store.CleanText(head[:min(len(head), 180)])
	links := jsonText(t, append(regexp.MustCompile(`[^\s"'<>]+:[^\s"'<>]+`).FindAllString(store.CleanText(head), 50), "javascript:alert(1)", title))
	metadata := jsonText(t, map[string]string{title: store.CleanText(head), "<script>": "javascript:alert(1)"})
	s.bench.exec(t, `UPDATE results SET markdown = $2, html = $2, title = $3, links = $4, metadata = $5, version = version + 1 WHERE item_id = $1`,
		s.item, content, title, links, metadata)
	b := s.bench
	b.exec(t, `UPDATE items SET url = 'https://a.example/?' || $2, error_message = $2, error_code = CASE WHEN state = 'failed' THEN left($2, 60) ELSE '' END
		WHERE id = ANY ($1)`, []int64{s.items[1], s.items[2]}, strings.Join(strings.Fields(title), " "))
	b.exec(t, `UPDATE jobs SET vendor_status = $2, error_message = $2 WHERE id = $1`, s.job, title)
	b.exec(t, `UPDATE batches SET name = $2 WHERE id = $1`, s.batch, store.CleanText(title[:min(len(title), 100)]))
	for more := true; more; {
		var err error
		if more, err = s.index.Index(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// pages are all that show the result or something of it. What is large alone
// is no different in the words beside it: titles, links and metadata are cut.
func (s *shelf) pages(large bool) []string {
	result := fmt.Sprintf("/results/%d", s.item)
	pages := []string{
		"/search?q=hostilecorpus", "/search?q=hostilecorpus&order=best", fmt.Sprintf("/items/%d", s.item),
		fmt.Sprintf("/compare/results?a=%d&b=%d", s.before.items[0], s.item), fmt.Sprintf("/compare/results?a=%d&b=%d&part=html", s.before.items[0], s.item),
	}
	tabs := []string{"read", "markdown", "html"}
	if !large {
		pages = append(pages, "/", fmt.Sprintf("/batches/%d/items", s.batch), fmt.Sprintf("/batches/%d/stuck", s.batch), fmt.Sprintf("/batches/%d", s.batch),
			"/failures", fmt.Sprintf("/items/%d", s.items[1]), fmt.Sprintf("/jobs/%d", s.job), fmt.Sprintf("/compare/batches?a=%d&b=%d", s.before.batch, s.batch))
		tabs = append(tabs, "preview", "links", "metadata", "story", "history")
	}
	for _, tab := range tabs {
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
		for _, path := range s.pages(strings.HasPrefix(name, "made: ")) {
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
	case strings.HasPrefix(a.Key, "on"), strings.HasPrefix(a.Key, "hx-on"), a.Key == "style", a.Key == "srcset", a.Key == "ping", a.Key == "background":
		return fmt.Sprintf("<%s %s=%.80q>", node.Data, a.Key, a.Val)
	case a.Key == "src" && !strings.HasPrefix(value, "/") && !dataImage.MatchString(a.Val), a.Key == "src" && strings.HasPrefix(value, "//"):
		return fmt.Sprintf("<%s src=%.80q>", node.Data, a.Val)
	case a.Key == "href" && node.Data != "link" && node.Data != "use":
		if u, err := url.Parse(a.Val); err != nil || !slices.Contains([]string{"", "http", "https", "mailto"}, u.Scheme) {
			return fmt.Sprintf("<%s href=%.80q>", node.Data, a.Val)
		}
	case (a.Key == "action" || a.Key == "formaction") && (!strings.HasPrefix(value, "/") || strings.HasPrefix(value, "//")):
		return fmt.Sprintf("<%s %s=%.80q>", node.Data, a.Key, a.Val)
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
