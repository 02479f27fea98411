package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Replay is a plan to have jobs looked at again: a frozen set, how far it has
// come, and one outcome for each job.
type Replay struct {
	bun.BaseModel   `bun:"table:replays,alias:rp"`
	ID              int64 `bun:",pk,autoincrement"`
	State           ReplayState
	Picked          string // What was picked, for a reader.
	Address         string // The list it was picked from.
	SubmitToken     *string
	PlannedBy       string
	PlannedAt       time.Time
	RunBy           string
	StartedAt       *time.Time
	EndedAt         *time.Time
	Frozen          `bun:"embed:"`
	Refetch         bool // Settled jobs are fetched once more, and compared.
	AlreadySettled  int64
	SettledNow      int64
	StillRunning    int64
	Failed          int64
	UnknownToVendor int64
	Errors          int64
	Recovered       int64 // Deliveries taken up, or found taken up already.
	Refused         int64 // Deliveries that no secret of today verifies.
	Refetched       int64 // Settled jobs that were fetched once more.
	Differing       int64 // Results of them that differ from what is stored.
	KeptBytes       int64
	BeatAt          *time.Time
	SpentAt         *time.Time
	ShutAt          *time.Time
}

// Frozen is the exact set of a replay.
type Frozen struct {
	Lines         int64 // What the filter matched, or was ticked.
	Unnamed       int64 // Of them, those that name no job.
	ForeignJobs   int64 // Jobs they name that are not ours; they are never fetched.
	PrunedJobs    int64 // Jobs of ours whose batch was removed, but for its counts.
	Jobs          int64 // Jobs of ours.
	SettledBefore int64 // Of them, those settled when it was frozen.
	Calls         int64 // About what the others cost.
	RefetchCalls  int64 // About what the settled ones would.
	Deliveries    int64 // Refused deliveries to be verified again.
}

// Ended is how many of the jobs have their outcome.
func (r *Replay) Ended() int64 {
	return r.AlreadySettled + r.SettledNow + r.StillRunning + r.Failed + r.UnknownToVendor + r.Errors
}

// Over reports a replay that will do nothing more.
func (r *Replay) Over() bool { return r.State == ReplayDone || r.State == ReplayCancelled }

// InsertReplay writes a plan, empty yet, and fills in its ID. The error is
// ErrTaken when its token has made one before.
func (t Tx) InsertReplay(ctx context.Context, r *Replay) error {
	_, err := t.db.NewInsert().Model(r).
		Column("state", "picked", "address", "submit_token", "planned_by", "planned_at", "refetch").Returning("id").Exec(ctx)
	return translate(err)
}

// Replay is one replay; ErrNotFound when there is none.
func (q Queries) Replay(ctx context.Context, id int64) (*Replay, error) {
	r := &Replay{}
	err := q.db.NewSelect().Model(r).Where("rp.id = ?", id).Scan(ctx)
	return r, translate(err)
}

// ReplayOfToken is the replay that a form made.
func (q Queries) ReplayOfToken(ctx context.Context, token string) (*Replay, error) {
	r := &Replay{}
	err := q.db.NewSelect().Model(r).Where("rp.submit_token = ?", token).Scan(ctx)
	return r, translate(err)
}

// LockReplay is Replay, kept from being moved until the transaction ends. All
// that a runner writes of a replay, it writes under this lock.
func (t Tx) LockReplay(ctx context.Context, id int64) (*Replay, error) {
	r := &Replay{}
	err := t.db.NewSelect().Model(r).Where("rp.id = ?", id).For("NO KEY UPDATE").Scan(ctx)
	return r, translate(err)
}

// RunReplay moves a plan to running. It reports false when somebody else has.
func (t Tx) RunReplay(ctx context.Context, id int64, refetch bool, by string, now time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE replays SET state = 'running', refetch = ?, run_by = ?, started_at = ?, beat_at = ?
		WHERE id = ? AND state = 'planned'`, refetch, CleanText(by), now, now, id).Exec(ctx))
	return n == 1, err
}

// PauseReplay keeps a running replay from waking more.
func (t Tx) PauseReplay(ctx context.Context, id int64) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE replays SET state = 'paused' WHERE id = ? AND state = 'running'`, id).Exec(ctx))
	return n == 1, err
}

// ResumeReplay lets a paused replay go on.
func (t Tx) ResumeReplay(ctx context.Context, id int64, now time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE replays SET state = 'running', beat_at = ?
		WHERE id = ? AND state = 'paused'`, now, id).Exec(ctx))
	return n == 1, err
}

// CancelReplay ends a replay for good; what it has woken goes on by itself.
func (t Tx) CancelReplay(ctx context.Context, id int64, now time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE replays SET state = 'cancelled', ended_at = ?
		WHERE id = ? AND state IN ('planned', 'running', 'paused')`, now, id).Exec(ctx))
	return n == 1, err
}

// DoneReplay ends a running replay of which nothing is left.
func (t Tx) DoneReplay(ctx context.Context, id int64, now time.Time) (bool, error) {
	n, err := affected(t.db.NewRaw(`UPDATE replays SET state = 'done', ended_at = ?
		WHERE id = ? AND state = 'running'
		  AND NOT EXISTS (SELECT FROM replay_jobs j WHERE j.replay_id = replays.id AND j.state <> 'ended')
		  AND NOT EXISTS (SELECT FROM replay_deliveries d WHERE d.replay_id = replays.id AND d.outcome IS NULL)`, now, id).Exec(ctx))
	return n == 1, err
}

// BeatReplay notes that a runner looked, and whether the vendor could be asked.
func (t Tx) BeatReplay(ctx context.Context, id int64, now time.Time, shut bool) error {
	_, err := t.db.NewRaw(`UPDATE replays SET beat_at = ?now, shut_at = CASE WHEN ?shut THEN ?now ELSE shut_at END WHERE id = ?id`,
		named{"now": now, "shut": shut, "id": id}).Exec(ctx)
	return translate(err)
}

// StillReplays lists running replays whose runner has not looked since then.
func (q Queries) StillReplays(ctx context.Context, before time.Time) ([]int64, error) {
	var ids []int64
	err := q.db.NewRaw(`SELECT id FROM replays WHERE state = 'running' AND beat_at <= ? ORDER BY id LIMIT 100`, before).Scan(ctx, &ids)
	return ids, translate(err)
}

// replayRate is the advisory lock of those who take from the share of calls
// that all replays have together.
const replayRate = 0x7273

// ReplaySpent locks the replays' common share of calls until the transaction
// ends. It returns until when it is spent, and how many replays draw on it.
func (t Tx) ReplaySpent(ctx context.Context) (time.Time, int, error) {
	if _, err := t.db.NewRaw("SELECT pg_advisory_xact_lock(?)", replayRate).Exec(ctx); err != nil {
		return time.Time{}, 0, translate(err)
	}
	var row struct {
		Spent   *time.Time
		Running int
	}
	err := t.db.NewRaw(`SELECT max(spent_at) AS spent, count(*) AS running FROM replays WHERE state = 'running'`).Scan(ctx, &row)
	if row.Spent == nil {
		return time.Time{}, row.Running, translate(err)
	}
	return *row.Spent, row.Running, translate(err)
}

// SpendReplay notes until when the share of calls is spent.
func (t Tx) SpendReplay(ctx context.Context, id int64, until time.Time) error {
	_, err := t.db.NewRaw(`UPDATE replays SET spent_at = ? WHERE id = ?`, until, id).Exec(ctx)
	return translate(err)
}
