package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// Day is the roll call of the batches submitted on one day, in UTC. Its batch
// has counters only.
type Day struct {
	Day time.Time
	Batch
}

// maxDays bounds how far back the days go.
const maxDays = 31

// PageDays sums the counters of the batches submitted since a time, by day,
// oldest first; days without a submission are left out.
func (q Queries) PageDays(ctx context.Context, since time.Time) ([]Day, error) {
	var days []Day
	err := q.db.NewRaw(`SELECT date_trunc('day', created_at, 'UTC') AS day, sum(submitted) AS submitted,
			sum(invalid) AS invalid, sum(duplicate) AS duplicate, sum(accepted) AS accepted,
			sum(stored_webhook) AS stored_webhook, sum(stored_poll) AS stored_poll,
			sum(stored_reconcile) AS stored_reconcile, sum(stored_replay) AS stored_replay,
			sum(stored_sync) AS stored_sync, sum(failed) AS failed, sum(cancelled) AS cancelled,
			sum(outstanding) AS outstanding
		FROM batches WHERE created_at >= ? GROUP BY 1 ORDER BY 1 LIMIT ?`, since, maxDays).Scan(ctx, &days)
	return days, translate(err)
}

// Backlog says how many jobs wait for a call and how many are at the vendor,
// each counted up to one more than CountLimit.
type Backlog struct {
	Waiting int64
	Open    int64
}

// PageBacklog counts the jobs that aren't home yet.
func (q Queries) PageBacklog(ctx context.Context) (Backlog, error) {
	waiting, err := q.countUpTo(ctx, q.db.NewSelect().Model((*Job)(nil)).Where("j.state = ?", JobIntended))
	if err != nil {
		return Backlog{}, err
	}
	open, err := q.countUpTo(ctx, q.db.NewSelect().Model((*Job)(nil)).Where("j.state = ?", JobAccepted))
	return Backlog{Waiting: waiting, Open: open}, err
}

// Punctuality says of the last jobs of a kind how many had their webhook in
// time.
type Punctuality struct {
	Kind   Kind
	Jobs   int64
	InTime int64
}

// PagePunctuality looks at the last jobs that count in a WebhookRecord, by
// kind: together they are that record.
func (q Queries) PagePunctuality(ctx context.Context, last int, within time.Duration, now time.Time) ([]Punctuality, error) {
	var kinds []Punctuality
	err := q.db.NewRaw(`SELECT kind, count(*) AS jobs,
			count(*) FILTER (WHERE webhook_at <= ended_at + make_interval(secs => ?)) AS in_time
		FROM (SELECT kind, webhook_at, ended_at FROM (SELECT kind, webhook_at, ended_at, vendor_status, id FROM jobs
				WHERE state = 'settled' ORDER BY ended_at DESC, id DESC LIMIT ?) recent
			WHERE vendor_status = 'completed' AND (webhook_at IS NOT NULL OR ended_at <= ?)
			ORDER BY ended_at DESC, id DESC LIMIT ?) counting GROUP BY kind`,
		within.Seconds(), recordReach*last, now.Add(-within), last).Scan(ctx, &kinds)
	return kinds, translate(err)
}

// PageTroubledWebhooks lists webhooks that bring nothing home any more, unless a later one brings their events.
func (q Queries) PageTroubledWebhooks(ctx context.Context) ([]Webhook, error) {
	var hooks []Webhook
	err := q.db.NewSelect().Model(&hooks).Where("w.state IN (?)", bun.List([]WebhookState{
		WebhookInactive, WebhookMoved, WebhookGone, WebhookSecretUnknown,
	})).Where("NOT EXISTS (SELECT FROM webhooks other WHERE other.event_type = w.event_type AND other.state IN (?))",
		bun.List([]WebhookState{WebhookLive, WebhookRotating})).Order("w.id").Limit(maxWebhooks).Scan(ctx)
	return hooks, translate(err)
}

// PageRefused counts by webhook the deliveries received since a time that stand
// as refused: of each up to one more than CountLimit, and none of a webhook
// without any. It reads what is quarantined of them and no more.
func (q Queries) PageRefused(ctx context.Context, webhookIDs []int64, since time.Time) (map[int64]int64, error) {
	counts := make(map[int64]int64, len(webhookIDs))
	if len(webhookIDs) == 0 {
		return counts, nil
	}
	var rows []struct{ WebhookID, Refused int64 }
	err := q.db.NewRaw(`SELECT w.id AS webhook_id, n.refused FROM webhooks AS w, LATERAL (SELECT count(*) AS refused FROM (
			SELECT FROM deliveries AS d WHERE d.webhook_id = w.id AND d.verdict = 'refused' AND d.received_at >= ? LIMIT ?) AS counted) AS n
		WHERE w.id IN (?) AND n.refused > 0`, since, CountLimit+1, bun.List(webhookIDs)).Scan(ctx, &rows)
	for _, row := range rows {
		counts[row.WebhookID] = row.Refused
	}
	return counts, translate(err)
}

// maxWebhooks bounds lists of webhooks; the vendor allows ten.
const maxWebhooks = 100
