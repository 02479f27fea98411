package views

import (
	"testing"
	"time"
)

// TestGuessText claims no more than is known.
func TestGuessText(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		275 * time.Millisecond: "a few seconds", 9999 * time.Millisecond: "a few seconds", 10*time.Second + 312*time.Millisecond: "about 10 s",
		9*time.Minute + 400*time.Millisecond: "about 9 min",
	} {
		if got := guessText(t.Context(), d); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}
