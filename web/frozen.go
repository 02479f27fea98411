package web

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
)

// freeze is a set of ids as a form carries it from a plan to the press: the
// press is about these and no others, whatever has joined them since. Sorted,
// each id is only as far from the one before as its bytes say.
func freeze(ids []int64) string {
	ids = slices.Sorted(slices.Values(ids))
	raw := make([]byte, 0, 2*len(ids))
	var last int64
	for _, id := range slices.Compact(ids) {
		raw = binary.AppendUvarint(raw, uint64(id-last)) //nolint:gosec // Sorted, so never negative.
		last = id
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// thaw is the way back. It refuses what freeze did not make, and more than most.
func thaw(text string, most int) ([]int64, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, false
	}
	var ids []int64
	var last int64
	for len(raw) > 0 {
		step, size := binary.Uvarint(raw)
		if size <= 0 || step == 0 || step > math.MaxInt64 || last > math.MaxInt64-int64(step) || len(ids) == most {
			return nil, false
		}
		raw = raw[size:]
		last += int64(step)
		ids = append(ids, last)
	}
	return ids, true
}
