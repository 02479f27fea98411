package sandbox

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// SwitchPairs are few settings of the switches, the same in each call, in which any two values of any two switches
// stand together at least once. Of a number, and of the signature's prefix, they have some values.
func SwitchPairs() []Switches {
	all := knobs()
	var out []Switches
	for _, r := range cover(all) {
		var s Switches
		for i, k := range all {
			k.set(&s, r[i])
		}
		out = append(out, s)
	}
	return out
}

// knob is a switch with so many values.
type knob struct {
	name   string // As in JSON.
	values int
	set    func(s *Switches, value int)
}

// oneOf is a knob with these values.
func oneOf[T any](name string, at func(*Switches) *T, values ...T) knob {
	return knob{name, len(values), func(s *Switches, value int) { *at(s) = values[value] }}
}

// onOff is a knob that is off and on.
func onOff(name string, at func(*Switches) *bool) knob { return oneOf(name, at, false, true) }

// knobs are all switches.
func knobs() []knob {
	return []knob{
		oneOf("signature.encoding", func(s *Switches) *string { return &s.Signature.Encoding }, "hex", "HEX", "base64", "base64url"),
		oneOf("signature.prefix", func(s *Switches) *string { return &s.Signature.Prefix }, "", "sha256=", "v1=", "v1,"),
		oneOf("signature.signed", func(s *Switches) *string { return &s.Signature.Signed }, "body", "id.body", "timestamp.body"),
		oneOf("signature.key", func(s *Switches) *string { return &s.Signature.Key }, "whole", "rest", "base64"),
		oneOf("callback_body", func(s *Switches) *string { return &s.CallbackBody }, "summary", "full", "empty"),
		oneOf("list_order", func(s *Switches) *string { return &s.ListOrder }, "newest", "oldest", "shuffled"),
		oneOf("error_body", func(s *Switches) *string { return &s.ErrorBody }, "standard", "empty", "html", "text", "detail"),
		oneOf("disable_after", func(s *Switches) *int { return &s.DisableAfter }, 0, 2),
		onOff("events_for_failed", func(s *Switches) *bool { return &s.EventsForFailed }),
		onOff("events_for_cancelled", func(s *Switches) *bool { return &s.EventsForCancelled }),
		onOff("delivery_id_per_attempt", func(s *Switches) *bool { return &s.DeliveryIDPerAttempt }),
		onOff("retries_keep_signature", func(s *Switches) *bool { return &s.RetriesKeepSignature }),
		onOff("paused_keep", func(s *Switches) *bool { return &s.PausedKeep }),
		onOff("index_accepted", func(s *Switches) *bool { return &s.IndexAccepted }),
		onOff("invalid_objects", func(s *Switches) *bool { return &s.InvalidObjects }),
		onOff("sync_listed", func(s *Switches) *bool { return &s.SyncListed }),
		onOff("sync_fires", func(s *Switches) *bool { return &s.SyncFires }),
		onOff("children_listed", func(s *Switches) *bool { return &s.ChildrenListed }),
		onOff("children_fire", func(s *Switches) *bool { return &s.ChildrenFire }),
		onOff("cancel_freezes", func(s *Switches) *bool { return &s.CancelFreezes }),
		onOff("cancelled_omitted", func(s *Switches) *bool { return &s.CancelledOmitted }),
		onOff("log_without_job", func(s *Switches) *bool { return &s.LogWithoutJob }),
		onOff("results_shuffled", func(s *Switches) *bool { return &s.ResultsShuffled }),
		onOff("plan_detail", func(s *Switches) *bool { return &s.PlanDetail }),
	}
}

// pair is two knobs, the lower first, with a value each; all four by number.
type pair struct{ a, av, b, bv int }

// allPairs are all there are, in order.
func allPairs(all []knob) []pair {
	var out []pair
	for a := range all {
		for b := a + 1; b < len(all); b++ {
			for av := range all[a].values {
				for bv := range all[b].values {
					out = append(out, pair{a, av, b, bv})
				}
			}
		}
	}
	return out
}

// setting is a value, by number, for each knob; -1 where none is chosen yet.
type setting []int

func (r setting) holds(p pair) bool { return r[p.a] == p.av && r[p.b] == p.bv }

// gain is how many open pairs the knob at brings with a value.
func (r setting) gain(at, value int, open map[pair]bool) int {
	n := 0
	for other, v := range r {
		switch {
		case v < 0 || other == at:
		case other < at && open[pair{other, v, at, value}], other > at && open[pair{at, value, other, v}]:
			n++
		}
	}
	return n
}

// cover finds settings that together hold every pair of values: greedily, the best of some candidates each time.
func cover(all []knob) []setting {
	dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // The same settings each time are what is wanted.
	left, open := allPairs(all), map[pair]bool{}
	for _, p := range left {
		open[p] = true
	}
	var out []setting
	for len(left) > 0 {
		var best setting
		most := 0
		for range 40 {
			candidate, n := fill(all, left[dice.IntN(len(left))], open, dice)
			if n > most {
				best, most = candidate, n
			}
		}
		out = append(out, best)
		left = slices.DeleteFunc(left, best.holds)
		maps.DeleteFunc(open, func(p pair, _ bool) bool { return best.holds(p) })
	}
	return out
}

// fill makes a setting around one open pair, knob by knob the value that brings most, and tells how many open pairs it
// holds.
func fill(all []knob, first pair, open map[pair]bool, dice *rand.Rand) (setting, int) {
	r := slices.Repeat(setting{-1}, len(all))
	r[first.a], r[first.b] = first.av, first.bv
	total := 1
	for _, at := range dice.Perm(len(all)) {
		if r[at] >= 0 {
			continue
		}
		most, value := -1, 0
		for v := range all[at].values {
			if n := r.gain(at, v, open); n > most {
				most, value = n, v
			}
		}
		r[at] = value
		total += most
	}
	return r, total
}
