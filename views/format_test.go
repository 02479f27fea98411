package views

import (
	"testing"
	"time"
)

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 100000: "100,000"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d): got %q, want %q", n, got, want)
		}
	}
	if got := (Count{}).String(); got != dash {
		t.Errorf("unknown: got %q, want %q", got, dash)
	}
}

func TestSizeText(t *testing.T) {
	t.Parallel()
	for size, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 48213: "48 kB", 999_700: "1.0 MB", 33554432: "34 MB", 5_200_000_000: "5.2 GB"} {
		if got := sizeText(size); got != want {
			t.Errorf("sizeText(%d): got %q, want %q", size, got, want)
		}
	}
}

func TestDurationText(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-1: dash, 0: "0 ms", 3 * time.Microsecond: "<0.1 ms", 50 * time.Microsecond: "0.1 ms", 12 * time.Millisecond: "12 ms", 340 * time.Microsecond: "0.3 ms", 2 * time.Second: "2 s", 3400 * time.Millisecond: "3.4 s", 125 * time.Second: "2 min 5 s",
		2 * time.Hour: "2 h", 26*time.Hour + time.Minute: "1 d 2 h",
	} {
		if got := durationText(d); got != want {
			t.Errorf("durationText(%v): got %q, want %q", d, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		part, whole Count
		want        string
	}{
		{Known(1), Known(2), "50 %"},
		{Known(1), Known(1000), "<1 %"},
		{Known(999), Known(1000), ">99 %"},
		{Known(0), Known(10), "0 %"},
		{Known(10), Known(10), "100 %"},
		{Known(0), Known(0), dash},
		{Count{}, Known(10), dash},
	}
	for _, test := range tests {
		if got := percent(test.part, test.whole); got != test.want {
			t.Errorf("percent(%v, %v): got %q, want %q", test.part, test.whole, got, test.want)
		}
	}
}

func TestBalanceNeedsEveryNumber(t *testing.T) {
	t.Parallel()
	whole := RollCall{
		Submitted: Known(3), Invalid: Known(1), Duplicate: Known(0), Accepted: Known(2), Stored: Known(1), Failed: Known(0), Cancelled: Known(0), Outstanding: Known(1),
		Nets: Nets{Webhook: Known(1), Poll: Known(0), Reconcile: Known(0), Replay: Known(0), Sync: Known(0)},
	}
	if got := whole.balance(); got != balanced {
		t.Errorf("whole: got %v, want balanced", got)
	}
	holed := whole
	holed.Failed = Count{}
	if got := holed.balance(); got != balanceUnknown {
		t.Errorf("with a hole: got %v, want unknown", got)
	}
	wrong := whole
	wrong.Nets.Poll = Known(1)
	if got := wrong.balance(); got != unbalanced {
		t.Errorf("wrong nets: got %v, want unbalanced", got)
	}
}

func TestRollCallSpeaksItsWholeSum(t *testing.T) {
	t.Parallel()
	r := RollCall{Accepted: Known(286), Stored: Known(164), Failed: Known(16), Cancelled: Known(106), Outstanding: Known(0)}
	if got, want := r.say(t.Context()), "Finished. 286 of 286 URLs answered for: 164 stored, 16 failed, 106 cancelled, 0 outstanding."; got != want {
		t.Errorf("ended: got %q, want %q", got, want)
	}
	r.Cancelled, r.Outstanding = Known(6), Known(100)
	if got, want := r.say(t.Context()), "186 of 286 URLs answered for: 164 stored, 16 failed, 6 cancelled, 100 outstanding."; got != want {
		t.Errorf("at work: got %q, want %q", got, want)
	}
	r.Cancelled, r.Outstanding = Known(0), Known(106)
	if got, want := r.say(t.Context()), "180 of 286 URLs answered for: 164 stored, 16 failed, 106 outstanding."; got != want {
		t.Errorf("none cancelled: got %q, want %q", got, want)
	}
}
