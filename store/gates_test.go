package store_test

import (
	"net/http"
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

// TestPausedTimeIsAddedUp: of two pauses only what lies in the time asked about
// counts, and a gate that is paused over and over does not begin anew.
func TestPausedTimeIsAddedUp(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	pause := func(from, to time.Duration) {
		if _, err := s.PauseGate(t.Context(), store.GateRead, 401, "refused", now.Add(from), now.Add(from)); err != nil {
			t.Fatal(err)
		}
		if opened, err := s.ResumeGate(t.Context(), store.GateRead, now.Add(to)); err != nil || !opened {
			t.Fatalf("opened %v, %v", opened, err)
		}
	}
	pause(0, 10*time.Minute)
	pause(time.Hour, time.Hour+5*time.Minute)
	if opened, err := s.ResumeGate(t.Context(), store.GateRead, now.Add(2*time.Hour)); err != nil || opened {
		t.Errorf("opened %v, %v; want nothing to open", opened, err)
	}
	got, err := s.GatePaused(t.Context(), store.GateRead, now.Add(4*time.Minute), now.Add(time.Hour+2*time.Minute))
	if want := 8 * time.Minute; err != nil || got != want {
		t.Errorf("paused for %s, %v; want %s", got, err, want)
	}
	if _, err := s.PauseGate(t.Context(), store.GateRead, http.StatusPaymentRequired, "no balance", now.Add(3*time.Hour), now.Add(4*time.Hour)); err != nil {
		t.Fatal(err)
	}
	got, err = s.GatePaused(t.Context(), store.GateRead, now.Add(2*time.Hour), now.Add(5*time.Hour))
	if want := 2 * time.Hour; err != nil || got != want {
		t.Errorf("with a pause that goes on: paused for %s, %v; want %s", got, err, want)
	}
	if got, err := s.GatePaused(t.Context(), store.GateSubmit, now, now.Add(time.Hour)); err != nil || got != 0 {
		t.Errorf("the other gate was paused for %s, %v", got, err)
	}
}
