package store_test

import (
	"regexp"
	"testing"
	"time"

	"rollcall/store"
	"rollcall/store/storetest"
)

// TestSchedulesUseIndexes: what looks for due schedules every second, and the
// pages about them, read no table from one end to the other.
func TestSchedulesUseIndexes(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	exec(t, s, `INSERT INTO batches (name, kind, options, created_at) SELECT 'b' || g, 'batch', '{}', now() FROM generate_series(1, 300) g`)
	exec(t, s, `UPDATE batches SET parent_batch_id = 1, rerun = 'schedule' WHERE id > 1`)
	exec(t, s, `INSERT INTO schedules (name, template_batch_id, cron, zone, created_at, next_at, removed_at)
		SELECT 's' || g, g, '0 6 * * *', 'UTC', now(), CASE WHEN g % 3 > 0 THEN now() + g * interval '1 h' END, CASE WHEN g % 3 = 0 THEN now() END
		FROM generate_series(1, 300) g`)
	exec(t, s, `INSERT INTO schedule_runs (schedule_id, due_at, at, outcome, batch_id)
		SELECT 1, now() - g * interval '1 d', now(), 'started', g FROM generate_series(2, 300) g`)
	exec(t, s, `ANALYZE batches, schedules, schedule_runs`)
	var statements []string
	watched := *s
	store.Watch(&watched, func(query string) { statements = append(statements, query) })
	ctx, now := t.Context(), time.Now()
	whole := regexp.MustCompile(`Seq Scan on (batches|schedules|schedule_runs)`)
	for name, run := range map[string]struct {
		rows int
		read func() (int, error)
	}{
		"due": {1, func() (int, error) {
			rows, err := watched.DueSchedules(ctx, now.Add(90*time.Minute), nil, 20)
			return len(rows), err
		}},
		"list":    {50, func() (int, error) { rows, err := watched.PageSchedules(ctx, 0, 50); return len(rows), err }},
		"further": {20, func() (int, error) { rows, err := watched.PageSchedules(ctx, 31, 50); return len(rows), err }},
		"one":     {1, func() (int, error) { row, err := watched.PageSchedule(ctx, 1); return int(row.ID), err }},
		"runs": {50, func() (int, error) {
			rows, err := watched.PageScheduleRuns(ctx, 1, store.Key{}, 50)
			return len(rows), err
		}},
		"reruns":   {4, func() (int, error) { rows, err := watched.PageReruns(ctx, 1, 4); return len(rows), err }},
		"of batch": {1, func() (int, error) { rows, err := watched.PageSchedulesOf(ctx, 1, 3); return len(rows), err }},
		"by batch": {1, func() (int, error) { row, err := watched.ScheduleOfBatch(ctx, 7); return int(row.ID), err }},
		"resolved": {0, func() (int, error) { _, n, err := watched.CountStanding(ctx, 1); return int(n), err }},
	} {
		statements = nil
		rows, err := run.read()
		if rows != run.rows || err != nil {
			t.Errorf("%s: got %d rows, %v, want %d", name, rows, err, run.rows)
		}
		for _, statement := range statements {
			if plan := planOf(t, s, statement); whole.MatchString(plan) {
				t.Errorf("%s: %s\n%s", name, statement, plan)
			}
		}
	}
}
