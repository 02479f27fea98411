package store

import (
	"context"
	"time"
)

// decide writes the processed events of verified deliveries, gives each its
// verdict, and returns the jobs that are known.
func (t Tx) decide(ctx context.Context, group []*Arrival) ([]int64, error) {
	first, err := t.processEvents(ctx, group)
	if err != nil {
		return nil, err
	}
	known, err := t.claimKnown(ctx, group)
	if err != nil {
		return nil, err
	}
	for _, a := range group {
		a.judge(known[a.VendorJobID], first[a.VendorJobID])
		// The second delivery of one job in a group is a duplicate of the first.
		delete(first, a.VendorJobID)
	}
	jobs := make([]int64, 0, len(known))
	for _, id := range known {
		jobs = append(jobs, id)
	}
	return jobs, nil
}

// processEvents inserts the idempotency records, claimed at once for jobs that
// are known, and returns which are new.
func (t Tx) processEvents(ctx context.Context, group []*Arrival) (map[string]bool, error) {
	ids, events, at := make([]string, len(group)), make([]string, len(group)), make([]time.Time, len(group))
	for i, a := range group {
		ids[i], events[i], at[i] = a.VendorJobID, CleanText(a.EventType), a.ReceivedAt
	}
	rows, err := t.tx.Tx.QueryContext(ctx, `INSERT INTO processed_events (vendor_job_id, event_type, received_at, state, job_id)
		SELECT DISTINCT ON (g.id) g.id, g.event, g.at, CASE WHEN j.id IS NULL THEN 'held' ELSE 'claimed' END, j.id
		FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS g (id, event, at)
		LEFT JOIN jobs j ON j.vendor_job_id = g.id ORDER BY g.id, g.at
		ON CONFLICT (vendor_job_id) DO NOTHING RETURNING vendor_job_id`, ids, events, at)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	first := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, translate(err)
		}
		first[id] = true
	}
	return first, translate(rows.Err())
}

// claimKnown finds the jobs the group is about and claims for them events that
// were held until now.
func (t Tx) claimKnown(ctx context.Context, group []*Arrival) (map[string]int64, error) {
	ids := make([]string, len(group))
	for i, a := range group {
		ids[i] = a.VendorJobID
	}
	rows, err := t.tx.Tx.QueryContext(ctx, `WITH known AS (
			SELECT id, vendor_job_id FROM jobs WHERE vendor_job_id = ANY ($1)),
		waiting AS MATERIALIZED (SELECT pe.vendor_job_id, known.id FROM processed_events pe JOIN known USING (vendor_job_id)
			WHERE pe.state <> 'claimed' ORDER BY pe.vendor_job_id FOR NO KEY UPDATE OF pe),
		claimed AS (UPDATE processed_events pe SET state = 'claimed', job_id = w.id FROM waiting w
			WHERE pe.vendor_job_id = w.vendor_job_id)
		SELECT id, vendor_job_id FROM known ORDER BY id`, ids)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	known := map[string]int64{}
	for rows.Next() {
		var id int64
		var vendor string
		if err := rows.Scan(&id, &vendor); err != nil {
			return nil, translate(err)
		}
		known[vendor] = id
	}
	return known, translate(rows.Err())
}

// deliveryColumns are deliveries turned on their side, as unnest takes them.
type deliveryColumns struct {
	webhook                                         []*int64
	at                                              []time.Time
	verdict, reason, event, job, vendorID, form, by []string
	status                                          []int16
	version                                         []*int32
	micros, size                                    []int64
	headers, body                                   [][]byte
	unsigned                                        []bool
}

func newDeliveryColumns(n int) *deliveryColumns {
	return &deliveryColumns{webhook: make([]*int64, 0, n), headers: make([][]byte, 0, n), body: make([][]byte, 0, n)}
}

func (c *deliveryColumns) add(d *Delivery) {
	c.webhook, c.at = append(c.webhook, d.WebhookID), append(c.at, d.ReceivedAt)
	c.verdict, c.reason = append(c.verdict, string(d.Verdict)), append(c.reason, CleanText(d.Reason))
	c.event, c.job = append(c.event, CleanText(d.EventType)), append(c.job, CleanText(d.VendorJobID))
	c.vendorID, c.form = append(c.vendorID, CleanText(d.VendorDeliveryID)), append(c.form, d.SignatureForm)
	c.by, c.status = append(c.by, CleanText(d.Source)), append(c.status, int16(d.Status)) //nolint:gosec // An HTTP status fits.
	var version *int32
	if d.SecretVersion != nil {
		v := int32(*d.SecretVersion) //nolint:gosec // Secrets are counted by rotations.
		version = &v
	}
	c.version = append(c.version, version)
	c.micros, c.size = append(c.micros, d.Micros), append(c.size, d.BodySize)
	c.headers, c.body = append(c.headers, d.Headers), append(c.body, d.Body)
	c.unsigned = append(c.unsigned, d.Unsigned)
}

// insert writes the deliveries and returns their ids.
func (c *deliveryColumns) insert(ctx context.Context, t Tx) ([]int64, error) {
	rows, err := t.tx.Tx.QueryContext(ctx, `INSERT INTO deliveries (webhook_id, received_at, verdict, status, reason,
			event_type, vendor_job_id, vendor_delivery_id, secret_version, signature_form, source, micros,
			headers, body, body_size, unsigned)
		SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::smallint[], $5::text[],
			$6::text[], $7::text[], $8::text[], $9::integer[], $10::text[], $11::text[], $12::bigint[],
			$13::bytea[], $14::bytea[], $15::bigint[], $16::boolean[])
		RETURNING id`,
		c.webhook, c.at, c.verdict, c.status, c.reason, c.event, c.job, c.vendorID, c.version, c.form, c.by,
		c.micros, c.headers, c.body, c.size, c.unsigned)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	ids := make([]int64, 0, len(c.webhook))
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, translate(err)
		}
		ids = append(ids, id)
	}
	return ids, translate(rows.Err())
}
