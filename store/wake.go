package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// WakeJobs asks that the jobs be settled now, naming the net. Jobs that are
// settled, or not yet known to the vendor, are left alone; the ids of the
// others are returned, and the caller adds a settle task for each in the same
// transaction.
func (t Tx) WakeJobs(ctx context.Context, ids []int64, net Net) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	open, err := t.lock(ctx, `SELECT id FROM jobs WHERE id IN (?ids) AND state IN ('accepted', 'given_up')
		ORDER BY id FOR NO KEY UPDATE`, named{"ids": bun.List(ids)})
	if err != nil || len(open) == 0 {
		return nil, err
	}
	_, err = t.db.NewRaw(`UPDATE jobs SET wake_seq = wake_seq + 1, wake_net = ? WHERE id IN (?)`, net, bun.List(open)).Exec(ctx)
	return open, translate(err)
}

// WakeByWebhook is WakeJobs for the webhook net. It also notes when the first
// webhook for each job came, settled or not; the rows are locked once and in one
// order.
func (t Tx) WakeByWebhook(ctx context.Context, ids []int64, now time.Time) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	told, err := t.lock(ctx, `SELECT id FROM jobs WHERE id IN (?ids)
		AND (state IN ('accepted', 'given_up') OR webhook_at IS NULL) ORDER BY id FOR NO KEY UPDATE`, named{"ids": bun.List(ids)})
	if err != nil || len(told) == 0 {
		return nil, err
	}
	var rows []KnownJob
	err = t.db.NewRaw(`UPDATE jobs SET webhook_at = coalesce(webhook_at, ?),
			wake_seq = CASE WHEN state IN ('accepted', 'given_up') THEN wake_seq + 1 ELSE wake_seq END,
			wake_net = CASE WHEN state IN ('accepted', 'given_up') THEN 'webhook' ELSE wake_net END
		WHERE id IN (?) RETURNING id, state`, now, bun.List(told)).Scan(ctx, &rows)
	var woken []int64
	for _, r := range rows {
		if r.State == JobAccepted || r.State == JobGivenUp {
			woken = append(woken, r.ID)
		}
	}
	return woken, translate(err)
}

// WakeDue wakes for polling the jobs whose next poll is due, oldest first, and
// puts their next poll off until lease, in case settling never comes to set it.
// Rows that another replica is waking are skipped.
func (t Tx) WakeDue(ctx context.Context, now, lease time.Time, limit int) ([]int64, error) {
	return t.wakeDue(ctx, "", now, lease, limit)
}

// WakeDueOthers is WakeDue for all but extract jobs, which a list answers for.
func (t Tx) WakeDueOthers(ctx context.Context, now, lease time.Time, limit int) ([]int64, error) {
	return t.wakeDue(ctx, "AND kind <> 'extract'", now, lease, limit)
}

func (t Tx) wakeDue(ctx context.Context, of bun.Safe, now, lease time.Time, limit int) ([]int64, error) {
	var woken []int64
	err := t.db.NewRaw(`UPDATE jobs SET wake_seq = wake_seq + 1, wake_net = 'poll', polls = polls + 1,
			next_poll_at = ?
		WHERE id IN (SELECT id FROM jobs WHERE state = 'accepted' AND next_poll_at <= ? ?
			ORDER BY next_poll_at, id LIMIT ? FOR NO KEY UPDATE SKIP LOCKED)
		RETURNING id`, lease, now, of, limit).Scan(ctx, &woken)
	return woken, translate(err)
}

// ClaimHeld gives held events to the jobs that turned out to be theirs and
// returns those jobs; the caller wakes them in the same transaction.
func (t Tx) ClaimHeld(ctx context.Context, vendorJobIDs []string) ([]int64, error) {
	if len(vendorJobIDs) == 0 {
		return nil, nil
	}
	var ids []int64
	err := t.db.NewRaw(`WITH waiting AS MATERIALIZED (SELECT pe.vendor_job_id, j.id FROM processed_events pe
			JOIN jobs j ON j.vendor_job_id = pe.vendor_job_id WHERE pe.state IN ('held', 'foreign') AND pe.vendor_job_id IN (?)
			ORDER BY pe.vendor_job_id FOR NO KEY UPDATE OF pe)
		UPDATE processed_events pe SET state = 'claimed', job_id = w.id FROM waiting w WHERE pe.vendor_job_id = w.vendor_job_id
		RETURNING w.id`, bun.List(vendorJobIDs)).Scan(ctx, &ids)
	return ids, translate(err)
}

// HeldKnown lists the vendor ids of held events whose job is known by now.
func (q Queries) HeldKnown(ctx context.Context, limit int) ([]string, error) {
	var ids []string
	err := q.db.NewRaw(`SELECT pe.vendor_job_id FROM processed_events pe
		JOIN jobs j ON j.vendor_job_id = pe.vendor_job_id
		WHERE pe.state = 'held' LIMIT ?`, limit).Scan(ctx, &ids)
	return ids, translate(err)
}

// HeldSince lists the vendor ids of events held since before the given time.
func (q Queries) HeldSince(ctx context.Context, before time.Time, limit int) ([]string, error) {
	var ids []string
	err := q.db.NewRaw(`SELECT vendor_job_id FROM processed_events WHERE state = 'held' AND received_at <= ?
		ORDER BY received_at LIMIT ?`, before, limit).Scan(ctx, &ids)
	return ids, translate(err)
}

// MarkForeign moves events that nobody here claimed to foreign.
func (t Tx) MarkForeign(ctx context.Context, vendorJobIDs []string) (int64, error) {
	if len(vendorJobIDs) == 0 {
		return 0, nil
	}
	return affected(t.db.NewRaw(`UPDATE processed_events SET state = 'foreign'
		WHERE state = 'held' AND vendor_job_id IN (?)
		  AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.vendor_job_id = processed_events.vendor_job_id)`,
		bun.List(vendorJobIDs)).Exec(ctx))
}
