package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// ReplayJob is one job of a replay, with how the job stands.
type ReplayJob struct {
	JobID        int64
	State        string // waiting, woken, refetching or ended.
	Calls        int64
	WokenAt      *time.Time
	EndedAt      *time.Time
	Outcome      *ReplayOutcome
	Detail       string
	RefetchPage  int
	Refetched    *Refetched
	JobState     JobState
	Kind         Kind
	BatchID      int64
	VendorJobID  *string
	VendorStatus string
	Look         Look
	JobEndedAt   *time.Time
	ErrorCode    string
	ErrorMessage string
}

// The states of a replay's job.
const (
	ReplayJobWaiting    = "waiting"
	ReplayJobWoken      = "woken"
	ReplayJobRefetching = "refetching"
	ReplayJobEnded      = "ended"
)

const replayJobSQL = `SELECT rj.job_id, rj.state, rj.calls, rj.woken_at, rj.ended_at, rj.outcome, rj.detail, rj.refetch_page,
		rj.refetched, j.state AS job_state, j.kind, j.batch_id, j.vendor_job_id, j.vendor_status, j.look, j.ended_at AS job_ended_at,
		j.error_code, j.error_message
	FROM replay_jobs rj JOIN jobs j ON j.id = rj.job_id WHERE rj.replay_id = ? `

// ReplayJob is one job of a replay; ErrNotFound when the replay is not about it.
func (q Queries) ReplayJob(ctx context.Context, replayID, jobID int64) (*ReplayJob, error) {
	row := &ReplayJob{}
	err := q.db.NewRaw(replayJobSQL+`AND rj.job_id = ?`, replayID, jobID).Scan(ctx, row)
	return row, translate(err)
}

// ReplayInFlight lists the jobs that a replay has under way.
func (q Queries) ReplayInFlight(ctx context.Context, replayID int64, limit int) ([]ReplayJob, error) {
	var rows []ReplayJob
	err := q.db.NewRaw(replayJobSQL+`AND rj.state IN ('woken', 'refetching') ORDER BY rj.job_id LIMIT ?`, replayID, limit).Scan(ctx, &rows)
	return rows, translate(err)
}

// ReplayWaiting lists the next jobs that a replay has not begun with.
func (q Queries) ReplayWaiting(ctx context.Context, replayID int64, limit int) ([]ReplayJob, error) {
	var rows []ReplayJob
	err := q.db.NewRaw(replayJobSQL+`AND rj.state = 'waiting' ORDER BY rj.job_id LIMIT ?`, replayID, limit).Scan(ctx, &rows)
	return rows, translate(err)
}

// ReplayEnd is the one outcome of a job.
type ReplayEnd struct {
	JobID     int64
	Outcome   ReplayOutcome
	Detail    string
	Refetched Refetched // Empty: it was not fetched once more.
}

// countReplaySQL moves a replay's counters by the rows that ended.
const countReplaySQL = ` UPDATE replays r SET
		already_settled = r.already_settled + e.already, settled_now = r.settled_now + e.settled,
		still_running = r.still_running + e.running, failed = r.failed + e.failing,
		unknown_to_vendor = r.unknown_to_vendor + e.unknown, errors = r.errors + e.wrong, refetched = r.refetched + e.again
	FROM (SELECT count(*) AS n, count(*) FILTER (WHERE outcome = 'already_settled') AS already,
			count(*) FILTER (WHERE outcome = 'settled_now') AS settled, count(*) FILTER (WHERE outcome = 'still_running') AS running,
			count(*) FILTER (WHERE outcome = 'failed') AS failing, count(*) FILTER (WHERE outcome = 'unknown_to_vendor') AS unknown,
			count(*) FILTER (WHERE outcome = 'error') AS wrong, count(refetched) AS again FROM ended) e
	WHERE r.id = ?id RETURNING e.n`

// EndReplayJobs writes outcomes down, each job's once, and counts them.
func (t Tx) EndReplayJobs(ctx context.Context, replayID int64, ends []ReplayEnd, now time.Time) error {
	if len(ends) == 0 {
		return nil
	}
	ids, outcomes, details, again := make([]int64, len(ends)), make([]string, len(ends)), make([]string, len(ends)), make([]string, len(ends))
	for i, e := range ends {
		ids[i], outcomes[i], details[i], again[i] = e.JobID, string(e.Outcome), CleanText(e.Detail), string(e.Refetched)
	}
	_, err := t.db.NewRaw(`WITH ended AS (UPDATE replay_jobs rj SET state = 'ended', outcome = e.outcome, detail = e.detail,
			refetched = nullif(e.again, ''), ended_at = ?now
		FROM unnest(ARRAY[?ids]::bigint[], ARRAY[?outcomes]::text[], ARRAY[?details]::text[], ARRAY[?again]::text[]) AS e (job, outcome, detail, again)
		WHERE rj.replay_id = ?id AND rj.job_id = e.job AND rj.state <> 'ended' RETURNING rj.outcome, rj.refetched)`+countReplaySQL,
		named{"now": now, "id": replayID, "ids": bun.List(ids), "outcomes": bun.List(outcomes), "details": bun.List(details), "again": bun.List(again)}).
		Exec(ctx)
	return translate(err)
}

// EndSettledJobs ends those of the next waiting jobs that are settled already,
// and returns how many they were.
func (t Tx) EndSettledJobs(ctx context.Context, replayID int64, limit int, now time.Time) (int, error) {
	var n []int
	err := t.db.NewRaw(`WITH next AS MATERIALIZED (SELECT job_id FROM replay_jobs WHERE replay_id = ?id AND state = 'waiting' ORDER BY job_id LIMIT ?limit),
		settled AS (SELECT n.job_id FROM next n JOIN jobs j ON j.id = n.job_id WHERE j.state = 'settled'),
		ended AS (UPDATE replay_jobs rj SET state = 'ended', outcome = 'already_settled', ended_at = ?now FROM settled s
			WHERE rj.replay_id = ?id AND rj.job_id = s.job_id AND rj.state = 'waiting' RETURNING rj.outcome, rj.refetched)`+countReplaySQL,
		named{"id": replayID, "limit": limit, "now": now}).Scan(ctx, &n)
	if err != nil || len(n) == 0 {
		return 0, translate(err)
	}
	return n[0], nil
}

// BeginReplayJobs notes that waiting jobs are under way, in the given state.
func (t Tx) BeginReplayJobs(ctx context.Context, replayID int64, ids []int64, state string, now time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := t.db.NewRaw(`UPDATE replay_jobs SET state = ?, woken_at = ? WHERE replay_id = ? AND job_id IN (?) AND state = 'waiting'`,
		state, now, replayID, bun.List(ids)).Exec(ctx)
	return translate(err)
}

// ReplayDelivery is a delivery that a replay has not verified again yet.
type ReplayDelivery struct {
	ID      int64
	Verdict Verdict
}

// Again reports a delivery that is still to be verified; any other was taken up
// since the replay was planned.
func (d ReplayDelivery) Again() bool {
	return d.Verdict == VerdictRefused || d.Verdict == VerdictUnreadable
}

// ReplayDeliveries lists the next deliveries that a replay is to verify again.
func (q Queries) ReplayDeliveries(ctx context.Context, replayID int64, limit int) ([]ReplayDelivery, error) {
	var rows []ReplayDelivery
	err := q.db.NewRaw(`SELECT d.id, d.verdict FROM replay_deliveries rd JOIN deliveries d ON d.id = rd.delivery_id
		WHERE rd.replay_id = ? AND rd.outcome IS NULL ORDER BY rd.delivery_id LIMIT ?`, replayID, limit).Scan(ctx, &rows)
	return rows, translate(err)
}

// EndReplayDeliveries writes down what verifying again came to, as the
// deliveries stand now; others were taken up before.
func (t Tx) EndReplayDeliveries(ctx context.Context, replayID int64, tried, others []int64) error {
	if len(tried)+len(others) == 0 {
		return nil
	}
	_, err := t.db.NewRaw(`WITH ended AS (UPDATE replay_deliveries rd SET outcome = CASE
				WHEN d.id = ANY (ARRAY[?others]::bigint[]) THEN 'already'
				WHEN d.verdict IN ('accepted', 'duplicate') THEN 'recovered'
				WHEN d.body_size > octet_length(d.body) THEN 'cut' ELSE 'refused' END
			FROM deliveries d WHERE d.id = rd.delivery_id AND rd.replay_id = ?id AND rd.outcome IS NULL
			  AND d.id = ANY (ARRAY[?others]::bigint[] || ARRAY[?tried]::bigint[]) RETURNING rd.outcome)
		UPDATE replays SET recovered = recovered + e.yes, refused = refused + e.no
		FROM (SELECT count(*) FILTER (WHERE outcome IN ('already', 'recovered')) AS yes,
			count(*) FILTER (WHERE outcome IN ('cut', 'refused')) AS no FROM ended) e WHERE id = ?id`,
		named{"id": replayID, "tried": bun.List(tried), "others": bun.List(others)}).Exec(ctx)
	return translate(err)
}
