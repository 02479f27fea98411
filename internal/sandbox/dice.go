package sandbox

import (
	"math"
	"strconv"
	"time"
)

// dice answers every question of chance. An answer depends on the seed and on the names asked with, and on nothing
// else, so it doesn't matter who asks first.
type dice uint64

// number is an even 64-bit number for the names.
func (d dice) number(names ...string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset) ^ mix(uint64(d))
	for _, name := range names {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * prime
		}
		h = (h ^ 0xff) * prime // Keeps ("ab", "c") apart from ("a", "bc").
	}
	return mix(h)
}

// mix spreads every input bit over the whole word.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// share is an even number in [0, 1).
func (d dice) share(names ...string) float64 {
	return float64(d.number(names...)>>11) / (1 << 53)
}

// pick is an even number in [0, n); n must be positive.
func (d dice) pick(n int, names ...string) int {
	return int(d.share(names...) * float64(n))
}

// between is an even length in [low, high).
func (d dice) between(low, high time.Duration, names ...string) time.Duration {
	return low + time.Duration(d.share(names...)*float64(high-low))
}

// logNormal is a length with the given median and sigma, at most 20 medians.
func (d dice) logNormal(median time.Duration, sigma float64, names ...string) time.Duration {
	u := 1 - d.share(append(names, "radius")...)
	v := d.share(append(names, "angle")...)
	normal := math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
	return time.Duration(float64(median) * min(20, math.Exp(sigma*normal)))
}

// text is n letters and digits.
func (d dice) text(n int, names ...string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	out := make([]byte, n)
	for i := range out {
		out[i] = alphabet[d.pick(len(alphabet), append(names, strconv.Itoa(i))...)]
	}
	return string(out)
}
