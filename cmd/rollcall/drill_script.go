package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"rollcall/internal/sandbox"
)

// Kinds of acts, which name the faults in the report too.
const (
	actSubmit   = "submit"
	actKill     = "kill"       // SIGKILL of a server.
	actTerm     = "term"       // SIGTERM of a server.
	actStep     = "step"       // A server that kills itself at a named step.
	actRestart  = "pg_restart" // An orderly restart of Postgres.
	actPGKill   = "pg_kill"    // SIGKILL of the postmaster.
	actCut      = "pg_cut"     // Every connection of the servers is ended.
	actDisk     = "disk"       // Writes fail, as on a full disk.
	actClock    = "clock"      // A server's clock steps.
	actVendor   = "vendor"     // The vendor's faults change.
	actSwitches = "switches"   // The vendor's switches change.
	actRotate   = "rotate"     // Every secret is changed.
	actEnd      = "end"        // Of the drill: all servers are told to end.
	actRepair   = "repair"     // An operator looks after the webhooks.
)

const (
	killGap     = 3 * time.Second // Between two kills, in the mean.
	urlsASecond = 35
	leastScript = 6 * time.Second
	// bigScript is the length from which a script has faults that take minutes to get over.
	bigScript = 4 * time.Minute
	vendorGap = 6 * time.Second // How long a mix of the vendor's faults stays.
	mixSize   = 5
	// pgGap keeps deaths of Postgres apart, so that its keeper doesn't give it up.
	pgGap = 90 * time.Second
	// giveUpLate is late enough for jobs that do end, whatever happens to them; what doesn't end is begun in the first
	// quarter of a script, so that giving up comes soon after its end.
	giveUpLate   = 12 * time.Minute
	endlessUntil = 4
	// bigClockStep bounds the steps of a clock: what a clock that was ahead put off waits for as long as that.
	bigClockStep, smallClockStep = time.Minute, 15 * time.Second
	repairGap                    = 10 * time.Second
	diskFor                      = 3 * time.Second
	clockFor                     = 4 * time.Second
)

// act is one thing that the script does.
type act struct {
	at     time.Duration
	kind   string
	server int
	n      int                // The batch, or the set of switches.
	faults map[string]float64 // Of the vendor.
	step   time.Duration      // Of the clock.
	rate   float64            // Of the disk.
}

// length is how long the script goes on: long enough for its kills and its load.
func (c *drillCmd) length() time.Duration {
	return max(leastScript, time.Duration(c.Kills)*killGap, time.Duration(c.URLs)*time.Second/urlsASecond)
}

// endless are faults of the vendor that only giving up makes an end of: a job that never ends, and one that is lost.
func endless() []string { return []string{sandbox.FaultNever, sandbox.FaultForget} }

// givesUp tells whether endless faults are part of the drill: then giving up must come within it.
func (c *drillCmd) givesUp() bool {
	if c.Faults == "" {
		return c.length() >= bigScript
	}
	faults, err := sandbox.ParseFaults(c.Faults)
	return err == nil && slices.ContainsFunc(endless(), func(name string) bool { return faults[name] > 0 })
}

// giveUpAfter ends jobs that never end; zero is the default.
func (c *drillCmd) giveUpAfter() time.Duration {
	if c.givesUp() {
		return giveUpLate
	}
	return 0
}

// script is what happens and when: the same for the same flags.
func (c *drillCmd) script(batches int) []act {
	s := &scripting{cmd: c, dice: rand.New(rand.NewPCG(c.Seed, 1)), length: c.length()} //nolint:gosec // Chance, not a secret.
	for i := range batches {
		// The last batch comes well before the last kills.
		s.add(act{at: s.length * time.Duration(i) * 9 / time.Duration(batches*10), kind: actSubmit, n: i})
	}
	s.addKills()
	s.every(pgGap, s.pgFault)
	s.every(s.length/3, func(at time.Duration) act { return act{at: at, kind: actCut} })
	s.every(s.length/3, func(at time.Duration) act {
		return act{at: at, kind: actDisk, rate: 0.1 + 0.8*s.dice.Float64()}
	})
	s.every(s.length/3, func(at time.Duration) act { return act{at: at, kind: actClock, step: s.clockStep()} })
	if c.Rotate > 0 {
		for at := c.Rotate; at < s.length; at += c.Rotate {
			s.add(act{at: at, kind: actRotate})
		}
	}
	if c.Faults == "" {
		s.addMixes()
	}
	if c.Switches {
		s.addSwitches()
	}
	for at := repairGap; at < s.length; at += repairGap {
		s.add(act{at: at, kind: actRepair})
	}
	slices.SortStableFunc(s.acts, func(a, b act) int { return cmp.Compare(a.at, b.at) })
	return s.acts
}

// scripting is a script being written.
type scripting struct {
	cmd    *drillCmd
	dice   *rand.Rand
	length time.Duration
	acts   []act
	pg     int
}

// add adds an act; to which server the dice say.
func (s *scripting) add(a act) {
	a.server = s.dice.IntN(s.cmd.Processes)
	s.acts = append(s.acts, a)
}

// within is a moment of the script, not at its very begin or end.
func (s *scripting) within() time.Duration {
	return time.Duration((0.05 + 0.9*s.dice.Float64()) * float64(s.length))
}

// every adds an act for each full gap, somewhere in it, and at least one.
func (s *scripting) every(gap time.Duration, write func(time.Duration) act) {
	s.add(write(s.within()))
	for at := gap; at+gap <= s.length; at += gap {
		s.add(write(at + time.Duration(s.dice.Float64()*float64(gap)/2)))
	}
}

// addKills spreads the kills: six in ten at a named step, two SIGKILL, two SIGTERM.
func (s *scripting) addKills() {
	for range s.cmd.Kills {
		kind := []string{actStep, actStep, actStep, actKill, actTerm}[s.dice.IntN(5)]
		s.add(act{at: s.within(), kind: kind})
	}
}

// pgFault is in turn a restart and a kill of Postgres.
func (s *scripting) pgFault(at time.Duration) act {
	s.pg++
	return act{at: at, kind: []string{actPGKill, actRestart}[s.pg%2]}
}

// clockStep is a step of a clock either way, from a second to the longest: the longer the rarer.
func (s *scripting) clockStep() time.Duration {
	longest := smallClockStep
	if s.length >= bigScript {
		longest = bigClockStep
	}
	step := time.Duration(float64(time.Second) * math.Pow(longest.Seconds(), s.dice.Float64()))
	if s.dice.IntN(2) == 0 {
		return -step
	}
	return step
}

// addMixes has the vendor do a few things wrong at a time, until everything it can do came up. Its clock is among them: it
// jumps ahead by minutes with a mix, and back with the next.
func (s *scripting) addMixes() {
	var names []string
	for at := time.Duration(0); at < s.length; at += vendorGap {
		mix := map[string]float64{}
		for len(mix) < mixSize {
			if len(names) == 0 {
				names = s.faultNames()
			}
			name := names[len(names)-1]
			names = names[:len(names)-1]
			// What is endless must be given up in time, and is therefore begun early.
			if rate, known := vendorRates()[name]; known && (at < s.length/endlessUntil || !slices.Contains(endless(), name)) {
				mix[name] = rate * (0.5 + s.dice.Float64())
			}
		}
		s.add(act{at: at, kind: actVendor, faults: mix})
	}
}

// addSwitches makes of the vendor one after another of those in which every pair of switches is.
func (s *scripting) addSwitches() {
	sets := s.dice.Perm(len(sandbox.SwitchPairs()))
	for i, n := range sets {
		s.add(act{at: s.length * time.Duration(i) / time.Duration(len(sets)), kind: actSwitches, n: n})
	}
}

// faultNames are the vendor's faults in an order of chance.
func (s *scripting) faultNames() []string {
	names := sandbox.FaultNames()
	if !s.cmd.givesUp() {
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(endless(), name) })
	}
	s.dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// vendorRates are how often the vendor does each wrong, about, while it is at it.
func vendorRates() map[string]float64 {
	return map[string]float64{
		sandbox.FaultDrop: 0.3, sandbox.FaultDup: 0.3, sandbox.FaultDelay: 0.3, sandbox.FaultReorder: 0.3, sandbox.FaultEarly: 0.3,
		sandbox.FaultWrongSig: 0.2, sandbox.FaultOldSig: 0.2, sandbox.FaultAlter: 0.2, sandbox.FaultRateLimit: 0.1,
		sandbox.FaultRateLimitDate: 0.1, sandbox.FaultRateLimitBare: 0.1, sandbox.FaultErr5xx: 0.2, sandbox.FaultSlow: 0.1,
		sandbox.FaultResetAfterAccept: 0.2, sandbox.FaultTruncate: 0.2, sandbox.FaultNever: 0.02, sandbox.FaultItemFail: 0.1,
		sandbox.FaultLateRows: 0.3, sandbox.FaultForget: 0.05, sandbox.FaultOutage: 0.4, sandbox.FaultKeyRevoked: 0.3,
		sandbox.FaultVendorCancel: 0.1, sandbox.FaultBalanceOut: 0.1, sandbox.FaultWebhookOff: 0.05, sandbox.FaultClockSkew: 0.2,
	}
}
