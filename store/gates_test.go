package store_test

import (
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// TestAGateIsClosedOncePerWave: calls that were under way together and are all
// refused say no more than one of them; the next guess grows with closings in a
// row.
func TestAGateIsClosedOncePerWave(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	closings := func(at time.Time) string {
		if err := s.CloseGate(t.Context(), store.GateRead, at, at.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		return word(t, s, `SELECT closings::text FROM gates WHERE name = 'read'`)
	}
	for range 8 {
		if n := closings(now); n != "1" {
			t.Fatalf("closed %s times by one wave", n)
		}
	}
	if n := closings(now.Add(2 * time.Second)); n != "2" {
		t.Errorf("closed %s times, want a second time after it was open", n)
	}
}
