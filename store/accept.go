package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"
)

// Acceptance is what the vendor's 202 told.
type Acceptance struct {
	JobID       int64
	CallNo      int
	VendorJobID string
	Account     string
	Status      string
	InvalidURLs json.RawMessage
	Adopted     bool
	At          time.Time
	NextPollAt  time.Time

	// Filled in by AcceptJobs: Taken stays false when another call has moved the
	// job since, and Cancel tells that a person wants it cancelled.
	Taken, Cancel bool
}

// AcceptJobs records the vendor's ids for the calls that made them, each with its
// line in the timeline, and tells those who follow the batches. It locks the jobs
// in one order. The error is ErrTaken when an id is already another job's.
func (t Tx) AcceptJobs(ctx context.Context, group []*Acceptance) error {
	var c acceptanceColumns
	for _, a := range group {
		c.add(a)
	}
	rows, err := t.tx.Tx.QueryContext(ctx, `WITH g AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[],
				$5::text[], $6::text[], $7::boolean[], $8::timestamptz[], $9::timestamptz[]) WITH ORDINALITY
				AS g (job, call_no, vendor, account, status, invalid, adopted, at, poll, n)),
		held AS MATERIALIZED (SELECT id FROM jobs WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE),
		taken AS (UPDATE jobs j SET state = 'accepted', vendor_job_id = g.vendor, account = g.account, vendor_status = g.status,
				vendor_invalid_urls = nullif(g.invalid, '')::jsonb, adopted = g.adopted, accepted_at = g.at, next_poll_at = g.poll,
				lease_until = NULL
			FROM held JOIN g ON g.job = held.id
			WHERE j.id = held.id AND j.call_no = g.call_no AND j.state IN ('calling', 'uncertain')
			RETURNING g.n, g.job, g.adopted, g.at, g.vendor, j.batch_id, j.cancel_requested_at IS NOT NULL AS cancel),
		said AS (INSERT INTO job_events (job_id, at, kind, detail)
			SELECT job, at, CASE WHEN adopted THEN 'adopted' ELSE 'accepted' END, 'vendor job ' || vendor FROM taken ORDER BY job)
		SELECT n, cancel, pg_notify('rollcall_batch', batch_id::text) FROM taken`,
		c.job, c.callNo, c.vendor, c.account, c.status, c.invalid, c.adopted, c.at, c.poll)
	if err != nil {
		return translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		var cancel bool
		if err := rows.Scan(&n, &cancel, new(sql.RawBytes)); err != nil {
			return translate(err)
		}
		group[n-1].Taken, group[n-1].Cancel = true, cancel
	}
	return translate(rows.Err())
}

// acceptanceColumns are acceptances turned on their side, as unnest takes them.
type acceptanceColumns struct {
	job, callNo                      []int64
	vendor, account, status, invalid []string
	adopted                          []bool
	at, poll                         []time.Time
}

func (c *acceptanceColumns) add(a *Acceptance) {
	c.job, c.callNo = append(c.job, a.JobID), append(c.callNo, int64(a.CallNo))
	c.vendor, c.account, c.status = append(c.vendor, a.VendorJobID), append(c.account, a.Account), append(c.status, a.Status)
	c.invalid, c.adopted = append(c.invalid, string(a.InvalidURLs)), append(c.adopted, a.Adopted)
	c.at, c.poll = append(c.at, a.At), append(c.poll, a.NextPollAt)
}
