package main

import (
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// checksAnUpload takes a CSV with faulty lines from the form to its batch, by the wrong column first, and reads what was
// left out as a stranger to us would.
func (b *chrome) checksAnUpload(urls []string) {
	b.t.Helper()
	text := "sku;home;page\n" +
		"1;https://shop.sandbox.test/;" + urls[0] + "\n" +
		"2;https://shop.sandbox.test/;" + strings.TrimPrefix(urls[1], "https://") + "\n" +
		"=3+3;https://shop.sandbox.test/;" + urls[0] + "\n" +
		"4;https://shop.sandbox.test/;javascript:alert(1)\n"
	b.visit("/batches/new")
	b.fill("#name", "From a file")
	b.once("#file", fmt.Sprintf(`const all = new DataTransfer(); all.items.add(new File([%q], "pages.csv", {type: "text/csv"})); e.files = all.files;`, text))
	b.click("main form [type=submit]")
	b.until("h1", "Check before you submit")
	for column, found := range map[string]string{
		"2": `(?s)4\s+Lines.*\b1\s+To submit.*3\s+Duplicate.*0\s+Invalid`, "3": `(?s)4\s+Lines.*\b2\s+To submit.*1\s+Duplicate.*1\s+Invalid`,
	} {
		b.fill("#url_column", column)
		b.click("[data-testid=reading] [type=submit]")
		b.until("[data-testid=sum]", found)
	}
	b.fill("#url_column", "3")
	b.click("[data-testid=reading] [type=submit]")
	b.until("[data-testid=sum]", `\b2\s+To submit`)
	b.until("[data-testid=lines]", "javascript:alert")
	b.until("[data-testid=plan]", `2 requests in 1 job`)
	b.check("preflight")

	// Back at the form nothing is lost, and the way goes on from there.
	b.click("main a[href^='/batches/new?from=']")
	b.until("main", "pages.csv")
	b.check("batch-form-again")
	b.click("main form [type=submit]")
	b.until("[data-testid=sum]", `\b2\s+To submit`)
	b.click("[data-testid=plan] form [type=submit]")
	b.until("h1", "From a file")
	b.until("#roll-call", `(?s)\b0\s+Outstanding`)

	got := b.value(`fetch(location.pathname + "/rejected.csv").then((r) => r.text())`)
	rows, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil {
		b.t.Fatalf("%v: %q", err, got)
	}
	for _, row := range rows[1:] {
		row[5] = ""
	}
	want := [][]string{
		{"page", "sku", "home", "line", "verdict", "reason", "duplicate_of", "stored_result", "more_cells"},
		{urls[0], "'=3+3", "https://shop.sandbox.test/", "4", "duplicate", "", "2", "", ""},
		{"javascript:alert(1)", "4", "https://shop.sandbox.test/", "5", "invalid", "", "", "", ""},
	}
	if diff := cmp.Diff(rows, want); diff != "" {
		b.t.Errorf("lines left out (got -, want +):\n%s", diff)
	}
}
