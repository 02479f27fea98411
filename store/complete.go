package store

import (
	"context"
	"time"
)

// Completion is the end of a job of one URL that came home with content: what
// nearly every extract job comes to.
type Completion struct {
	JobID, BatchID int64
	Result         *Result // Its net is the job's.
	VendorStatus   string
	VendorEnd      time.Time // By our clock; zero when it isn't known.

	// Filled in by LockCompletions: how the item stood, and what the job had said
	// of it before.
	Was ItemState
	Had *Outcome

	// Filled in by the caller before Complete.
	Store      bool    // The item takes the result.
	Outcome    Outcome // What the job now says of the item; "" when it says nothing new.
	Charged    int64   // What the job was newly charged.
	Superseded bool    // Another job's result is stored.
	Detail     string  // Of the timeline's line.
}

// LockCompletions locks the items and the lineage of jobs that completed, in
// one order, and says how they stand. What a job carries no more, or was never
// there, keeps an empty state.
func (t Tx) LockCompletions(ctx context.Context, group []*Completion) error {
	if err := t.Shared(ctx); err != nil {
		return err
	}
	jobs, items := make([]int64, len(group)), make([]int64, len(group))
	for i, c := range group {
		jobs[i], items[i] = c.JobID, c.Result.ItemID
	}
	rows, err := t.tx.Tx.QueryContext(ctx, `SELECT g.n, i.state, ji.outcome
		FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS g (job, item, n)
		JOIN job_items ji ON ji.job_id = g.job AND ji.item_id = g.item JOIN items i ON i.id = g.item
		ORDER BY i.id, ji.job_id FOR NO KEY UPDATE OF i, ji`, jobs, items)
	if err != nil {
		return translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		var was ItemState
		var had *Outcome
		if err := rows.Scan(&n, &was, &had); err != nil {
			return translate(err)
		}
		group[n-1].Was, group[n-1].Had = was, had
	}
	return translate(rows.Err())
}

// Complete stores the results, reports in the lineage, settles the jobs that
// are not settled yet and writes that into their timelines: what StoreItems,
// ReportItems, TurnPage, FlagJob and SettleJob do for one job, for many of
// which no two are the same. LockCompletions has locked them.
func (t Tx) Complete(ctx context.Context, group []*Completion, now time.Time) error {
	var c completionColumns
	var results []*Result
	for _, each := range group {
		c.add(each)
		if each.Store {
			results = append(results, each.Result)
		}
	}
	_, err := t.tx.Tx.ExecContext(ctx, `WITH g AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::boolean[],
				$5::text[], $6::bigint[], $7::boolean[], $8::text[], $9::timestamptz[], $10::text[])
				AS g (job, item, net, store, outcome, charged, superseded, status, ended, detail)),
		held AS MATERIALIZED (SELECT id FROM jobs WHERE id = ANY ($1) AND state IN ('accepted', 'given_up')
			ORDER BY id FOR NO KEY UPDATE),
		kept AS (UPDATE items i SET state = 'stored', net = g.net, ended_at = $11, error_code = '', error_message = '',
				error_retryable = false, resolved_at = NULL, resolved_by = NULL, resolved_note = ''
			FROM g WHERE i.id = g.item AND g.store),
		said AS (UPDATE job_items ji SET outcome = g.outcome, error_code = '', error_message = '', reported_at = $11
			FROM g WHERE ji.job_id = g.job AND ji.item_id = g.item AND g.outcome <> '' AND ji.outcome IS DISTINCT FROM 'stored'),
		settled AS (UPDATE jobs j SET state = 'settled', settle_net = g.net, error_code = '', error_message = '', ended_at = $11,
				vendor_ended_at = g.ended, next_poll_at = NULL, vendor_status = g.status, charged = j.charged + g.charged,
				superseded = j.superseded OR g.superseded, not_found = 0, not_found_at = NULL
			FROM held JOIN g ON g.job = held.id WHERE j.id = held.id RETURNING j.id)
		INSERT INTO job_events (job_id, at, kind, net, detail)
		SELECT g.job, $11, 'settled', g.net, g.detail FROM settled JOIN g ON g.job = settled.id ORDER BY g.job`,
		c.job, c.item, c.net, c.store, c.outcome, c.charged, c.superseded, c.status, c.ended, c.detail, now)
	if err != nil {
		return translate(err)
	}
	return t.insertResults(ctx, results)
}

// completionColumns are completions turned on their side, as unnest takes them.
type completionColumns struct {
	job, item, charged           []int64
	net, outcome, status, detail []string
	store, superseded            []bool
	ended                        []*time.Time
}

func (c *completionColumns) add(each *Completion) {
	c.job, c.item, c.charged = append(c.job, each.JobID), append(c.item, each.Result.ItemID), append(c.charged, each.Charged)
	c.net, c.outcome = append(c.net, string(each.Result.Net)), append(c.outcome, string(each.Outcome))
	c.status, c.detail = append(c.status, CleanText(each.VendorStatus)), append(c.detail, CleanText(each.Detail))
	c.store, c.superseded = append(c.store, each.Store), append(c.superseded, each.Superseded)
	var ended *time.Time
	if !each.VendorEnd.IsZero() {
		ended = &each.VendorEnd
	}
	c.ended = append(c.ended, ended)
}
