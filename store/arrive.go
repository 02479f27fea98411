package store

import (
	"context"
	"time"
)

// Arrival is a verified delivery on its way into a group.
type Arrival struct {
	Delivery
	// KnownJob and First are filled in by Arrive.
	KnownJob int64 // The job it is about; zero when not known (yet).
	First    bool  // It made the processed event.
}

// arriveSQL is the statement of Arrive. Events come before jobs, each in one
// order, as everywhere: else two that take the same rows might wait for each
// other. Hence the counts in the middle.
//
// The tasks are rows as River writes them, with its unique key, so that one of
// either keeps the other from adding its own. Where one is under way its row is
// locked, so that one which is just ending is not taken for one that will look
// again; one that waits behind live work is brought forward.
const arriveSQL = `WITH g AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::timestamptz[],
			$3::smallint[], $4::text[], $5::text[], $6::text[], $7::integer[], $8::text[], $9::text[], $10::bigint[],
			$11::bytea[], $12::bytea[], $13::bigint[], $14::boolean[]) WITH ORDINALITY
			AS g (webhook, at, status, event, job, vendor, version, form, source, micros, headers, body, size, leads, n)),
	known AS MATERIALIZED (SELECT id, vendor_job_id FROM jobs WHERE vendor_job_id = ANY ($5)),
	fresh AS (INSERT INTO processed_events (vendor_job_id, event_type, received_at, state, job_id)
		SELECT DISTINCT ON (g.job) g.job, g.event, g.at, CASE WHEN k.id IS NULL THEN 'held' ELSE 'claimed' END, k.id
		FROM g LEFT JOIN known k ON k.vendor_job_id = g.job ORDER BY g.job, g.at
		ON CONFLICT (vendor_job_id) DO NOTHING RETURNING vendor_job_id),
	waiting AS MATERIALIZED (SELECT vendor_job_id FROM processed_events WHERE state <> 'claimed'
		AND vendor_job_id = ANY (ARRAY(SELECT vendor_job_id FROM known)) ORDER BY vendor_job_id FOR NO KEY UPDATE),
	claimed AS (UPDATE processed_events pe SET state = 'claimed', job_id = k.id FROM waiting w JOIN known k USING (vendor_job_id)
		WHERE pe.vendor_job_id = w.vendor_job_id RETURNING 1),
	told AS (SELECT id FROM jobs WHERE vendor_job_id = ANY ($5) AND (state IN ('accepted', 'given_up') OR webhook_at IS NULL)
		AND (SELECT count(*) FROM fresh) + (SELECT count(*) FROM claimed) >= 0 ORDER BY id FOR NO KEY UPDATE),
	marked AS (UPDATE jobs j SET webhook_at = coalesce(j.webhook_at, $15),
			wake_seq = CASE WHEN j.state IN ('accepted', 'given_up') THEN j.wake_seq + 1 ELSE j.wake_seq END,
			wake_net = CASE WHEN j.state IN ('accepted', 'given_up') THEN 'webhook' ELSE j.wake_net END
		FROM told WHERE j.id = told.id RETURNING j.id, j.state),
	woken AS (SELECT id FROM marked WHERE state IN ('accepted', 'given_up')),
	tasks AS (INSERT INTO river_job AS t (args, kind, queue, max_attempts, unique_key, unique_states)
		SELECT jsonb_build_object('job_id', id), $16, $17, $18,
			sha256(convert_to('&kind=' || $16 || '&args={"job_id":' || id || '}', 'UTF8')), $19::integer::bit(8)
		FROM woken WHERE $16 <> '' AND (SELECT count(*) FROM marked) >= 0 ORDER BY id
		ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND unique_states IS NOT NULL
			AND river_job_state_in_bitmask(unique_states, state)
		DO UPDATE SET priority = excluded.priority WHERE t.priority > excluded.priority RETURNING 1),
	noted AS (INSERT INTO job_events (job_id, at, kind, net, detail)
		SELECT id, $15, 'woken', 'webhook', 'a webhook arrived' FROM woken),
	kept AS (INSERT INTO deliveries (webhook_id, received_at, verdict, status, event_type, vendor_job_id, vendor_delivery_id,
			secret_version, signature_form, source, micros, headers, body, body_size)
		SELECT g.webhook, g.at, CASE WHEN g.leads AND f.vendor_job_id IS NOT NULL THEN 'accepted' ELSE 'duplicate' END,
			g.status, g.event, g.job, g.vendor, g.version, g.form, g.source, g.micros, g.headers, g.body, g.size
		FROM g LEFT JOIN fresh f ON f.vendor_job_id = g.job ORDER BY g.n)
	SELECT g.n, coalesce(k.id, 0), g.leads AND f.vendor_job_id IS NOT NULL, g.leads AND w.id IS NOT NULL
	FROM g LEFT JOIN known k ON k.vendor_job_id = g.job LEFT JOIN fresh f ON f.vendor_job_id = g.job
		LEFT JOIN woken w ON w.id = k.id`

// JobTask is how the tasks about jobs are written down for River; the zero value
// adds none.
type JobTask struct {
	Kind, Queue string
	MaxAttempts int16
	// States are those in which a task keeps a second one for its job away, in
	// River's bits.
	States byte
}

// Arrive writes a group of verified deliveries: the processed event of each
// vendor job that had none, the deliveries with their verdict, and the wake of
// the jobs that are known, with its line in the timeline and its task. It is one
// statement, which commits by itself. It returns the jobs that it woke.
func (s *Store) Arrive(ctx context.Context, group []*Arrival, task JobTask, now time.Time) ([]int64, error) {
	return arrive(ctx, s.planned, group, task, now)
}

// Arrive is Store.Arrive within a transaction and without the tasks: for each of
// the jobs that it returns the caller adds one.
func (t Tx) Arrive(ctx context.Context, group []*Arrival, now time.Time) ([]int64, error) {
	if err := t.plannedOnce(ctx); err != nil {
		return nil, err
	}
	return arrive(ctx, t.tx.Tx, group, JobTask{}, now)
}

func arrive(ctx context.Context, db querier, group []*Arrival, task JobTask, now time.Time) ([]int64, error) {
	c, leads := newDeliveryColumns(len(group)), make([]bool, len(group))
	led := make(map[string]bool, len(group))
	for i, a := range group {
		c.add(&a.Delivery)
		// The second delivery of one job in a group is a duplicate of the first.
		leads[i] = !led[c.job[i]]
		led[c.job[i]] = true
	}
	rows, err := db.QueryContext(ctx, arriveSQL,
		c.webhook, c.at, c.status, c.event, c.job, c.vendorID, c.version, c.form, c.by, c.micros, c.headers, c.body, c.size, leads, now,
		task.Kind, task.Queue, task.MaxAttempts, int32(task.States))
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var woken []int64
	for rows.Next() {
		var n int
		var job int64
		var first, wakes bool
		if err := rows.Scan(&n, &job, &first, &wakes); err != nil {
			return nil, translate(err)
		}
		group[n-1].judge(job, first)
		if wakes {
			woken = append(woken, job)
		}
	}
	return woken, translate(rows.Err())
}

// judge gives a delivery its verdict.
func (a *Arrival) judge(job int64, first bool) {
	a.KnownJob, a.First, a.Verdict = job, first, VerdictDuplicate
	if first {
		a.Verdict = VerdictAccepted
	}
}
