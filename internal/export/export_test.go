package export

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// hostile is a row for each page of the corpus, the one content in memory and
// the other read in pieces of seven bytes; and one with every byte there is.
func hostile(t *testing.T) []Row {
	t.Helper()
	names, err := filepath.Glob("../../web/testdata/hostile/*")
	if err != nil || len(names) < 5 {
		t.Fatalf("no corpus of hostile pages: %v", err)
	}
	contents := [][]byte{[]byte("=cmd|' /C calc'!A0"), {}, nil}
	for i := range 256 {
		contents[2] = append(contents[2], byte(i), 'a', byte(i), '"', '\r')
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, content)
	}
	var rows []Row
	for i, content := range contents {
		rows = append(rows, Row{
			ItemID: int64(i + 1), BatchID: 1, Batch: "=1+1\u202E", Position: i + 1, Line: new(i + 2), Original: "=HYPERLINK(\"\x00\")" + string(content[:min(40, len(content))]), URL: "https://A.example/../..\\CON/%2e%2e/\u202Egpj.exe?" + strings.Repeat("x", 3000),
			Stored: true, State: "stored", Title: string(content[:min(40, len(content))]), StoredAt: time.Date(2026, 11, 29, 1, 2, 3, 4000, time.UTC),
			Markdown: Part{Size: int64(len(content)), Bytes: content}, HTML: Part{Size: int64(len(content)), Copy: inPieces(content)},
			Links: Part{Size: 12, Bytes: []byte("[\"a\",\n\"b\"]")}, ExtraNames: []string{"sku", "id"}, ExtraValues: []string{"\t1", "-\x00"},
		})
	}
	return rows
}

func inPieces(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		for at := 0; at < len(content); at += 7 {
			if _, err := w.Write(content[at:min(at+7, len(content))]); err != nil {
				return err
			}
		}
		return nil
	}
}

// written is a file of the rows.
func written(t *testing.T, c Choices, rows []Row) ([]byte, Manifest) {
	t.Helper()
	var out bytes.Buffer
	f, err := New(&out, Options{Choices: c, Columns: []string{"sku", "id"}, MadeAt: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC), MadeBy: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := f.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), f.Manifest()
}

// kept is content as text formats keep it.
func kept(content []byte, noNUL bool) string {
	text := strings.ToValidUTF8(string(content), "\uFFFD")
	if noNUL {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	return text
}

// each replaces every broken byte by itself, as the writers do.
func each(content []byte) string {
	var b strings.Builder
	for len(content) > 0 {
		r, size := utf8.DecodeRune(content)
		b.WriteRune(r)
		content = content[size:]
	}
	return b.String()
}

func TestCSVHoldsHostileContent(t *testing.T) {
	t.Parallel()
	rows, c := hostile(t), Default(CSV)
	c.HTML, c.BOM = true, true
	file, m := written(t, c, rows)
	if !bytes.HasPrefix(file, []byte("\uFEFF\"id\"")) || !utf8.Valid(file) || bytes.ContainsRune(file, 0) || m.Rows != int64(len(rows)) {
		t.Errorf("got %q and %+v", file[:20], m)
	}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(file, []byte("\uFEFF"))))
	r.LazyQuotes = false
	lines, err := r.ReadAll()
	if err != nil || len(lines) != len(rows)+1 {
		t.Fatalf("got %d lines, %v", len(lines), err)
	}
	at := map[string]int{}
	for i, name := range lines[0] {
		at[name] = i
	}
	for i, line := range lines[1:] {
		want := kept([]byte(each(rows[i].Markdown.Bytes)), true)
		got := line[at["markdown"]]
		if strings.HasPrefix(got, "'") && !strings.HasPrefix(want, "'") {
			got = got[1:]
		}
		// This reader makes one line end of CRLF; the file has both.
		if got != strings.ReplaceAll(want, "\r\n", "\n") {
			t.Errorf("row %d: the Markdown came back different", i)
		}
		for name, k := range at {
			if text := strings.TrimLeft(line[k], " "); text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
				t.Errorf("row %d: a spreadsheet would run %s, %q", i, name, text[:min(30, len(text))])
			}
		}
		if line[at["line"]] != strconv.Itoa(i+2) || !strings.HasPrefix(line[at["original"]], "'=HYPERLINK(\"\uFFFD\")") {
			t.Errorf("row %d: comes from %q, which held %q", i, line[at["line"]], line[at["original"]])
		}
		if line[at["sku"]] != "'\t1" || line[at["id_2"]] != "'-\uFFFD" {
			t.Errorf("row %d: got %q and %q for the batch's own columns", i, line[at["sku"]], line[at["id_2"]])
		}
	}
	c.SafeCells = false
	rows[0].Line, rows[0].Original = nil, ""
	if file, _ := written(t, c, rows[:1]); !bytes.Contains(file, []byte("\r\n1,1,\"=1+1\u202E\",1,,\"https://A.example/")) {
		t.Errorf("of no list: got %.200q", file)
	}
	if file, _ := written(t, c, rows[:1]); !bytes.Contains(file, []byte(`"=cmd|' /C calc'!A0"`)) {
		t.Error("cells are changed that were to be left alone")
	}
}

func TestJSONLinesHoldHostileContent(t *testing.T) {
	t.Parallel()
	rows, c := hostile(t), Default(JSONL)
	c.HTML = true
	file, _ := written(t, c, rows)
	lines := bytes.Split(bytes.TrimSuffix(file, []byte("\n")), []byte("\n"))
	if len(lines) != len(rows) {
		t.Fatalf("got %d lines, want %d", len(lines), len(rows))
	}
	for i, line := range lines {
		var row struct {
			Line     int               `json:"line"`
			Original string            `json:"original"`
			Markdown string            `json:"markdown"`
			HTML     string            `json:"html"`
			Links    []string          `json:"links"`
			Extra    map[string]string `json:"extra"`
			StoredAt time.Time         `json:"stored_at"`
		}
		want := each(rows[i].Markdown.Bytes)
		if err := json.Unmarshal(line, &row); err != nil || row.Markdown != want || row.HTML != want || len(row.Links) != 2 || row.Extra["sku"] != "\t1" {
			t.Errorf("row %d came back different: %v", i, err)
		}
		if row.Line != *rows[i].Line || row.Original != each([]byte(rows[i].Original)) {
			t.Errorf("row %d: comes from line %d, which held %q", i, row.Line, row.Original)
		}
		if !row.StoredAt.Equal(rows[i].StoredAt) {
			t.Errorf("row %d: stored at %s", i, row.StoredAt)
		}
	}
}

func TestParquetHoldsHostileContent(t *testing.T) {
	t.Parallel()
	rows, c := hostile(t), Default(Parquet)
	c.HTML = true
	large := []byte(strings.Repeat("ä", 3<<20))
	rows = append(rows, Row{ItemID: 99, Markdown: Part{Size: int64(len(large)), Bytes: large}, HTML: Part{Size: int64(len(large)), Copy: inPieces(large)}})
	file, _ := written(t, c, rows)
	p, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, path := range p.Schema().Columns() {
		at[path[0]] = i
	}
	n := 0
	for _, group := range p.RowGroups() {
		reader := group.Rows()
		for buffer := make([]parquet.Row, 1); ; n++ {
			if got, err := reader.ReadRows(buffer); got == 0 {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				break
			}
			cut := buffer[0][at["cut"]]
			if line, original := buffer[0][at["line"]], buffer[0][at["original"]]; n == len(rows)-1 {
				if !line.IsNull() || !original.IsNull() {
					t.Errorf("of no list: got line %s and %q", line, original)
				}
			} else if line.Int64() != int64(n+2) || string(original.ByteArray()) != kept([]byte(rows[n].Original), false) {
				t.Errorf("row %d: comes from line %s, which held %q", n, line, original)
			}
			if n == len(rows)-1 {
				if cut.String() != "markdown html" || len(buffer[0][at["html"]].ByteArray()) != longestCell {
					t.Errorf("a cell that is too large: got %d bytes and %q", len(buffer[0][at["html"]].ByteArray()), cut)
				}
				continue
			}
			// It replaces a run of broken bytes by one mark.
			if got := string(buffer[0][at["markdown"]].ByteArray()); got != kept(rows[n].Markdown.Bytes, false) || !cut.IsNull() {
				t.Errorf("row %d came back different", n)
			}
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}
	if n != len(rows) {
		t.Errorf("got %d rows, want %d", n, len(rows))
	}
}

func TestZIPHoldsHostileContent(t *testing.T) {
	t.Parallel()
	rows, c := hostile(t), Default(ZIP)
	c.HTML = true
	file, m := written(t, c, rows)
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	safe := regexp.MustCompile(`^(pages/[a-z0-9][a-z0-9-]{0,110}\.(md|html)|index\.csv|manifest\.json)$`)
	seen := map[string]bool{}
	for _, f := range z.File {
		if !safe.MatchString(f.Name) || seen[strings.ToLower(f.Name)] {
			t.Errorf("the name %q is not safe, or not the only one", f.Name)
		}
		seen[strings.ToLower(f.Name)] = true
	}
	for i := range rows {
		content, err := readFrom(z, "pages/"+FileName(rows[i].URL, rows[i].ItemID)+".html")
		if err != nil || !bytes.Equal(content, rows[i].Markdown.Bytes) {
			t.Errorf("page %d came back different: %v", i, err)
		}
	}
	inside, err := readFrom(z, "manifest.json")
	var told Manifest
	if err != nil || json.Unmarshal(inside, &told) != nil || !told.Complete || told.Rows != m.Rows || told.Files != int64(2*len(rows)) {
		t.Errorf("manifest inside: got %s, %v", inside, err)
	}
	unpacked := byUnzip(t, file)
	for i := range rows {
		content, err := os.ReadFile(filepath.Join(unpacked, "pages", FileName(rows[i].URL, rows[i].ItemID)+".html"))
		if err != nil || !bytes.Equal(content, rows[i].Markdown.Bytes) {
			t.Errorf("page %d came out of unzip different: %v", i, err)
		}
	}
}

func readFrom(z *zip.Reader, name string) ([]byte, error) {
	f, err := z.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// byUnzip has another program unpack the archive, and returns the folder with
// what came of it. Where make test runs there must be one.
func byUnzip(t *testing.T, file []byte) string {
	t.Helper()
	if _, err := exec.LookPath("unzip"); err != nil && os.Getenv("ROLLCALL_UNZIP") == "required" {
		t.Fatal("no unzip on PATH, and make test wants it")
	} else if err != nil {
		t.Skip("no unzip on PATH: only the standard library has opened the archive")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "pages.zip")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "unzip", "-q", path, "-d", filepath.Join(dir, "out")).CombinedOutput(); err != nil {
		t.Errorf("unzip: %v\n%s", err, out)
	}
	return filepath.Join(dir, "out")
}

// TestZIPOfManyFilesAndBytes needs both of the numbers that the old format has
// no room for: of files, and of bytes before the last ones.
func TestZIPOfManyFilesAndBytes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := newArchive(&out)
	const files, skipped = 70_000, int64(5) << 30
	for i := range files {
		if i == files-10 {
			a.at += skipped // As if so much lay before.
		}
		err := a.add(fmt.Sprintf("%d.md", i), time.Time{}, func(w io.Writer) error {
			_, err := io.WriteString(w, "x")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if a.dir.kept.Len() > files*40 {
		t.Errorf("%d bytes are kept for a file", a.dir.kept.Len()/files)
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(&hole{whole: out.Bytes(), skip: skipped}, int64(out.Len())+skipped)
	if err != nil || len(z.File) != files {
		t.Fatalf("got %v", err)
	}
	if at, err := z.File[files-1].DataOffset(); err != nil || at < skipped {
		t.Errorf("the last file lies at %d, %v", at, err)
	}
}

// hole is a file in which nothing lies for some gigabytes, somewhere before its
// last files.
type hole struct {
	whole []byte
	skip  int64
}

// ReadAt implements io.ReaderAt: what is asked for behind the hole is moved up.
func (h *hole) ReadAt(p []byte, off int64) (int, error) {
	if off >= h.skip {
		off -= h.skip
	}
	if off >= int64(len(h.whole)) {
		return 0, io.EOF
	}
	n := copy(p, h.whole[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestColumnsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	o := Options{Choices: Default(CSV), Columns: []string{"URL", "url", "sku", "SKU", "", "a\u202E\x00b", strings.Repeat("x", 500)}}
	seen := map[string]bool{}
	for _, c := range columnsOf(&o) {
		if key := strings.ToLower(c.name); seen[key] || len(c.name) > 120 || strings.ContainsAny(c.name, "\u202E\x00") {
			t.Errorf("the name %q is not good", c.name)
		} else {
			seen[key] = true
		}
	}
	documented := map[string]bool{}
	for _, c := range Columns() {
		documented[c.Name] = c.About != ""
	}
	for _, c := range table() {
		if !documented[c.name] {
			t.Errorf("%s is not documented", c.name)
		}
	}
}
