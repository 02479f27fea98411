package views

import "context"

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

// forScripts are the scripts' texts in the page's language, by the English ones.
func forScripts(ctx context.Context) map[string]string {
	texts := map[string]string{}
	for _, each := range scriptTexts() {
		texts[each.english] = tr(ctx, each.english)
	}
	return texts
}
