package web

import (
	"context"
	"time"

	"rollcall/internal/pipeline"
)

// fakeStats stands in for what the pipeline knows of the vendor.
type fakeStats struct {
	ahead time.Duration
	heard bool
	usage pipeline.Usage
}

func (f *fakeStats) VendorAhead() (time.Duration, bool) { return f.ahead, f.heard }

func (f *fakeStats) Usage(context.Context) (pipeline.Usage, error) { return f.usage, nil }
