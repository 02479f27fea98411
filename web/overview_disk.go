package web

import (
	"context"
	"fmt"
	"time"

	"rollcall/store"
	"rollcall/views"
)

const (
	// diskWeek is over how long a growth is taken, if that long was looked.
	diskWeek = 7 * 24 * time.Hour
	// diskLeast is over how long at least: a night's work is no growth of a day.
	diskLeast = 23 * time.Hour
)

// overviewDisk is what the database takes up. It reads what a task has sampled.
func (s *Server) overviewDisk(ctx context.Context) (*views.DiskUse, error) {
	newest, oldest, err := s.store.DiskSamples(ctx, s.now().Add(-diskWeek))
	if err != nil {
		return nil, fmt.Errorf("overview's disk: %w", err)
	}
	d := &views.DiskUse{}
	if s.cfg.DiskLimit > 0 {
		d.Limit = views.Known(s.cfg.DiskLimit)
	}
	if newest == nil {
		return d, nil
	}
	d.At, d.Total, d.Growth = newest.At, views.Known(newest.Total()), growth(newest, oldest, (*store.DiskSample).Total)
	if left := d.Limit.N - d.Total.N; d.Limit.Known && d.Growth.Known && d.Growth.N > 0 && left > 0 {
		d.Days = views.Known(left / d.Growth.N)
	}
	for _, part := range []struct {
		id          store.DiskPart
		name, about string
	}{
		{store.DiskResults, views.Textf(ctx, "Results"), ""},
		{store.DiskSearch, "Search index", ""},
		{store.DiskItems, "Batches, items, jobs", ""},
		{store.DiskDeliveries, "Deliveries and events", ""},
		{store.DiskExports, views.Textf(ctx, "Exports"), ""},
		{store.DiskOther, "Everything else", "Postgres's own tables, the task queue, users, audit and statistics: most of it is there before the first batch"},
	} {
		of := func(s *store.DiskSample) int64 { return s.Bytes[part.id] }
		d.Parts = append(d.Parts, views.DiskRow{Name: part.name, About: part.about, Bytes: views.Known(of(newest)), Growth: growth(newest, oldest, of)})
	}
	return d, nil
}

// growth is by how much something grew in a day between two samples; unknown
// when they aren't a day apart.
func growth(newest, oldest *store.DiskSample, of func(*store.DiskSample) int64) views.Count {
	apart := newest.At.Sub(oldest.At)
	if apart < diskLeast {
		return views.Count{}
	}
	return views.Known(int64(float64(of(newest)-of(oldest)) / (apart.Hours() / 24)))
}
