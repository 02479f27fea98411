package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// PageWebhooks lists the webhooks of this installation, removed ones left out.
func (q Queries) PageWebhooks(ctx context.Context) ([]Webhook, error) {
	var hooks []Webhook
	err := q.db.NewSelect().Model(&hooks).Where("w.state <> 'removed'").Order("w.id").Limit(maxWebhooks).Scan(ctx)
	return hooks, translate(err)
}

// SecretUse is a version of a webhook's secret and what it verified, counted up
// to one more than CountLimit.
type SecretUse struct {
	WebhookID  int64
	Version    int
	ValidFrom  time.Time
	ValidUntil *time.Time
	Verified   int64
	LastSeen   *time.Time // Of a delivery that it verified.
}

// PageVersions lists the versions as PageSecrets does, without what they
// verified: for who can't wait for the counts.
func (q Queries) PageVersions(ctx context.Context, webhookIDs []int64, newest int) ([]SecretUse, error) {
	if len(webhookIDs) == 0 {
		return nil, nil
	}
	var uses []SecretUse
	err := q.db.NewRaw(`SELECT s.webhook_id, s.version, s.valid_from, s.valid_until FROM (`+newestSecrets+`) s
		WHERE s.n <= ?newest ORDER BY s.webhook_id, s.version DESC`,
		named{"ids": bun.List(webhookIDs), "newest": newest}).Scan(ctx, &uses)
	return uses, translate(err)
}

// newestSecrets numbers the secret versions of each webhook from the newest.
const newestSecrets = `SELECT webhook_id, version, valid_from, valid_until,
	row_number() OVER (PARTITION BY webhook_id ORDER BY version DESC) AS n FROM webhook_secrets WHERE webhook_id IN (?ids)`

// verifiedBy are the deliveries that a secret version verified, as a stretch of
// deliveries_secret_idx and in its order, so that no other index will do.
const verifiedBy = `FROM deliveries d WHERE d.secret_version IS NOT NULL
	AND (d.webhook_id, d.secret_version, d.received_at) >= (s.webhook_id, s.version, '-infinity'::timestamptz)
	AND (d.webhook_id, d.secret_version, d.received_at) <= (s.webhook_id, s.version, 'infinity'::timestamptz)`

// alongIndexes keeps the planner from gathering rows and sorting them. It can't
// know how little a new version verified, and would look for that in all there is.
const alongIndexes = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
	set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true)`

// PageSecrets lists the newest versions of webhooks' secrets, at most so many
// of each, newest first. The counts go along an index and stop.
func (q Queries) PageSecrets(ctx context.Context, webhookIDs []int64, newest int) ([]SecretUse, error) {
	if len(webhookIDs) == 0 {
		return nil, nil
	}
	var uses []SecretUse
	err := q.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.ExecContext(ctx, alongIndexes); err != nil {
			return err
		}
		return tx.NewRaw(`SELECT s.webhook_id, s.version, s.valid_from, s.valid_until,
				(SELECT count(*) FROM (SELECT `+verifiedBy+`
					ORDER BY d.webhook_id, d.secret_version, d.received_at LIMIT ?limit) counted) AS verified,
				(SELECT d.received_at `+verifiedBy+`
					ORDER BY d.webhook_id DESC, d.secret_version DESC, d.received_at DESC LIMIT 1) AS last_seen
			FROM (`+newestSecrets+`) s
			WHERE s.n <= ?newest ORDER BY s.webhook_id, s.version DESC`,
			named{"limit": CountLimit + 1, "ids": bun.List(webhookIDs), "newest": newest}).Scan(ctx, &uses)
	})
	return uses, translate(err)
}
