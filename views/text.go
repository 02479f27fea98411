package views

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
)

// English is what the pages are written in; every other language translates it.
const English = "en"

// pseudo is no language: each text that is in the catalog stands in brackets, so
// that one sees on a page what no translator could reach. A browser that accepts
// it alone gets it.
const pseudo = "en-XA"

// textFiles are the catalogs: for each language a file that says for each
// English text of the pages what it is there. en.json lists all there are, and
// the tests keep it so; a further language is a further file.
//
//go:embed texts/*.json
var textFiles embed.FS

// catalogs are read once, by language.
var catalogs = sync.OnceValue(func() map[string]map[string]phrase {
	all, err := readCatalogs()
	if err != nil {
		panic(fmt.Sprintf("embedded texts: %v", err)) // Only a broken build can cause this.
	}
	return all
})

func readCatalogs() (map[string]map[string]phrase, error) {
	files, err := textFiles.ReadDir("texts")
	if err != nil {
		return nil, fmt.Errorf("list the texts: %w", err)
	}
	all := make(map[string]map[string]phrase, len(files))
	for _, file := range files {
		raw, err := textFiles.ReadFile(path.Join("texts", file.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the texts: %w", err)
		}
		texts := map[string]phrase{}
		if err := json.Unmarshal(raw, &texts); err != nil {
			return nil, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		all[strings.TrimSuffix(file.Name(), ".json")] = texts
	}
	return all, nil
}

// Languages are those that the pages can be read in, English first.
func Languages() []string {
	var others []string
	for name := range catalogs() {
		if name != English {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return append([]string{English}, others...)
}

// LanguageFor picks of the languages there are the one that suits an
// Accept-Language header best (RFC 9110 section 12.5.4): English when none does.
func LanguageFor(accept string) string {
	if accept == "" {
		return English
	}
	if accept == pseudo {
		return pseudo
	}
	wanted, _, err := language.ParseAcceptLanguage(accept)
	if err != nil {
		return English
	}
	_, at, _ := matcher().Match(wanted...)
	return Languages()[at]
}

// matcher knows the languages, in the order of Languages. It takes longer to
// make than a page.
var matcher = sync.OnceValue(func() language.Matcher {
	var tags []language.Tag
	for _, name := range Languages() {
		tags = append(tags, language.Make(name))
	}
	return language.NewMatcher(tags)
})

type languageKey struct{}

// WithLanguage has the pages that are rendered with the context be in a
// language.
func WithLanguage(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, languageKey{}, name)
}

// languageOf is the language of a page.
func languageOf(ctx context.Context) string {
	if name, ok := ctx.Value(languageKey{}).(string); ok {
		return name
	}
	return English
}

// tr is an English text of the pages in the reader's language. What no
// catalog has, such as a batch's own name, stays as it is.
func tr(ctx context.Context, english string) string {
	return inLanguage(ctx, english, formOther, english)
}

// inLanguage is a plural form of a text that the catalogs have by a name.
func inLanguage(ctx context.Context, name, form, english string) string {
	switch lang := languageOf(ctx); lang {
	case English:
		return english
	case pseudo:
		if _, ok := catalogs()[English][name]; !ok {
			return english // A name, or a text that was here already.
		}
		return "[" + english + "]"
	default:
		forms := catalogs()[lang][name]
		return cmp.Or(forms[form], forms[formOther], english)
	}
}
