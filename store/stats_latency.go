package store

import (
	"math"
	"time"
)

// Latencies are counted in buckets whose bounds grow by a fourth of a doubling,
// so that a time read from them is within a fifth of the true one whatever its
// size: bucket 0 holds what took up to a tenth of a second, bucket n what took
// longer than the bound of bucket n - 1 and up to 0.1 s times 2 to the n / 4,
// and the last one, from about a week on, all the rest.
const (
	latencyFirst   = 0.1 // Seconds.
	latencySteps   = 4   // Buckets in a doubling.
	LatencyBuckets = 92
)

// LatencyBound is the longest time that a bucket holds.
func LatencyBound(bucket int) time.Duration {
	return time.Duration(latencyFirst * math.Exp2(float64(bucket)/latencySteps) * float64(time.Second))
}

// Latencies counts by bucket; buckets that it doesn't reach hold nothing.
type Latencies []int64

// with counts n more in a bucket; the receiver may be changed.
func (l Latencies) with(bucket int, n int64) Latencies {
	for len(l) <= bucket {
		l = append(l, 0)
	}
	l[bucket] += n
	return l
}

// Plus is both together.
func (l Latencies) Plus(other Latencies) Latencies {
	var sum Latencies
	for _, each := range []Latencies{l, other} {
		for bucket, n := range each {
			if n != 0 {
				sum = sum.with(bucket, n)
			}
		}
	}
	return sum
}

// Quantile is the time that the given share of all stayed within, such as 0.5
// for the median; false when nothing was counted. Inside a bucket it goes by
// the logarithm, as the buckets do.
func (l Latencies) Quantile(share float64) (time.Duration, bool) {
	var total int64
	for _, n := range l {
		total += n
	}
	if total == 0 {
		return 0, false
	}
	rank := share * float64(total)
	for bucket, n := range l {
		if rank > float64(n) {
			rank -= float64(n)
			continue
		}
		if n > 0 {
			at := float64(bucket-1) + rank/float64(n)
			return time.Duration(latencyFirst * math.Exp2(at/latencySteps) * float64(time.Second)), true
		}
	}
	return LatencyBound(len(l) - 1), true
}
