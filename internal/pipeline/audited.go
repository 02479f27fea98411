package pipeline

import (
	"context"
	"strconv"
	"time"

	"rollcall/store"
)

// What the audit log tells of changes to batches, jobs and items. The line is
// written in the transaction that makes the change.

// submittedFacts is a batch as it was asked for. Its URLs are its items; of the
// headers, which may be secrets, not even the names are kept.
type submittedFacts struct {
	Name     string     `json:"name"`
	Kind     store.Kind `json:"kind"`
	Accepted int64      `json:"accepted"`
	Left     int64      `json:"left_out,omitempty"` // Invalid and duplicate lines.
}

func (p *Pipeline) auditSubmit(ctx context.Context, tx store.Tx, what string, b *store.Batch) error {
	return tx.Audit(ctx, b.CreatedAt, store.Change{
		What: what, Kind: "batch", ID: strconv.FormatInt(b.ID, 10),
		After: submittedFacts{Name: b.Name, Kind: b.Kind, Accepted: b.Accepted, Left: b.Invalid + b.Duplicate},
	})
}

// gateFacts is a gate that was paused.
type gateFacts struct {
	PausedAt *time.Time `json:"paused_at,omitempty"`
	Status   *int       `json:"status,omitempty"`
	Reason   string     `json:"reason,omitempty"`
}

func pausedFacts(g *store.Gate) gateFacts {
	return gateFacts{PausedAt: g.PausedAt, Status: g.PausedStatus, Reason: g.PausedReason}
}

// idsTold bounds the ids that one line of the audit log names.
const idsTold = 100

// manyFacts are the things that one press was about.
type manyFacts struct {
	Count int     `json:"count"`
	IDs   []int64 `json:"ids,omitempty"` // The first hundred.
}

func many(ids []int64) manyFacts {
	return manyFacts{Count: len(ids), IDs: ids[:min(len(ids), idsTold)]}
}

// auditCancelJobs notes that a person wants jobs cancelled. What comes of it is
// in each job's timeline.
func (p *Pipeline) auditCancelJobs(ctx context.Context, ids []int64) error {
	c := store.Change{What: "job.cancel", Kind: "job", After: many(ids)}
	if len(ids) == 1 {
		c.ID, c.After = strconv.FormatInt(ids[0], 10), nil
	}
	return p.store.Audit(ctx, p.now(), c)
}

// resubmitFacts are the items that a person sent again, in how many new jobs.
type resubmitFacts struct {
	manyFacts
	Jobs int64 `json:"jobs"`
}

func (p *Pipeline) auditResubmit(ctx context.Context, tx store.Tx, all []*reopening, jobs int64) error {
	var ids []int64
	for _, r := range all {
		for i := range r.items {
			ids = append(ids, r.items[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil // Nothing was there to be sent again.
	}
	return tx.Audit(ctx, p.now(), store.Change{What: "item.resubmit", Kind: "item", After: resubmitFacts{many(ids), jobs}})
}
