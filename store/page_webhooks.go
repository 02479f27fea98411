package store

import (
	"context"
)

// PageWebhooks lists the webhooks of this installation, removed ones left out.
func (q Queries) PageWebhooks(ctx context.Context) ([]Webhook, error) {
	var hooks []Webhook
	err := q.db.NewSelect().Model(&hooks).Where("w.state <> 'removed'").Order("w.id").Limit(maxWebhooks).Scan(ctx)
	return hooks, translate(err)
}
