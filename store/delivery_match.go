package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// sameDelivery finds for each attempt of one vendor's id, k, the delivery that
// it is here: one that carries the id and was answered as the attempt notes.
// The vendor's times are whole seconds, and a retry's is when it was planned.
// So when as many are here as attempts note the status, they are taken in
// order; else the nearest in time, and of fewer deliveries than attempts none
// twice: what was found before stays, and of attempts of one time the last is
// it, as the first delivery is the first to go. Of an attempt without an
// answer, it is none that another one notes. An attempt whose delivery has gone
// keeps it. A first attempt that is the only one, and came more than once, is
// the delivery that came first: the others repeat it.
// Nobody tries one delivery as often as the limit says.
const sameDelivery = `WITH
	a AS (SELECT tries.*, row_number() OVER (alike ORDER BY attempt) AS n, count(*) OVER alike AS many, min(attempt) OVER alike > 0 AS numbered,
			attempt = 1 AND count(*) OVER () = 1 AS alone
		FROM (SELECT dl.attempt, dl.http_status, dl.delivery_id, coalesce(dl.delivered_at, dl.created_at) AS at FROM delivery_log AS dl
			WHERE dl.webhook_id = k.webhook_id AND dl.vendor_id = k.vendor_id
			  AND (dl.delivery_id IS NULL OR EXISTS (SELECT FROM deliveries AS kept WHERE kept.id = dl.delivery_id))
			ORDER BY dl.attempt DESC LIMIT 200) AS tries
		WINDOW alike AS (PARTITION BY http_status)),
	d AS (SELECT here.id, here.status, here.received_at, count(*) OVER alike AS many,
			row_number() OVER (alike ORDER BY here.received_at, here.id) AS n
		FROM deliveries AS here
		WHERE here.vendor_delivery_id = k.vendor_id AND here.vendor_delivery_id <> '' AND here.webhook_id = k.webhook_id
		WINDOW alike AS (PARTITION BY here.status))
	SELECT a.attempt, a.delivery_id AS was, (SELECT d.id FROM d
		WHERE CASE WHEN a.http_status IS NULL THEN NOT EXISTS (SELECT FROM a AS other WHERE other.http_status = d.status)
			WHEN a.http_status <> d.status THEN false
			WHEN a.numbered AND a.many = d.many THEN a.n = d.n
			WHEN a.many > d.many THEN a.attempt = (SELECT other.attempt FROM a AS other WHERE other.http_status = d.status
				ORDER BY (other.delivery_id = d.id) IS TRUE DESC, abs(extract(epoch FROM d.received_at - other.at)), other.attempt DESC LIMIT 1)
			ELSE true END
		ORDER BY CASE WHEN a.alone THEN d.n END, abs(extract(epoch FROM d.received_at - a.at)), d.id LIMIT 1) AS now
	FROM a`

// matchAttempts looks for the deliveries of all attempts that share a vendor's
// id with one of what is looked at: one that comes later can change what the
// earlier ones are. What is found is written down first, or the planner looks
// once for each row of the log that it joins.
const matchAttempts = `WITH found AS MATERIALIZED (SELECT k.webhook_id, k.vendor_id, same.attempt, same.was, same.now
		FROM (SELECT DISTINCT webhook_id, vendor_id FROM (?) AS looked WHERE vendor_id <> '') AS k
		CROSS JOIN LATERAL (` + sameDelivery + `) AS same)
	UPDATE delivery_log SET delivery_id = found.now FROM found
	WHERE found.was IS DISTINCT FROM found.now AND delivery_log.webhook_id = found.webhook_id
	  AND delivery_log.vendor_id = found.vendor_id AND delivery_log.attempt = found.attempt
	  AND delivery_log.delivery_id IS NOT DISTINCT FROM found.was`

// matchLog looks for the deliveries of the attempts with these vendor's ids,
// webhook by webhook.
func (q Queries) matchLog(ctx context.Context, webhooks []int64, vendorIDs []string) error {
	if len(vendorIDs) == 0 {
		return nil
	}
	looked := q.db.NewSelect().ColumnExpr("*").
		TableExpr("unnest(ARRAY[?]::bigint[], ARRAY[?]::text[]) AS g (webhook_id, vendor_id)", bun.List(webhooks), bun.List(vendorIDs))
	_, err := q.db.NewRaw(matchAttempts, looked).Exec(ctx)
	return translate(err)
}

// MatchLog looks once more for the deliveries that a webhook's attempts since
// the time are here, of at most limit, the newest, that are none so far: what
// is refused is written a moment after the answer.
func (q Queries) MatchLog(ctx context.Context, webhookID int64, since time.Time, limit int) error {
	looked := q.db.NewSelect().Model((*LogRow)(nil)).Column("webhook_id", "vendor_id").
		Where("dl.webhook_id = ? AND dl.delivery_id IS NULL AND dl.created_at >= ?", webhookID, since).
		Order("created_at DESC", "id DESC").Limit(int64(limit))
	_, err := q.db.NewRaw(matchAttempts, looked).Exec(ctx)
	return translate(err)
}
