package store

import (
	"context"
	"time"
)

// ScheduleRow is a schedule in a list, with the batch that it runs again, who
// made it and what came of the last time that was due.
type ScheduleRow struct {
	Schedule
	Template    string // The batch's name.
	By          string // "" when nobody did by name.
	LastDue     *time.Time
	LastOutcome *RunOutcome
	LastBatch   *int64
}

// PageSchedules lists the schedules that were not removed, newest first, from
// below an id on; zero is the beginning.
func (q Queries) PageSchedules(ctx context.Context, below int64, limit int) ([]ScheduleRow, error) {
	if below == 0 {
		below = 1<<63 - 1
	}
	return q.scheduleRows(ctx, `SELECT * FROM schedules WHERE removed_at IS NULL AND id < ? ORDER BY id DESC LIMIT ?`, below, limit)
}

// PageSchedule is one schedule as the lists show it.
func (q Queries) PageSchedule(ctx context.Context, id int64) (*ScheduleRow, error) {
	rows, err := q.scheduleRows(ctx, `SELECT * FROM schedules WHERE id = ?`, id)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, ErrNotFound
	}
	return &rows[0], nil
}

// PageSchedulesOf lists the schedules that run a batch again, newest first.
func (q Queries) PageSchedulesOf(ctx context.Context, batchID int64, limit int) ([]Kin, error) {
	var rows []Kin
	err := q.db.NewRaw(`SELECT id, name, created_at FROM schedules WHERE template_batch_id = ? AND removed_at IS NULL
		ORDER BY id DESC LIMIT ?`, batchID, limit).Scan(ctx, &rows)
	return rows, translate(err)
}

// ScheduleOfBatch is the schedule that made a batch; ErrNotFound when none did.
func (q Queries) ScheduleOfBatch(ctx context.Context, batchID int64) (*Schedule, error) {
	s := &Schedule{}
	err := q.db.NewSelect().Model(s).Join("JOIN schedule_runs AS sr ON sr.schedule_id = sc.id").
		Where("sr.batch_id = ?", batchID).Scan(ctx)
	return s, translate(err)
}

// ScheduleRunRow is a run in a list, with what its batch has come to.
type ScheduleRunRow struct {
	ScheduleRun
	Name        string // The batch's.
	Accepted    int64
	Outstanding int64
	Failed      int64
}

// PageScheduleRuns lists what came of a schedule's times, the latest first.
func (q Queries) PageScheduleRuns(ctx context.Context, id int64, from Key, limit int) ([]ScheduleRunRow, error) {
	var rows []ScheduleRunRow
	if from.ID == 0 {
		from.At = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	err := q.db.NewRaw(`SELECT sr.*, coalesce(b.name, '') AS name, coalesce(b.accepted, 0) AS accepted,
			coalesce(b.outstanding, 0) AS outstanding, coalesce(b.failed, 0) AS failed
		FROM schedule_runs sr LEFT JOIN batches b ON b.id = sr.batch_id
		WHERE sr.schedule_id = ? AND sr.due_at < ? ORDER BY sr.due_at DESC LIMIT ?`, id, from.At, limit).Scan(ctx, &rows)
	return rows, translate(err)
}

func (q Queries) scheduleRows(ctx context.Context, which string, args ...any) ([]ScheduleRow, error) {
	var rows []ScheduleRow
	err := q.db.NewRaw(`SELECT sc.*, b.name AS template, coalesce(u.name, '') AS by,
			l.due_at AS last_due, l.outcome AS last_outcome, l.batch_id AS last_batch
		FROM (`+which+`) sc JOIN batches b ON b.id = sc.template_batch_id LEFT JOIN users u ON u.id = sc.created_by
		LEFT JOIN LATERAL (SELECT r.due_at, r.outcome, r.batch_id FROM schedule_runs r WHERE r.schedule_id = sc.id
			ORDER BY r.due_at DESC LIMIT 1) l ON true ORDER BY sc.id DESC`, args...).Scan(ctx, &rows)
	return rows, translate(err)
}
