package pipeline

import (
	"context"
	"time"

	"github.com/riverqueue/river"
)

const (
	// diskEvery is how often the disk is looked at: a look takes some 10 ms however
	// much is stored, so the overview needn't show what was true an hour ago, and
	// no rule is needed for when to look sooner.
	diskEvery = time.Minute
	// diskRest is how long after a look there is none: each process that starts
	// asks for one.
	diskRest = diskEvery / 2
)

// SampleDisk notes what the database takes up, unless that was done a moment
// ago.
func (p *Pipeline) SampleDisk(ctx context.Context) error {
	now := p.now()
	last, err := p.store.LastDiskSample(ctx)
	if err != nil || now.Sub(last).Abs() < diskRest {
		return err
	}
	return p.store.SampleDisk(ctx, now)
}

// diskArgs asks that the disk be looked at. Running twice is harmless: the
// second finds the sample of the first.
type diskArgs struct{}

// Kind implements river.JobArgs.
func (diskArgs) Kind() string { return "sample_disk" }

type diskWorker struct {
	river.WorkerDefaults[diskArgs]
	p *Pipeline
}

// Work implements river.Worker. What fails is done by the next run.
func (w *diskWorker) Work(ctx context.Context, _ *river.Job[diskArgs]) error {
	return w.p.SampleDisk(ctx)
}

// diskOften is the periodic task. It runs at the start too, so that the overview
// has a first figure at once.
func diskOften() *river.PeriodicJob {
	return river.NewPeriodicJob(everyFull(diskEvery), func() (river.JobArgs, *river.InsertOpts) {
		return diskArgs{}, &river.InsertOpts{Queue: queueMaintenance, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByState: active()}}
	}, &river.PeriodicJobOpts{ID: "sample_disk", RunOnStart: true})
}
