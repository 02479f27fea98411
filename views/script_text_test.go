package views_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rollcall/views"
)

var (
	// scriptLiteral is a text between double quotes, or between backticks.
	scriptLiteral = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|` + "`[^`]*`")
	// scriptSaid is what a script hands to those of its functions that say it.
	scriptSaid = regexp.MustCompile(`(?:\bphrase|\brollcallPhrase|\bshowLive)\(\s*"([^"]+)"`)
	// placeholder is where a value stands in a script's text.
	placeholder = regexp.MustCompile(`\$\{[^}]*\}`)
)

// TestScriptsSpeakThroughTheCatalog: what our scripts say is what the pages bring them in other languages, and nothing
// of it is glued together where no catalog can reach it.
func TestScriptsSpeakThroughTheCatalog(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../static/*.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("our scripts: got %d, %v", len(files), err)
	}
	var said []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var own []string
		for _, each := range scriptSaid.FindAllStringSubmatch(string(source), -1) {
			own = append(own, each[1])
		}
		said = append(said, own...)
		for _, each := range scriptLiteral.FindAllString(withoutComments(string(source)), -1) {
			text := each[1 : len(each)-1]
			if looksSaid(text) && !slices.Contains(own, text) {
				t.Errorf("%s: %s is said past the catalog", file, each)
			}
		}
	}
	slices.Sort(said)
	want := slices.Sorted(slices.Values(views.ScriptTexts()))
	if got := slices.Compact(said); !slices.Equal(got, want) {
		t.Errorf("texts of the scripts\ngot  %q\nwant %q", got, want)
	}
}

// looksSaid reports words for people: a capital and a space, or words and a space around a value. Selectors have
// brackets.
func looksSaid(text string) bool {
	around := placeholder.ReplaceAllString(text, "")
	return isSentence(text) || around != text && !strings.ContainsAny(around, `[/`) && regexp.MustCompile(`\pL{4} | \pL{4}`).MatchString(around)
}

func withoutComments(source string) string {
	return regexp.MustCompile(`(?m)(^|\s)//.*$`).ReplaceAllString(source, "")
}
