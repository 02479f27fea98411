package pipeline

import (
	"cmp"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"rollcall/store"
)

// pool is a part of a webhook's quarantine that is bounded by itself.
type pool int

const (
	// poolRefused is what none of the known secrets signed.
	poolRefused pool = iota
	// poolChanging is what is refused while the secret is being changed. It may
	// well be good, so what was refused before can't push it out.
	poolChanging
	// poolUnsigned is a sample of what carries no signature, and can't be good.
	poolUnsigned
	pools
)

const (
	// unsignedSample is how many unsigned deliveries of an hour are kept.
	unsignedSample = 20
	unsignedFor    = time.Hour
	// changingSlack is how long before the change a delivery may have come that
	// was judged in it: bodies take their time.
	changingSlack = time.Minute
	// mostTrimmed bounds the rows that one transaction deletes.
	mostTrimmed = 1000
)

// share is what a source has, or may have, of a pool.
type share struct {
	rows   int64
	bytes  int64
	newest int64 // The id of its newest row.
}

// shares count a pool by source. They know which source is to give way.
type shares struct {
	bound share
	all   share
	known share // Of all, what known sources have.
	by    map[string]share
	is    map[string]bool // The known sources: verified deliveries came from them.
}

// overRows and overBytes report which bound is broken.
func (s *shares) overRows() bool  { return s.all.rows > s.bound.rows }
func (s *shares) overBytes() bool { return s.all.bytes > s.bound.bytes }

// add counts a row in, or, with a sign of -1, out.
func (s *shares) add(source string, bytes, sign int64) {
	one := s.by[source]
	one.rows, one.bytes = one.rows+sign, one.bytes+sign*bytes
	s.all.rows, s.all.bytes = s.all.rows+sign, s.all.bytes+sign*bytes
	if s.is[source] {
		s.known.rows, s.known.bytes = s.known.rows+sign, s.known.bytes+sign*bytes
	}
	s.by[source] = one
	if one.rows <= 0 {
		delete(s.by, source)
	}
}

// seen notes the newest row of a source.
func (s *shares) seen(source string, newest int64) {
	if one, ok := s.by[source]; ok {
		one.newest = newest
		s.by[source] = one
	}
}

// largest is the source that gives way: the one with most of what there is too
// much of, and of equal ones that with the newest row. Half of the room is
// kept for known sources, so that many small ones can't push them out.
func (s *shares) largest() string {
	size := func(one share) int64 { return one.rows }
	if !s.overRows() {
		size = func(one share) int64 { return one.bytes }
	}
	spared := size(s.known) <= size(s.bound)/2 && size(s.known) < size(s.all)
	var found string
	var most share
	for source, one := range s.by {
		if spared && s.is[source] {
			continue
		}
		if most.rows == 0 || cmp.Or(cmp.Compare(size(one), size(most)), cmp.Compare(one.newest, most.newest)) > 0 {
			found, most = source, one
		}
	}
	return found
}

// holding is what is quarantined of a webhook, as it was last counted.
type holding struct {
	pools     [pools]shares
	since     time.Time // Of the change of the secret; zero when there is none.
	next      int64     // Stands for the id of the next new row: above all there are.
	countedAt time.Time
}

// newHolding is an empty quarantine with these bounds.
func newHolding(rows, bytes int64, since time.Time, known []string, now time.Time) *holding {
	h := &holding{since: since, next: math.MaxInt64 / 2, countedAt: now}
	is := map[string]bool{}
	for _, source := range known {
		is[sourceOf(source)] = true
	}
	for i := range h.pools {
		h.pools[i] = shares{by: map[string]share{}, is: is, bound: share{rows: rows, bytes: bytes}}
	}
	h.pools[poolUnsigned].bound = share{rows: min(unsignedSample, max(1, rows/10)), bytes: max(1, bytes/10)}
	return h
}

// poolOf is where a delivery counts.
func (h *holding) poolOf(status int, unsigned bool, at time.Time) pool {
	switch {
	case unsigned && at.After(h.countedAt.Add(-unsignedFor)):
		return poolUnsigned
	case status == http.StatusServiceUnavailable && !h.since.IsZero() && !at.Before(h.since.Add(-changingSlack)):
		return poolChanging
	}
	return poolRefused
}

// count counts a row in or out, and takes what is unsigned from the room of
// what is refused: together they are within the bounds.
func (h *holding) count(in pool, source string, bytes, sign int64) {
	h.pools[in].add(source, bytes, sign)
	if in == poolUnsigned {
		h.pools[poolRefused].bound.rows -= sign
		h.pools[poolRefused].bound.bytes -= sign * bytes
	}
}

// admits counts a new delivery in and reports whether it is to be kept. It is
// not when it would be the one to go: the newest of the largest source.
func (h *holding) admits(d *store.Delivery) bool {
	in, source, bytes := h.poolOf(d.Status, d.Unsigned, d.ReceivedAt), sourceOf(d.Source), int64(len(d.Body))
	s := &h.pools[in]
	before := s.by[source].newest
	h.next++
	h.count(in, source, bytes, 1)
	s.seen(source, h.next)
	if bytes > s.bound.bytes || (s.overRows() || s.overBytes()) && s.largest() == source {
		h.count(in, source, bytes, -1)
		s.seen(source, before)
		return false
	}
	return true
}

// over reports whether anything is to be deleted.
func (h *holding) over() bool {
	for i := range h.pools {
		if h.pools[i].overRows() || h.pools[i].overBytes() {
			return true
		}
	}
	return false
}

// overflow counts rows into an empty holding and returns those to be deleted:
// of each pool the newest of the largest source, until it is within its
// bounds.
func (h *holding) overflow(rows []store.Quarantined) []store.Quarantined {
	slices.SortFunc(rows, func(a, b store.Quarantined) int { return cmp.Compare(a.ID, b.ID) })
	var lists [pools]map[string][]store.Quarantined
	for i := range lists {
		lists[i] = map[string][]store.Quarantined{}
	}
	for i := range rows {
		r := &rows[i]
		in, source := h.poolOf(r.Status, r.Unsigned, r.ReceivedAt), sourceOf(r.Source)
		h.count(in, source, r.Bytes, 1)
		h.pools[in].seen(source, r.ID)
		lists[in][source] = append(lists[in][source], *r)
	}
	var out []store.Quarantined
	// The unsigned first: what goes there makes room for the others.
	for _, in := range []pool{poolUnsigned, poolChanging, poolRefused} {
		out = append(out, h.trim(in, lists[in], mostTrimmed-len(out))...)
	}
	return out
}

// trim takes rows out of a pool until it is within its bounds, or most are out.
func (h *holding) trim(in pool, lists map[string][]store.Quarantined, most int) []store.Quarantined {
	var out []store.Quarantined
	s := &h.pools[in]
	for len(out) < most && (s.overRows() || s.overBytes()) && s.all.rows > 0 {
		source := s.largest()
		list := lists[source]
		last := list[len(list)-1]
		lists[source] = list[:len(list)-1]
		h.count(in, source, last.Bytes, -1)
		if len(list) > 1 {
			s.seen(source, list[len(list)-2].ID)
		}
		out = append(out, last)
	}
	return out
}

// sourceOf is whom an address stands for: of IPv6 the network, since whoever
// has one address of it has them all.
func sourceOf(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil || a.Unmap().Is4() {
		return address
	}
	network, err := a.WithZone("").Prefix(64)
	if err != nil {
		return address
	}
	return network.String()
}
