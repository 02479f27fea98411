package views_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// saidBy are the functions of package views that say their arguments, by which of them, to the reader through tr.
var saidBy = map[string][]int{
	"tr": {1}, "Textf": {1}, "pageHead": {0}, "crumbs": {1, 2}, "empty": {1}, "planLine": {3, 4}, "pager": {1}, "term": {0}, "figure": {0},
	"copyable": {1}, "copyableAs": {2}, "copyableOrNone": {1}, "source": {1}, "sourceLines": {1}, "comparedSide": {0}, "side": {0}, "diffSide": {1},
	"check": {2}, "pickRadio": {2}, "oneURL": {0, 2}, "numberField": {1, 4}, "passwordField": {2, 4}, "pasteBox": {1}, "rotateForm": {2},
	"itemInput": {2, 4}, "itemChoice": {2}, "filterInput": {2, 4}, "filterChoice": {2}, "filterSelect": {1}, "searchInput": {2, 4},
	"exportButton": {3}, "replayButton": {3}, "scheduleButton": {3}, "scheduleNote": {2, 3}, "registerForm": {1}, "webhookButton": {5}, "userAction": {4, 5},
}

// saidFrom are the functions of package views that return what is said through tr.
var saidFrom = []string{
	"roleText", "rotationTitle", "word", "markText", "nothingAgain", "pickedTitle", "rerunHow", "formatName", "delimiterName", "formatWord", "sentIn",
	"kindText", "refusedText", "awayText", "formatText", "noJobsText", "originText", "retryText", "reachText", "itemTitle", "itemsTitle", "itemTabsTitle",
	"comparedPart", "comparedMeaning", "contentType", "formWord", "formHint", "flagText", "title", "callText", "modeName", "storedBy", "figuresBy", "unitIn",
	"weekdayName", "monthName", "settledText", "comingTitle", "untakenText", "stateText", "jobKindText", "registerText", "failuresPicked",
}

// saidIn are the types whose lists of literals hold texts that are said through tr, by which of their fields.
var saidIn = map[string][]int{
	"menuEntry": {3}, "keyText": {1}, "look": {2}, "Option": {1}, "resultTab": {2}, "itemTab": {1}, "preflightTab": {1}, "chartEntry": {1}, "rollPart": {1},
	"submitKind": {3, 4}, "scriptText": {0},
}

// said are the literal texts that people read: those of the pages, and the sentences that package web puts into them.
// What speaks of a number has a form for one and a form for others.
func said(t *testing.T) map[string]any {
	t.Helper()
	want := map[string]any{}
	for _, tree := range sources(t, "*.go") {
		ast.Inspect(tree, func(n ast.Node) bool {
			addSaid(t, want, n)
			return true
		})
	}
	// What of the other packages' constant texts pages show.
	for _, pattern := range []string{"../internal/pipeline/diagnose*.go", "../internal/pipeline/webhooks_vendor.go"} {
		for _, tree := range sources(t, pattern) {
			addSentences(t, want, tree)
		}
	}
	for _, tree := range sources(t, "../internal/export/columns.go") {
		ast.Inspect(tree, func(n ast.Node) bool {
			addAbout(t, want, n)
			return true
		})
	}
	for _, tree := range sources(t, "../web/*.go") {
		addSentences(t, want, tree)
		ast.Inspect(tree, func(n ast.Node) bool {
			addSaid(t, want, n)
			return true
		})
	}
	return want
}

// sources are the parsed files, without tests.
func sources(t *testing.T, pattern string) []*ast.File {
	t.Helper()
	return parsed(t, pattern, func(file string) bool { return !strings.HasSuffix(file, "_test.go") })
}

// parsed are those of the files that are wanted.
func parsed(t *testing.T, pattern string, wanted func(file string) bool) []*ast.File {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var trees []*ast.File
	for _, file := range files {
		if !wanted(file) {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
	}
	return trees
}

// addSaid adds what a call or a literal of package views says.
func addSaid(t *testing.T, to map[string]any, n ast.Node) {
	t.Helper()
	switch n := n.(type) {
	case *ast.FuncDecl:
		if slices.Contains(saidFrom, n.Name.Name) {
			returned(t, to, n)
		}
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok {
			literals(t, to, n.Args, saidBy[name.Name])
			if name.Name == "Counted" {
				forms(t, to, n.Args)
			}
		} else if name, ok := n.Fun.(*ast.SelectorExpr); ok {
			addMade(t, to, name, n.Args)
		}
	case *ast.CompositeLit:
		if list, ok := n.Type.(*ast.ArrayType); ok {
			if name, ok := list.Elt.(*ast.Ident); ok {
				for _, each := range n.Elts {
					if row, ok := each.(*ast.CompositeLit); ok {
						literals(t, to, row.Elts, saidIn[name.Name])
					}
				}
			}
		} else if name, ok := n.Type.(*ast.Ident); ok {
			literals(t, to, n.Elts, saidIn[name.Name])
		}
	}
}

// addMade adds what package web makes a sentence of with its values.
func addMade(t *testing.T, to map[string]any, f *ast.SelectorExpr, args []ast.Expr) {
	t.Helper()
	if of, ok := f.X.(*ast.Ident); !ok || of.Name != "views" {
		return
	}
	switch f.Sel.Name {
	case "Counted":
		forms(t, to, args)
	case "Textf":
		text, ok := constant(t, args[1])
		if !ok {
			t.Fatal("views.Textf: want its English written out where it is called")
		}
		to[text] = text
	}
}

// addAbout adds what is said about a column of exports.
func addAbout(t *testing.T, to map[string]any, n ast.Node) {
	t.Helper()
	pair, ok := n.(*ast.KeyValueExpr)
	if !ok {
		return
	}
	if name, ok := pair.Key.(*ast.Ident); ok && name.Name == "about" {
		if text, ok := constant(t, pair.Value); ok {
			to[text] = text
		}
	}
}

// addSentences adds the texts of a file that are whole sentences or titles: of several words, the first one with a
// capital, and without a verb of fmt. Errors and the log are not for readers of pages.
func addSentences(t *testing.T, to map[string]any, tree *ast.File) {
	t.Helper()
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			of, ok := n.Fun.(*ast.SelectorExpr)
			return !ok || !slices.Contains([]string{"Errorf", "New", "Error", "Warn", "Info", "Debug"}, of.Sel.Name)
		case ast.Expr:
			text, ok := constant(t, n)
			if ok && isSentence(text) {
				to[text] = text
			}
			return !ok
		}
		return true
	})
}

func isSentence(text string) bool {
	return text != "" && !strings.HasSuffix(text, " ") && text[0] >= 'A' && text[0] <= 'Z' && strings.Contains(strings.TrimSpace(text), " ") && !strings.ContainsAny(text, "%\n<>=;")
}

// constant is the text of a literal, or of several that are joined.
func constant(t *testing.T, e ast.Expr) (string, bool) {
	t.Helper()
	switch e := e.(type) {
	case *ast.BinaryExpr:
		left, ok := constant(t, e.X)
		if !ok || e.Op != token.ADD {
			return "", false
		}
		right, ok := constant(t, e.Y)
		return left + right, ok
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		return text, true
	}
	return "", false
}

// returned adds the texts that a function returns.
func returned(t *testing.T, to map[string]any, f *ast.FuncDecl) {
	t.Helper()
	ast.Inspect(f, func(n ast.Node) bool {
		if back, ok := n.(*ast.ReturnStmt); ok {
			literals(t, to, back.Results, []int{0})
		}
		return true
	})
}

// forms adds a text that speaks of a number, with the two forms that English has.
func forms(t *testing.T, to map[string]any, args []ast.Expr) {
	t.Helper()
	one, ok := constant(t, args[2])
	many, too := constant(t, args[3])
	if !ok || !too {
		t.Fatal("Counted: want its texts written out where it is called")
	}
	to[many] = map[string]any{"one": one, "other": many}
}

// literals adds those of the expressions that are texts.
func literals(t *testing.T, to map[string]any, from []ast.Expr, which []int) {
	t.Helper()
	for i, each := range from {
		if text, ok := constant(t, each); ok && text != "" && slices.Contains(which, i) {
			to[text] = text
		}
	}
}
