package views

import (
	"context"
	"strconv"
	"strings"
)

// RollCall is the sum that answers for every URL, of one batch, one day, or the installation.
// A Count that isn't known is left zero and shown as a dash.
type RollCall struct {
	Submitted   Count
	Invalid     Count
	Duplicate   Count
	Accepted    Count
	Stored      Count // the total; Nets splits it
	Failed      Count
	Cancelled   Count
	Outstanding Count
	Nets        Nets
	// SoFar marks a crawl that isn't settled: its numbers still grow, so they are shown as "so far".
	SoFar bool
}

// Nets splits stored items by the net that woke their job.
type Nets struct {
	Webhook   Count
	Poll      Count
	Reconcile Count
	Replay    Count
	Sync      Count
}

// A netCount is one entry of Nets, in the order in which they are drawn.
type netCount struct {
	word  string
	count Count
}

// text is the word as pages show it.
func (n netCount) text() string {
	switch n.word {
	case "stored", "failed", "cancelled":
		return itemLook(n.word).text
	}
	return netLook(n.word).text
}

func (n Nets) list() []netCount {
	return []netCount{
		{"webhook", n.Webhook},
		{"poll", n.Poll},
		{"reconcile", n.Reconcile},
		{"replay", n.Replay},
		{"sync", n.Sync},
	}
}

// used leaves out nets that brought nothing, but keeps the unknown ones.
func (n Nets) used() []netCount {
	var used []netCount
	for _, each := range n.list() {
		if !each.count.Known || each.count.N > 0 {
			used = append(used, each)
		}
	}
	return used
}

func (n Nets) total() Count {
	var counts []Count
	for _, each := range n.list() {
		counts = append(counts, each.count)
	}
	return sum(counts...)
}

// sum adds counts; one that isn't known makes the sum unknown.
func sum(counts ...Count) Count {
	total := Known(0)
	for _, each := range counts {
		if !each.Known {
			return Count{}
		}
		total.N += each.N
	}
	return total
}

// A balance says whether the sum of a roll call adds up.
type balance int

const (
	balanceUnknown balance = iota
	balanced
	unbalanced
)

func (r RollCall) balance() balance {
	lines := sum(r.Invalid, r.Duplicate, r.Accepted)
	items := sum(r.Stored, r.Failed, r.Cancelled, r.Outstanding)
	nets := r.Nets.total()
	for _, pair := range [][2]Count{{r.Submitted, lines}, {r.Accepted, items}, {r.Stored, nets}} {
		if !pair[0].Known || !pair[1].Known {
			return balanceUnknown
		}
		if pair[0] != pair[1] {
			return unbalanced
		}
	}
	return balanced
}

// finished tells whether every accepted URL has its answer, and no more can be accepted: while a crawl runs, all that is
// known of it may be answered for.
func (r RollCall) finished() bool {
	return !r.SoFar && r.Outstanding.Known && r.Outstanding.N == 0 && r.Accepted.Known
}

// done is how many accepted URLs have an answer of any kind.
func (r RollCall) done() Count { return sum(r.Stored, r.Failed, r.Cancelled) }

// say is the sentence a screen reader hears now and then while the numbers move. Its parts come to what it says is answered
// for, so the cancelled are among them when there are any.
func (r RollCall) say(ctx context.Context) string {
	switch cancelled := r.Cancelled.Known && r.Cancelled.N > 0; {
	case r.finished() && cancelled:
		return Textf(ctx, "Finished. %s of %s URLs answered for: %s stored, %s failed, %s cancelled, %s outstanding.",
			r.done(), r.Accepted, r.Stored, r.Failed, r.Cancelled, r.Outstanding)
	case r.finished():
		return Textf(ctx, "Finished. %s of %s URLs answered for: %s stored, %s failed, %s outstanding.",
			r.done(), r.Accepted, r.Stored, r.Failed, r.Outstanding)
	case cancelled:
		return Textf(ctx, "%s of %s URLs answered for: %s stored, %s failed, %s cancelled, %s outstanding.",
			r.done(), r.Accepted, r.Stored, r.Failed, r.Cancelled, r.Outstanding)
	default:
		return Textf(ctx, "%s of %s URLs answered for: %s stored, %s failed, %s outstanding.",
			r.done(), r.Accepted, r.Stored, r.Failed, r.Outstanding)
	}
}

// barWidth is the width of a bar's drawing in its own units.
const barWidth = 1000

// A segment is one stretch of a bar, in units of barWidth.
type segment struct {
	class string
	title string
	x, w  string
}

// segments lays the answers to the accepted URLs side by side. Unknown counts draw nothing.
func (r RollCall) segments(ctx context.Context) []segment {
	parts := make([]netCount, 0, 8)
	parts = append(parts, r.Nets.list()...)
	if !r.Nets.total().Known {
		parts = []netCount{{"stored", r.Stored}}
	}
	parts = append(parts, netCount{"failed", r.Failed}, netCount{"cancelled", r.Cancelled})
	return layOut(ctx, parts, r.Accepted)
}

func layOut(ctx context.Context, parts []netCount, whole Count) []segment {
	if !whole.Known || whole.N <= 0 {
		return nil
	}
	var drawn []segment
	at := 0.0
	for _, part := range parts {
		width := float64(part.count.N) * barWidth / float64(whole.N)
		if width <= 0 {
			continue
		}
		title := Textf(ctx, "%s: %s", tr(ctx, part.text()), part.count)
		drawn = append(drawn, segment{"seg seg-" + part.word, title, units(at), units(width)})
		at += width
	}
	return drawn
}

func units(value float64) string {
	text := strconv.FormatFloat(value, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
