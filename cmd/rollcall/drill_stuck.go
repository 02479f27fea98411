package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// quietFor is after how long without progress the drill writes down what is open.
	quietFor = 20 * time.Second
	// openTold bounds what is told of open jobs.
	openTold = 8
)

// describeOpen tells of what has not ended where it stands, what happened to it, and which tasks it has.
func (d *drill) describeOpen(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyTimeout)
	defer cancel()
	return d.lines(ctx, `(SELECT concat_ws(' ', 'job', j.id, 'of batch', j.batch_id, j.kind, j.state, 'call', j.call_no,
			'wake', j.wake_seq, 'called', j.called_at, 'lease', j.lease_until, 'poll', j.next_poll_at, '; events:',
			(SELECT string_agg(concat_ws(' ', e.at::time, e.kind, e.net, e.detail), ' | ' ORDER BY e.id) FROM job_events e WHERE e.job_id = j.id), '; tasks:',
			(SELECT string_agg(concat_ws(' ', q.kind, q.state, q.attempt, q.scheduled_at, q.errors[array_upper(q.errors, 1)]->>'error'), ' | ')
				FROM river_job q WHERE q.args->>'job_id' = j.id::text))
		FROM jobs j WHERE j.state IN ('intended', 'calling', 'uncertain', 'accepted') ORDER BY j.id LIMIT $1)
		UNION ALL (SELECT concat_ws(' ', 'rotation', r.id, r.state, 'attempt', r.attempt, 'lease', r.lease_until, r.note, '; tasks:',
			(SELECT string_agg(concat_ws(' ', q.kind, q.state, q.attempt, q.scheduled_at, q.errors[array_upper(q.errors, 1)]->>'error'), ' | ')
				FROM river_job q WHERE q.args->>'rotation_id' = r.id::text))
		FROM rotations r WHERE r.ended_at IS NULL ORDER BY r.id LIMIT $1)
		UNION ALL (SELECT concat_ws(' ', 'gate', g.name, 'closed until', g.closed_until, 'paused', g.paused_at) FROM gates g
			WHERE g.closed_until IS NOT NULL OR g.paused_at IS NOT NULL)
		UNION ALL (SELECT concat_ws(' ', 'reconcile run', r.id, r.started_at, r.finished_at) FROM reconcile_runs r ORDER BY r.id DESC LIMIT 2)`, openTold)
}

// describeCalledAgain tells the story of the jobs with these URLs that were called for again after a lost answer was
// looked for in vain.
func (d *drill) describeCalledAgain(ctx context.Context, urls []string) ([]string, error) {
	return d.lines(ctx, `SELECT concat_ws(' ', 'called again: job', j.id, j.vendor_job_id, 'called', j.called_at, 'by the vendor', j.called_vendor_at,
			(SELECT string_agg(concat_ws(' ', e.at::time, e.kind, e.net, e.detail), ' | ' ORDER BY e.id) FROM job_events e WHERE e.job_id = j.id))
		FROM jobs j WHERE EXISTS (SELECT FROM job_events e WHERE e.job_id = j.id AND e.kind = 'not_found_at_vendor')
			AND EXISTS (SELECT FROM job_items ji JOIN items i ON i.id = ji.item_id WHERE ji.job_id = j.id AND i.url = ANY ($2)) ORDER BY j.id LIMIT $1`, openTold, urls)
}

// lines reads a column of texts.
func (d *drill) lines(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := d.store.SQL().QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("look at what is open: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err tells what went wrong.
	var told []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, fmt.Errorf("look at what is open: %w", err)
		}
		told = append(told, line)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look at what is open: %w", err)
	}
	return told, nil
}

// quietSince is when the last URL came home.
func (d *drill) quietSince() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.samples); n > 0 {
		return d.samples[n-1].at
	}
	return d.began
}
