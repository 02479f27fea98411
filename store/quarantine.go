package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Quarantined is what is counted of a refused delivery that is kept.
type Quarantined struct {
	ID         int64
	Source     string
	Status     int // 503: refused while the secret was being changed.
	Unsigned   bool
	ReceivedAt time.Time
	Bytes      int64 // Of the body, as far as it is kept.
}

// Quarantine lists what is quarantined of a webhook, without headers and
// bodies. It reads the webhook's own refused rows and no others.
func (q Queries) Quarantine(ctx context.Context, webhookID int64) ([]Quarantined, error) {
	var out []Quarantined
	// The length of a body that is stored apart is known without reading it.
	err := q.db.NewRaw(`SELECT id, source, status, unsigned, received_at, octet_length(body) AS bytes FROM deliveries
		WHERE webhook_id = ? AND verdict IN ('refused', 'unreadable')`, webhookID).Scan(ctx, &out)
	return out, translate(err)
}

// KnownSources are the addresses that a webhook's newest verified deliveries
// came from.
func (q Queries) KnownSources(ctx context.Context, webhookID int64) ([]string, error) {
	var out []string
	err := q.db.NewRaw(`SELECT DISTINCT d.source FROM
		(SELECT version FROM webhook_secrets WHERE webhook_id = ?id ORDER BY version DESC LIMIT 3) v,
		LATERAL (SELECT source FROM deliveries WHERE webhook_id = ?id AND secret_version = v.version
			ORDER BY received_at DESC LIMIT 100) d`, named{"id": webhookID}).Scan(ctx, &out)
	return out, translate(err)
}

// SecretChange reports since when a webhook's secret is being changed; the
// zero time when it is not. The change lasts until its rotation ends: what was
// refused meanwhile is verified again before that.
func (q Queries) SecretChange(ctx context.Context, webhookID int64) (time.Time, error) {
	var since []time.Time
	err := q.db.NewRaw(`SELECT coalesce(r.started_at, w.state_at) FROM webhooks w
		LEFT JOIN rotations r ON r.webhook_id = w.id AND r.ended_at IS NULL
		WHERE w.id = ? AND (w.state IN ('registering', 'rotating', 'secret_unknown') OR r.id IS NOT NULL)`, webhookID).Scan(ctx, &since)
	if err != nil || len(since) == 0 {
		return time.Time{}, translate(err)
	}
	return since[0], nil
}

// ShareSecrets keeps others from storing a secret of a webhook until the
// transaction ends, and returns the newest version that is good at the time;
// zero when there is none. Whoever stores one locks the row FOR UPDATE, so
// what this transaction refuses is committed wholly before or wholly after.
func (t Tx) ShareSecrets(ctx context.Context, webhookID int64, at time.Time) (int, error) {
	var id int64
	if err := t.db.NewRaw(`SELECT id FROM webhooks WHERE id = ? FOR SHARE`, webhookID).Scan(ctx, &id); err != nil {
		return 0, translate(err)
	}
	return t.count(ctx, `SELECT coalesce(max(version), 0) FROM webhook_secrets
		WHERE webhook_id = ? AND (valid_until IS NULL OR valid_until > ?)`, webhookID, at)
}

// InsertDeliveries writes deliveries that were refused and returns their ids.
func (t Tx) InsertDeliveries(ctx context.Context, list []*Delivery) ([]int64, error) {
	c := newDeliveryColumns(len(list))
	for _, d := range list {
		c.add(d)
	}
	return c.insert(ctx, t)
}

// DropQuarantined deletes refused deliveries. The vendor's attempts that they
// were are none here from then on: else they would stand as received.
func (t Tx) DropQuarantined(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	// What was taken up meanwhile is refused no more, and stays.
	_, err := t.db.NewRaw(`WITH mine AS (SELECT id FROM deliveries WHERE id IN (?) AND verdict IN ('refused', 'unreadable') ORDER BY id FOR UPDATE),
		gone AS (DELETE FROM deliveries AS d USING mine WHERE d.id = mine.id RETURNING d.id)
		UPDATE delivery_log AS dl SET delivery_id = NULL FROM gone WHERE dl.delivery_id = gone.id`, bun.List(ids)).Exec(ctx)
	return translate(err)
}

// RefusedCause says why a refused delivery was counted instead of kept.
type RefusedCause string

// The causes.
const (
	CauseUnsigned RefusedCause = "unsigned" // Without a signature, beyond the sample.
	CauseFull     RefusedCause = "full"     // Of the source that has most of a full quarantine.
	CauseBusy     RefusedCause = "busy"     // More came at once than could be written.
)

// RefusedCount is how many refused deliveries of a day were counted instead of
// kept.
type RefusedCount struct {
	WebhookID  int64
	EventType  string // The webhook's, when counts are read.
	Day        time.Time
	Cause      RefusedCause
	Deliveries int64
	LastAt     time.Time
	LastSource string
}

// AddRefusedCount adds to the count of a day; a webhook that is gone counts
// nothing.
func (q Queries) AddRefusedCount(ctx context.Context, c RefusedCount) error {
	_, err := q.db.NewRaw(`INSERT INTO refused_counts AS rc (webhook_id, day, cause, deliveries, last_at, last_source)
		SELECT id, ?day::timestamptz::date, ?cause, ?n, ?at, ?source FROM webhooks WHERE id = ?id
		ON CONFLICT (webhook_id, day, cause) DO UPDATE SET deliveries = rc.deliveries + excluded.deliveries,
			last_at = greatest(rc.last_at, excluded.last_at), last_source = excluded.last_source`,
		named{"id": c.WebhookID, "day": c.Day.UTC(), "cause": c.Cause, "n": c.Deliveries, "at": c.LastAt, "source": CleanText(c.LastSource)}).Exec(ctx)
	return translate(err)
}

// UnsignedCounts sums up, for each webhook and cause, the refused deliveries
// that were counted instead of kept since a day.
func (q Queries) UnsignedCounts(ctx context.Context, since time.Time) ([]RefusedCount, error) {
	var out []RefusedCount
	err := q.db.NewRaw(`SELECT rc.webhook_id, w.event_type, min(rc.day) AS day, rc.cause, sum(rc.deliveries)::bigint AS deliveries,
			max(rc.last_at) AS last_at, (array_agg(rc.last_source ORDER BY rc.last_at DESC))[1] AS last_source
		FROM refused_counts rc JOIN webhooks w ON w.id = rc.webhook_id WHERE rc.day >= ?::timestamptz::date
		GROUP BY rc.webhook_id, w.event_type, rc.cause ORDER BY rc.webhook_id, rc.cause`, since.UTC()).Scan(ctx, &out)
	return out, translate(err)
}

// Undiagnosed is a refused delivery whose reason has not been looked for.
type Undiagnosed struct {
	ID        int64
	WebhookID int64 // Zero: it came to no webhook of ours.
	Source    string
}

// undiagnosed leaves out webhooks whose secret is being changed: what can't be
// verified now may well be when the change is over.
const undiagnosed = ` FROM deliveries d LEFT JOIN webhooks w ON w.id = d.webhook_id
	WHERE d.verdict = 'refused' AND d.diagnosed_at IS NULL
	  AND (w.state IS NULL OR w.state NOT IN ('registering', 'rotating', 'secret_unknown'))`

// AnyUndiagnosed reports whether Undiagnosed would list any.
func (q Queries) AnyUndiagnosed(ctx context.Context) (bool, error) {
	var is bool
	err := q.db.NewRaw(`SELECT EXISTS (SELECT`+undiagnosed+`)`).Scan(ctx, &is)
	return is, translate(err)
}

// Undiagnosed lists refused deliveries whose reason has not been looked for,
// the newest first.
func (q Queries) Undiagnosed(ctx context.Context, limit int) ([]Undiagnosed, error) {
	var out []Undiagnosed
	err := q.db.NewRaw(`SELECT d.id, coalesce(d.webhook_id, 0) AS webhook_id, d.source`+undiagnosed+` ORDER BY d.id DESC LIMIT ?`, limit).Scan(ctx, &out)
	return out, translate(err)
}

// Diagnose writes down why deliveries were refused. Those that were taken up
// meanwhile need no reason.
func (q Queries) Diagnose(ctx context.Context, ids []int64, diagnosis string, at time.Time) (int64, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	return affected(q.db.NewRaw(`UPDATE deliveries SET diagnosis = ?, diagnosed_at = ? WHERE id IN (?) AND verdict = 'refused'`,
		CleanText(diagnosis), at, bun.List(ids)).Exec(ctx))
}

// WholeDelivery is one delivery with headers and body; ErrNotFound when there
// is none.
func (q Queries) WholeDelivery(ctx context.Context, id int64) (*Delivery, error) {
	d := new(Delivery)
	if err := q.db.NewSelect().Model(d).Where("d.id = ?", id).Scan(ctx); err != nil {
		return nil, translate(err)
	}
	return d, nil
}

// AllSecrets lists the newest versions of a webhook's secret, ended ones too,
// newest first.
func (q Queries) AllSecrets(ctx context.Context, webhookID, limit int64) ([]WebhookSecret, error) {
	var out []WebhookSecret
	err := q.db.NewSelect().Model(&out).Where("webhook_id = ?", webhookID).Order("version DESC").Limit(limit).Scan(ctx)
	return out, translate(err)
}
