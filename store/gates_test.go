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

// TestACallThatGoesThroughWhileTheGateIsClosedLeavesItClosed, but the guess for
// the next time begins anew.
func TestACallThatGoesThroughWhileTheGateIsClosedLeavesItClosed(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for i := range 4 {
		at := now.Add(time.Duration(i) * 2 * time.Second)
		if err := s.CloseGate(t.Context(), store.GateRead, at, at.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	open := func(at time.Time) string {
		if err := s.OpenGate(t.Context(), store.GateRead, at); err != nil {
			t.Fatal(err)
		}
		return word(t, s, `SELECT closings || ' ' || (closed_until IS NOT NULL) FROM gates WHERE name = 'read'`)
	}
	if got := open(now.Add(6*time.Second + time.Millisecond)); got != "1 true" {
		t.Errorf("while it is closed: %s, want one closing, still closed", got)
	}
	if got := open(now.Add(8 * time.Second)); got != "0 false" {
		t.Errorf("after its end: %s, want it open", got)
	}
}
