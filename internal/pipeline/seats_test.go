package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"rollcall/internal/pipeline"
)

// TestSeats: who waits gets a place in the order of coming, those who give way
// after all others; who waits no longer holds up nobody, and a place that is
// left twice is one place.
func TestSeats(t *testing.T) {
	t.Parallel()
	s := pipeline.NewSeats(1, time.Hour)
	leave, err := s.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type seated struct {
		name  string
		leave func()
	}
	came := make(chan seated)
	wait := func(name string, take func(context.Context) (func(), error)) {
		before := s.Waiting()
		go func() {
			if leave, err := take(t.Context()); err == nil {
				came <- seated{name, leave}
			}
		}()
		eventually(t, name+" to wait", func() bool { return s.Waiting() == before+1 })
	}
	wait("behind", s.GiveWay)
	wait("first", s.Take)
	gone, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.Take(gone)
		left <- err
	}()
	eventually(t, "the third to wait", func() bool { return s.Waiting() == 3 })
	wait("second", s.Take)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	leave()
	leave()
	var order []string
	for range 3 {
		next := <-came
		order = append(order, next.name)
		next.leave()
	}
	if want := []string{"first", "second", "behind"}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
	if leave, err = s.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer leave()
	s.SetWait(time.Millisecond)
	if _, err := s.Take(t.Context()); !errors.Is(err, pipeline.ErrBusy) {
		t.Errorf("got %v, want %v", err, pipeline.ErrBusy)
	}
}
