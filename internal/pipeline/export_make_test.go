package pipeline

import (
	"context"
	"time"
)

// MakeExport is one run of the task that makes a file.
func (p *Pipeline) MakeExport(ctx context.Context, id int64, beat time.Duration) error {
	return p.makeExport(ctx, id, beat)
}

// BeatEvery sets how often who sends a file tells that it goes on.
func (d *DirectExport) BeatEvery(beat time.Duration) { d.every = beat }

// ExportClaims is how often a file is begun before it is given up.
const ExportClaims = exportClaims
