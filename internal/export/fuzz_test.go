package export

import (
	"bytes"
	"encoding/csv"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCSV: whatever the texts, another reader finds the rows and cells that were
// written, and no spreadsheet finds a formula.
func FuzzCSV(f *testing.F) {
	f.Add("# a", "\"", "sku", "=1", []byte("a\r\nb,\"c\""), byte(7))
	f.Add(" =1+1", "\uFF1D1", "=", "\x00", []byte("\xff\x00\xc3"), byte(1))
	f.Add("", "", "", "", []byte{}, byte(0))
	f.Fuzz(func(t *testing.T, title, url, column, cell string, content []byte, step byte) {
		o := Options{Choices: Choices{Format: CSV, Markdown: true, HTML: true, SafeCells: true}, Columns: []string{column}}
		row := Row{
			Title: title, URL: url, ExtraNames: []string{column}, ExtraValues: []string{cell}, Stored: true,
			Markdown: Part{Size: int64(len(content)), Bytes: content},
			HTML: Part{Size: int64(len(content)), Copy: func(w io.Writer) error {
				for piece := range slices.Chunk(content, 64+int(step)) {
					if _, err := w.Write(piece); err != nil {
						return err
					}
				}
				return nil
			}},
		}
		var out bytes.Buffer
		file, err := New(&out, o)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := file.Write(&row); err != nil {
				t.Fatal(err)
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		readBack(t, out.Bytes(), file.Manifest().Columns, content)
	})
}

// readBack reads a file of two equal rows.
func readBack(t *testing.T, file []byte, columns []string, content []byte) {
	t.Helper()
	lines, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil || len(lines) != 3 || !slices.Equal(lines[1], lines[2]) || !utf8.Valid(file) || bytes.ContainsRune(file, 0) {
		t.Fatalf("got %d lines of text, %v", len(lines), err)
	}
	for i, cell := range lines[1] {
		if formula([]byte(cell)) {
			t.Errorf("a spreadsheet would run the cell %q", cell)
		}
		if columns[i] != "markdown" && columns[i] != "html" {
			continue
		}
		want := strings.ReplaceAll(kept([]byte(each(content)), true), "\r\n", "\n")
		if cell != want && cell != "'"+want {
			t.Errorf("%q came back as %q", want, cell)
		}
	}
}

// FuzzFileName: no address makes a name that leaves its folder or that a file
// system takes for something else, and two items never share one.
func FuzzFileName(f *testing.F) {
	for _, s := range []string{"https://a.test/../..\\CON/%2e%2e/", "", "https://\u202Egpj.exe/", "https://a.test/" + strings.Repeat("x", 300), "nul.", "https://-.-/"} {
		f.Add(s, int64(7))
	}
	f.Fuzz(func(t *testing.T, address string, item int64) {
		item &= 1<<62 - 1 // Items count from one.
		name := FileName(address, item)
		if name == "" || len(name) > 200 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.HasPrefix(name, "-") {
			t.Errorf("%q became %q", address, name)
		}
		if FileName(address, item+1) == name || FileName("", item+1) == name {
			t.Errorf("%q is the name of two items", name)
		}
	})
}
