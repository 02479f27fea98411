package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Schedule runs a batch again by the clock. NextAt is nil while it is paused and
// once it is removed.
type Schedule struct {
	bun.BaseModel   `bun:"table:schedules,alias:sc"`
	ID              int64 `bun:",pk,autoincrement"`
	Name            string
	TemplateBatchID int64  // The batch that it runs again.
	Cron            string // Five fields, read in the zone.
	Zone            string
	CreatedBy       *int64
	CreatedAt       time.Time
	SubmitToken     *string // Of the form it came by; no two schedules have one.
	PausedAt        *time.Time
	PausedBy        string // A person, or Rollcall with the reason.
	RemovedAt       *time.Time
	NextAt          *time.Time
	LastBatchID     *int64
}

// RunOutcome is what came of a time that was due.
type RunOutcome string

// The outcomes. Missed: no process of Rollcall was running.
const (
	RunStarted RunOutcome = "started"
	RunSkipped RunOutcome = "skipped"
	RunMissed  RunOutcome = "missed"
)

// ScheduleRun is what came of one time that was due, or of several that were
// missed together.
type ScheduleRun struct {
	bun.BaseModel `bun:"table:schedule_runs,alias:sr"`
	ID            int64 `bun:",pk,autoincrement"`
	ScheduleID    int64
	DueAt         time.Time
	UntilAt       *time.Time // The last of those that were missed together.
	Times         int        // How many.
	At            time.Time  // When this was decided.
	Outcome       RunOutcome
	Reason        string
	BatchID       *int64
	PressedBy     string // Who pressed; "" when the clock did.
}

// InsertSchedule writes a schedule and fills in its ID. The error is ErrTaken
// when its token has made one before.
func (t Tx) InsertSchedule(ctx context.Context, s *Schedule) error {
	_, err := t.db.NewInsert().Model(s).
		Column("name", "template_batch_id", "cron", "zone", "created_by", "created_at", "submit_token", "next_at").
		Returning("id").Exec(ctx)
	return translate(err)
}

// Schedule is one schedule, removed or not; ErrNotFound when there is none.
func (q Queries) Schedule(ctx context.Context, id int64) (*Schedule, error) {
	s := &Schedule{}
	err := q.db.NewSelect().Model(s).Where("sc.id = ?", id).Scan(ctx)
	return s, translate(err)
}

// ScheduleOfToken is the schedule that a form made.
func (q Queries) ScheduleOfToken(ctx context.Context, token string) (*Schedule, error) {
	s := &Schedule{}
	err := q.db.NewSelect().Model(s).Where("sc.submit_token = ?", token).Scan(ctx)
	return s, translate(err)
}

// LockSchedule is Schedule, kept from being moved until the transaction ends.
func (t Tx) LockSchedule(ctx context.Context, id int64) (*Schedule, error) {
	s := &Schedule{}
	err := t.db.NewSelect().Model(s).Where("sc.id = ?", id).For("NO KEY UPDATE").Scan(ctx)
	return s, translate(err)
}

// ChangeSchedule gives a schedule another name and other times. It reports
// false when it was removed.
func (t Tx) ChangeSchedule(ctx context.Context, s *Schedule) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE schedules SET name = ?, cron = ?, zone = ?, next_at = ? WHERE id = ? AND removed_at IS NULL`,
		s.Name, s.Cron, s.Zone, s.NextAt, s.ID).Exec(ctx))
	return n == 1, err
}

// PauseSchedule keeps a schedule from starting anything by the clock. It
// reports false when it was paused or removed before.
func (t Tx) PauseSchedule(ctx context.Context, id int64, by string, now time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE schedules SET paused_at = ?, paused_by = ?, next_at = NULL
		WHERE id = ? AND paused_at IS NULL AND removed_at IS NULL`, now, CleanText(by), id).Exec(ctx))
	return n == 1, err
}

// ResumeSchedule lets a paused schedule go on with the next time to come.
func (t Tx) ResumeSchedule(ctx context.Context, id int64, next *time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE schedules SET paused_at = NULL, paused_by = '', next_at = ?
		WHERE id = ? AND paused_at IS NOT NULL AND removed_at IS NULL`, next, id).Exec(ctx))
	return n == 1, err
}

// RemoveSchedule ends a schedule for good; what it has run stays.
func (t Tx) RemoveSchedule(ctx context.Context, id int64, now time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE schedules SET removed_at = ?, next_at = NULL WHERE id = ? AND removed_at IS NULL`,
		now, id).Exec(ctx))
	return n == 1, err
}

// DueSchedules lists schedules whose time has come, the longest due first, from
// behind one of them; nil begins with the first.
func (q Queries) DueSchedules(ctx context.Context, now time.Time, after *Schedule, limit int) ([]Schedule, error) {
	var out []Schedule
	due := q.db.NewSelect().Model(&out).Where("next_at <= ?", now)
	if after != nil {
		due = due.Where("(next_at, id) > (?, ?)", after.NextAt, after.ID)
	}
	err := due.Order("next_at", "id").Limit(int64(limit)).Scan(ctx)
	return out, translate(err)
}

// ClaimDue moves a schedule on from a time that was due. Who does it has that
// time's run, and keeps the schedule from being moved until the transaction
// ends; ErrNotFound says that somebody else has, or that it was changed.
func (t Tx) ClaimDue(ctx context.Context, id int64, due time.Time, next *time.Time) (*Schedule, error) {
	s := &Schedule{}
	_, err := t.db.NewUpdate().Model(s).Set("next_at = ?", next).Where("id = ? AND next_at = ?", id, due).Returning("*").Exec(ctx)
	if err == nil && s.ID == 0 {
		return nil, ErrNotFound
	}
	return s, translate(err)
}

// InsertScheduleRun notes what came of a time that was due. The error is
// ErrTaken when that is noted already.
func (t Tx) InsertScheduleRun(ctx context.Context, r *ScheduleRun) error {
	_, err := t.db.NewInsert().Model(r).
		Column("schedule_id", "due_at", "until_at", "times", "at", "outcome", "reason", "batch_id", "pressed_by").
		Returning("id").Exec(ctx)
	return translate(err)
}

// HasScheduleRun reports whether it is noted already what came of a time.
func (t Tx) HasScheduleRun(ctx context.Context, id int64, due time.Time) (bool, error) {
	var has bool
	err := t.db.NewRaw(`SELECT EXISTS (SELECT FROM schedule_runs WHERE schedule_id = ? AND due_at = ?)`, id, due).Scan(ctx, &has)
	return has, translate(err)
}

// LastDue is the last time of a schedule that the clock has taken up; zero when
// there is none.
func (t Tx) LastDue(ctx context.Context, id int64) (time.Time, error) {
	var due []time.Time
	err := t.db.NewRaw(`SELECT due_at FROM schedule_runs WHERE schedule_id = ? AND pressed_by = '' ORDER BY due_at DESC LIMIT 1`, id).
		Scan(ctx, &due)
	if err != nil || len(due) == 0 {
		return time.Time{}, translate(err)
	}
	return due[0], nil
}

// SetLastBatch notes the batch that a schedule made last.
func (t Tx) SetLastBatch(ctx context.Context, id, batchID int64) error {
	_, err := t.db.NewRaw(`UPDATE schedules SET last_batch_id = ? WHERE id = ?`, batchID, id).Exec(ctx)
	return translate(err)
}
