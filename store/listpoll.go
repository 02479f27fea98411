package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// ListSweep is whose turn it is to answer for due jobs of a kind by the
// vendor's list, and what came of the last turn.
type ListSweep struct {
	bun.BaseModel `bun:"table:list_sweeps"`
	Kind          Kind `bun:",pk"`
	Turn          int64
	NextAt        *time.Time
	LeaseUntil    *time.Time
	SinglyUntil   *time.Time // Until then jobs are asked about one by one.
	Failures      int        // In a row.
	EndedAt       *time.Time
	Due           int
	Pages         int
	Woken         int
	Note          string // What went wrong, for people.
}

// DueJob is an extract job whose poll is due, as a sweep needs it.
type DueJob struct {
	ID           int64
	VendorJobID  string
	Account      string
	CalledAt     time.Time // When it may have been made, at the earliest.
	AcceptedAt   time.Time
	VendorStatus string
	Polls        int
	Overdue      bool
}

// PollSingly reports whether due extract jobs are to be asked about one by one:
// while fewer than least are due, or while their list is of no use.
func (q Queries) PollSingly(ctx context.Context, now time.Time, least int) (bool, error) {
	n, err := q.count(ctx, `SELECT CASE WHEN EXISTS (SELECT FROM list_sweeps WHERE kind = 'extract' AND singly_until > ?now)
			THEN 0 ELSE (SELECT count(*) FROM (SELECT FROM jobs
				WHERE state = 'accepted' AND kind = 'extract' AND next_poll_at <= ?now LIMIT ?least) due) END`,
		named{"now": now, "least": least})
	return n < least, err
}

// TakeSweep gives one caller the turn to sweep a kind's list, until the lease
// ends. It returns nil when it is somebody else's turn, or none's yet.
func (q Queries) TakeSweep(ctx context.Context, kind Kind, now, lease time.Time) (*ListSweep, error) {
	var rows []*ListSweep
	err := q.db.NewRaw(`UPDATE list_sweeps SET turn = turn + 1, lease_until = ?lease
		WHERE kind = ?kind AND (next_at IS NULL OR next_at <= ?now) AND (lease_until IS NULL OR lease_until <= ?now)
		RETURNING kind, turn, failures`, named{"kind": kind, "now": now, "lease": lease}).Scan(ctx, &rows)
	if err != nil || len(rows) == 0 {
		return nil, translate(err)
	}
	return rows[0], nil
}

// KeepSweep makes a turn's lease longer. It reports false when the turn has
// passed on.
func (q Queries) KeepSweep(ctx context.Context, kind Kind, turn int64, lease time.Time) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE list_sweeps SET lease_until = ? WHERE kind = ? AND turn = ?`,
		lease, kind, turn).Exec(ctx))
	return n == 1, err
}

// EndSweep gives the turn back and writes what came of it, unless the turn has
// passed on, which it reports as false.
func (q Queries) EndSweep(ctx context.Context, s *ListSweep) (bool, error) {
	n, err := affected(q.db.NewRaw(`UPDATE list_sweeps SET lease_until = NULL, next_at = ?, singly_until = ?, failures = ?,
			ended_at = ?, due = ?, pages = ?, woken = ?, note = ?
		WHERE kind = ? AND turn = ?`, s.NextAt, s.SinglyUntil, s.Failures, s.EndedAt, s.Due, s.Pages, s.Woken,
		CleanText(s.Note), s.Kind, s.Turn).Exec(ctx))
	return n == 1, err
}

// Sweep returns what came of the last turn at a kind's list.
func (q Queries) Sweep(ctx context.Context, kind Kind) (*ListSweep, error) {
	s := &ListSweep{}
	err := q.db.NewSelect().Model(s).Where("kind = ?", kind).Scan(ctx)
	return s, translate(err)
}

// DueExtracts lists the extract jobs whose poll is due, the oldest first.
func (q Queries) DueExtracts(ctx context.Context, now time.Time, limit int) ([]DueJob, error) {
	var due []DueJob
	err := q.db.NewRaw(`SELECT id, vendor_job_id, account, coalesce(least(called_at, accepted_at), accepted_at) AS called_at,
			accepted_at, vendor_status, polls, overdue
		FROM jobs WHERE state = 'accepted' AND kind = 'extract' AND next_poll_at <= ?
		ORDER BY accepted_at, id LIMIT ?`, now, limit).Scan(ctx, &due)
	return due, translate(err)
}

// WakeListed wakes for polling those of the jobs that are still due, like
// WakeDue. The caller adds a settle task for each in the same transaction.
func (t Tx) WakeListed(ctx context.Context, ids []int64, now, lease time.Time) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var woken []int64
	err := t.db.NewRaw(`UPDATE jobs SET wake_seq = wake_seq + 1, wake_net = 'poll', polls = polls + 1, next_poll_at = ?
		WHERE id IN (SELECT id FROM jobs WHERE id IN (?) AND state = 'accepted' AND next_poll_at <= ?
			ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
		RETURNING id`, lease, bun.List(ids), now).Scan(ctx, &woken)
	return woken, translate(err)
}

// NoteListed notes the status with which a list showed jobs that still run.
func (q Queries) NoteListed(ctx context.Context, ids []int64, status string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := q.db.NewRaw(`UPDATE jobs SET vendor_status = ?
		WHERE id IN (SELECT id FROM jobs WHERE id IN (?) AND state = 'accepted' ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)`,
		CleanText(status), bun.List(ids)).Exec(ctx)
	return translate(err)
}

// PutOffListed sets the next poll of jobs that a list showed to run still, those
// of them that are due, and flags those accepted before a time as overdue. A
// next of nil leaves them due.
func (q Queries) PutOffListed(ctx context.Context, ids []int64, next *time.Time, overdueBefore, now time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := q.db.NewRaw(`UPDATE jobs SET next_poll_at = coalesce(?::timestamptz, next_poll_at),
			overdue = overdue OR accepted_at < ?
		WHERE id IN (SELECT id FROM jobs WHERE id IN (?) AND state = 'accepted' AND next_poll_at <= ?
			ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)`, next, overdueBefore, bun.List(ids), now).Exec(ctx)
	return translate(err)
}
