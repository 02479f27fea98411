package views

import (
	"fmt"
	"strconv"
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
func (p Pace) rateText() string {
	if p.PerMinute <= 0 {
		return ""
	}
	return perMinute(p.PerMinute) + " over the last " + durationText(p.Over.Round(time.Second))
}

func perMinute(rate float64) string {
	if rate < 1 {
		return fewDigits(rate*60) + " an hour"
	}
	if rate < 9.95 {
		return fewDigits(rate) + " a minute"
	}
	return thousands(int64(rate+0.5)) + " a minute"
}

// leftText is "about 12 min, 8 to 20", "about 30 s, at least 10 s", or why there is no saying.
func (p Pace) leftText() string {
	switch {
	case !p.Open:
		return ""
	case p.About <= 0:
		return "unknown: nothing has come home lately"
	case p.Late < 45*time.Second && p.Late > 0:
		return "less than a minute"
	}
	size, name := unitOf(p.About)
	text := fmt.Sprintf("about %s %s", inUnit(p.About, size), name)
	if p.Late <= 0 {
		return text + ", at least " + inUnit(p.Soon, size) + " " + name
	}
	if soon, late := inUnit(p.Soon, size), inUnit(p.Late, size); soon != late {
		text += ", " + soon + " to " + late
	}
	return text
}

// unitOf is the unit that a time is best said in.
func unitOf(d time.Duration) (time.Duration, string) {
	switch {
	case d < 2*time.Minute:
		return time.Second, "s"
	case d < 2*time.Hour:
		return time.Minute, "min"
	case d < 48*time.Hour:
		return time.Hour, "h"
	}
	return 24 * time.Hour, "days"
}

func inUnit(d, size time.Duration) string {
	n := d.Round(size) / size
	if size == time.Second {
		n = d.Round(5*time.Second) / size // No guess is good to the second.
	}
	return strconv.FormatInt(int64(max(n, 1)), 10)
}
