package main

import (
	"fmt"
	"strings"

	"rollcall/internal/sandbox"
)

// exportAndCompare has a batch exported in the background and takes the file, then compares the batch with an earlier
// one of the same pages, one of which has changed since.
func (s *show) exportAndCompare() {
	s.t.Helper()
	urls := sandbox.MadeURLs(3, 77)
	s.submit("compared", urls...)
	s.home()
	before := strings.TrimPrefix(s.path(), "/batches/")
	_, err := s.store.SQL().ExecContext(s.t.Context(), `UPDATE results SET markdown = '# Of yesterday', markdown_sha256 = sha256('# Of yesterday')
		WHERE item_id = (SELECT min(i.id) FROM items i JOIN results r ON r.item_id = i.id WHERE i.batch_id = $1)`, before)
	s.must(err)
	s.submit("compared", urls...)
	s.home()
	after := strings.TrimPrefix(s.path(), "/batches/")

	s.visit("/exports/new?batch=" + after)
	s.until("[data-testid=picked]", "3 items")
	s.click("input[name=behind]")
	s.click("[data-testid=export-form] button[type=submit]")
	s.until("#follow .facts", "Ready") // By itself: the page follows its file.
	s.until("[data-testid=export-state]", "Download")
	file := s.value(fmt.Sprintf(`fetch(%q).then((r) => r.text())`, s.path()+"/download"))
	for _, url := range urls {
		if !strings.Contains(file, url) {
			s.t.Errorf("the file lacks %s", url)
		}
	}

	s.visit("/compare/batches?b=" + after)
	s.until("[data-testid=comparison]", "Not compared yet")
	s.click("form[action='/compare/batches'][method=post] button")
	s.until("[data-testid=compared]", "Changed")
	s.click("[data-testid=compared] td a.sub")
	s.until("[data-testid=diff]", "# Of yesterday")
	s.whole()
}
