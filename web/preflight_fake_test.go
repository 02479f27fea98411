package web

import (
	"context"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// Preflights are made as the pipeline makes them, by the one that fakeRuns has.

func (f *fakePipeline) Preflight(ctx context.Context, in pipeline.PreflightInput) (int64, error) {
	if f.busy.Load() {
		return 0, pipeline.ErrBusy
	}
	p, err := f.pipe()
	if err != nil {
		return 0, err
	}
	return p.Preflight(ctx, in)
}

func (f *fakePipeline) KeepUpload(ctx context.Context, in pipeline.PreflightInput) (int64, error) {
	p, err := f.pipe()
	if err != nil {
		return 0, err
	}
	return p.KeepUpload(ctx, in)
}

func (f *fakePipeline) PreflightForm(ctx context.Context, id int64, owner *int64) (pipeline.PreflightInput, error) {
	p, err := f.pipe()
	if err != nil {
		return pipeline.PreflightInput{}, err
	}
	return p.PreflightForm(ctx, id, owner)
}

func (f *fakePipeline) Reread(ctx context.Context, id int64, owner *int64, c pipeline.Choices, storedDays int) error {
	if f.busy.Load() {
		return pipeline.ErrBusy
	}
	p, err := f.pipe()
	if err != nil {
		return err
	}
	return p.Reread(ctx, id, owner, c, storedDays)
}

func (f *fakePipeline) PlanPreflight(ctx context.Context, row *store.Preflight) (pipeline.PreflightPlan, error) {
	p, err := f.pipe()
	if err != nil {
		return pipeline.PreflightPlan{}, err
	}
	return p.PlanPreflight(ctx, row)
}

func (f *fakePipeline) SubmitPreflight(ctx context.Context, id int64, owner *int64, reading int) (pipeline.Submitted, error) {
	if f.busy.Load() {
		return pipeline.Submitted{}, pipeline.ErrBusy
	}
	p, err := f.pipe()
	if err != nil {
		return pipeline.Submitted{}, err
	}
	return p.SubmitPreflight(ctx, id, owner, reading)
}
