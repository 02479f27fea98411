package views_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"
	"github.com/google/go-cmp/cmp"

	"rollcall/views"
)

// saidBy are the functions of package views that say their arguments, by which of them, to the reader through tr.
var saidBy = map[string][]int{"tr": {1}, "pageHead": {0}, "empty": {1}, "planLine": {3, 4}}

// saidIn are the types whose lists of literals hold texts that are said through tr, by which of their fields.
var saidIn = map[string][]int{"menuEntry": {3}, "keyText": {1}}

// The catalog of English texts is exactly what the pages say: what is missing there can't be translated, and what
// nobody says is translated in vain. -update writes it.
func TestCatalogHoldsEveryText(t *testing.T) {
	t.Parallel()
	want := said(t)
	catalog := filepath.Join("texts", "en.json")
	if *update {
		var raw bytes.Buffer
		encode := json.NewEncoder(&raw)
		encode.SetEscapeHTML(false)
		encode.SetIndent("", "  ")
		if err := encode.Encode(want); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(catalog, raw.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(catalog)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("texts/en.json is stale; go test ./views -run Catalog -update writes it (-got +want):\n%s", diff)
	}
}

func TestLanguageFor(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]string{"": "en", "en-GB,en;q=0.9": "en", "xx": "en", "*": "en", "de-AT, fr;q=0.5": "en", ";;;": "en", "en-XA": "en-XA"} {
		if got := views.LanguageFor(accept); got != want {
			t.Errorf("%q: got %q, want %q", accept, got, want)
		}
	}
}

// In the pseudo-language every text that goes through the catalog stands in brackets.
func TestPagesSpeakThroughTheCatalog(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	if err := storyOf(t, "failures").Render(views.WithLanguage(t.Context(), views.LanguageFor("en-XA")), &page); err != nil {
		t.Fatal(err)
	}
	doc, err := goquery.NewDocumentFromReader(&page)
	if err != nil {
		t.Fatal(err)
	}
	if got := doc.Find("html").AttrOr("lang", ""); got != "en-XA" {
		t.Errorf("lang: got %q, want en-XA", got)
	}
	for _, selector := range []string{"h1", "table[data-testid=groups] th[scope=col]", ".foot [data-keys]"} {
		for _, text := range texts(doc.Find(selector)) {
			if !strings.HasPrefix(text, "[") {
				t.Errorf("%s: %q went past the catalog", selector, text)
			}
		}
	}
}

// said are the literal texts that the pages say.
func said(t *testing.T) map[string]string {
	t.Helper()
	want := map[string]string{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if name, ok := n.Fun.(*ast.Ident); ok {
					literals(t, want, n.Args, saidBy[name.Name])
				}
			case *ast.CompositeLit:
				if list, ok := n.Type.(*ast.ArrayType); ok {
					if name, ok := list.Elt.(*ast.Ident); ok {
						for _, each := range n.Elts {
							if row, ok := each.(*ast.CompositeLit); ok {
								literals(t, want, row.Elts, saidIn[name.Name])
							}
						}
					}
				} else if name, ok := n.Type.(*ast.Ident); ok {
					literals(t, want, n.Elts, saidIn[name.Name])
				}
			}
			return true
		})
	}
	return want
}

func storyOf(t *testing.T, name string) templ.Component {
	t.Helper()
	for _, each := range stories() {
		if each.name == name {
			return each.page
		}
	}
	t.Fatalf("no story %q", name)
	return nil
}

// literals adds those of the expressions that are texts.
func literals(t *testing.T, to map[string]string, from []ast.Expr, which []int) {
	t.Helper()
	for i, each := range from {
		literal, ok := each.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || !slices.Contains(which, i) {
			continue
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		if text != "" {
			to[text] = text
		}
	}
}
