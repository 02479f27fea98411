package web

import (
	"context"
	"math"
	"time"

	"rollcall/store"
	"rollcall/views"
)

// The windows that a batch's pace is taken from: the last minutes or, when they
// were quiet, the quarter of an hour that is kept.
const (
	paceShort = 5 * time.Minute
	paceLong  = 15 * time.Minute
	// paceParts is into how many parts a window is cut to see how steady it was.
	paceParts = 6
	// paceSpread is how many standard errors an estimate is let go either way: of
	// ten, nine lie between.
	paceSpread = 1.64
)

// pace is how fast a batch's answers come home.
func (s *Server) pace(ctx context.Context, b *store.Batch) (views.Pace, error) {
	parts, err := s.store.PagePace(ctx, b.ID)
	return paceOf(parts, b, s.now()), err
}

func paceOf(parts []store.PacePart, b *store.Batch, now time.Time) views.Pace {
	p := views.Pace{Open: b.Outstanding > 0}
	for _, part := range parts {
		if part.LastAt.After(p.HeardAt) {
			p.HeardAt = part.LastAt
		}
	}
	for _, window := range []time.Duration{paceShort, paceLong} {
		counts, over := paceCounts(parts, b.CreatedAt, now, window)
		total := 0.0
		for _, n := range counts {
			total += n
		}
		if total == 0 {
			continue
		}
		p.PerMinute, p.Over = total/over.Minutes(), over
		if p.Open {
			p.About, p.Soon, p.Late = timeLeft(counts, over, float64(b.Outstanding))
		}
		return p
	}
	return p
}

// paceCounts cuts the window that ends now into parts and counts what ended in
// each. A batch younger than the window is taken from its beginning, in its
// first second as if that were over.
func paceCounts(parts []store.PacePart, made, now time.Time, window time.Duration) ([]float64, time.Duration) {
	over := max(min(window, now.Sub(made)), time.Second)
	counts := make([]float64, paceParts)
	for _, part := range parts {
		// A slot counts where its end lies: it may have begun before the window.
		age := max(now.Sub(part.LastAt), 0) // Another replica's clock may be ahead.
		if age < over {
			counts[paceParts-1-int(int64(age)*paceParts/int64(over))] += float64(part.Ended)
		}
	}
	return counts, over
}

// timeLeft is about how long the outstanding items take at the pace of the
// parts, and between what it may lie: the pace is as uncertain as its parts
// differ, and never surer than the number of answers makes it. The last is zero
// when it may be so slow that there is no saying.
func timeLeft(counts []float64, over time.Duration, outstanding float64) (time.Duration, time.Duration, time.Duration) {
	n := float64(len(counts))
	var total, squares float64
	for _, c := range counts {
		total += c
	}
	for _, c := range counts {
		squares += (c - total/n) * (c - total/n)
	}
	// Of the sum of all parts.
	off := paceSpread * max(math.Sqrt(squares/(n-1)*n), math.Sqrt(total))
	takes := func(answers float64) time.Duration {
		return time.Duration(min(outstanding/answers*float64(over), float64(365*24*time.Hour)))
	}
	late := time.Duration(0)
	if slow := total - off; slow > total/10 {
		late = takes(slow)
	}
	return takes(total), takes(total + off), late
}
