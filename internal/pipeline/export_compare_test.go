package pipeline

import "context"

// WorkOutComparison does what the task of a comparison does.
func (p *Pipeline) WorkOutComparison(ctx context.Context, id int64) error { return p.compare(ctx, id) }
