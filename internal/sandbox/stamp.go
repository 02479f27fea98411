package sandbox

import "time"

// stamp is a point in time as the vendor shows it: UTC with Z, in whole seconds, milliseconds or microseconds. The
// time is cut to that precision, so that what is compared is what was shown.
type stamp struct {
	time.Time
	layout string
}

// stampAt cuts t to the precision that the names choose.
func (d dice) stampAt(t time.Time, names ...string) stamp {
	switch d.pick(3, append([]string{"precision"}, names...)...) {
	case 0:
		return stamp{t.UTC().Truncate(time.Second), "2006-01-02T15:04:05Z"}
	case 1:
		return stamp{t.UTC().Truncate(time.Millisecond), "2006-01-02T15:04:05.000Z"}
	default:
		return stamp{t.UTC().Truncate(time.Microsecond), "2006-01-02T15:04:05.000000Z"}
	}
}

// String is the stamp as it stands in a body.
func (s stamp) String() string { return s.Format(s.layout) }

// MarshalJSON writes the stamp in its own precision.
func (s stamp) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }
