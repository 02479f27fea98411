package views

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDiskPartsAddUp: what is read of the parts is what is read of the total,
// whatever is lost by rounding, and what is there is never said to be nothing.
func TestDiskPartsAddUp(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		parts []int64
		total string
		want  string
	}{
		{[]int64{460_000, 450_000, 440_000, 10_010_000, 0, 1}, "11.4 MB", "0.5 MB, 0.5 MB, 0.4 MB, 10.0 MB, 0.0 MB, <0.1 MB"},
		{[]int64{31_400_000_000, 9_800_000_000, 5_160_000_000, 40_960}, "46.4 GB", "31.4 GB, 9.8 GB, 5.2 GB, <0.1 GB"},
		{[]int64{300_000, 699_999}, "1,000.0 kB", "300.0 kB, 700.0 kB"},
		{[]int64{5_000_000_000_000, 40_000_000}, "5,000.0 GB", "5,000.0 GB, <0.1 GB"},
		{[]int64{0, 0}, "0.0 kB", "0.0 kB, 0.0 kB"},
	} {
		d := DiskUse{Total: Known(0)}
		for _, bytes := range test.parts {
			d.Total.N += bytes
			d.Parts = append(d.Parts, DiskRow{Bytes: Known(bytes)})
		}
		if diff := cmp.Diff(d.totalText()+": "+strings.Join(d.partTexts(), ", "), test.total+": "+test.want); diff != "" {
			t.Errorf("%v (-got +want):\n%s", test.parts, diff)
		}
	}
}
