package geonode

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// maxRetrySeconds is the longest wait a Duration can hold.
const maxRetrySeconds = int64(math.MaxInt64 / time.Second)

// parseRetryAfter reads a Retry-After header: whole seconds, or an HTTP date measured
// against now by the clock of who wrote it. A wait in the past is zero, an enormous one the longest there is.
// The second value is false when there is nothing to read.
func parseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0, false
	}
	if seconds, ok := parseSeconds(value); ok {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return max(at.Sub(now), 0), true
}

// parseSeconds reads an optional sign and digits, and saturates instead of overflowing.
func parseSeconds(s string) (int64, bool) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" {
		return 0, false
	}
	var n int64
	for _, r := range digits {
		if r < '0' || r > '9' {
			return 0, false
		}
		if n < maxRetrySeconds {
			n = min(n*10+int64(r-'0'), maxRetrySeconds)
		}
	}
	if digits != s {
		return 0, true
	}
	return n, true
}
