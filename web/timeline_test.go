package web

import "testing"

func TestCountsOfATimelineHaveSeparators(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		"submitted: 1000 URLs": "submitted: 1,000 URLs",
		"vendor says completed: 20000 stored, 999 failed, 1234 cancelled, 1000 to retry, 0 superseded": "vendor says completed: 20,000 stored, 999 failed, 1,234 cancelled, 1,000 to retry, 0 superseded",
		"vendor job 12345":          "vendor job 12345",
		"99999999999999999999 URLs": "99999999999999999999 URLs",
	} {
		if got := separated(detail); got != want {
			t.Errorf("%q: got %q, want %q", detail, got, want)
		}
	}
}
