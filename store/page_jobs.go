package store

import (
	"context"
	"math"
	"time"

	"github.com/uptrace/bun"
)

// JobRow is a job in a list with the answers of the items that are its own:
// those that moved on to another job count there.
type JobRow struct {
	Job
	Answers Batch
}

// PageJobs lists a batch's jobs, newest first, those before the given id; zero
// begins.
func (q Queries) PageJobs(ctx context.Context, batchID, before, limit int64) ([]JobRow, error) {
	var jobs []Job
	query := q.db.NewSelect().Model(&jobs).ExcludeColumn("vendor_invalid_urls", "request_hash").
		Where("j.batch_id = ?", batchID)
	if before > 0 {
		query = query.Where("j.id < ?", before)
	}
	if err := query.Order("j.id DESC").Limit(limit).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	return q.withAnswers(ctx, jobs)
}

// CountJobs counts a batch's jobs up to one more than CountLimit.
func (q Queries) CountJobs(ctx context.Context, batchID int64) (int64, error) {
	return q.countUpTo(ctx, q.db.NewSelect().Model((*Job)(nil)).Where("j.batch_id = ?", batchID))
}

// AtWork is what the vendor says of a batch's jobs that it has at work. It is
// shown beside the roll call and never summed into it. Jobs of one URL report
// nothing, and aren't counted.
type AtWork struct {
	Jobs     int64
	Reported int64 // Of them, those that the vendor has reported on.
	Done     int64 // What it has done in those, with or without a result.
	Total    int64
}

// PageAtWork sums up the counters of the jobs at work.
func (q Queries) PageAtWork(ctx context.Context, batchID int64) (AtWork, error) {
	var sum AtWork
	err := q.db.NewRaw(`SELECT count(*) AS jobs, count(total) AS reported,
			least(coalesce(sum(done) FILTER (WHERE total IS NOT NULL), 0), ?most)::bigint AS done, least(coalesce(sum(total), 0), ?most)::bigint AS total
		FROM (SELECT (vendor_reports->>'total')::numeric AS total, coalesce((vendor_reports->>'completed')::numeric, 0)
				+ coalesce((vendor_reports->>'failed')::numeric, 0) + coalesce((vendor_reports->>'cancelled')::numeric, 0) AS done
			FROM jobs WHERE batch_id = ?batch AND state = 'accepted' AND kind <> 'extract') at_work`,
		named{"batch": batchID, "most": int64(math.MaxInt64)}).Scan(ctx, &sum)
	return sum, translate(err)
}

func (q Queries) withAnswers(ctx context.Context, jobs []Job) ([]JobRow, error) {
	rows := make([]JobRow, len(jobs))
	if len(jobs) == 0 {
		return rows, nil
	}
	ids := make([]int64, len(jobs))
	place := make(map[int64]int, len(jobs))
	for i := range jobs {
		rows[i].Job, ids[i] = jobs[i], jobs[i].ID
		place[jobs[i].ID] = i
	}
	var answers []struct {
		JobID int64
		Batch
	}
	err := q.db.NewRaw(`SELECT current_job_id AS job_id, count(*) AS accepted,
			count(*) FILTER (WHERE net = 'webhook') AS stored_webhook,
			count(*) FILTER (WHERE net = 'poll') AS stored_poll,
			count(*) FILTER (WHERE net = 'reconcile') AS stored_reconcile,
			count(*) FILTER (WHERE net = 'replay') AS stored_replay,
			count(*) FILTER (WHERE net = 'sync') AS stored_sync,
			count(*) FILTER (WHERE state = 'failed') AS failed,
			count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
			count(*) FILTER (WHERE state = 'outstanding') AS outstanding
		FROM items WHERE current_job_id IN (?) GROUP BY current_job_id`, bun.List(ids)).Scan(ctx, &answers)
	if err != nil {
		return nil, translate(err)
	}
	for i := range answers {
		rows[place[answers[i].JobID]].Answers = answers[i].Batch
	}
	return rows, nil
}

// JobStory is a job and what happened to it.
type JobStory struct {
	JobRow
	BatchName  string
	Attempt    int // 1 for the job of a submission, one more for each time its items were submitted again.
	Children   []int64
	TakenOver  int64 // Items that it carried, and that another job carries now.
	Events     []JobEvent
	Deliveries []Delivery
	Stored     []StoredShare
}

// StoredShare is what a job stored by one net, and when the last of it came.
type StoredShare struct {
	Net   Net
	Items int64
	At    time.Time
}

// What the page of a job shows of it at most.
const (
	maxJobEvents     = 500
	maxJobDeliveries = 100
	maxJobChildren   = 50
)

// PageJob is one job and its story; ErrNotFound when there is none. Its
// deliveries come without headers and bodies.
func (q Queries) PageJob(ctx context.Context, id int64) (*JobStory, error) {
	job, err := q.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	rows, err := q.withAnswers(ctx, []Job{*job})
	if err != nil {
		return nil, err
	}
	story := &JobStory{JobRow: rows[0]}
	if err := q.jobFamily(ctx, story); err != nil {
		return nil, translate(err)
	}
	return story, translate(q.jobHistory(ctx, story))
}

// jobFamily fills in where a job belongs: its batch, the jobs it came from, and
// those that took over from it.
func (q Queries) jobFamily(ctx context.Context, story *JobStory) error {
	err := q.db.NewRaw("SELECT name FROM batches WHERE id = ?", story.BatchID).Scan(ctx, &story.BatchName)
	if err != nil {
		return err
	}
	err = q.db.NewRaw(`WITH RECURSIVE up AS (
			SELECT parent_job_id, origin, 1 AS step FROM jobs WHERE id = ?
			UNION ALL SELECT j.parent_job_id, j.origin, step + 1 FROM jobs j JOIN up ON j.id = up.parent_job_id WHERE step < ?)
		SELECT 1 + count(*) FILTER (WHERE origin IN ('retry', 'resubmit')) FROM up`, story.ID, maxLineage).
		Scan(ctx, &story.Attempt)
	if err != nil {
		return err
	}
	err = q.db.NewRaw("SELECT id FROM jobs WHERE parent_job_id = ? ORDER BY id LIMIT ?", story.ID, maxJobChildren).
		Scan(ctx, &story.Children)
	if err != nil || len(story.Children) == 0 {
		return err
	}
	return q.db.NewRaw(`SELECT count(*) FROM job_items ji JOIN items i ON i.id = ji.item_id
		WHERE ji.job_id = ? AND i.current_job_id <> ?`, story.ID, story.ID).Scan(ctx, &story.TakenOver)
}

// jobHistory fills in what happened to a job.
func (q Queries) jobHistory(ctx context.Context, story *JobStory) error {
	err := q.db.NewRaw(`SELECT net, count(*) AS items, max(stored_at) AS at FROM results WHERE job_id = ? GROUP BY net`,
		story.ID).Scan(ctx, &story.Stored)
	if err != nil {
		return err
	}
	err = q.db.NewSelect().Model(&story.Events).Where("je.job_id = ?", story.ID).Order("je.at", "je.id").
		Limit(maxJobEvents).Scan(ctx)
	if err != nil || story.VendorID() == "" {
		return err
	}
	return q.db.NewSelect().Model(&story.Deliveries).ExcludeColumn("headers", "body").
		Where("d.vendor_job_id = ?", story.VendorID()).Where("d.vendor_job_id <> ''").
		Order("d.received_at").Limit(maxJobDeliveries).Scan(ctx)
}
