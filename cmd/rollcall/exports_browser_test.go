package main

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"io/fs"
	"slices"
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
	lines, err := csv.NewReader(bytes.NewReader(s.download(s.path() + "/download"))).ReadAll()
	s.must(err)
	at := slices.Index(lines[0], "url")
	for i, url := range urls {
		if len(lines) != len(urls)+1 || lines[i+1][at] != url {
			s.t.Fatalf("the file has %q, want %s in line %d", lines, url, i+2)
		}
	}
	packed := s.download("/batches/" + after + "/export?format=zip")
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	s.must(err)
	pages := 0
	for _, file := range archive.File {
		if strings.HasPrefix(file.Name, "pages/") && file.UncompressedSize64 > 0 {
			pages++
		}
	}
	if _, err := fs.Stat(archive, "index.csv"); err != nil || pages != len(urls) {
		s.t.Errorf("the archive has %d pages, want %d, and its index: %v", pages, len(urls), err)
	}

	s.visit("/compare/batches?b=" + after)
	s.until("[data-testid=comparison]", "Not compared yet")
	s.click("form[action='/compare/batches'][method=post] button")
	s.until("[data-testid=compared]", "Changed")
	s.click("[data-testid=compared] td a.sub")
	s.until("[data-testid=diff]", "# Of yesterday")
	s.whole()
}

// download is what the browser gets from an address, byte for byte.
func (s *show) download(path string) []byte {
	s.t.Helper()
	text := s.value(fmt.Sprintf(`fetch(%q).then((r) => r.arrayBuffer()).then((b) => btoa(String.fromCharCode(...new Uint8Array(b))))`, path))
	body, err := base64.StdEncoding.DecodeString(text)
	s.must(err)
	return body
}
