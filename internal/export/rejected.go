package export

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
)

// RejectedTable is a CSV file of the lines that became no item: the file's own
// columns, the URL's first, and what Rollcall says of each line behind them.
type RejectedTable struct {
	URLColumn string   // Its name; "" in a file without names.
	Columns   []string // Names of the others.

	out *csv.Writer
}

// RejectedRow is one line: Extra are the cells beside its Text, DuplicateOf is the
// line that it repeats, or 0, StoredResult the address of the result that it would
// have fetched again, or "".
type RejectedRow struct {
	Line            int
	Verdict, Reason string
	Text            string
	Extra           []string
	DuplicateOf     int64
	StoredResult    string
}

// Begin writes the heads of the columns. Cells that a spreadsheet would take for
// formulas are made safe, here and in Write.
func (t *RejectedTable) Begin(w io.Writer) error {
	t.out = csv.NewWriter(w)
	return t.put(t.head())
}

// Write adds a line.
func (t *RejectedTable) Write(r *RejectedRow) error { return t.put(t.row(r)) }

// Flush hands on what is gathered.
func (t *RejectedTable) Flush() error {
	t.out.Flush()
	return t.out.Error()
}

func (t *RejectedTable) put(cells []string) error {
	for i, cell := range cells {
		cells[i] = SafeCell(cell)
	}
	return t.out.Write(cells)
}

// head gives our columns names that the file doesn't use.
func (t *RejectedTable) head() []string {
	names := append([]string{t.URLColumn}, t.Columns...)
	if names[0] == "" {
		names[0] = "text"
	}
	own := []string{"line", "verdict", "reason", "duplicate_of", "stored_result"}
	if len(t.Columns) > 0 {
		own = append(own, "more_cells")
	}
	for _, own := range own {
		for slices.Contains(names, own) {
			own = "rollcall_" + own
		}
		names = append(names, own)
	}
	return names
}

func (t *RejectedTable) row(r *RejectedRow) []string {
	cells := make([]string, 1, len(t.Columns)+7)
	cells[0] = r.Text
	// A faulty line may have fewer cells than the file has columns, or more:
	// those that have no column stay together behind ours.
	n := min(len(r.Extra), len(t.Columns))
	cells = append(cells, r.Extra[:n]...)
	for len(cells) <= len(t.Columns) {
		cells = append(cells, "")
	}
	of := ""
	if r.DuplicateOf > 0 {
		of = strconv.FormatInt(r.DuplicateOf, 10)
	}
	cells = append(cells, strconv.Itoa(r.Line), r.Verdict, r.Reason, of, r.StoredResult)
	if len(t.Columns) == 0 {
		return cells
	}
	return append(cells, strings.Join(r.Extra[n:], "\t"))
}
