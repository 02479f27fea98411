package web

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"rollcall/internal/geonode"
	"rollcall/internal/pipeline"
	"rollcall/store"
)

// fakeRuns runs batches again as the pipeline does, since it is one: it writes
// the rows, and nothing of them is ever sent.
type fakeRuns struct {
	desk  *store.Store
	clock func() time.Time // The real time unless a test sets another.
	once  sync.Once
	real  *pipeline.Pipeline
	err   error
}

func (f *fakeRuns) pipe() (*pipeline.Pipeline, error) {
	f.once.Do(func() {
		now := time.Now
		if f.clock != nil {
			now = f.clock
		}
		var vendor *geonode.Client
		if vendor, f.err = geonode.New(geonode.Config{BaseURL: "http://127.0.0.1:1", APIKey: "none", Now: now}); f.err != nil {
			return
		}
		f.real, f.err = pipeline.New(pipeline.Config{
			Store: f.desk, Vendor: vendor, Logger: slog.New(slog.DiscardHandler), Now: now, Key: bytes.Repeat([]byte{7}, 32), OnlySubmit: true,
		})
	})
	return f.real, f.err
}

func (f *fakeRuns) PlanRerun(ctx context.Context, batchID int64, failures bool) (pipeline.RerunPlan, error) {
	p, err := f.pipe()
	if err != nil {
		return pipeline.RerunPlan{}, err
	}
	return p.PlanRerun(ctx, batchID, failures)
}

func (f *fakeRuns) Rerun(ctx context.Context, a pipeline.Again) (pipeline.Submitted, error) {
	p, err := f.pipe()
	if err != nil {
		return pipeline.Submitted{}, err
	}
	return p.Rerun(ctx, a)
}

func (f *fakeRuns) AddSchedule(ctx context.Context, form pipeline.ScheduleForm) (*store.Schedule, error) {
	p, err := f.pipe()
	if err != nil {
		return nil, err
	}
	return p.AddSchedule(ctx, form)
}

func (f *fakeRuns) ChangeSchedule(ctx context.Context, id int64, form pipeline.ScheduleForm) (bool, error) {
	p, err := f.pipe()
	if err != nil {
		return false, err
	}
	return p.ChangeSchedule(ctx, id, form)
}

func (f *fakeRuns) PauseSchedule(ctx context.Context, id int64) (bool, error) {
	p, err := f.pipe()
	if err != nil {
		return false, err
	}
	return p.PauseSchedule(ctx, id)
}

func (f *fakeRuns) ResumeSchedule(ctx context.Context, id int64) (bool, error) {
	p, err := f.pipe()
	if err != nil {
		return false, err
	}
	return p.ResumeSchedule(ctx, id)
}

func (f *fakeRuns) RemoveSchedule(ctx context.Context, id int64) (bool, error) {
	p, err := f.pipe()
	if err != nil {
		return false, err
	}
	return p.RemoveSchedule(ctx, id)
}

func (f *fakeRuns) RunScheduleNow(ctx context.Context, id int64) (*store.ScheduleRun, error) {
	p, err := f.pipe()
	if err != nil {
		return nil, err
	}
	return p.RunScheduleNow(ctx, id)
}
