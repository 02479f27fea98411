package pipeline

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rollcall/store"
)

// TestWhoGivesWay: the newest of the largest source, whatever came when.
func TestWhoGivesWay(t *testing.T) {
	t.Parallel()
	now := time.Now()
	row := func(id int64, source string, change func(*store.Quarantined)) store.Quarantined {
		r := store.Quarantined{ID: id, Source: source, Status: 401, ReceivedAt: now, Bytes: 10}
		if change != nil {
			change(&r)
		}
		return r
	}
	sized := func(n int64) func(*store.Quarantined) { return func(r *store.Quarantined) { r.Bytes = n } }
	unsigned := func(ago time.Duration) func(*store.Quarantined) {
		return func(r *store.Quarantined) { r.Unsigned, r.ReceivedAt = true, now.Add(-ago) }
	}
	changing := func(ago time.Duration) func(*store.Quarantined) {
		return func(r *store.Quarantined) { r.Status, r.ReceivedAt = 503, now.Add(-ago) }
	}
	since := now.Add(-time.Hour)
	for _, c := range []struct {
		name  string
		rows  []store.Quarantined
		since time.Time
		known []string
		want  string
	}{
		{name: "within bounds", rows: []store.Quarantined{row(1, "a", nil), row(2, "a", nil), row(3, "b", nil)}, want: "[]"},
		{name: "the newest of the largest", rows: []store.Quarantined{row(1, "a", nil), row(2, "a", nil), row(3, "a", nil), row(4, "b", nil)}, want: "[3]"},
		{name: "of equals the newest", rows: []store.Quarantined{row(1, "a", nil), row(2, "b", nil), row(3, "c", nil), row(4, "d", nil)}, want: "[4]"},
		{name: "in bytes", rows: []store.Quarantined{row(1, "a", nil), row(2, "a", nil), row(3, "b", sized(90))}, want: "[3]"},
		{
			name: "addresses of one IPv6 network are one source", want: "[4]",
			rows: []store.Quarantined{row(1, "192.0.2.1", nil), row(2, "192.0.2.1", nil), row(3, "2001:db8::1", nil), row(4, "2001:db8::2", nil)},
		},
		{
			name: "known sources keep half", known: []string{"k"}, want: "[4]",
			rows: []store.Quarantined{row(1, "k", nil), row(2, "x", nil), row(3, "y", nil), row(4, "z", nil)},
		},
		{
			name: "and no more than half", known: []string{"k"}, want: "[3]",
			rows: []store.Quarantined{row(1, "k", nil), row(2, "k", nil), row(3, "k", nil), row(4, "x", nil)},
		},
		{
			name: "known ones only", known: []string{"k"}, want: "[4]",
			rows: []store.Quarantined{row(1, "k", nil), row(2, "k", nil), row(3, "k", nil), row(4, "k", nil)},
		},
		{
			name: "a change has room of its own", since: since, want: "[3]",
			rows: []store.Quarantined{
				row(1, "a", nil), row(2, "a", nil), row(3, "a", nil), row(4, "b", nil),
				row(5, "v", changing(time.Minute)), row(6, "v", changing(time.Minute)), row(7, "v", changing(0)),
			},
		},
		{
			name: "and what an earlier change left has not", since: since, want: "[4]",
			rows: []store.Quarantined{row(1, "a", nil), row(2, "v", changing(2*time.Hour)), row(3, "v", changing(2*time.Hour)), row(4, "v", changing(2*time.Hour)), row(5, "v", changing(0))},
		},
		{name: "503 without a change", rows: []store.Quarantined{row(1, "v", changing(0)), row(2, "v", changing(0)), row(3, "v", changing(0)), row(4, "v", changing(0))}, want: "[4]"},
		{name: "of the unsigned a sample", rows: []store.Quarantined{row(1, "a", unsigned(0)), row(2, "a", unsigned(0)), row(3, "b", nil)}, want: "[2]"},
		{name: "that begins anew", rows: []store.Quarantined{row(1, "a", unsigned(2*time.Hour)), row(2, "a", unsigned(0)), row(3, "b", nil)}, want: "[]"},
		{name: "and is within the bounds", rows: []store.Quarantined{row(1, "a", unsigned(0)), row(2, "b", nil), row(3, "b", nil), row(4, "b", nil)}, want: "[4]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHolding(3, 100, c.since, c.known, now)
			var got []int64
			for _, r := range h.overflow(c.rows) {
				got = append(got, r.ID)
			}
			if fmt.Sprint(got) != c.want || h.over() {
				t.Errorf("got %v to go, want %s", got, c.want)
			}
		})
	}
}

// TestQuarantineHoldsWhateverComes: after any run of deliveries, let in or not
// and trimmed as the writer does, the bounds hold, and a source that never had
// much lost nothing.
func TestQuarantineHoldsWhateverComes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		var rows []store.Quarantined
		h := newHolding(40, 1000, time.Time{}, nil, now)
		small := int64(0)
		for id := int64(1); id <= int64(rapid.IntRange(1, 300).Draw(t, "deliveries")); id++ {
			d := &store.Delivery{Source: rapid.SampledFrom([]string{"flood", "other"}).Draw(t, "source"), Status: 401, ReceivedAt: now}
			d.Body = make([]byte, rapid.IntRange(0, 60).Draw(t, "size"))
			if id%30 == 0 {
				d.Source, d.Body = "small", make([]byte, 10)
				small++
			}
			if !h.admits(d) {
				continue
			}
			rows = append(rows, store.Quarantined{ID: id, Source: d.Source, Status: 401, ReceivedAt: now, Bytes: int64(len(d.Body))})
			if !h.over() {
				continue
			}
			h = newHolding(40, 1000, time.Time{}, nil, now)
			rows = without(rows, h.overflow(rows))
		}
		bytes, kept := int64(0), int64(0)
		for _, r := range rows {
			bytes += r.Bytes
			if r.Source == "small" {
				kept++
			}
		}
		if len(rows) > 40 || bytes > 1000 {
			t.Errorf("%d rows of %d bytes are kept", len(rows), bytes)
		}
		if kept != small {
			t.Errorf("%d of the small source's %d are kept", kept, small)
		}
	})
}

func without(rows, gone []store.Quarantined) []store.Quarantined {
	is := map[int64]bool{}
	for _, r := range gone {
		is[r.ID] = true
	}
	var out []store.Quarantined
	for _, r := range rows {
		if !is[r.ID] {
			out = append(out, r)
		}
	}
	return out
}

// BenchmarkAdmits is what a flood costs once the quarantine is full.
func BenchmarkAdmits(b *testing.B) {
	now := time.Now()
	for name, sources := range map[string]int{"one source": 1, "a thousand sources": 1000} {
		b.Run(name, func(b *testing.B) {
			h := newHolding(1000, 50e6, time.Time{}, nil, now)
			d := func(i int) *store.Delivery {
				return &store.Delivery{Source: fmt.Sprintf("10.0.%d.%d", i%sources/250, i%sources%250), Status: 401, ReceivedAt: now, Body: make([]byte, 10)}
			}
			for i := range 1000 {
				h.admits(d(i))
			}
			flood := d(0)
			for b.Loop() {
				if h.admits(flood) {
					b.Fatal("let in")
				}
			}
		})
	}
}
