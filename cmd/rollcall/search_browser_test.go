package main

import (
	"regexp"
	"strings"
)

// searchResult looks for a word of the result shown, reads what is found, and
// goes through its source and what is known of it.
func (b *chrome) searchResult() {
	b.t.Helper()
	word := b.value(`document.querySelector("[data-testid=prose]").innerText.match(/[a-z]{6,}/i)?.[0] ?? ""`)
	if word == "" {
		b.t.Fatal("the result has no word to look for")
	}
	b.visit("/search")
	b.check("search")
	b.fill("#q", word)
	b.click("[data-testid=search] [type=submit]")
	b.until("#found, [data-testid=backlog]", `\w`)
	// Results become searchable behind everything else: the page says how many are not yet.
	eventually(b.t, "the word to be found", patience, func() bool {
		if found := b.value(`document.querySelector("[data-testid=found] a[href^='/results/']")?.href ?? ""`); found != "" {
			return true
		}
		b.visit("/search?q=" + word)
		return false
	})
	if marked := b.text("[data-testid=found] mark"); !strings.EqualFold(marked, word) {
		b.t.Errorf("marked: got %q, want %q", marked, word)
	}
	b.check("search-found")
	b.click("[data-testid=found] a[href^='/results/']")
	b.until("[data-testid=prose]", "(?i)"+regexp.QuoteMeta(word))

	b.click("a[href*='tab=markdown']")
	b.until("#source", `\w{3,}`)
	b.click("#L1 .ln")
	if hash := b.value(`location.hash`); hash != "#L1" {
		b.t.Errorf("a line's number leads to %q, want #L1", hash)
	}
	selected := b.value(`getSelection().selectAllChildren(document.querySelector("#source")); getSelection().toString()`)
	if source := b.value(`[...document.querySelectorAll(".line")].map((e) => e.lastChild.textContent).join("")`); strings.Join(strings.Fields(selected), " ") != strings.Join(strings.Fields(source), " ") {
		b.t.Errorf("selected: got %.300q, want the lines without their numbers", selected)
	}
	b.value(`getSelection().removeAllRanges(); ""`)
	b.check("result-source")
	for tab, want := range map[string]string{"metadata": "SHA-256", "story": "Stored", "history": "Other results of this page", "links": "links"} {
		b.click("a[href*='tab=" + tab + "']")
		b.once("#result a[aria-current=true][href*='tab="+tab+"']", "")
		b.until("#result", "(?i)"+want)
		b.check("result-" + tab)
	}
}
