package views

import (
	"context"
	"encoding/json"
	"fmt"

	cldr "golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// formOther is the plural form that every language has, and the only one of a
// text that speaks of no number; formOne is English's other one.
const (
	formOther = "other"
	formOne   = "one"
)

// phrase is a text of a catalog in its plural forms, by their names in CLDR.
type phrase map[string]string

// UnmarshalJSON reads a text, or an object of its forms.
func (p *phrase) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*p = phrase{formOther: text}
		return nil
	}
	return json.Unmarshal(raw, (*map[string]string)(p))
}

// Textf is a text with values in it in the reader's language: they stand where
// package fmt has them put, and a translation may turn them round (%[2]s). The
// English text is its name in the catalogs, so it is written out where Textf is
// called.
func Textf(ctx context.Context, english string, values ...any) string {
	return fmt.Sprintf(tr(ctx, english), values...)
}

// Counted is a text that speaks of a number, which stands where its %s is: one
// for one, many for all others and as its name in the catalogs, where a language
// has as many forms as it needs.
func Counted(ctx context.Context, c Count, one, many string) string {
	form := formOf(languageOf(ctx), c)
	english := many
	if form == formOne {
		english = one
	}
	return fmt.Sprintf(inLanguage(ctx, many, form, english), c)
}

// formOf is the form that a language uses for a number. One that isn't known,
// or is only a lower bound, has the one of many.
func formOf(name string, c Count) string {
	if !c.Known || c.More {
		return formOther
	}
	const looked = 10_000_000 // The rules look at the last seven digits.
	switch cldr.Cardinal.MatchPlural(language.Make(name), int(c.N%looked), 0, 0, 0, 0) {
	case cldr.Zero:
		return "zero"
	case cldr.One:
		return formOne
	case cldr.Two:
		return "two"
	case cldr.Few:
		return "few"
	case cldr.Many:
		return "many"
	case cldr.Other:
	}
	return formOther
}
