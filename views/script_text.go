package views

import (
	"context"
	"encoding/json"

	"github.com/a-h/templ"
)

// scriptText is a text that the scripts of package static put into pages. They
// put its values where each %s stands.
type scriptText struct{ english string }

func scriptTexts() []scriptText {
	return []scriptText{
		{"Live"},
		{"Connection lost, trying again"},
		{"Paused: click to follow"},
		{"Color theme: as the system"},
		{"Color theme: light"},
		{"Color theme: dark"},
		{"Show %s"},
		{"%s line."},
		{"%s lines."},
		{"Up to %s for the line above."},
		{"Up to %s for the lines above."},
		{"%s answered since: show"},
		{"%s new: show"},
		{"%s: %s stored; submit to stored %s, 95 % within %s"},
	}
}

// scriptData hands the scripts their texts in the page's language; in English
// they have them.
func scriptData(ctx context.Context) templ.Attributes {
	if languageOf(ctx) == English {
		return nil
	}
	texts := map[string]string{}
	for _, each := range scriptTexts() {
		texts[each.english] = tr(ctx, each.english)
	}
	encoded, err := json.Marshal(texts)
	if err != nil {
		return nil // Cannot happen: a map of texts always encodes.
	}
	return templ.Attributes{"data-texts": string(encoded)}
}
