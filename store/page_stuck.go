package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Bounds of a look for stuck items.
const (
	stuckJobs = 200 // Open jobs of the batch, the oldest.
	// StuckLook is how many of their outstanding items are looked at, and
	// StuckUntaken how many of jobs that the vendor has not taken.
	StuckLook    = 500
	StuckUntaken = 100
	usualJobs    = 400 // Jobs settled last, of all batches.
	usualPerJob  = 50
)

// OpenItem is an outstanding item and its job, which has not ended.
type OpenItem struct {
	ID           int64
	URL          string `bun:"url"`
	Host         string
	JobID        int64
	JobState     JobState
	Since        time.Time // When the vendor took the job; until then, when it was made.
	VendorStatus string
	Polls        int
	WebhookAt    *time.Time
	Position     int // In its batch.
}

// PageOldestOpen lists the outstanding items of a batch's oldest open jobs: at
// most StuckLook of those that the vendor took by the given time, and at most
// StuckUntaken of those made by then that it has not taken. The oldest come
// first, and last those that nobody tried to send yet.
func (q Queries) PageOldestOpen(ctx context.Context, batchID int64, by time.Time) ([]OpenItem, error) {
	var items []OpenItem
	err := q.db.NewRaw(`SELECT * FROM (
			(SELECT i.id, i.url, i.host, j.id AS job_id, j.state AS job_state, j.since, j.vendor_status, j.polls, j.webhook_at, i.position
				FROM (SELECT id, state, accepted_at AS since, vendor_status, polls, webhook_at FROM jobs
					WHERE batch_id = ?batch AND state = 'accepted' AND accepted_at <= ?by ORDER BY accepted_at, id LIMIT ?jobs) j
				JOIN items i ON i.current_job_id = j.id AND i.state = 'outstanding' ORDER BY j.since, j.id, i.position LIMIT ?look)
			UNION ALL
			(SELECT i.id, i.url, i.host, j.id, j.state, j.since, '', j.polls, j.webhook_at, i.position
				FROM (SELECT id, state, created_at AS since, polls, webhook_at FROM jobs
					WHERE batch_id = ?batch AND state IN ('intended', 'calling', 'uncertain') AND created_at <= ?by
					ORDER BY state = 'intended', created_at, id LIMIT ?jobs) j
				JOIN items i ON i.current_job_id = j.id AND i.state = 'outstanding'
				ORDER BY j.state = 'intended', j.since, j.id, i.position LIMIT ?untaken)) open
		ORDER BY job_state = 'intended', since, job_id, position`,
		named{"batch": batchID, "by": by, "jobs": stuckJobs, "look": StuckLook, "untaken": StuckUntaken}).Scan(ctx, &items)
	return items, translate(err)
}

// JobsOfBatch are those of the jobs that are the batch's.
func (q Queries) JobsOfBatch(ctx context.Context, batchID int64, jobIDs []int64) ([]int64, error) {
	if len(jobIDs) == 0 {
		return nil, nil
	}
	var ids []int64
	err := q.db.NewRaw("SELECT id FROM jobs WHERE batch_id = ? AND id IN (?) ORDER BY id", batchID, bun.List(jobIDs)).Scan(ctx, &ids)
	return ids, translate(err)
}

// Usual is how long answers took lately, from when the vendor took the job
// until the item was stored.
type Usual struct {
	Host    string // "" with All.
	All     bool   // Of every host together.
	Answers int64
	P95     time.Duration // 19 in 20 were no slower.
}

// PageUsual tells it by host, and of all hosts together, from what the newest
// 400 settled jobs stored, at most 50 items of each.
func (q Queries) PageUsual(ctx context.Context) ([]Usual, error) {
	var rows []struct {
		Host    *string
		Answers int64
		Seconds float64
	}
	err := q.db.NewRaw(`SELECT s.host, count(*) AS answers, percentile_disc(0.95) WITHIN GROUP (ORDER BY s.seconds) AS seconds
		FROM (SELECT id, accepted_at FROM jobs WHERE state = 'settled' AND accepted_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT ?) j
		CROSS JOIN LATERAL (SELECT i.host, extract(epoch FROM i.ended_at - j.accepted_at)::float8 AS seconds FROM items i
			WHERE i.current_job_id = j.id AND i.state = 'stored' LIMIT ?) s
		GROUP BY GROUPING SETS ((s.host), ())`, usualJobs, usualPerJob).Scan(ctx, &rows)
	usual := make([]Usual, 0, len(rows))
	for _, row := range rows {
		u := Usual{All: row.Host == nil, Answers: row.Answers, P95: time.Duration(max(0, row.Seconds) * float64(time.Second))}
		if row.Host != nil {
			u.Host = *row.Host
		}
		if row.Answers > 0 {
			usual = append(usual, u)
		}
	}
	return usual, translate(err)
}
