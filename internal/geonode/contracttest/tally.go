package contracttest

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// tally counts for the whole test binary, because TestMain reports for all of it.
type tally struct {
	checked    atomic.Int64
	deliberate atomic.Int64
	late       atomic.Int64
}

// counts is the one tally of the process; only its atomic members change.
var counts = new(tally)

// Checked is how many calls and deliveries this test binary has validated so far.
func Checked() int64 { return counts.checked.Load() }

// Marked is how many calls that break the contract on purpose there were so far.
func Marked() int64 { return counts.deliberate.Load() }

// Report prints how many calls were validated and how many were marked as breaking the
// contract on purpose. It is meant for the end of TestMain; see also [Main].
func Report() { report(os.Stdout) }

func report(w io.Writer) {
	_, _ = fmt.Fprintf(w, "contract: %d calls checked, %d marked deliberate, %d breaches after their test\n",
		counts.checked.Load(), counts.deliberate.Load(), counts.late.Load())
}

// Runner is a *testing.M, or what wraps one.
type Runner interface{ Run() int }

// Main makes of a *testing.M one that reports after its run, and that fails the run
// when a breach came after its test had ended. Use it as
// goleak.VerifyTestMain(contracttest.Main(m)).
func Main(m Runner) Runner { return reporting{m} }

type reporting struct{ m Runner }

// Run runs the tests and reports.
func (r reporting) Run() int {
	code := r.m.Run()
	Report()
	if code == 0 && counts.late.Load() > 0 {
		return 1
	}
	return code
}

// reporter hands breaches to a test from any goroutine. Once the test has ended, when
// testing would panic, it counts them instead.
type reporter struct {
	t    testing.TB
	mu   sync.Mutex
	done bool
}

func newReporter(tb testing.TB) *reporter {
	tb.Helper()
	r := &reporter{t: tb}
	tb.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.done = true
	})
	return r
}

func (r *reporter) breach(side, what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		counts.late.Add(1)
		_, _ = fmt.Fprintf(os.Stderr, "contract breach after its test (%s, %s): %v\n", side, what, err)
		return
	}
	r.t.Errorf("contract breach (%s, %s): %v", side, what, err)
}
