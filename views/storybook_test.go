package views_test

import (
	"bytes"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"rollcall/static"
	"rollcall/views"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestMain(m *testing.M) {
	flag.Parse()
	views.Teach(webSays())
	goleak.VerifyTestMain(m)
}

func render(t *testing.T, page templ.Component) string {
	t.Helper()
	var out bytes.Buffer
	if err := page.Render(t.Context(), &out); err != nil {
		t.Fatalf("render: %v", err)
	}
	return out.String()
}

func parse(t *testing.T, page templ.Component) *goquery.Document {
	t.Helper()
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(render(t, page)))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return doc
}

// golden makes a page easy to compare: a tag a line, and no hashes of static files, which change with every touch of
// a style sheet.
func golden(page string) string {
	page = regexp.MustCompile(`(/static/[a-z.-]+)\.[0-9a-f]{12}\.`).ReplaceAllString(page, "$1.HASH.")
	return strings.ReplaceAll(page, "><", ">\n<") + "\n"
}

func TestStoriesMatchTheirGoldenFiles(t *testing.T) {
	t.Parallel()
	for _, each := range stories() {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			got := golden(render(t, each.page))
			path := filepath.Join("testdata", each.name+".html")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v (go test ./views -update writes it)", err)
			}
			if diff := cmp.Diff(got, string(want)); diff != "" {
				t.Errorf("page differs from %s (-got +want):\n%s", path, diff)
			}
		})
	}
}

// The policy that pages live under refuses anything inline, so a page that has some would be broken in silence.
func TestStoriesHoldNothingInline(t *testing.T) {
	t.Parallel()
	for _, each := range stories() {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			doc := parse(t, each.page)
			doc.Find("*").Each(func(_ int, s *goquery.Selection) { checkElement(t, s.Nodes[0]) })
			if got := doc.Find("html[lang]").Length(); got != 1 {
				t.Errorf("html elements with a language: got %d, want 1", got)
			}
			if got := doc.Find("h1").Not(".reading h1").Length(); got != 1 {
				t.Errorf("h1 elements: got %d, want 1", got)
			}
		})
	}
}

func checkElement(t *testing.T, node *html.Node) {
	t.Helper()
	if node.Data == "style" || node.Data == "script" && node.FirstChild != nil {
		t.Errorf("inline <%s>", node.Data)
	}
	for _, attribute := range node.Attr {
		switch {
		case attribute.Key == "style", strings.HasPrefix(attribute.Key, "on"), strings.HasPrefix(attribute.Key, "hx-on"):
			t.Errorf("<%s> has the attribute %s=%q", node.Data, attribute.Key, attribute.Val)
		case strings.HasPrefix(strings.TrimSpace(strings.ToLower(attribute.Val)), "javascript:") && (attribute.Key == "href" || attribute.Key == "src" || attribute.Key == "action"):
			t.Errorf("<%s> leads to %q", node.Data, attribute.Val)
		}
	}
}

func TestStoriesEscapeHostileText(t *testing.T) {
	t.Parallel()
	for _, each := range stories() {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			if page := render(t, each.page); strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") {
				t.Error("hostile text became markup")
			}
		})
	}
}

func TestStoriesAskOnlyForFilesThatExist(t *testing.T) {
	t.Parallel()
	handler := static.Handler()
	sprite := spriteNames(t, handler)
	for _, each := range stories() {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			doc := parse(t, each.page)
			doc.Find("link[href], script[src], use[href]").Each(func(_ int, s *goquery.Selection) {
				path := s.AttrOr("href", s.AttrOr("src", ""))
				path, icon, isIcon := strings.Cut(path, "#")
				if got := fetch(t, handler, path).Code; got != http.StatusOK {
					t.Errorf("GET %s: got %d, want 200", path, got)
				}
				if isIcon && !sprite[icon] {
					t.Errorf("icon %q is not in static/icons.txt", icon)
				}
			})
		})
	}
}

func fetch(t *testing.T, handler http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	return answer
}

func spriteNames(t *testing.T, handler http.Handler) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	body := fetch(t, handler, static.URL("icons.svg")).Body.String()
	for _, found := range regexp.MustCompile(`<symbol id="([^"]+)"`).FindAllStringSubmatch(body, -1) {
		names[found[1]] = true
	}
	return names
}

// Every form that changes something carries the token, and every field has a name to be read out.
func TestStoriesFormsCarryTheirToken(t *testing.T) {
	t.Parallel()
	for _, each := range stories() {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			parse(t, each.page).Find(`form[method="post"]`).Each(func(_ int, form *goquery.Selection) {
				if got := form.Find(`input[type="hidden"][name="csrf_token"]`).AttrOr("value", ""); got != "csrf-of-this-session" {
					t.Errorf("form to %s: token is %q", form.AttrOr("action", ""), got)
				}
			})
		})
	}
}
