package export

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRejectedCellsAreNoFormulas, nor do surplus cells get lost. What counts as a
// formula is one rule, also behind blanks and in full width.
func TestRejectedCellsAreNoFormulas(t *testing.T) {
	t.Parallel()
	table := RejectedTable{URLColumn: "url", Columns: []string{"verdict", " =1+1"}}
	var file bytes.Buffer
	rows := []RejectedRow{
		{Line: 9, Verdict: "duplicate", Text: "@a", Reason: "r", Extra: []string{"-1", "\tx", "y", "z"}, DuplicateOf: 3, StoredResult: "/results/4711"},
		{Line: 10, Verdict: "invalid", Text: "\uFF1D1+1"},
	}
	err := table.Begin(&file)
	for i := range rows {
		if err == nil {
			err = table.Write(&rows[i])
		}
	}
	if err == nil {
		err = table.Flush()
	}
	got, readErr := csv.NewReader(&file).ReadAll()
	want := [][]string{
		{"url", "verdict", "' =1+1", "line", "rollcall_verdict", "reason", "duplicate_of", "stored_result", "more_cells"},
		{"'@a", "'-1", "'\tx", "9", "duplicate", "r", "3", "/results/4711", "y\tz"},
		{"'\uFF1D1+1", "", "", "10", "invalid", "", "", "", ""},
	}
	if diff := cmp.Diff(got, want); diff != "" || err != nil || readErr != nil {
		t.Errorf("cells (got -, want +), %v, %v:\n%s", err, readErr, diff)
	}
	if diff := cmp.Diff((&RejectedTable{}).head(), []string{"text", "line", "verdict", "reason", "duplicate_of", "stored_result"}); diff != "" {
		t.Errorf("without columns (got -, want +):\n%s", diff)
	}
}

// TestDirectoryOfManyFiles: what a ZIP must know of its files until the end takes
// no more memory the more there are.
func TestDirectoryOfManyFiles(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a, random := newArchive(&out), rand.New(rand.NewPCG(5, 18))
	for i := range 60_000 {
		name := fmt.Sprintf("pages/%x%x-%d.md", random.Uint64(), random.Uint64(), i)
		if err := a.list(name, int64(i), 1, 2, make([]byte, 12)); err != nil {
			t.Fatal(err)
		}
		a.entries++
	}
	if a.dir.file == nil || a.dir.kept.Cap() > 4*spoolBytes {
		t.Errorf("%d bytes are held, and a file: %v", a.dir.kept.Cap(), a.dir.file != nil)
	}
	if err := a.close(); err != nil || a.dir.file != nil {
		t.Fatalf("end: %v, and the file is left: %v", err, a.dir.file != nil)
	}
	head := []byte{'P', 'K', 1, 2}
	if n := bytes.Count(out.Bytes(), head); n != 60_000 {
		t.Errorf("the directory names %d files", n)
	}
}
