package sandbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
)

// flat is the members of JSON by the way to each.
func flat(t *testing.T, v any) map[string]string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, member := range tree {
		inner, nested := member.(map[string]any)
		if !nested {
			out[name] = fmt.Sprint(member)
		}
		for below, v := range inner {
			out[name+"."+below] = fmt.Sprint(v)
		}
	}
	return out
}

// TestEveryPairOfSwitches: a switch that is new must get its values in pairs.go, and any two values of two switches
// stand together in some setting, each of which is one the sandbox can have; few settings do.
func TestEveryPairOfSwitches(t *testing.T) {
	t.Parallel()
	all, settings := knobs(), SwitchPairs()
	var names []string
	for _, k := range all {
		names = append(names, k.name)
	}
	want := slices.Sorted(maps.Keys(flat(t, Switches{})))
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Fatalf("got knobs for %q, want for %q", names, want)
	}
	together := map[[2]string]bool{}
	for _, s := range settings {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		values := flat(t, s)
		for a, av := range values {
			for b, bv := range values {
				together[[2]string{a + "=" + av, b + "=" + bv}] = true
			}
		}
	}
	pairs := allPairs(all)
	for _, p := range pairs {
		var s Switches
		all[p.a].set(&s, p.av)
		all[p.b].set(&s, p.bv)
		values := flat(t, s)
		two := [2]string{all[p.a].name + "=" + values[all[p.a].name], all[p.b].name + "=" + values[all[p.b].name]}
		if !together[two] {
			t.Errorf("no setting has %s", two)
		}
	}
	if len(settings) > 30 {
		t.Errorf("got %d settings for %d pairs, want few", len(settings), len(pairs))
	}
	if !reflect.DeepEqual(settings, SwitchPairs()) {
		t.Error("got other settings the second time")
	}
}
