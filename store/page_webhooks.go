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

// PageSecrets lists the newest versions of webhooks' secrets, at most so many
// of each, newest first. The counts go along an index and stop.
func (q Queries) PageSecrets(ctx context.Context, webhookIDs []int64, newest int) ([]SecretUse, error) {
	if len(webhookIDs) == 0 {
		return nil, nil
	}
	var uses []SecretUse
	err := q.db.NewRaw(`SELECT s.webhook_id, s.version, s.valid_from, s.valid_until,
			(SELECT count(*) FROM (SELECT FROM deliveries d
				WHERE d.webhook_id = s.webhook_id AND d.secret_version = s.version LIMIT ?limit) counted) AS verified,
			(SELECT d.received_at FROM deliveries d WHERE d.webhook_id = s.webhook_id AND d.secret_version = s.version
				ORDER BY d.received_at DESC LIMIT 1) AS last_seen
		FROM (`+newestSecrets+`) s
		WHERE s.n <= ?newest ORDER BY s.webhook_id, s.version DESC`,
		named{"limit": CountLimit + 1, "ids": bun.List(webhookIDs), "newest": newest}).Scan(ctx, &uses)
	return uses, translate(err)
}
