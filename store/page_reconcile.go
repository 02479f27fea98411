package store

import (
	"context"
	"time"
)

// PageRuns lists reconcile runs, newest first.
func (q Queries) PageRuns(ctx context.Context, from Key, limit int64) ([]ReconcileRun, error) {
	var runs []ReconcileRun
	err := after(q.db.NewSelect().Model(&runs), "started_at", from).Order("started_at DESC", "id DESC").
		Limit(limit).Scan(ctx)
	return runs, translate(err)
}

// FaultyRuns are reconcile runs in a row that each met an error.
type FaultyRuns struct {
	Runs  int64
	Since time.Time  // when the first of them began
	Over  *time.Time // when a run ended that met none; nil while they go on
	Note  string     // of the newest
}

// faultyLook bounds how many runs are looked through: a week's, ten minutes apart.
const faultyLook = 1000

// PageFaultyRuns finds the newest row of at least so many finished runs that
// went on for at least so long and each met an error; nil when there is none.
// What one run can't read the next reads, so fewer are no trouble.
func (q Queries) PageFaultyRuns(ctx context.Context, least int, long time.Duration) (*FaultyRuns, error) {
	var rows []FaultyRuns
	err := q.db.NewRaw(`SELECT count(*) AS runs, min(started_at) AS since,
			(array_agg(next_end ORDER BY started_at DESC, id DESC))[1] AS over, (array_agg(note ORDER BY started_at DESC, id DESC))[1] AS note
		FROM (SELECT id, started_at, finished_at, errors, note, lag(finished_at) OVER newest_first AS next_end,
				count(*) FILTER (WHERE errors = 0) OVER newest_first AS later_whole
			FROM (SELECT id, started_at, finished_at, errors, note FROM reconcile_runs ORDER BY started_at DESC, id DESC LIMIT ?look) last
			WHERE finished_at IS NOT NULL WINDOW newest_first AS (ORDER BY started_at DESC, id DESC)) finished
		WHERE errors > 0 GROUP BY later_whole
		HAVING count(*) >= ?least AND max(finished_at) - min(started_at) >= make_interval(secs => ?long)
		ORDER BY later_whole LIMIT 1`, named{"look": faultyLook, "least": least, "long": long.Seconds()}).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return nil, translate(err)
	}
	return &rows[0], nil
}
