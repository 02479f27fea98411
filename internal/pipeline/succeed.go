package pipeline

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"rollcall/store"
)

// part is what one of the jobs that carry on with another's items is to be.
type part struct {
	kind  store.Kind
	items []store.SendItem
}

// succeed makes the jobs that carry on with a job's items, from at on.
func (p *Pipeline) succeed(ctx context.Context, tx store.Tx, c *call, parts []part, origin store.Origin, now, at time.Time) error {
	jobs := make([]*store.Job, len(parts))
	for i, part := range parts {
		jobs[i] = p.successor(c, part, origin, now)
	}
	if err := insertCarrying(ctx, tx, jobs, parts); err != nil {
		return err
	}
	for _, j := range jobs {
		if _, err := tx.MoveItems(ctx, c.job.ID, j.ID, origin == store.OriginRetry); err != nil {
			return err
		}
	}
	events := intendedEvents(jobs, fmt.Sprintf("%s of job %d", origin, c.job.ID))
	events = append(events, store.JobEvent{JobID: c.job.ID, At: now, Kind: string(origin), Detail: "into " + counted(len(jobs), "job", "jobs")})
	if err := tx.InsertEvents(ctx, events); err != nil {
		return err
	}
	return p.queue.dispatch(ctx, tx, jobs, at)
}

// insertCarrying writes new jobs and extends the lineage of the items of each.
func insertCarrying(ctx context.Context, tx store.Tx, jobs []*store.Job, parts []part) error {
	if err := tx.InsertJobs(ctx, jobs); err != nil {
		return err
	}
	var rows []store.JobItem
	for i, part := range parts {
		for at, it := range part.items {
			rows = append(rows, store.JobItem{JobID: jobs[i].ID, InputIndex: at, ItemID: it.ItemID})
		}
	}
	return tx.InsertJobItems(ctx, rows)
}

// successor is a job that carries on. One that was asked to be cancelled
// passes that on, so that what follows it is withdrawn before its call.
func (p *Pipeline) successor(c *call, what part, origin store.Origin, now time.Time) *store.Job {
	j := newJob(c, what, origin, now)
	j.ParentJobID, j.Depth, j.CancelRequestedAt = &c.job.ID, c.job.Depth, c.job.CancelRequestedAt
	if origin == store.OriginSplit {
		j.Depth++
	}
	return j
}

// newJob is an intended job of the call's batch, not written yet.
func newJob(c *call, what part, origin store.Origin, now time.Time) *store.Job {
	urls := make([]string, len(what.items))
	for i, it := range what.items {
		urls[i] = it.URL
	}
	return &store.Job{
		BatchID: c.batch.ID, Kind: what.kind, State: store.JobIntended, Origin: origin,
		RequestHash: requestHash(what.kind, c.options.forKind(what.kind), c.headers, urls), URLCount: len(what.items), CreatedAt: now,
	}
}

// counted is a number of things, such as "1 job" or "3 jobs".
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
