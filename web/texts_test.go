package web_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// forMachines are the places that write for programs, by file and by function or first name, and for whom.
var forMachines = map[string]string{
	"account.go passwordKey":         "the database: what tries are counted by",
	"audit_export.go auditCSV":       "HTTP: a media type",
	"browser_name.go browserNames":   "names of products, which are the same in all languages",
	"browser_name.go systemMarks":    "names of products, which are the same in all languages",
	"errors.go plainProblem":         "programs: who reads pages gets a page",
	"health.go":                      "whatever watches over processes",
	"invite.go linkKey":              "the database: what tries are counted by",
	"live.go itemsMoved":             "htmx: events of a stream",
	"middleware.go pagePolicy":       "browsers",
	"results_files.go previewPolicy": "browsers",
	"sign_in.go tryKeys":             "the database: what tries are counted by",
	"webhook.go":                     "the vendor",
	"zones.go zoneNames":             "names of the tz database",
	"zones.go knownZone":             "names of the tz database",
}

// TestTextsAreWhole: what a reader of a page is told is a sentence of the catalog with its values put in by views.Textf
// or views.Counted. Nobody can translate "The secret of " and " was changed", nor what isn't in the catalog.
func TestTextsAreWhole(t *testing.T) {
	t.Parallel()
	known, unused := catalog(t), map[string]bool{}
	for place := range forMachines {
		unused[place] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range tree.Decls {
			for _, each := range untold(decl, known) {
				if place := placeOf(file, decl); forMachines[place] != "" {
					delete(unused, place)
				} else if forMachines[file] != "" {
					delete(unused, file)
				} else {
					t.Errorf("%s: %s is for readers of pages, and no whole text of the catalog: use views.Textf or views.Counted", set.Position(each.Pos()), each.Value)
				}
			}
		}
	}
	for place := range unused {
		t.Errorf("forMachines: nothing is written in %s", place)
	}
}

// placeOf is a file and the function, or the first name, that is declared there.
func placeOf(file string, decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return file + " " + d.Name.Name
	case *ast.GenDecl:
		if spec, ok := d.Specs[0].(*ast.ValueSpec); ok {
			return file + " " + spec.Names[0].Name
		}
	}
	return file
}

// catalog are the English texts that can be translated, in all their forms.
func catalog(t *testing.T) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "views", "texts", "en.json"))
	if err != nil {
		t.Fatal(err)
	}
	var texts map[string]any
	if err := json.Unmarshal(raw, &texts); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for text, forms := range texts {
		known[text] = true
		if forms, ok := forms.(map[string]any); ok {
			for _, form := range forms {
				if form, ok := form.(string); ok {
					known[form] = true
				}
			}
		}
	}
	return known
}

// untold are the literals below a node that look like English and are no text of the catalog: parts that are joined to
// values, and whole ones. What is only compared or logged is told to nobody.
func untold(below ast.Node, known map[string]bool) []*ast.BasicLit {
	f := &finder{known: known}
	ast.Inspect(below, f.look)
	return f.found
}

// finder walks a tree and keeps what it finds.
type finder struct {
	known map[string]bool
	found []*ast.BasicLit
}

// look is what ast.Inspect calls.
func (f *finder) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.Field:
		return false
	case *ast.CallExpr:
		if of, name := called(n); of == "fmt" && strings.Contains(name, "rint") {
			for _, arg := range n.Args {
				f.part(arg)
			}
		}
		return !logs(n)
	case *ast.BinaryExpr:
		if n.Op == token.ADD {
			f.sum(n)
			return false
		}
	case *ast.BasicLit:
		f.whole(n)
	}
	return true
}

// sum looks at what is joined.
func (f *finder) sum(e ast.Expr) {
	if f.whole(e) {
		return
	}
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != token.ADD {
		ast.Inspect(e, f.look)
		return
	}
	for _, side := range []ast.Expr{b.X, b.Y} {
		if !f.part(side) {
			f.sum(side)
		}
	}
}

// whole looks at a text by itself; false when it isn't a constant.
func (f *finder) whole(e ast.Expr) bool {
	text, first := constantText(e)
	if first != nil && !f.known[text] && wholeEnglish.MatchString(verbs.ReplaceAllString(text, "%")) {
		f.found = append(f.found, first)
	}
	return first != nil
}

// part looks at a text that values stand beside, or in: no catalog makes it whole.
func (f *finder) part(e ast.Expr) bool {
	text, first := constantText(e)
	if first != nil && partEnglish.MatchString(verbs.ReplaceAllString(text, "%")) {
		f.found = append(f.found, first)
	}
	return first != nil
}

// What looks like English: several words, or one with a capital; and of what is joined to a value, also a word beside a
// space. A word alone in small letters may as well be one of the database.
var (
	verbs        = regexp.MustCompile(`%[0-9.+]*[a-z]`)
	wholeEnglish = regexp.MustCompile(`[A-Za-z][,.:;']? [A-Za-z0-9%"(]|% [A-Za-z]|^[A-Z][a-z]+[.:!?]?$`)
	partEnglish  = regexp.MustCompile(`[A-Za-z][,.:;']? | [A-Za-z]|^[A-Z][a-z]+[.:!?]?$`)
)

// logs reports a call whose texts are for the log, or for programs.
func logs(call *ast.CallExpr) bool {
	of, name := called(call)
	switch of + "." + name {
	case "fmt.Errorf", "errors.New", "regexp.MustCompile":
		return true
	}
	switch name {
	case "Set", "Get", // Of headers and addresses.
		"ErrorContext", "WarnContext", "InfoContext", "LogAttrs", "Format", "ParseInLocation":
		return true
	}
	return of == "slog"
}

// called is the name of a function, and of what it belongs to.
func called(call *ast.CallExpr) (string, string) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	of, _ := f.X.(*ast.Ident)
	if of == nil {
		return "", f.Sel.Name
	}
	return of.Name, f.Sel.Name
}

// constantText is the text of a literal or of several that are joined, and the first of them; nil when it is neither.
func constantText(e ast.Expr) (string, *ast.BasicLit) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		left, first := constantText(e.X)
		right, second := constantText(e.Y)
		if e.Op == token.ADD && first != nil && second != nil {
			return left + right, first
		}
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text, e
		}
	}
	return "", nil
}
