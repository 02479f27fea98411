package store

import (
	"context"
	"time"
)

// TestJob is the one job of a batch that tries a webhook, and its one item. The
// members of the job are empty before the item has one.
type TestJob struct {
	BatchID      int64
	Name         string // Of the batch.
	CreatedAt    time.Time
	Kind         Kind
	JobID        int64
	JobState     JobState
	VendorJobID  string
	AcceptedAt   *time.Time
	VendorStatus string
	EndedAt      *time.Time
	SettleNet    Net
	JobError     string
	ItemID       int64
	ItemState    ItemState
	ItemError    string
	ItemEndedAt  *time.Time
	ItemNet      Net
}

// TestDelivery is a delivery that may be the one a webhook is tried for.
type TestDelivery struct {
	ID            int64
	WebhookID     int64
	ReceivedAt    time.Time
	Verdict       Verdict
	Status        int
	Reason        string
	Diagnosis     string
	SecretVersion int
	RecoveredAt   *time.Time
	NamesJob      bool // A refused one whose body names the job: its signature proves nothing.
}

// testDeliveries bounds the deliveries looked at for one try.
const testDeliveries = 20

// PageTestJob is the first item of a batch with its current job; ErrNotFound
// when there is no such batch.
func (q Queries) PageTestJob(ctx context.Context, batchID int64) (*TestJob, error) {
	t := new(TestJob)
	err := q.db.NewRaw(`SELECT b.id AS batch_id, b.name, b.created_at, b.kind, coalesce(j.id, 0) AS job_id, coalesce(j.state, '') AS job_state,
			coalesce(j.vendor_job_id, '') AS vendor_job_id, j.accepted_at, coalesce(j.vendor_status, '') AS vendor_status,
			j.ended_at, coalesce(j.settle_net, '') AS settle_net, concat_ws(': ', nullif(j.error_code, ''), nullif(j.error_message, '')) AS job_error,
			i.id AS item_id, i.state AS item_state, concat_ws(': ', nullif(i.error_code, ''), nullif(i.error_message, '')) AS item_error,
			i.ended_at AS item_ended_at, coalesce(i.net, '') AS item_net
		FROM batches b JOIN items i ON i.batch_id = b.id LEFT JOIN jobs j ON j.id = i.current_job_id
		WHERE b.id = ? ORDER BY i.position, i.id LIMIT 1`, batchID).Scan(ctx, t)
	if err != nil {
		return nil, translate(err)
	}
	return t, nil
}

// PageTestDeliveries lists what came for a vendor's job, oldest first, and what
// a webhook refused since a time, newest first.
func (q Queries) PageTestDeliveries(ctx context.Context, webhookID int64, vendorJobID string, since time.Time) ([]TestDelivery, []TestDelivery, error) {
	const columns = `SELECT d.id, coalesce(d.webhook_id, 0) AS webhook_id, d.received_at, d.verdict, d.status, d.reason, d.diagnosis,
		coalesce(d.secret_version, 0) AS secret_version, d.recovered_at, `
	var came, refused []TestDelivery
	if vendorJobID != "" {
		err := q.db.NewRaw(columns+`true AS names_job FROM deliveries d WHERE d.vendor_job_id = ? AND d.vendor_job_id <> ''
			ORDER BY d.received_at, d.id LIMIT ?`, vendorJobID, testDeliveries).Scan(ctx, &came)
		if err != nil {
			return nil, nil, translate(err)
		}
	}
	// Said in the index's own words, or the planner can't use it.
	err := q.db.NewRaw(columns+`?job <> '' AND position(convert_to(?job, 'UTF8') IN d.body) > 0 AS names_job FROM deliveries d
		WHERE d.verdict = 'refused' AND d.verdict <> 'accepted' AND d.received_at >= ?since AND d.webhook_id = ?webhook
		ORDER BY d.received_at DESC, d.id DESC LIMIT ?limit`,
		named{"job": vendorJobID, "since": since, "webhook": webhookID, "limit": testDeliveries}).Scan(ctx, &refused)
	return came, refused, translate(err)
}
