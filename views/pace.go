package views

import (
	"context"
	"fmt"
	"time"
)

// Pace is how fast a batch's answers come home, and when the last may. What isn't known is zero.
type Pace struct {
	PerMinute float64 // over the last minutes
	Over      time.Duration
	// When the outstanding ones may be home: about, and between what. Without Late there is no saying how late it may be.
	About, Soon, Late time.Duration
	HeardAt           time.Time // when the last answer came
	Open              bool      // something is outstanding
}

// rateText is "43 a minute over the last 5 min".
func (p Pace) rateText(ctx context.Context) string {
	if p.PerMinute <= 0 {
		return ""
	}
	return Textf(ctx, "%s over the last %s", perMinute(ctx, p.PerMinute), durationText(p.Over.Round(time.Second)))
}

func perMinute(ctx context.Context, rate float64) string {
	if rate < 1 {
		return Textf(ctx, "%s an hour", fewDigits(rate*60))
	}
	if rate < 9.95 {
		return Textf(ctx, "%s a minute", fewDigits(rate))
	}
	return Textf(ctx, "%s a minute", thousands(int64(rate+0.5)))
}

// leftText is "about 12 min, 8 to 20", "about 30 s, at least 10 s", "about 5 s, or longer", or why there is no saying.
func (p Pace) leftText(ctx context.Context) string {
	switch {
	case !p.Open:
		return ""
	case p.About <= 0:
		return tr(ctx, "unknown: nothing has come home lately")
	case p.Late < 45*time.Second && p.Late > 0:
		return tr(ctx, "less than a minute")
	}
	size, name := unitOf(p.About)
	about, soon, late := inUnit(p.About, size), inUnit(p.Soon, size), inUnit(p.Late, size)
	switch {
	case p.Late <= 0 && soon == about:
		return Textf(ctx, "about %s, or longer", withUnit(ctx, about, name))
	case p.Late <= 0:
		return Textf(ctx, "about %s, at least %s", withUnit(ctx, about, name), withUnit(ctx, soon, name))
	case soon != late:
		return Textf(ctx, "about %s, %d to %d", withUnit(ctx, about, name), soon, late)
	}
	return Textf(ctx, "about %s", withUnit(ctx, about, name))
}

// withUnit is "12 min": only days have a name that is longer than a sign.
func withUnit(ctx context.Context, n int64, unit string) string {
	if unit == "" {
		return Counted(ctx, Known(n), "%s day", "%s days")
	}
	return fmt.Sprintf("%d %s", n, unit)
}

// unitOf is the unit that a time is best said in, with its sign; days have none.
func unitOf(d time.Duration) (time.Duration, string) {
	switch {
	case d < 2*time.Minute:
		return time.Second, "s"
	case d < 2*time.Hour:
		return time.Minute, "min"
	case d < 48*time.Hour:
		return time.Hour, "h"
	}
	return 24 * time.Hour, ""
}

func inUnit(d, size time.Duration) int64 {
	if size == time.Second {
		return int64(max(d.Round(5*time.Second)/size, 5)) // No guess is good to the second.
	}
	return int64(max(d.Round(size)/size, 1))
}
