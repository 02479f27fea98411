package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"rollcall/store"
)

// PreflightPlan is what submitting a preflight would do.
type PreflightPlan struct {
	Kind     store.Kind // What Automatic comes to.
	Requests int64      // One for each URL.
	Jobs     int64
	// Left is what the vendor said is left to spend.
	Left Usage
	// Takes is about how long it takes, by the speed of recent batches of the
	// same kind; zero is unknown.
	Takes time.Duration
	Speed store.Speed
}

// PlanPreflight says what submitting a preflight would do. It asks no vendor.
func (p *Pipeline) PlanPreflight(ctx context.Context, f *store.Preflight) (PreflightPlan, error) {
	var sum Totals
	var options Options
	if err := json.Unmarshal(f.Totals, &sum); err != nil {
		return PreflightPlan{}, fmt.Errorf("totals of preflight %d: %w", f.ID, err)
	}
	if err := json.Unmarshal(f.Options, &options); err != nil {
		return PreflightPlan{}, fmt.Errorf("options of preflight %d: %w", f.ID, err)
	}
	urls := sum.Accepted + sum.Fixed
	plan := PreflightPlan{Kind: f.Kind, Requests: int64(urls)}
	if plan.Kind == "" {
		plan.Kind = store.KindBatch
		if urls == 1 || options.ExtractLinks {
			plan.Kind = store.KindExtract
		}
	}
	plan.Jobs = int64(len(p.cutJobs(plan.Kind, urls)))
	var err error
	if plan.Speed, err = p.store.RecentSpeed(ctx, plan.Kind); err != nil {
		return plan, fmt.Errorf("speed of recent batches: %w", err)
	}
	if plan.Speed.URLs > 0 {
		plan.Takes = time.Duration(float64(plan.Speed.Took) / float64(plan.Speed.URLs) * float64(urls))
	}
	plan.Left, err = p.Usage(ctx)
	return plan, err
}
