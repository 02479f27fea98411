package main

import (
	"testing"
	"time"

	"rollcall/internal/sandbox"
)

// TestDrillRefusals: a delivery counts as refused by right only when its secret went with a server that was kept from
// storing it, and that needs a fault of the right kind, near, and not used up.
func TestDrillRefusals(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	secrets := func() []sandbox.MadeSecret {
		return []sandbox.MadeSecret{
			{Secret: "has", Made: at, RefusedValid: 2, Present: true}, {Secret: "lost", Made: at, RefusedValid: 5}, {Secret: "untold", Made: at, Untold: true},
		}
	}
	struck := func(kind string, after time.Duration) []happening {
		return []happening{{From: at.Add(after), To: at.Add(after + time.Second), Kind: kind}}
	}
	for name, tt := range map[string]struct {
		timeline []happening
		doctor   func([]sandbox.MadeSecret)
		want     refusals
	}{
		"a kill":         {struck(actKill, time.Second), nil, refusals{Valid: 2, Killed: 5, Lost: 1}},
		"a named step":   {struck(actStep, 0), nil, refusals{Valid: 2, Killed: 5, Lost: 1}},
		"a full disk":    {struck(actDisk, 5*time.Second), nil, refusals{Valid: 2, Killed: 5, Lost: 1}},
		"no fault":       {nil, nil, refusals{Valid: 7, Missing: 1}},
		"a kill later":   {struck(actKill, 20*time.Second), nil, refusals{Valid: 7, Missing: 1}},
		"a kill before":  {struck(actKill, -20*time.Second), nil, refusals{Valid: 7, Missing: 1}},
		"an orderly end": {struck(actTerm, time.Second), nil, refusals{Valid: 7, Missing: 1}},
		"the vendor":     {struck(actVendor, time.Second), nil, refusals{Valid: 7, Missing: 1}},
		"two of one webhook by one kill": {
			struck(actKill, time.Second),
			func(m []sandbox.MadeSecret) { m[2].Untold = false },
			refusals{Valid: 2, Killed: 5, Lost: 1, Missing: 1},
		},
		"nothing signed with it": {nil, func(m []sandbox.MadeSecret) { m[1].RefusedValid = 0 }, refusals{Valid: 2, Missing: 1}},
		"the present one untold": {struck(actKill, time.Second), func(m []sandbox.MadeSecret) { m[2].Present = true }, refusals{Valid: 2, Killed: 5, Lost: 1, Missing: 1}},
	} {
		made := secrets()
		if tt.doctor != nil {
			tt.doctor(made)
		}
		got := splitRefusals(made, map[string]bool{"has": true}, tt.timeline, 1)
		if got.Valid != tt.want.Valid || got.Killed != tt.want.Killed || got.Lost != tt.want.Lost || got.Missing != tt.want.Missing || len(got.told) != got.Missing {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
		r := drillReport{SecretsMissing: got.Missing}
		if r.judge(); r.OK != (got.Missing == 0) {
			t.Errorf("%s: %d secrets are missing, and ok is %v", name, got.Missing, r.OK)
		}
	}
}
